"""Copy of a log in a mirror: files as a log serves them, whole and verified at every step.

What counts is what `checkpoint` says: a checkpoint that a quorum of witnesses has signed, whose
tree these files make. It is written last, each time, and never for fewer entries than before.
Tiles beyond it are of no such checkpoint yet, and are written again. `pushed`, where a service
writes there itself, is a checkpoint that the log alone has signed: its entries are there, too.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint, cosigned_times
from datacollect.bistro.formats.log.sizes import STRETCH, read_sizes, sizes_data, sizes_path
from datacollect.bistro.formats.log.tiles import TILE_WIDTH, Edge, Tile, TileReader, entries_of
from datacollect.bistro.formats.log.tree import tree_root
from datacollect.bistro.log_service.tile_files import TileFiles
from datacollect.errors import ProblemError
from datacollect.files.durability import name_durably
from datacollect.files.held_folder import not_written, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.bistro.formats.receipt.evidence import Lie

CHECKPOINT, AMENDMENTS, FORKS, SAID = "checkpoint", "amendments", "forks", "said"
PUSHED = "pushed"


def folder_name(log: VerifierKey) -> str:
    """Return the name of a log's folder in a mirror.

    >>> from datacollect.bistro.formats.log.checkpoints import log_key
    >>> folder_name(log_key("tax.example/0123456789abcdef", "ed25519:" + 43 * "A" + "="))
    'tax.example-0123456789abcdef'
    """
    return re.sub(r"[^A-Za-z0-9.-]", "-", log.name)


def require_quorum(signed: SignedCheckpoint, log: VerifierKey, event: Event) -> None:
    """Raise `ProblemError` where a checkpoint is not that of a log, or does not count yet."""
    size = signed.checkpoint.size
    if not signed.is_of(log):
        raise ProblemError(f"the checkpoint of {size} entries is not signed by the log's key")
    n_witnesses = len(cosigned_times(signed.note, event.witness_keys))
    if n_witnesses < event.quorum:
        raise ProblemError(
            f"{n_witnesses} witnesses have signed the checkpoint of {size} entries, and "
            f"{event.quorum} are needed"
        )


class LogCopy:
    """A log's folder in a mirror; one thread writes to it.

    Parameters
    ----------
    folder : Path
        Made with the first checkpoint.
    log : VerifierKey
    event : Event

    Attributes
    ----------
    head : SignedCheckpoint or None
        The largest that is held; None: none yet.

    Raises
    ------
    ProblemError
        What lies there is damaged, or of another log.
    StoreError
        The disk fails.
    """

    def __init__(self, folder: Path, log: VerifierKey, event: Event) -> None:
        self.folder, self.log, self._event = folder, log, event
        self._tiles = TileFiles(folder)
        self.head: SignedCheckpoint | None = None
        self._edge, self._bundle = Edge(), list[bytes]()
        data = self._read(CHECKPOINT)
        if data is not None:
            try:
                self._go_on(SignedCheckpoint.parse(data))
            except (ProblemError, FileNotFoundError) as error:
                raise self._damaged(str(error)) from None

    def _go_on(self, head: SignedCheckpoint) -> None:
        require_quorum(head, self.log, self._event)
        size = head.checkpoint.size
        self._edge = Edge.read(size, self._tiles.read)
        if self._edge.root() != head.checkpoint.root:
            raise ProblemError("the log's tiles do not match its checkpoint")
        if n_last := size % TILE_WIDTH:
            last = Tile(-1, size // TILE_WIDTH, n_last)
            self._bundle = entries_of(self._tiles.read(last), last)
        self.head = head

    @property
    def size(self) -> int:
        """Entries that are held; -1: there is no checkpoint yet."""
        return -1 if self.head is None else self.head.checkpoint.size

    def edge(self) -> tuple[Edge, list[bytes]]:
        """Return the right edge of the tree, and the entries of its last, partial bundle."""
        return Edge(self._edge.size, [[*row] for row in self._edge.rows]), [*self._bundle]

    def root_of(self, size: int) -> bytes:
        """Return the root of the first `size` entries, at most as many as are held."""
        return tree_root(size, self.node)

    def node(self, level: int, index: int) -> bytes:
        """Return a node of the tree, as `datacollect.bistro.formats.log.tree` says."""
        return TileReader(self.size, self._tile).node(level, index)

    def _tile(self, tile: Tile) -> bytes:
        try:
            return self._tiles.read(tile)
        except FileNotFoundError:
            raise self._damaged(f"{tile.path} is missing") from None

    def _damaged(self, why: str) -> ProblemError:
        return ProblemError(
            f"{self.folder}: the copy of {self.log.name} is damaged: {why}; move the folder away, "
            "and it is copied again"
        )

    def leaves(self) -> Iterator[bytes]:
        """Yield all entries that are held, as the log has them."""
        for index in range(-(-max(self.size, 0) // TILE_WIDTH)):
            tile = Tile(-1, index, min(self.size - index * TILE_WIDTH, TILE_WIDTH))
            yield from entries_of(self._tile(tile), tile)

    def sizes(self) -> Iterator[int]:
        """Yield the sizes whose checkpoints are held, in rising order."""
        for stretch in range(max(self.size, 0) // STRETCH + 1):
            data = self._read(sizes_path(stretch * STRETCH))
            for size in read_sizes(data or b"", stretch):
                if size <= self.size:
                    yield size

    def checkpoint(self, size: int) -> SignedCheckpoint | None:
        """Return the checkpoint of a size, if it is held."""
        data = self._read(f"checkpoints/{size}")
        return None if data is None else SignedCheckpoint.parse(data)

    # What is written --------------------------------------------------------------------------

    def extend(
        self,
        tiles: Sequence[tuple[Tile, bytes]],
        edge: Edge,
        bundle: Sequence[bytes],
        heads: Sequence[SignedCheckpoint],
    ) -> None:
        """Keep more of the log: all of it is on the disk, and counts, when this returns.

        Parameters
        ----------
        tiles : sequence of (Tile, bytes)
            All that the tree has not had before, partial ones included.
        edge : Edge
            Of the tree as it is then.
        bundle : sequence of bytes
            The entries of its last bundle, where that is partial.
        heads : sequence of SignedCheckpoint
            Of this tree, verified, by size; the last is of all of it.
        """
        if edge.size < self.size or edge.size != heads[-1].checkpoint.size:
            raise ValueError(f"a copy of {self.size} entries must grow, got {edge.size}")
        self._make(self.folder)
        self._tiles.write(tiles)
        self.add(heads)
        self._write({CHECKPOINT: heads[-1].note.data})
        self.head = heads[-1]
        self._edge, self._bundle = Edge(edge.size, [[*row] for row in edge.rows]), [*bundle]

    def add(self, heads: Iterable[SignedCheckpoint]) -> None:
        """Keep checkpoints of this tree by their sizes, each with all cosignatures that came."""
        by_stretch: dict[int, set[int]] = {}
        files: dict[str, bytes] = {}
        for head in heads:
            size = head.checkpoint.size
            by_stretch.setdefault(size // STRETCH, set()).add(size)
            held = self.checkpoint(size)
            if held is not None:
                known = {*held.note.signatures}
                more = [line for line in head.note.signatures if line not in known]
                head = SignedCheckpoint(held.checkpoint, held.note.with_more(*more))
                if not more:
                    continue
            files[f"checkpoints/{size}"] = head.note.data
            if self.size == size:
                files[CHECKPOINT], self.head = head.note.data, head
        for stretch, sizes in by_stretch.items():
            path = sizes_path(stretch * STRETCH)
            known_sizes = {*read_sizes(self._read(path) or b"", stretch)}
            if not sizes <= known_sizes:
                files[path] = sizes_data(sorted(known_sizes | sizes))
        if files:
            self._write(files)

    def push(self, tiles: Iterable[tuple[Tile, bytes]], head: SignedCheckpoint) -> None:
        """Keep entries that no quorum has signed yet; they are on the disk when this returns.

        Parameters
        ----------
        tiles : iterable of (Tile, bytes)
            All that the tree has had neither in what was pushed before nor in what is held.
        head : SignedCheckpoint
            Of that tree, by the log.
        """
        self._make(self.folder)
        self._tiles.write(tiles)
        self._write({PUSHED: head.note.data})

    def pushed(self) -> SignedCheckpoint | None:
        """Return the checkpoint of what was pushed, as the log has signed it."""
        data = self._read(PUSHED)
        return None if data is None else SignedCheckpoint.parse(data, f"{self.folder}/{PUSHED}")

    def keep_amendments(self, data: bytes) -> None:
        """Keep the file of amendments and their proofs, verified."""
        if data != self._read(AMENDMENTS):
            self._write({AMENDMENTS: data})

    def amendments(self) -> bytes | None:
        """Return that file, if there is one."""
        return self._read(AMENDMENTS)

    def keep_fork(
        self, head: SignedCheckpoint, lies: Sequence[Lie], tiles: Iterable[tuple[Tile, bytes]]
    ) -> None:
        """Keep the evidence that a log has forked: the other checkpoint, and its tiles, if known.

        What is there already stays.
        """
        digest = hashlib.sha256(head.checkpoint.text.encode()).hexdigest()[:16]
        name = f"{FORKS}/{head.checkpoint.size}-{digest}"
        if self._read(f"{name}/{SAID}") is not None:
            return
        place = self.folder / name
        self._make(place)
        TileFiles(place).write(tiles)
        text = "".join(f"{lie.who}: {lie.text}\n" for lie in lies)
        self._write({f"{name}/{CHECKPOINT}": head.note.data})
        self._write({f"{name}/{SAID}": text.encode()})

    def forks(self) -> list[str]:
        """Return the evidence of forks that is kept, in words."""
        try:
            found = sorted((self.folder / FORKS).glob(f"*/{SAID}"))
            return [line for path in found for line in path.read_text().splitlines()]
        except OSError as error:
            raise not_written(self.folder, error) from error

    # Files ------------------------------------------------------------------------------------

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise not_written(self.folder, error) from error

    def _write(self, files: Mapping[str, bytes]) -> None:
        """Put whole files in their places; all are on the disk when this returns."""
        folders = {(self.folder / name).parent for name in files}
        for folder in folders:
            self._make(folder)
        try:
            for name, data in files.items():
                path = self.folder / name
                beside = path.with_name(f"{path.name}.new")
                beside.write_bytes(data)
                # Many come together: their folders are synced once, after all of them.
                name_durably(beside, path, folders=(), is_required=True)
            for folder in folders:
                sync_folder(folder)
        except OSError as error:
            raise not_written(self.folder, error) from error

    def make(self) -> None:
        """Make the folder, for others to read."""
        self._make(self.folder)

    def _make(self, folder: Path) -> None:
        """Make a folder and those above it, each with its name on the disk."""
        if folder.is_dir():
            return
        try:
            self._make(folder.parent)
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
        except OSError as error:
            raise not_written(self.folder, error) from error
