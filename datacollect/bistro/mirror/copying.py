"""One pass over a log: what is new of it is fetched, verified, and only then kept.

A source is a log's service or another mirror; nobody is believed. Each published checkpoint must be
signed by the log and a quorum of witnesses, and be the root of the entries that are held by then.
One that is not is no trouble of this mirror but evidence against whoever has signed both.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.auditor.log_reading import (
    MOST_BUNDLE_BYTES,
    Asks,
    got,
    head_of,
    read_tree,
    required,
)
from datacollect.bistro.formats.event.amendments import read_amendment
from datacollect.bistro.formats.event.event import Service
from datacollect.bistro.formats.log.checkpoints import MOST_CHECKPOINT_BYTES, SignedCheckpoint
from datacollect.bistro.formats.log.sizes import (
    MOST_SIZES_BYTES,
    STRETCH,
    read_sizes,
    sizes_path,
)
from datacollect.bistro.formats.log.tiles import (
    TILE_WIDTH,
    Edge,
    Tile,
    bundle_of,
    entries_of,
    tiles_of,
)
from datacollect.bistro.formats.log.tree import leaf_hash, tree_root
from datacollect.bistro.formats.receipt.evidence import Lie, ReadLog, two_heads
from datacollect.bistro.formats.receipt.receipt import (
    MOST_BYTES,
    amendments_data,
    read_amendments,
)
from datacollect.bistro.http.published import united
from datacollect.bistro.log_service.log_copy import AMENDMENTS, LogCopy, require_quorum
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from datacollect.bistro.formats.event.event import Event

# While so many entries are fetched, what has come is kept: an interruption costs no more.
KEPT_EVERY = 65_536


class ForkError(ProblemError):
    """A log has signed two trees, of which neither is the beginning of the other."""


class Growing:
    """A tree that grows by entries as they come; its tiles, as far as they are new.

    Parameters
    ----------
    edge : Edge
        Of the tree so far.
    bundle : list of bytes
        The entries of its last bundle, where that is partial.
    """

    def __init__(self, edge: Edge, bundle: list[bytes]) -> None:
        self.edge, self.bundle = edge, bundle
        self._tiles: list[tuple[Tile, bytes]] = []

    def append(self, leaf: bytes) -> None:
        """Add an entry, as the log has it."""
        self.bundle.append(leaf)
        full = self.edge.append(leaf_hash(leaf))
        if full:
            self._tiles.append((Tile(-1, full[0][0].index), bundle_of(self.bundle)))
            self.bundle.clear()
        self._tiles += full

    def taken(self) -> list[tuple[Tile, bytes]]:
        """Return all tiles that are new since the last time, partial ones included."""
        tiles, self._tiles = self._tiles, []
        if self.bundle:
            last = Tile(-1, self.edge.size // TILE_WIDTH, len(self.bundle))
            tiles.append((last, bundle_of(self.bundle)))
        return tiles + self.edge.partial_tiles()


def new_leaves(size: int, growing: Growing, asker: Asks) -> Iterator[bytes]:
    """Yield the entries that a source has more than a tree, up to a size.

    None, where it has served others before: whether a root follows is judged by all.
    """
    known = [*growing.bundle]
    for tile in tiles_of(size, growing.edge.size):
        if tile.level >= 0:
            return
        path = f"/{tile.path}"
        answer = got(asker, path, MOST_BUNDLE_BYTES)
        leaves = entries_of(required(answer.status, answer.body, path), tile)
        if leaves[: len(known)] != known:
            return
        yield from leaves[len(known) :]
        known = []


@dataclass
class LogCopying:
    """Copies one log from one source, pass by pass.

    Attributes
    ----------
    copy : LogCopy
    event : Event
    is_mirror : bool
        Whether the source is another mirror: that may be behind, and nobody is blamed.
    """

    copy: LogCopy
    event: Event
    is_mirror: bool = False
    _judged: tuple[bytes, ProblemError] | None = None

    def take(self, asker: Asks) -> bool:
        """Take what the source has more than is held; return whether that was something.

        Raises
        ------
        TransferError
            It does not answer.
        ProblemError
            What it shows does not count, or cannot be; a `ForkError` where it is kept as evidence.
        StoreError, NotWrittenError
            The disk here is full, or fails.
        """
        copy = self.copy
        service = Service("", copy.log)
        head = head_of(service, asker)
        if head is None:
            if copy.size > 0 and not self.is_mirror:
                raise ProblemError(
                    f"the log shows no checkpoint, but has published {copy.size} entries"
                )
            return False
        require_quorum(head, copy.log, self.event)
        size = head.checkpoint.size
        if size > copy.size:
            self._grow(service, head, asker)
        elif copy.root_of(size) != head.checkpoint.root:
            self._forked([head])  # which raises
        else:
            copy.add([head])
        if size < copy.size and not self.is_mirror:
            raise ProblemError(
                f"the log shows {size} entries, but has published {copy.size}: it was restored "
                "from an old copy, or withholds some"
            )
        if self.event.log_of(copy.log.name) is not None:
            self._take_amendments(asker)
        return size == copy.size

    def _grow(self, service: Service, head: SignedCheckpoint, asker: Asks) -> None:
        copy, size = self.copy, head.checkpoint.size
        heads = deque(self._between(head, asker))
        growing = Growing(*copy.edge())
        kept: list[SignedCheckpoint] = []
        odd: list[SignedCheckpoint] = []

        def judge() -> None:
            """Hold the tree so far against its checkpoint, if it has one; keep what is due."""
            at = growing.edge.size
            if not heads or heads[0].checkpoint.size != at:
                return
            is_right = growing.edge.root() == heads[0].checkpoint.root
            (kept if is_right else odd).append(heads.popleft())
            if is_right and (not heads or at >= copy.size + KEPT_EVERY):
                copy.extend(growing.taken(), growing.edge, growing.bundle, kept)
                kept.clear()

        judge()  # an empty log has a checkpoint, too
        for leaf in new_leaves(size, growing, asker):
            growing.append(leaf)
            judge()
        if copy.size < size:
            self._differs(service, head, asker)
        if odd:
            self._forked(odd)

    def _between(self, head: SignedCheckpoint, asker: Asks) -> list[SignedCheckpoint]:
        """Return the published checkpoints that are new, up to the head, by size."""
        size, found = head.checkpoint.size, []
        for stretch in range(max(self.copy.size, 0) // STRETCH, size // STRETCH + 1):
            path = f"/{sizes_path(stretch * STRETCH)}"
            answer = got(asker, path, MOST_SIZES_BYTES)
            if answer.status != 200:
                continue  # an earlier version, or none within this stretch
            sizes = read_sizes(answer.body, stretch, f"its {path[1:]}")
            new = [each for each in sizes if self.copy.size < each < size]
            found += [self._checkpoint(each, asker) for each in new]
        return [*found, head]

    def _checkpoint(self, size: int, asker: Asks) -> SignedCheckpoint:
        path = f"/checkpoints/{size}"
        answer = got(asker, path, MOST_CHECKPOINT_BYTES)
        signed = SignedCheckpoint.parse(required(answer.status, answer.body, path))
        require_quorum(signed, self.copy.log, self.event)
        if signed.checkpoint.size != size:
            raise ProblemError(
                f"the checkpoint at {path} must be of {size} entries, and is of "
                f"{signed.checkpoint.size}"
            )
        return signed

    # What does not fit together ---------------------------------------------------------------

    def _differs(self, service: Service, head: SignedCheckpoint, asker: Asks) -> None:
        """Find out, by all entries of a log, whether it has signed two trees; raise what it is."""
        if self._judged is not None and self._judged[0] == head.note.data:
            raise self._judged[1]
        growing = Growing(Edge(), [])
        log, lies = read_tree(service, head, asker, lambda _, leaf: growing.append(leaf))
        size = self.copy.size
        error: ProblemError
        if lies:
            error = ProblemError(lies[0].text[0].lower() + lies[0].text[1:-1])
        elif size > 0 and tree_root(size, log.node) != self._root():
            lies = self._lies_of(log)
            self.copy.keep_fork(head, lies, growing.taken())
            error = ForkError(_said(lies))
        else:
            error = ProblemError("it has served other entries a moment ago")
        self._judged = head.note.data, error
        raise error

    def _root(self) -> bytes:
        assert self.copy.head is not None
        return self.copy.head.checkpoint.root

    def _lies_of(self, log: ReadLog) -> list[Lie]:
        assert self.copy.head is not None
        return two_heads(log, [self.copy.head], self.event)

    def _forked(self, odd: Iterable[SignedCheckpoint]) -> None:
        """Keep checkpoints that are not of the tree that is held, and say who has signed them."""
        assert self.copy.head is not None
        held = ReadLog(self.copy.log, self.copy.head, self.copy.node)
        said = []
        for head in odd:
            lies = two_heads(held, [head], self.event)
            self.copy.keep_fork(head, lies, ())
            said += lies
        raise ForkError(_said(said))

    def _take_amendments(self, asker: Asks) -> None:
        answer = got(asker, f"/{AMENDMENTS}", MOST_BYTES)
        if answer.status != 200:
            return
        rows = read_amendments(answer.body, self.event.id, "its amendments")
        for i, each in enumerate(rows):
            read_amendment(each.note, self.event, f"its amendments[{i}]")
        held = self.copy.amendments()
        before = [] if held is None else read_amendments(held, self.event.id, AMENDMENTS)
        self.copy.keep_amendments(amendments_data(self.event.id, united([before, rows])))


def _said(lies: Iterable[Lie]) -> str:
    return " ".join(f"{lie.who}: {lie.text}" for lie in lies).removesuffix(".")
