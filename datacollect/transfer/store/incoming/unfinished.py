"""Unfinished files: trusted as long as they look as they were left, else read again.

Only this program writes to them. Whatever else touches one (a hand, a copy of the folder, an older
state beside newer data, a crash before bytes were on disk) leaves it with another size, time or
inode. Such a file is *doubted*: its parts are compared with their hashes before it gets its name.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.transfer.store.folder.looks import looks_of
from datacollect.transfer.store.folder.paths import remove_whole
from datacollect.transfer.store.state.hashes import is_part
from datacollect.transfer.store.state.holes import data_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.transfer.protocol.source import Listed
    from datacollect.transfer.store.folder.looks import Looks

_ZEROS = bytes(2**20)
# What lies under a file's number and is no file.
_NO_FILE = (errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO)


@cache
def _boot() -> str | None:
    """Return what names this run of the machine: before, bytes may not have been on disk."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None


def told_of(looks: Looks | None) -> str | None:
    """Return looks as text for the state; None where nothing can be trusted by them."""
    if looks is None or _boot() is None:
        return None
    return json.dumps([_boot(), *looks])


class _File:
    """Knowledge of one unfinished file.

    Attributes
    ----------
    lock : threading.Lock
        Held while it is written to: who comes next sees how it was left.
    looks : Looks or None
        As it was left; None: nothing of it is there.
    n_doubts : int
        How often it did not look so.
    """

    __slots__ = ("lock", "looks", "n_doubts")

    def __init__(self, looks: Looks | None, n_doubts: int) -> None:
        self.lock = threading.Lock()
        self.looks, self.n_doubts = looks, n_doubts


class Unfinished:
    """The unfinished files of a destination folder.

    Parameters
    ----------
    folder_of : callable
        Returns the descriptor of the folder in which a source's unfinished files lie.
    """

    def __init__(self, folder_of: Callable[[str], int]) -> None:
        self._folder_of = folder_of
        self._files: dict[int, _File] = {}

    def take_over(self, source: str, file: int, told: str | None) -> None:
        """Go on with a file of which an earlier start has recorded parts; `told`: how it was left.

        One that this start knows already stays as it is known.
        """
        if file in self._files:
            return
        looks = self._look(source, file)
        is_as_left = told is not None and told == told_of(looks)
        self._files[file] = _File(looks, 0 if is_as_left else 1)

    @contextmanager
    def writing(self, source: str, file: int) -> Iterator[int]:
        """Open a file for writing, by one at a time.

        One of which nothing has come is made, and holds nothing then. One of which something has
        come is made again only where it is gone, and is doubted.
        """
        known = self._known(file)
        with known.lock:
            fd = self._open(self._folder_of(source), file, known)
            try:
                yield fd
                known.looks = looks_of(os.fstat(fd))
            finally:
                os.close(fd)

    def is_doubted(self, file: int) -> bool:
        """Return whether parts of a file have to be read again before it may be used."""
        known = self._files.get(file)
        return known is not None and known.n_doubts > 0

    def look_again(self, source: str, file: int) -> None:
        """Doubt a file unless it is as it was left."""
        known = self._known(file)
        with known.lock:
            self._require_as_left(known, self._look(source, file))

    def doubt(self, file: int) -> None:
        """Have a file read again before it is used."""
        self._known(file).n_doubts += 1

    def told(self, file: int) -> str | None:
        """Return how a file was left, for the state; None: it is not to be trusted by that."""
        known = self._files.get(file)
        return None if known is None or known.n_doubts else told_of(known.looks)

    def forget(self, file: int) -> None:
        """Know nothing more of a file: it has its name, or is not waited for."""
        self._files.pop(file, None)

    def read_again(
        self,
        source: str,
        file: int,
        listed: Listed,
        parts: Sequence[tuple[int, int, bytes]],
        is_cancelled: Callable[[], bool],
    ) -> list[tuple[int, int]]:
        """Compare the parts of a file with their hashes; return those that do not fit.

        What lies behind its end is cut off, and what lies in its holes becomes zeros.

        Parameters
        ----------
        source : str
        file : int
        listed : Listed
        parts : sequence of (int, int, bytes)
            Offset, bytes, hash; no hash: a hole.
        is_cancelled : callable
            Asked between parts; what remains is not read then.

        Returns
        -------
        list of (int, int)
            Offset and bytes of parts that are to be fetched again.
        """
        known = self._known(file)
        n_doubts, fd = known.n_doubts, self._open_to_read(source, file, listed.n_bytes, known)
        if fd is None:
            wrong = [(offset, n_bytes) for offset, n_bytes, digest in parts if digest]
        else:
            wrong = []
            try:
                for offset, n_bytes, digest in parts:
                    if is_cancelled():
                        return []
                    if _is_there(fd, offset, n_bytes, digest):
                        continue
                    if digest:
                        wrong.append((offset, n_bytes))
                    else:
                        self._make_zero(fd, offset, n_bytes, known)
            finally:
                os.close(fd)
        with known.lock:
            if known.n_doubts == n_doubts:  # nobody else has touched it meanwhile
                known.n_doubts = 0
        return wrong

    def _known(self, file: int) -> _File:
        known = self._files.get(file)
        return self._files.setdefault(file, _File(None, 0)) if known is None else known

    def _open(self, folder_fd: int, file: int, known: _File) -> int:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        if known.looks is not None:
            try:
                fd = os.open(str(file), flags, dir_fd=folder_fd)
            except OSError as error:
                if error.errno not in _NO_FILE:
                    raise
                self._require_as_left(known, None)
            else:
                self._require_as_left(known, looks_of(os.fstat(fd)))
                return fd
        try:
            return os.open(str(file), flags | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder_fd)
        except FileExistsError:  # whatever it is, nothing of it was recorded
            remove_whole(folder_fd, str(file))
            return os.open(str(file), flags | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder_fd)

    def _open_to_read(self, source: str, file: int, n_bytes: int, known: _File) -> int | None:
        """Open a file whose looks count from now on; None: it is not there."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with known.lock:
            try:
                fd = os.open(str(file), flags, dir_fd=self._folder_of(source))
            except OSError as error:
                if error.errno not in _NO_FILE:
                    raise
                known.looks = None
                return None
            if os.fstat(fd).st_size > n_bytes:
                os.ftruncate(fd, n_bytes)
            known.looks = looks_of(os.fstat(fd))
        return fd

    def _make_zero(self, fd: int, offset: int, n_bytes: int, known: _File) -> None:
        """Have zeros where a file has a hole: where nothing is, nothing is written."""
        with known.lock:
            self._require_as_left(known, looks_of(os.fstat(fd)))
            for begin, end in data_ranges(fd, offset, offset + n_bytes):
                for at in range(begin, end, len(_ZEROS)):
                    os.pwrite(fd, _ZEROS[: end - at], at)
            known.looks = looks_of(os.fstat(fd))

    def _require_as_left(self, known: _File, looks: Looks | None) -> None:
        if looks != known.looks:
            known.looks = looks
            known.n_doubts += 1

    def _look(self, source: str, file: int) -> Looks | None:
        try:
            found = os.stat(str(file), dir_fd=self._folder_of(source), follow_symlinks=False)
        except FileNotFoundError:
            return None
        return looks_of(found)


def _is_there(fd: int, offset: int, n_bytes: int, digest: bytes) -> bool:
    """Return whether a part of an open file has its hash; one that cannot be read has not."""
    try:
        return is_part(fd, offset, n_bytes, digest)
    except OSError:
        return False
