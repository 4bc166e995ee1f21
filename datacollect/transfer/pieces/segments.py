"""Segments: files of at most 64 MiB in which pieces lie one behind the other.

An open segment is written; bytes of it count once they are synced, and whoever keeps rows of them
commits those afterwards. A closed one is renamed into another folder, and never changes: first its
bytes are on the disk, then its name is, then that of what lies beside it. Each step may be the last
before a loss of power, and is done again by the next start.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from datacollect.errors import StoreError
from datacollect.files.durability import name_durably, sync
from datacollect.files.held_folder import not_written, sync_folder, writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

MOST_SEGMENT_BYTES = 64 * 2**20
FOLDER = "segments"


def segment_name(number: int) -> str:
    """Return the path of a closed segment below its folder.

    >>> segment_name(7)
    'segments/0000000007.segment'
    """
    return f"{FOLDER}/{number:010}.segment"


class SegmentFiles:
    """Files of segments, open and closed, in a folder that one process holds.

    Parameters
    ----------
    open_folder : Path
        Of those that are written.
    closed_folder : Path
        Below which closed ones lie, by `segment_name`.

    Raises
    ------
    StoreError
        The disk is full, or fails; so do all methods.
    """

    def __init__(self, open_folder: Path, closed_folder: Path) -> None:
        self._open_folder, self._closed_folder = open_folder, closed_folder
        self._files: dict[int, int] = {}
        with writing(closed_folder):
            for folder in (open_folder, closed_folder / FOLDER):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (open_folder.parent, closed_folder):
                sync_folder(folder)

    def write(self, number: int, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write bytes of an open segment, which is made where there is none."""
        with writing(self._open_folder):
            fd = self._files.get(number)
            if fd is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
                fd = self._files[number] = os.open(self._path(number), flags, 0o600)
                sync_folder(self._open_folder)
            view = memoryview(data)
            while view:
                n_bytes = os.pwrite(fd, view, offset)
                view, offset = view[n_bytes:], offset + n_bytes

    def sync(self, numbers: Iterable[int]) -> None:
        """Have all that was written of open segments on the disk."""
        with writing(self._open_folder):
            for number in numbers:
                sync(self._files[number], only_data=True, is_required=True)

    def close_segment(
        self, number: int, n_bytes: int, beside: Mapping[str, bytes] | None = None
    ) -> None:
        """Give a segment its last name; again after any interruption.

        Parameters
        ----------
        number : int
        n_bytes : int
            What counts of it; the rest is cut off.
        beside : mapping of str to bytes, optional
            Files that get their names with it, by their paths below the closed folder.
        """
        segment = self._closed_folder / segment_name(number)
        with writing(self._closed_folder):
            opened = self._files.pop(number, None)
            if not segment.exists():
                source = self._path(number)
                os.truncate(source, n_bytes)
                # Its folder is synced below, once all beside it is there, too.
                name_durably(source, segment, folders=(), is_required=True)
            if opened is not None:
                os.close(opened)
            for name, data in (beside or {}).items():
                if not (self._closed_folder / name).exists():
                    self.publish(name, data)
            sync_folder(segment.parent)

    def publish(self, name: str, data: bytes) -> None:
        """Give a file its name below the closed folder once it is on the disk."""
        path = self._closed_folder / name
        with writing(self._closed_folder):
            beside = self._open_folder / path.name
            beside.write_bytes(data)
            name_durably(beside, path, is_required=True)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files below the closed folder, in this order."""
        with writing(self._closed_folder):
            for name in names:
                (self._closed_folder / name).unlink(missing_ok=True)

    def read(self, number: int, offset: int, n_bytes: int, *, may_be_less: bool = False) -> bytes:
        """Return bytes of a segment; `StoreError` where it has less, unless that may be."""
        with writing(self._closed_folder), self.opened(number) as file:
            file.seek(offset)
            data = file.read(n_bytes)
        if len(data) != n_bytes and not may_be_less:
            raise StoreError(
                f"{self._closed_folder}: segment {number} has changed since it was written"
            )
        return data

    def opened(self, number: int) -> BinaryIO:
        """Open a segment, which may be closed meanwhile, and moves once."""
        with suppress(FileNotFoundError):
            return self._path(number).open("rb")
        return (self._closed_folder / segment_name(number)).open("rb")

    def discard(self, number: int) -> int:
        """Remove a segment, open or closed; return how long it was."""
        n_bytes = 0
        with writing(self._closed_folder):
            opened = self._files.pop(number, None)
            if opened is not None:
                os.close(opened)
            for path in (self._path(number), self._closed_folder / segment_name(number)):
                with suppress(FileNotFoundError):
                    n_bytes = path.stat().st_size
                    path.unlink()
        return n_bytes

    def forget_open(self) -> None:
        """Remove what is open: nothing of it counts."""
        self.close()
        with writing(self._open_folder):
            for path in self._open_folder.iterdir():
                path.unlink()

    def close(self) -> None:
        """Close all open files; nothing is lost with what is only closed."""
        for fd in self._files.values():
            with suppress(OSError):
                os.close(fd)
        self._files.clear()

    def free_bytes(self) -> int:
        """Return how much the disk has left."""
        try:
            found = os.statvfs(self._closed_folder)
        except OSError as error:
            raise not_written(self._closed_folder, error) from error
        return found.f_bavail * found.f_frsize

    def _path(self, number: int) -> Path:
        return self._open_folder / f"{number:010}"
