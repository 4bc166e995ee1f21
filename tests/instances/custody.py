"""A small event with bistros and a log of verdicts, and what its parties sign, made by hand."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from instances.events import (
    event_bytes,
    event_of,
    key_of,
    marked_by,
    owner_of,
    owners_signature,
    witness_names,
)
from instances.log_store import LogStore

from datacollect.bistro.formats.custody.batches import (
    OWNERLESS_ROW,
    ROW,
    Batch,
    row_of,
    sign_batch,
)
from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.event.statements import push_statement
from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    cosign,
    log_key,
    sign_checkpoint,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.notes import Note, VerifierKey
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.sizes import STRETCH, sizes_data
from datacollect.bistro.formats.log.tiles import Edge, Tile, TileReader, bundle_of, tiles_of
from datacollect.bistro.formats.log.tree import inclusion_proof, leaf_hash, tree_root
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, amendments_data
from datacollect.bistro.log_service.proving import proof_of
from datacollect.net.http_asking import Answer

BISTROS = ("north", "south", "west")
CHANGES = {
    "verdicts": {"log": log_key("dest.example/0123456789abcdef", key_of("dest").public).text},
    "bistros": [
        {
            "name": name,
            "url": f"https://{name}.example",
            "key": key_of(name).public,
            "fingerprint": "sha256:" + "ab" * 32,
        }
        for name in BISTROS
    ],
}


@cache
def custody_event(**changes: object) -> Event:
    return event_of(**CHANGES, **changes)


def custody_event_bytes(**changes: object) -> bytes:
    return event_bytes(**CHANGES, **changes)


def older_event_bytes(**changes: object) -> bytes:
    """Return the file of an event of version 1, in which tickets were words."""
    data = custody_event_bytes(**changes)
    return data.replace(b"datacollect-event/2", b"datacollect-event/1")


class Answering:
    """Answers as a service does, for a log of whose subclass these are."""

    event: Event
    entries: list[bytes]

    def head(self) -> bytes | None:
        raise NotImplementedError

    def tile(self, tile: Tile) -> bytes:
        raise NotImplementedError

    def sizes(self) -> list[int]:
        return []

    def checkpoint(self, size: int) -> bytes | None:
        return None

    def proof(self, entry: bytes) -> LogProof | None:
        raise NotImplementedError

    def get(self, path: str, most_bytes: int = 0) -> Answer:
        name, _, rest = path[1:].partition("/")
        if name == "checkpoint":
            head = self.head()
            return Answer(404, b"") if head is None else Answer(200, head)
        if name == "checkpoints":
            found = self.checkpoint(int(rest))
            return Answer(404, b"") if found is None else Answer(200, found)
        if name == "sizes":
            first = int(rest) * STRETCH
            sizes = [n for n in self.sizes() if first <= n < first + STRETCH]
            return Answer(200, sizes_data(sizes)) if sizes else Answer(404, b"")
        if name == "amendments":
            rows = [
                PublishedAmendment(entry, tuple(filter(None, [self.proof(entry)])))
                for entry in self.entries
                if entry.startswith(b'format = "datacollect-amendment/')
            ]
            return Answer(200, amendments_data(self.event.id, rows))
        if name == "proof":
            found = self.proof(bytes.fromhex(rest))
            return Answer(404, b"") if found is None else Answer(200, found.data)
        return Answer(200, self.tile_or_bundle(Tile.parse(path[1:])))

    def tile_or_bundle(self, tile: Tile) -> bytes:
        if tile.level >= 0:
            return self.tile(tile)
        first = tile.index * 256
        return bundle_of(self.entries[first : first + tile.width])

    def write(self, folder: Path) -> Path:
        """Write the files from which it can be read."""
        folder.mkdir(parents=True, exist_ok=True)
        head = self.head()
        if head is None:
            return folder
        size = SignedCheckpoint.parse(head).checkpoint.size
        for path in ["checkpoint", *(tile.path for tile in tiles_of(size))]:
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.get(f"/{path}").body)
        return folder


class StoredLog(Answering):
    """A log as its store holds it."""

    def __init__(self, event: Event, store: LogStore) -> None:
        self.event, self._store = event, store

    @property
    def entries(self) -> list[bytes]:
        return [row.entry for row in self._store.rows]

    def head(self) -> bytes | None:
        published = self._store.published
        return published[max(published)] if published else None

    def tile(self, tile: Tile) -> bytes:
        return self._store.tile(tile)

    def proof(self, entry: bytes) -> LogProof | None:
        index = self._store.index_of(entry)
        return None if index is None else proof_of(index, self._store)


class SignedLog(Answering):
    """A log in memory.

    Parameters
    ----------
    event : Event
    key : VerifierKey
        Of the log.
    signer : str
        Whose key it is.
    entries : sequence of bytes
    heads : sequence of (int, int)
        Size and time of each checkpoint that it has published; all witnesses sign at that time.
    n_witnesses : int
    wrong_s : function
        By how much the clock of a witness is wrong, by its name.
    """

    def __init__(
        self,
        event: Event,
        key: VerifierKey,
        signer: str,
        entries: Sequence[bytes],
        heads: Sequence[tuple[int, int]],
        n_witnesses: int = 4,
        wrong_s: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self._wrong_s = wrong_s
        self.event, self.key, self.signer = event, key, signer
        self.entries, self._witnesses = list(entries), witness_names(n_witnesses)
        self.index_of = {entry: i for i, entry in reversed([*enumerate(self.entries)])}
        edge, self._tiles = Edge(), {}
        for entry in self.entries:
            self._tiles.update(edge.append(leaf_hash(entry)))
        self._tiles.update(edge.partial_tiles())
        self.node = TileReader(edge.size, self._tiles.__getitem__).node
        self._times_s = dict(heads)
        self.heads = [self._head(size, time_s) for size, time_s in heads]

    def _head(self, size: int, time_s: int) -> SignedCheckpoint:
        checkpoint = Checkpoint(self.key.name, size, tree_root(size, self.node))
        note = sign_checkpoint(checkpoint, key_of(self.signer))
        lines = (
            cosign(note.text, time_s + self._wrong_s(name), name, key_of(name))
            for name in self._witnesses
        )
        return SignedCheckpoint(checkpoint, Note(note.text, (*note.signatures, *lines)))

    def proof(self, entry: bytes) -> LogProof | None:
        index = self.index_of.get(entry, len(self.entries))
        holding = [head for head in self.heads if head.checkpoint.size > index]
        if not holding:
            return None
        head = min(holding, key=lambda each: self._times_s.get(each.checkpoint.size, math.inf))
        hashes = inclusion_proof(index, head.checkpoint.size, self.node)
        return LogProof(index, tuple(hashes), head)

    def head(self) -> bytes | None:
        return self.heads[-1].note.data if self.heads else None

    def sizes(self) -> list[int]:
        return sorted({head.checkpoint.size for head in self.heads})

    def checkpoint(self, size: int) -> bytes | None:
        found = [head.note.data for head in self.heads if head.checkpoint.size == size]
        return found[-1] if found else None

    def tile(self, tile: Tile) -> bytes:
        return self._tiles[tile]


def service_log(
    event: Event, number: int, entries: Sequence[bytes], heads: Sequence[tuple[int, int]], **how
) -> SignedLog:
    return SignedLog(event, event.services[number].log, f"s{number}", entries, heads, **how)


def verdict_log(event: Event, verdicts: Iterable, n_witnesses: int = 4) -> SignedLog:
    """Return the log of these verdicts, all published."""
    entries = [getattr(each, "data", each) for each in verdicts]
    heads = [(len(entries), event.collect_until_s)]
    return SignedLog(event, event.verdicts, "dest", entries, heads, n_witnesses)


def sealed(text: str) -> bytes:
    """Return what stands for a sealed file."""
    return f"sealed {text}".encode()


def commitment_of(event: Event, text: str) -> Commitment:
    """Return somebody's commitment to a sealed file of that name."""
    data = sealed(text)
    salt = hashlib.sha256(f"salt {text}".encode()).digest()
    content = hashlib.sha256(f"content {text}".encode()).digest()
    owner = owner_of(text) if event.is_signed_for else None
    digest = hashlib.sha256(data).digest()
    return marked_by(event, Commitment(event.id, salt, len(data), digest, content, owner))


def batch_of(
    event: Event,
    bistro: str,
    number: int,
    previous: bytes,
    commitments: Sequence[Commitment],
    changes: dict[str, bytes | int] | None = None,
) -> Batch:
    """Return a batch with a row of each commitment; `changes` of all rows, by column.

    Owners sign for what the rows say then, unless `changes` has other signatures.
    """
    if not event.is_signed_for:
        return _ownerless(event, bistro, number, previous, commitments)
    rows = np.array(
        [
            row_of(
                *(each, each.size, each.ciphertext_sha256, bytes(16), event.deadline_s, bytes(64)),
                upload=i + 1,
            )
            for i, each in enumerate(commitments)
        ],
        ROW,
    )
    for column, value in (changes or {}).items():
        rows[column] = value
    if "signature" not in (changes or {}):
        key = next(each.key for each in event.bistros if each.name == bistro)
        for row, each in zip(rows, commitments, strict=True):
            said = push_statement(
                *(event.id, key, bytes(row["entry"]), bytes(row["sha256"]), int(row["size"])),
                bytes(row["ticket"]),
            )
            row["signature"] = owners_signature(said, each.owner)
    return sign_batch(event, bistro, number, previous, event.deadline_s, rows, key_of(bistro))


def _ownerless(
    event: Event, bistro: str, number: int, previous: bytes, commitments: Sequence[Commitment]
) -> Batch:
    """Return a batch as bistros signed them in events of version 1."""
    rows = [
        (
            *(each.entry, each.salt, each.content, each.size, each.ciphertext_sha256),
            *(each.size, each.ciphertext_sha256, bytes(16), event.deadline_s),
        )
        for each in commitments
    ]
    return sign_batch(
        *(event, bistro, number, previous, event.deadline_s),
        np.array(rows, OWNERLESS_ROW),
        key_of(bistro),
    )


def word_of(
    event: Event,
    bistro: str,
    commitment: Commitment,
    batch: int,
    *,
    sha256: bytes | None = None,
    sealed_anew: bool = False,
) -> str:
    """Return a bistro's receipt."""
    held = sha256 or commitment.ciphertext_sha256
    receipt = BistroReceipt(
        *(event.id, bistro, commitment.entry, commitment.size, held, sealed_anew, batch),
        event.deadline_s,
    )
    return receipt.signed(key_of(bistro))


def write_batches(folder: Path, batches: Iterable[Batch]) -> Path:
    """Write batches as the destination keeps them."""
    for i, batch in enumerate(batches):
        file = folder / batch.bistro / f"{batch.number:010}.{i}.batch"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(batch.data)
    folder.mkdir(exist_ok=True)
    return folder
