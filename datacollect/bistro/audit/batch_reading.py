"""Batches of bistros: whether their rows open commitments, and whether they make one chain."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.audit.findings import OPENS_NOTHING, Finding, finding
from datacollect.bistro.audit.tables import HELD
from datacollect.bistro.custody.batches import FIRST, MOST_ROWS, ROW, read_batch
from datacollect.bistro.log.entry import COMMITMENT_LABEL, SIZE_STOP
from datacollect.bistro.log.notes import MOST_NOTE_BYTES
from datacollect.bistro.receipt.evidence import Lie
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.bistro.event.event import Event

MOST_BATCH_BYTES = 4 + MOST_NOTE_BYTES + MOST_ROWS * ROW.itemsize
# Columns of a row that make its commitment, in their order in the commitment.
COMMITTED = ("salt", "committed_size", "committed_sha256", "content_p")
# Rows whose commitments are made at once.
N_TOGETHER = 10_000


@dataclass(frozen=True)
class BatchHead:
    """What chains a batch to others; attributes as those of a `Batch`."""

    bistro: str
    number: int
    previous: bytes
    digest: bytes
    n_rows: int


@dataclass(frozen=True)
class BatchRead:
    """A batch as an audit has read it.

    Attributes
    ----------
    head : BatchHead or None
        None: it is no batch of the event.
    held : numpy.ndarray
        Of dtype `HELD`, the rows that open their commitments.
    findings : list of Finding
    trouble : str
        Why it is no batch.
    """

    head: BatchHead | None
    held: np.ndarray
    findings: list[Finding]
    trouble: str = ""


def read(data: bytes, event: Event, place: str) -> BatchRead:
    """Read a batch, and compute the commitments of all its rows.

    Parameters
    ----------
    data : bytes
    event : Event
        With its amendments.
    place : str
        What messages call it.
    """
    try:
        batch = read_batch(data, event, place)
    except ProblemError as error:
        return BatchRead(None, np.zeros(0, HELD), [], str(error))
    rows = batch.rows
    is_open = opened(rows, event.id)
    invented = [row["entry"].tobytes() for row in rows[~is_open]]
    names = [each.name for each in event.bistros]
    held = np.zeros(int(is_open.sum()), HELD)
    for column in ("entry", "size", "sha256"):
        held[column] = rows[column][is_open]
    held["bistro"], held["batch"] = names.index(batch.bistro), batch.number
    head = BatchHead(batch.bistro, batch.number, batch.previous, batch.digest, len(rows))
    return BatchRead(head, held, finding(OPENS_NOTHING, (batch.bistro,), invented))


def opened(rows: np.ndarray, event: bytes) -> np.ndarray:
    """Return which rows open the commitments that they name.

    Parameters
    ----------
    rows : numpy.ndarray
        Of dtype `ROW`.
    event : bytes
        The event's id.
    """
    parts = [
        opened_together(rows[i : i + N_TOGETHER], event) for i in range(0, len(rows), N_TOGETHER)
    ]
    return np.concatenate([np.zeros(0, bool), *parts])


def opened_together(rows: np.ndarray, event: bytes) -> np.ndarray:
    """Return the same of few rows, whose commitments fit in memory."""
    raw = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), ROW.itemsize)
    label = np.frombuffer(COMMITMENT_LABEL + event, np.uint8)
    parts = [np.broadcast_to(label, (len(rows), len(label)))]
    assert ROW.fields is not None
    for column in COMMITTED:
        kind, start = ROW.fields[column][:2]
        parts.append(raw[:, start : start + kind.itemsize])
    messages = np.hstack(parts)
    n_bytes, data = messages.shape[1], messages.tobytes()
    sha256 = hashlib.sha256
    entries = b"".join(
        [sha256(data[i : i + n_bytes]).digest() for i in range(0, len(data), n_bytes)]
    )
    named = np.ascontiguousarray(rows["entry"]).view("S32")
    is_open: np.ndarray = np.frombuffer(entries, "S32") == named
    return is_open & (rows["committed_size"] < SIZE_STOP)


def chain(heads: Iterable[BatchHead]) -> tuple[list[Lie], list[str]]:
    """Hold the batches of all bistros against each other.

    Returns
    -------
    list of Lie
        Bistros that have signed two batches of one number, or one that does not fit the one before
        it.
    list of str
        Batches that bistros have signed, for later ones name them, and that are not here: whoever
        has kept them back has not signed that.
    """
    by_bistro: dict[str, dict[int, set[BatchHead]]] = {}
    for head in heads:
        by_bistro.setdefault(head.bistro, {}).setdefault(head.number, set()).add(head)
    lies: list[Lie] = []
    absent: list[str] = []
    for bistro, numbers in sorted(by_bistro.items()):
        lies += [
            Lie(bistro, f"It has signed {len(same)} batches {number} that differ.")
            for number, same in sorted(numbers.items())
            if len(same) > 1
        ]
        lies += [
            Lie(bistro, f"Its batch {number} does not follow the one before it.")
            for number, same in sorted(numbers.items())
            if not _follow(same, numbers.get(number - 1, set()))
        ]
        absent += _gaps(bistro, sorted(numbers))
    return lies, absent


def _follow(same: set[BatchHead], before: set[BatchHead]) -> bool:
    """Whether batches of one number name one of those before them, as far as these are here."""
    digests = {each.digest for each in before}
    for each in same:
        if each.number == 0:
            if each.previous != FIRST:
                return False
        elif each.previous == FIRST or (digests and each.previous not in digests):
            return False
    return True


def _gaps(bistro: str, numbers: list[int]) -> list[str]:
    """Say which batches are absent between those that are there."""
    found = []
    for one, other in zip([-1, *numbers[:-1]], numbers, strict=True):
        if other - one == 2:
            found.append(f"batch {one + 1} of {bistro} is not here")
        elif other - one > 2:
            found.append(f"batches {one + 1} to {other - 1} of {bistro} are not here")
    return found
