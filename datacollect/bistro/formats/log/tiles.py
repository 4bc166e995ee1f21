"""Tiles: a tree cut into files of at most 256 hashes (c2sp.org/tlog-tiles, 2025).

A tile of level L holds roots of complete subtrees of 256^L leaves; bundles hold the entries
themselves, as many as the tile of level 0 beside them. Full tiles never change; the last of each
level may be partial, and is kept for every size that has a checkpoint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.tree import node_hash, tree_root
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HASH_BYTES = 32
TILE_WIDTH = 256
TILE_LEVELS = 8
MOST_ENTRY_BYTES = 65_535
# Levels that a tree of less than 2^63 leaves has.
LEVEL_STOP = 8

_PATH = re.compile(
    r"tile/(?P<level>[0-7]|entries)/(?P<index>(?:x[0-9]{3}/){0,6}[0-9]{3})"
    r"(?:\.p/(?P<width>[1-9][0-9]{0,2}))?",
    re.ASCII,
)


@dataclass(frozen=True, order=True)
class Tile:
    """Address of a tile: of hashes, or with level -1 of the entries themselves.

    Attributes
    ----------
    level, index : int
    width : int
        Hashes in it, 1 to 256; 256 is a full one.
    """

    level: int
    index: int
    width: int = TILE_WIDTH

    @property
    def path(self) -> str:
        """Return where it is served, below the log's URL.

        >>> Tile(0, 1234067).path, Tile(1, 0, 17).path, Tile(-1, 5).path
        ('tile/0/x001/x234/067', 'tile/1/000.p/17', 'tile/entries/005')
        """
        digits = f"{self.index:03}"
        digits = digits.zfill(-(-len(digits) // 3) * 3)
        parts = [digits[i : i + 3] for i in range(0, len(digits), 3)]
        name = "/".join([*(f"x{part}" for part in parts[:-1]), parts[-1]])
        level = "entries" if self.level < 0 else self.level
        return f"tile/{level}/{name}" + (f".p/{self.width}" if self.width < TILE_WIDTH else "")

    @classmethod
    def parse(cls, path: str) -> Tile:
        """Return the tile of a path; raise `ProblemError` where it is no tile's."""
        found = _PATH.fullmatch(path)
        tile = None
        if found:
            level = -1 if found["level"] == "entries" else int(found["level"])
            index = int(found["index"].replace("x", "").replace("/", ""))
            tile = cls(level, index, int(found["width"] or TILE_WIDTH))
        # One path for one tile: no needless zeros, no partial tile that is full.
        if tile is None or tile.path != path:
            raise ProblemError(f"a tile's path must be as tile/0/x001/067.p/5, got {shown(path)}")
        return tile


def tiles_of(size: int, since: int = 0) -> Iterator[Tile]:
    """Yield the tiles that a tree has, or those that it has not had at a smaller size.

    Bundles of entries, of level -1, come with those of level 0.

    >>> [tile.path for tile in tiles_of(257, since=256)]
    ['tile/entries/001.p/1', 'tile/0/001.p/1']
    """
    for level in range(-1, LEVEL_STOP):
        now, before = (n >> TILE_LEVELS * max(level, 0) for n in (size, since))
        if now == before:
            continue
        for index in range(before // TILE_WIDTH, -(-now // TILE_WIDTH)):
            yield Tile(level, index, min(now - index * TILE_WIDTH, TILE_WIDTH))


@dataclass
class Edge:
    """The right edge of a tree that grows: what of it can still change.

    Attributes
    ----------
    size : int
        Leaves so far.
    rows : list of list of bytes
        By level of tiles: the hashes of the last, partial tile, fewer than 256.

    Examples
    --------
    >>> edge = Edge()
    >>> edge.append(bytes(32)), edge.size, edge.root() == bytes(32)
    ([], 1, True)
    """

    size: int = 0
    rows: list[list[bytes]] = field(default_factory=list)

    @classmethod
    def read(cls, size: int, read: Callable[[Tile], bytes]) -> Edge:
        """Return the edge of a tree whose tiles are kept; `read` returns a tile's bytes."""
        partial = {tile.level: tile for tile in _last_tiles(size) if tile.width < TILE_WIDTH}
        rows = [
            hashes_of(read(partial[level]), partial[level]) if level in partial else []
            for level in range(max(partial, default=-1) + 1)
        ]
        return cls(size, rows)

    def append(self, leaf: bytes) -> list[tuple[Tile, bytes]]:
        """Add a leaf's hash; return the tiles that are full by it, with their bytes."""
        full, level, found = [], 0, leaf
        at = self.size
        while True:
            if level == len(self.rows):
                self.rows.append([])
            row = self.rows[level]
            row.append(found)
            if len(row) < TILE_WIDTH:
                break
            data = b"".join(row)
            full.append((Tile(level, at // TILE_WIDTH), data))
            found = _levels(data)[-1][0]
            row.clear()
            level, at = level + 1, at // TILE_WIDTH
        self.size += 1
        return full

    def partial_tiles(self) -> list[tuple[Tile, bytes]]:
        """Return the partial tiles of the tree as it is now, with their bytes."""
        last = {tile.level: tile for tile in _last_tiles(self.size)}
        return [(last[level], b"".join(row)) for level, row in enumerate(self.rows) if row]

    def root(self) -> bytes:
        """Return the root of the tree as it is now."""
        return tree_root(self.size, self._node)

    def _node(self, level: int, index: int) -> bytes:
        # A root needs only subtrees within the last tile of their level.
        height = level % TILE_LEVELS
        row = self.rows[level // TILE_LEVELS]
        start = (index << height) % TILE_WIDTH
        return _levels(b"".join(row[start : start + (1 << height)]))[-1][0]


class TileReader:
    """Reads a tree's nodes from its tiles, for proofs.

    Parameters
    ----------
    size : int
        Leaves of the tree that the tiles are of.
    read : function
        Returns the bytes of a tile of that tree.
    """

    def __init__(self, size: int, read: Callable[[Tile], bytes]) -> None:
        self.size = size
        self._read = read

    def node(self, level: int, index: int) -> bytes:
        """Return the root of a complete subtree of 2^level leaves."""
        tile_level, height = divmod(level, TILE_LEVELS)
        at = index << height
        first = at - at % TILE_WIDTH
        width = min((self.size >> TILE_LEVELS * tile_level) - first, TILE_WIDTH)
        tile = Tile(tile_level, at // TILE_WIDTH, width)
        data = self._read(tile)
        _require_width(data, tile)
        return _levels(data)[height][index - (first >> height)]


def hashes_of(data: bytes, tile: Tile) -> list[bytes]:
    """Return the hashes that a tile's bytes are; raise `ProblemError` for a wrong number."""
    _require_width(data, tile)
    return [data[i : i + HASH_BYTES] for i in range(0, len(data), HASH_BYTES)]


def bundle_of(entries: Sequence[bytes]) -> bytes:
    r"""Return entries as a bundle holds them: each with its length before it.

    >>> bundle_of([b"tea"])
    b'\x00\x03tea'
    """
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def entries_of(data: bytes, tile: Tile) -> list[bytes]:
    """Return the entries of a bundle; raise `ProblemError` where it is cut off or too long."""
    entries: list[bytes] = []
    at = 0
    while at < len(data) and len(entries) < tile.width:
        stop = at + 2 + int.from_bytes(data[at : at + 2], "big")
        entries.append(data[at + 2 : stop])
        at = stop
    if at != len(data) or len(entries) != tile.width:
        raise ProblemError(f"{tile.path} must hold {tile.width} entries and nothing else")
    return entries


def _last_tiles(size: int) -> Iterator[Tile]:
    for level in range(LEVEL_STOP):
        width = size >> TILE_LEVELS * level
        if width:
            yield Tile(level, (width - 1) // TILE_WIDTH, (width - 1) % TILE_WIDTH + 1)


def _require_width(data: bytes, tile: Tile) -> None:
    if len(data) != tile.width * HASH_BYTES:
        raise ProblemError(
            f"{tile.path} must have {tile.width * HASH_BYTES} bytes, got {len(data)}"
        )


@lru_cache(maxsize=256)
def _levels(data: bytes) -> list[list[bytes]]:
    """Return the complete nodes over a tile's hashes, by their height in it."""
    levels = [[data[i : i + HASH_BYTES] for i in range(0, len(data), HASH_BYTES)]]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([node_hash(*below[i : i + 2]) for i in range(0, len(below) - 1, 2)])
    return levels
