"""Tiles as files, below the log's folder at the paths under which they are served."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.tiles import HASH_BYTES, TILE_WIDTH
from datacollect.files.durability import name_durably
from datacollect.files.held_folder import not_written, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from datacollect.bistro.formats.log.tiles import Tile

# Tiles never change: those that were read last are kept in mind, 8 KiB each.
MOST_IN_MIND = 4096


class TileFiles:
    """The tiles of a log on the disk.

    Parameters
    ----------
    folder : Path
        Of the log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: set[Tile] = set()
        self.read = lru_cache(MOST_IN_MIND)(self._read)

    def write(self, tiles: Iterable[tuple[Tile, bytes]]) -> None:
        """Write tiles; all of them are on the disk, under their names, when this returns.

        Raises
        ------
        StoreError
        """
        written, changed = set(), set()
        try:
            for tile, data in tiles:
                written.add(tile)
                # A partial tile of a higher level often stays as it is.
                if tile not in self._last:
                    path = self._folder / tile.path
                    self._make(path.parent)
                    _write(path, data)
                    changed.add(path.parent)
            for folder in changed:
                sync_folder(folder)
        except OSError as error:
            raise not_written(self._folder, error) from error
        self._last = written

    def _make(self, folder: Path) -> None:
        """Make a folder and those above it, each with its name on the disk."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(mode=0o755, exist_ok=True)
        sync_folder(folder.parent)

    def _read(self, tile: Tile) -> bytes:
        """Return a tile's bytes; a narrower one is the beginning of a wider one.

        Raises
        ------
        FileNotFoundError
            It is not kept.
        StoreError
        """
        try:
            try:
                return (self._folder / tile.path).read_bytes()
            except FileNotFoundError:
                return _beginning(self._wider(tile), tile)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise not_written(self._folder, error) from error

    def _wider(self, tile: Tile) -> bytes:
        """Return a tile that has all of another, and more: a log that was made again keeps few."""
        if tile.width == TILE_WIDTH:
            raise FileNotFoundError(tile.path)
        full = replace(tile, width=TILE_WIDTH)
        with suppress(FileNotFoundError):
            return (self._folder / full.path).read_bytes()
        partial = (self._folder / tile.path).parent
        widths = [int(path.name) for path in partial.iterdir() if path.name.isdecimal()]
        wider = [width for width in widths if width > tile.width]
        if not wider:
            raise FileNotFoundError(tile.path)
        return (partial / f"{max(wider)}").read_bytes()


def _beginning(data: bytes, tile: Tile) -> bytes:
    """Return the beginning of a wider tile."""
    if tile.level >= 0:
        return data[: HASH_BYTES * tile.width]
    at = 0
    for _ in range(tile.width):
        at += 2 + int.from_bytes(data[at : at + 2], "big")
    return data[:at]


def _write(path: Path, data: bytes) -> None:
    """Put a whole file in its place: whoever reads finds all of it, or none."""
    beside = path.with_name(f"{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    number = os.open(beside, flags, 0o644)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(number, rest) :]
        # Many tiles come together: their folders are synced once, after all of them.
        name_durably(beside, path, fd=number, folders=(), is_required=True)
    finally:
        os.close(number)
