"""Reports of a bistro to the destination: rows of uploads in numbered, chained, signed batches.

A batch is a signed note and, after it, its rows, whose hash is in the note. Each note names the
hash of the note before it, so that a bistro can neither hide a batch nor put another in its place
unnoticed. A row opens the commitment, and the owner whom that names has signed for it: a bistro can
neither invent an upload, nor report one of somebody who has pushed nothing to it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.bistro.formats.event.kinds import Hex
from datacollect.bistro.formats.event.statements import is_by_key, push_statement
from datacollect.bistro.formats.log.checkpoints import SIZE_STOP, TIME_STOP, whole
from datacollect.bistro.formats.log.entry import (
    COMMITMENT_LABEL,
    ENTRY_BYTES,
    MARKED_BYTES,
    OWNERLESS_LABEL,
)
from datacollect.bistro.formats.log.notes import (
    MOST_NOTE_BYTES,
    OF_NOTE,
    Note,
    VerifierKey,
    is_by,
    parse_note,
    signed,
)
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.net.keys import SIGNATURE_BYTES, is_signed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.bistro.formats.event.event import Bistro, Event
    from datacollect.bistro.formats.log.entry import Commitment
    from datacollect.net.keys import PrivateKey

# The first is of events of version 1: its rows have no owner, and nobody has signed for them.
FORMATS = ("datacollect-batch/1", "datacollect-batch/2")
# What the first batch says of the one before it.
FIRST = bytes(32)
MOST_ROWS = 100_000
# Rows whose commitments are made at once.
N_TOGETHER = 10_000

# `committed_*` is what the entry commits to, `size` and `sha256` what the bistro holds: another
# ciphertext of the same content where it was sealed anew. `ticket` is zeros at an open event,
# `signature` the owner's over `push_statement`: without it nobody acts on a row; `ticket_signature`
# the ticket's over the same, zeros at an open event. `upload`: the number by which indices of
# segments call it.
_COMMON = [
    ("entry", "V32"),
    ("salt", "V32"),
    ("content_p", "V32"),
    ("committed_size", ">u8"),
    ("committed_sha256", "V32"),
    ("size", ">u8"),
    ("sha256", "V32"),
    ("ticket", "V16"),
    ("time_s", ">u8"),
]
OWNERLESS_ROW = np.dtype(_COMMON)
ROW = np.dtype(
    [
        *_COMMON,
        ("owner", "V32"),
        ("signature", "V64"),
        ("ticket_signature", "V64"),
        ("upload", ">u8"),
    ]
)

MOST_BATCH_BYTES = 4 + MOST_NOTE_BYTES + MOST_ROWS * ROW.itemsize
# Columns of a row that make its commitment, in their order there.
_COMMITTED = ("salt", "committed_size", "committed_sha256", "content_p")


def row_of_event(event: Event) -> np.dtype:
    """Return what the rows of an event's batches are like."""
    return ROW if event.is_signed_for else OWNERLESS_ROW


def bistro_key(event: Event, bistro: Bistro) -> VerifierKey:
    """Return the key that verifies the batches of a bistro."""
    return VerifierKey(f"bistro/{event.id.hex()[:16]}", bistro.key, OF_NOTE)


@dataclass(frozen=True)
class Batch:
    """A batch of a bistro's uploads.

    Attributes
    ----------
    event : bytes
        The event's id.
    bistro : str
    number : int
        From 0, without gaps.
    previous : bytes
        `digest` of the batch before it; `FIRST` where there is none.
    time_s : int
        The bistro's own clock, whole seconds since 1970; proves nothing.
    n_segments : int
        How many segments the bistro had closed by then: all that the rows name lies in these.
    rows : numpy.ndarray
        Of the dtype that `row_of_event` says.
    note : Note
        As it is signed.
    """

    event: bytes
    bistro: str
    number: int
    previous: bytes
    time_s: int
    n_segments: int
    rows: np.ndarray
    note: Note

    @property
    def digest(self) -> bytes:
        """Return what the next batch calls it.

        The SHA-256 of what is signed, rows included by theirs.
        """
        return hashlib.sha256(self.note.text.encode()).digest()

    @property
    def data(self) -> bytes:
        """The batch as a file holds it."""
        note = self.note.data
        return len(note).to_bytes(4, "big") + note + self.rows.tobytes()


def sign_batch(
    event: Event,
    bistro: str,
    number: int,
    previous: bytes,
    time_s: int,
    rows: np.ndarray,
    key: PrivateKey,
    n_segments: int = 0,
) -> Batch:
    """Return a batch as its bistro signs it; parameters as the attributes of `Batch`."""
    if rows.dtype != row_of_event(event) or len(rows) > MOST_ROWS:
        raise ValueError(f"a batch has at most {MOST_ROWS} rows of its own kind")
    text = "\n".join(
        [
            FORMATS[event.version - 1],
            event.id.hex(),
            bistro,
            str(number),
            previous.hex(),
            str(time_s),
            *([str(n_segments)] if event.is_signed_for else ()),
            str(len(rows)),
            hashlib.sha256(rows.tobytes()).hexdigest(),
            "",
        ]
    )
    note = signed(text, f"bistro/{event.id.hex()[:16]}", key)
    return Batch(event.id, bistro, number, previous, time_s, n_segments, rows, note)


def read_batch(data: bytes, event: Event, place: str = "the batch") -> Batch:
    """Return the batch that the bytes of a file are.

    Parameters
    ----------
    data : bytes
    event : Event
        With the amendments that are known: they may have added the bistro.
    place : str
        What messages call it.

    Raises
    ------
    ProblemError
        They are none, of another event, or not signed by the bistro that they name.
    """
    n_note = int.from_bytes(data[:4], "big")
    if n_note > MOST_NOTE_BYTES or len(data) < 4 + n_note:
        raise ProblemError(f"{place} must begin with the length of its note and the note")
    note = parse_note(data[4 : 4 + n_note], place)
    lines = note.text.split("\n")
    wanted, n_lines = FORMATS[event.version - 1], 10 if event.is_signed_for else 9
    if len(lines) != n_lines or lines[0] != wanted:
        raise ProblemError(f"{place} must begin with {wanted}, got {shown(lines[0])}")
    of_event = Hex().read(lines[1], f"{place}: event")
    if of_event != event.id:
        raise ProblemError(f"{place} is of another event, {of_event.hex()[:16]}…")
    bistro = next((each for each in event.bistros if each.name == lines[2]), None)
    if bistro is None or not is_by(note, bistro_key(event, bistro)):
        raise ProblemError(
            f"{place} must be signed by the bistro of the event that it names, got "
            f"{shown(lines[2])}"
        )
    raw, row = data[4 + n_note :], row_of_event(event)
    n_rows = whole(lines[-3], f"{place}: its number of rows", MOST_ROWS + 1)
    if len(raw) != n_rows * row.itemsize or hashlib.sha256(raw).hexdigest() != lines[-2]:
        raise ProblemError(f"{place}: its rows do not match its note; fetch it again")
    return Batch(
        event.id,
        bistro.name,
        whole(lines[3], f"{place}: number", SIZE_STOP),
        Hex().read(lines[4], f"{place}: previous"),
        whole(lines[5], f"{place}: time", TIME_STOP),
        whole(lines[6], f"{place}: its number of segments", SIZE_STOP) if n_lines == 10 else 0,
        np.frombuffer(raw, row),
        note,
    )


def row_of(
    commitment: Commitment,
    size: int,
    sha256: bytes,
    ticket: bytes,
    time_s: int,
    signature: bytes,
    ticket_signature: bytes = bytes(SIGNATURE_BYTES),
    upload: int = 0,
) -> tuple[bytes | int, ...]:
    """Return a row, in the order of `ROW`: what was committed to, and what is held of it.

    Parameters
    ----------
    commitment : Commitment
        With its owner.
    size : int
        In bytes, of what is held.
    sha256 : bytes
        Of what is held.
    ticket : bytes
        Number of the ticket, 16 bytes.
    time_s : int
        When it was whole, by the bistro's clock, seconds since 1970.
    signature : bytes
        The owner's, over `push_statement` of what is held.
    ticket_signature : bytes
        The ticket's, over the same.
    upload : int
        The number by which indices of segments call it.
    """
    assert commitment.owner is not None
    return (
        *(commitment.entry, commitment.salt, commitment.content),
        *(commitment.size, commitment.ciphertext_sha256, size, sha256, ticket, time_s),
        *(commitment.owner, signature, ticket_signature, upload),
    )


class Judged(NamedTuple):
    """Owners of a batch's rows: arrays of bool.

    Attributes
    ----------
    is_open : numpy.ndarray
        It opens the commitment that it names.
    is_handed_in : numpy.ndarray
        It does, and the owner whom that commits to has signed for it: these rows alone count.
    """

    is_open: np.ndarray
    is_handed_in: np.ndarray


def judged(batch: Batch, event: Event) -> Judged:
    """Return which rows of a batch count; what opens nothing is not verified."""
    bistro = next(each for each in event.bistros if each.name == batch.bistro)
    is_open = opening(batch.rows, event)
    is_handed_in = is_open.copy()
    is_handed_in[is_open] = signed_for(batch.rows[is_open], event, bistro)
    return Judged(is_open, is_handed_in)


def signed_for(rows: np.ndarray, event: Event, bistro: Bistro) -> np.ndarray:
    """Return which rows their owners have signed for, as an array of bool.

    All of an event of version 1, where nobody could.

    Parameters
    ----------
    rows : numpy.ndarray
        Of a batch of the bistro.
    event : Event
    bistro : Bistro
    """
    if rows.dtype != ROW:
        return np.ones(len(rows), bool)
    found = [
        is_by_key(_pushed(row, event, bistro), bytes(row["signature"]), bytes(row["owner"]))
        for row in rows
    ]
    return np.array(found, bool)


def signed_by_tickets(
    rows: np.ndarray, event: Event, bistro: Bistro, keys: Mapping[bytes, str]
) -> np.ndarray:
    """Return which rows the tickets that they name have signed, as an array of bool.

    Those of tickets that are not known here are among them: that says nothing of their bistro.

    Parameters
    ----------
    rows : numpy.ndarray
        Of dtype `ROW`, of a batch of the bistro.
    event : Event
    bistro : Bistro
    keys : mapping of bytes to str
        Public keys of tickets, by number.
    """
    found = []
    for row in rows:
        number = bytes(row["ticket"])
        key = keys.get(number)
        if key is None:
            found.append(any(number))
        else:
            said = _pushed(row, event, bistro)
            found.append(is_signed(said, bytes(row["ticket_signature"]), key))
    return np.array(found, bool)


def _pushed(row: np.void, event: Event, bistro: Bistro) -> bytes:
    """Return what a row's owner, and its ticket, must have signed."""
    entry, sha256, ticket = (bytes(row[name]) for name in ("entry", "sha256", "ticket"))
    return push_statement(event.id, bistro.key, entry, sha256, int(row["size"]), ticket)


def opening(rows: np.ndarray, event: Event) -> np.ndarray:
    """Return which rows open the commitments that they name, as an array of bool.

    Parameters
    ----------
    rows : numpy.ndarray
        Of dtype `ROW`, or `OWNERLESS_ROW`.
    event : Event
        Where its entries have marks, the row's own stands for what nobody can compute from it.
    """
    parts = [
        _opening_together(rows[i : i + N_TOGETHER], event) for i in range(0, len(rows), N_TOGETHER)
    ]
    return np.concatenate([np.zeros(0, bool), *parts])


def _opening_together(rows: np.ndarray, event: Event) -> np.ndarray:
    """Return the same of few rows, whose commitments fit in memory."""
    raw = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.dtype.itemsize)
    has_owner = rows.dtype == ROW
    text = (COMMITMENT_LABEL if has_owner else OWNERLESS_LABEL) + event.id
    label = np.frombuffer(text, np.uint8)
    parts = [np.broadcast_to(label, (len(rows), len(label)))]
    assert rows.dtype.fields is not None
    for column in (*_COMMITTED, "owner") if has_owner else _COMMITTED:
        kind, start = rows.dtype.fields[column][:2]
        parts.append(raw[:, start : start + kind.itemsize])
    messages = np.hstack(parts)
    n_bytes, data = messages.shape[1], messages.tobytes()
    sha256 = hashlib.sha256
    entries = b"".join(
        [sha256(data[i : i + n_bytes]).digest() for i in range(0, len(data), n_bytes)]
    )
    named = np.ascontiguousarray(rows["entry"]).view(np.uint8).reshape(-1, ENTRY_BYTES)
    made = np.frombuffer(entries, np.uint8).reshape(-1, ENTRY_BYTES)
    n_bound = MARKED_BYTES if event.has_marks else ENTRY_BYTES
    is_open: np.ndarray = (made[:, :n_bound] == named[:, :n_bound]).all(axis=1)
    is_open &= (rows["committed_size"] < SIZE_STOP) & (rows["size"] < SIZE_STOP)
    if has_owner:
        is_open &= rows["upload"] < SIZE_STOP
    return is_open & (rows["time_s"] < TIME_STOP)
