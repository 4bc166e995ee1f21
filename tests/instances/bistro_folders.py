"""Folders of bistros, laid out as they serve them: made by hand, with everybody's keys."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
import pyrage
from instances.events import (
    DEADLINE_S,
    event_bytes,
    key_of,
    marked_by,
    owner_of,
    owners_signature,
    ticket_of,
)

from datacollect.bistro.formats.custody.batches import FIRST, ROW, Batch, row_of, sign_batch
from datacollect.bistro.formats.custody.segments import PIECE, batch_name, index_name, segment_name
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.statements import hand_in_statement, push_statement
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.log.content import header_bytes
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.sealing.sealed import Inner, seal

# The destination's own key, and another that is kept elsewhere.
FIRST_IDENTITY, SECOND_IDENTITY = (pyrage.x25519.Identity.generate() for _ in range(2))
VERDICTS = log_key("destination.example/0123456789abcdef", key_of("verdicts").public)


def event_file(**changes: object) -> bytes:
    """Return the file of an event with two bistros and a log of verdicts."""
    whole = {
        "recipients": [str(each.to_public()) for each in (FIRST_IDENTITY, SECOND_IDENTITY)],
        "verdicts": {"log": VERDICTS.text},
        "bistros": [
            {
                "name": name,
                "url": f"https://{name}.example",
                "key": key_of(name).public,
                "fingerprint": f"sha256:{sha256(name.encode()).hexdigest()}",
            }
            for name in ("north", "south")
        ],
    }
    return event_bytes(**(whole | changes))


def collecting_event(**changes: object):
    return read_event(event_file(**changes))


class HandedIn:
    """A file as its person has sealed it; the salt and the owner are of its number.

    `signature`: inside the seal; by default that of the ticket.
    """

    def __init__(
        self,
        event,
        number: int = 1,
        content: bytes = b"income",
        *,
        ticket: int | None = None,
        signature: bytes | None = None,
        name: str = "return.pdf",
        header: bytes | None = None,
    ) -> None:
        fields = {"event": event.id.hex(), "name": name}
        if event.has_proofs:
            fields["content"] = event.content
        if ticket is not None:
            fields["ticket"] = ticket.to_bytes(16, "big").hex()
            if signature is None:
                signature = signature_inside(event, number, ticket)
        self.event, self.content = event, content
        self.inner = Inner(header_bytes(fields) if header is None else header, bytes(32), signature)
        self.sealed, told = self.seal_anew()
        salt, owner = number.to_bytes(32, "big"), owner_of(f"{number}")
        self.commitment = marked_by(
            event,
            Commitment(event.id, salt, len(self.sealed), told.sha256, told.content_p, owner),
            1 if ticket is None else ticket,
        )
        self.ticket = bytes(16) if ticket is None else ticket.to_bytes(16, "big")
        self._holder = None if ticket is None else ticket_of(event, ticket).key

    @property
    def entry(self) -> bytes:
        return self.commitment.entry

    def seal_anew(self):
        out = BytesIO()
        told = seal(BytesIO(self.content), out, self.inner, self.event.recipients)
        return out.getvalue(), told

    def row(
        self, data: bytes | None = None, time_s: int = DEADLINE_S - 50, *, bistro: str = "north"
    ):
        """Return the row of a bistro to which its owner has pushed these bytes."""
        held = self.sealed if data is None else data
        digest = sha256(held).digest()
        key = next(each.key for each in self.event.bistros if each.name == bistro)
        said = push_statement(self.event.id, key, self.entry, digest, len(held), self.ticket)
        signature = owners_signature(said, self.commitment.owner)
        holders = bytes(64) if self._holder is None else self._holder.sign(said)
        return row_of(
            *(self.commitment, len(held), digest, self.ticket, time_s, signature, holders),
            self.number(data),
        )

    def number(self, data: bytes | None = None) -> int:
        """Return by which a bistro knows the upload of these bytes."""
        is_anew = data is not None and data != self.sealed
        return number_of(self.entry) + (sum(data) + 1 if is_anew else 0)


def number_of(entry: bytes) -> int:
    """Return by which a bistro knows the upload of what an entry commits to."""
    return int.from_bytes(entry[:7], "big")


def signature_inside(event, number: int, ticket: int) -> bytes:
    """Return what a ticket signs inside the seal of the file of that number."""
    said = hand_in_statement(event.id, number.to_bytes(32, "big"), owner_of(f"{number}"))
    return ticket_of(event, ticket).key.sign(said)


class MadeBistro:
    """The folder of a bistro: segments, their indices, chained batches."""

    def __init__(self, event, name: str, folder: Path) -> None:
        self.event, self.name, self.folder = event, name, folder
        self.n_segments = self.n_batches = 0
        self.last = FIRST

    def segment(self, *pieces: tuple[bytes | int, int, bytes]) -> int:
        """Close a segment of pieces: entry or number of an upload, offset in it, bytes."""
        number = self.n_segments
        self.n_segments += 1
        at, rows = 0, []
        for of, offset, data in pieces:
            number_there = of if isinstance(of, int) else number_of(of)
            rows.append((number_there, offset, at, len(data)))
            at += len(data)
        self.write(segment_name(number), b"".join(data for _, _, data in pieces))
        self.write(index_name(number), np.array(rows, PIECE).tobytes())
        return number

    def batch(self, *rows, key: str | None = None) -> Batch:
        made = sign_batch(
            self.event,
            self.name,
            self.n_batches,
            self.last,
            DEADLINE_S - 20,
            np.array([*rows], ROW),
            key_of(key or self.name),
            self.n_segments,
        )
        self.write(batch_name(self.n_batches), made.data)
        self.n_batches += 1
        self.last = made.digest
        return made

    def push(self, *uploads: HandedIn) -> None:
        """Take whole uploads, into one segment and one batch."""
        self.segment(*((each.entry, 0, each.sealed) for each in uploads))
        self.batch(*(each.row(bistro=self.name) for each in uploads))

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
