"""A log read whole over HTTP: its entries, its tiles, all checkpoints that it has published."""

from __future__ import annotations

import tempfile
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from datacollect.bistro.formats.log.checkpoints import MOST_CHECKPOINT_BYTES, SignedCheckpoint
from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.bistro.formats.log.proofs import MOST_PROOF_BYTES, LogProof
from datacollect.bistro.formats.log.tiles import (
    MOST_ENTRY_BYTES,
    TILE_WIDTH,
    Edge,
    Tile,
    TileReader,
    entries_of,
    tiles_of,
)
from datacollect.bistro.formats.log.tree import leaf_hash
from datacollect.bistro.formats.receipt.evidence import Lie, ReadLog
from datacollect.bistro.formats.receipt.receipt import MOST_BYTES, read_amendments
from datacollect.errors import ProblemError, TransferError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from datacollect.bistro.formats.event.event import Event, Service
    from datacollect.bistro.formats.log.tree import Nodes
    from datacollect.net.http_asking import Answer

# A service that is asked too often says for how long to pause; that is no lie.
PAUSE_S, LONGEST_PAUSE_S, MOST_PAUSES = 1.0, 60.0, 60
# More than this of a log's entries, and of its tiles, lies on the disk.
MOST_IN_MEMORY_BYTES = 16 * 2**20
MOST_BUNDLE_BYTES = TILE_WIDTH * (2 + MOST_ENTRY_BYTES)


class Asks(Protocol):
    """Whoever asks a log, as `datacollect.net.http_asking.Asker` does."""

    def get(self, path: str, most_bytes: int) -> Answer:
        """Return the answer to a path, of at most so many bytes."""


@dataclass(frozen=True)
class WholeLog:
    """Log as an auditor has it.

    Attributes
    ----------
    log : ReadLog
        Its tree is made of the entries, whatever its tiles say.
    checkpoints : list of SignedCheckpoint
        All that it has published.
    others : dict of int to bytes
        By index: entries that are no commitments, amendments.
    commitments : Commitments
        All entries; zeros in place of the others.
    lies : list of Lie
        What of it does not fit together.
    """

    log: ReadLog
    checkpoints: list[SignedCheckpoint]
    others: dict[int, bytes]
    commitments: Commitments
    lies: list[Lie] = field(default_factory=list)


def read_log(
    service: Service,
    event: Event,
    asker: Asks,
    *,
    is_over: bool = False,
    head: SignedCheckpoint | None = None,
) -> WholeLog | None:
    """Read a log of an event, up to a head, or up to the one that it shows.

    None: it has published nothing yet. Once the event `is_over`, what the log lacks never comes.

    Raises
    ------
    TransferError, ProblemError
        It does not answer, or not what can be read.
    """
    head = head or head_of(service, asker)
    if head is None:
        return None
    size = head.checkpoint.size
    others: dict[int, bytes] = {}
    entries_at = Commitments()

    def take(index: int, entry: bytes) -> None:
        if len(entry) == ENTRY_BYTES:
            entries_at.append(entry)
        else:
            others[index] = entry
            entries_at.append(bytes(ENTRY_BYTES))

    log, lies = read_tree(service, head, asker, take, is_over=is_over)
    checkpoints, missing = _checkpoints(service, event, head, entries_at, others, asker)
    if any(each.checkpoint.size > size for each in checkpoints):
        # Published while the log was read: that is nothing that was taken back.
        last = head_of(service, asker) or head
        grown = range(size + 1, last.checkpoint.size + 1)
        checkpoints = [each for each in checkpoints if each.checkpoint.size not in grown]
    return WholeLog(log, checkpoints, others, entries_at, lies + missing)


def read_tree(
    service: Service,
    head: SignedCheckpoint,
    asker: Asks,
    take: Callable[[int, bytes], None],
    *,
    is_over: bool = False,
) -> tuple[ReadLog, list[Lie]]:
    """Read all entries below a head, tell them with their indices, and compare tiles and root."""
    size, tree = head.checkpoint.size, _Tree()
    for tile in tiles_of(size):
        if tile.level >= 0:
            continue
        path = f"/{tile.path}"
        answer = got(asker, path, MOST_BUNDLE_BYTES)
        for i, entry in enumerate(entries_of(required(answer.status, answer.body, path), tile)):
            tree.append(entry)
            take(tile.index * TILE_WIDTH + i, entry)
    log = ReadLog(service.log, head, tree.node_of(), is_over)
    lies = [] if tree.edge.root() == head.checkpoint.root else [_other_root(service, size)]
    return log, lies + _differing_tiles(service, size, tree, asker)


def head_of(service: Service, asker: Asks) -> SignedCheckpoint | None:
    """Return the checkpoint that a log shows; None: it has published nothing yet."""
    answer = got(asker, "/checkpoint", MOST_CHECKPOINT_BYTES)
    if answer.status == 404:
        return None
    head = SignedCheckpoint.parse(required(answer.status, answer.body, "/checkpoint"))
    if not head.is_of(service.log):
        raise ProblemError("the checkpoint is not signed by the log's key")
    return head


def got(asker: Asks, path: str, most_bytes: int) -> Answer:
    """Ask until a service is not asked too often any more."""
    answer = asker.get(path, most_bytes)
    for _ in range(MOST_PAUSES):
        if answer.status != 429:
            break
        time.sleep(min(answer.retry_after_s or PAUSE_S, LONGEST_PAUSE_S))
        answer = asker.get(path, most_bytes)
    return answer


def _spooled(owner: object) -> tempfile.SpooledTemporaryFile[bytes]:
    """Return a file that is closed with its owner."""
    file = tempfile.SpooledTemporaryFile(MOST_IN_MEMORY_BYTES)  # noqa: SIM115 - see below
    weakref.finalize(owner, file.close)
    return file


class Commitments:
    """Entries of 32 bytes one behind the other; many of them on the disk, not in memory."""

    def __init__(self) -> None:
        self._file = _spooled(self)

    def append(self, entry: bytes) -> None:
        """Add an entry."""
        self._file.write(entry)

    def __getitem__(self, index: int) -> bytes:
        """Return an entry."""
        self._file.seek(index * ENTRY_BYTES)
        return self._file.read(ENTRY_BYTES)

    def pieces(self, n_entries: int) -> Iterator[bytes]:
        """Yield all entries, so many at a time."""
        self._file.seek(0)
        while piece := self._file.read(n_entries * ENTRY_BYTES):
            yield piece


class _Tree:
    """The tree of all entries, kept as tiles; many of them on the disk."""

    def __init__(self) -> None:
        self.edge = Edge()
        self._file = _spooled(self)
        self._starts: dict[Tile, int] = {}
        self._n_bytes = 0

    def append(self, entry: bytes) -> None:
        self._keep(self.edge.append(leaf_hash(entry)))

    def _keep(self, tiles: Iterable[tuple[Tile, bytes]]) -> None:
        for tile, data in tiles:
            self._starts[tile] = self._n_bytes
            self._file.seek(self._n_bytes)
            self._n_bytes += self._file.write(data)

    def tile(self, tile: Tile) -> bytes:
        """Return the bytes of a tile."""
        self._file.seek(self._starts[tile])
        return self._file.read(tile.width * ENTRY_BYTES)

    def node_of(self) -> Nodes:
        self._keep(self.edge.partial_tiles())
        return TileReader(self.edge.size, self.tile).node


def _other_root(service: Service, size: int) -> Lie:
    return Lie(
        service.log.name, f"Its {size} entries have another root than the one that it has signed."
    )


def _differing_tiles(service: Service, size: int, tree: _Tree, asker: Asks) -> list[Lie]:
    """Compare the tiles that others make proofs of."""
    for tile in tiles_of(size):
        if tile.level < 0:
            continue
        answer = got(asker, f"/{tile.path}", TILE_WIDTH * ENTRY_BYTES)
        if answer.status != 200 or answer.body != tree.tile(tile):
            text = f"It serves {tile.path}, which does not match its entries."
            if answer.status != 200:
                text = f"It does not serve {tile.path} ({answer.status})."
            return [Lie(service.log.name, text)]
    return []


def _checkpoints(
    service: Service,
    event: Event,
    head: SignedCheckpoint,
    commitments: Commitments,
    others: dict[int, bytes],
    asker: Asks,
) -> tuple[list[SignedCheckpoint], list[Lie]]:
    """Return all checkpoints that are published: each is the first one that holds some entry."""
    by_note = {proof.signed.note.data: proof.signed for proof in _amendment_proofs(event, asker)}
    lies: list[Lie] = []
    at = 0
    while at < head.checkpoint.size:
        found = _first_holding(at, commitments, others, by_note, asker)
        if found is None or not found.is_of(service.log):
            text = f"It does not prove entry {at}, which it has published."
            return [*by_note.values(), head], [*lies, Lie(service.log.name, text)]
        by_note[found.note.data] = found
        at = found.checkpoint.size
    by_note[head.note.data] = head
    return [each for each in by_note.values() if each.is_of(service.log)], lies


def _first_holding(
    at: int,
    commitments: Commitments,
    others: dict[int, bytes],
    by_note: dict[bytes, SignedCheckpoint],
    asker: Asks,
) -> SignedCheckpoint | None:
    if at in others:
        # Proofs of amendments are listed with them.
        sizes = [each for each in by_note.values() if each.checkpoint.size > at]
        return min(sizes, key=lambda each: each.checkpoint.size, default=None)
    entry = commitments[at]
    answer = got(asker, f"/proof/{entry.hex()}", MOST_PROOF_BYTES)
    if answer.status != 200:
        return None
    proof = LogProof.parse(answer.body)
    if not proof.includes(entry) or proof.signed.checkpoint.size <= at:
        return None
    return proof.signed


def _amendment_proofs(event: Event, asker: Asks) -> Iterator[LogProof]:
    answer = got(asker, "/amendments", MOST_BYTES)
    for each in read_amendments(required(answer.status, answer.body, "/amendments"), event.id):
        yield from each.proofs


def required(status: int, body: bytes, path: str) -> bytes:
    """Return the body of an answer to a path; raise `TransferError` where it has another status."""
    if status != 200:
        raise TransferError(f"the server answers {status} to {path}")
    return body
