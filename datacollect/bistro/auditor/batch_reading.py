"""Batches of bistros: whether somebody has handed their rows in, and whether they make a chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.auditor.findings import NOT_HANDED_IN, OPENS_NOTHING, Finding, finding
from datacollect.bistro.auditor.tables import HELD
from datacollect.bistro.formats.custody.batch_chain import Link, chain_faults
from datacollect.bistro.formats.custody.batches import judged, read_batch
from datacollect.bistro.formats.receipt.evidence import Lie
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.bistro.formats.event.event import Event


@dataclass(frozen=True)
class BatchHead:
    """Facts kept of a batch: whose it is, where in the chain, and how many rows it has."""

    bistro: str
    link: Link
    n_rows: int

    @property
    def number(self) -> int:
        """Of the batch, from 0."""
        return self.link.number


@dataclass(frozen=True)
class BatchRead:
    """A batch as an audit has read it.

    Attributes
    ----------
    head : BatchHead or None
        None: it is no batch of the event.
    held : numpy.ndarray
        Of dtype `HELD`, the rows that their owners have signed for.
    findings : list of Finding
    trouble : str
        Why it is no batch.
    """

    head: BatchHead | None
    held: np.ndarray
    findings: list[Finding]
    trouble: str = ""


def read(data: bytes, event: Event, place: str) -> BatchRead:
    """Read a batch, compute the commitments of all its rows, and verify what owners have signed.

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
    rows, found = batch.rows, judged(batch, event)
    invented = _entries(rows[~found.is_open])
    not_signed = _entries(rows[found.is_open & ~found.is_handed_in])
    names = [each.name for each in event.bistros]
    held = np.zeros(int(found.is_handed_in.sum()), HELD)
    for column in ("entry", "size", "sha256"):
        held[column] = rows[column][found.is_handed_in]
    held["bistro"], held["batch"] = names.index(batch.bistro), batch.number
    link = Link(batch.number, batch.digest, batch.previous)
    head = BatchHead(batch.bistro, link, len(rows))
    findings = finding(OPENS_NOTHING, (batch.bistro,), invented)
    findings += finding(NOT_HANDED_IN, (batch.bistro,), not_signed)
    return BatchRead(head, held, findings)


def _entries(rows: np.ndarray) -> list[bytes]:
    return [row["entry"].tobytes() for row in rows]


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
    by_bistro: dict[str, list[Link]] = {}
    for head in heads:
        by_bistro.setdefault(head.bistro, []).append(head.link)
    lies: list[Lie] = []
    absent: list[str] = []
    for bistro, links in sorted(by_bistro.items()):
        found = chain_faults(links)
        lies += [
            Lie(
                bistro,
                f"It has signed {len(same)} different batches with the number {same[0].number}.",
            )
            for same in found.doubled
        ]
        lies += [
            Lie(bistro, f"Its batch {number} does not follow the one before it.")
            for number in dict.fromkeys(link.number for link in found.broken)
        ]
        absent += [_not_here(bistro, each) for each in found.absent]
    return lies, absent


def _not_here(bistro: str, numbers: range) -> str:
    if len(numbers) == 1:
        return f"batch {numbers.start} of {bistro} is not here"
    return f"batches {numbers.start} to {numbers.stop - 1} of {bistro} are not here"
