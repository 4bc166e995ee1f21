"""The manifest of a folder: path, size and SHA-256 of every file, made so that it can go on.

What is hashed is noted beside the manifest, one line a file. Started again, the folder is walked
again; a file that is as it was when it was hashed is not read again. Each start adds a run of
lines in the order of the walk, so runs are merged with the walk and never held in memory.
"""

from __future__ import annotations

import csv
import hashlib
import heapq
import io
import json
import os
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, not_written
from datacollect.files.durability import name_durably
from datacollect.files.kinds import shown
from datacollect.files.locks import take_lock
from datacollect.problem.manifest import why_no_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

HEADER = ("host", "path", "bytes", "sha256")
# What a manifest that is being made is called, and the notes that let it go on.
NEW, NOTES = ".new", ".hashed"
# A file that changes while it is read is read at most this many times.
TRIES = 3
# A change within a tick of the file system's clock leaves the time of change as it is: what has
# changed so shortly before it was read is read again at the next start.
YOUNG_NS = 2 * 10**9
BLOCK_BYTES = 2**20

_Key: TypeAlias = tuple[bytes, ...]
_Stamp: TypeAlias = list[int]


class NotListed(NamedTuple):
    """A file or folder that is not in the manifest, and why."""

    path: str
    why: str


@dataclass(frozen=True)
class Inventory:
    """Result of making a manifest.

    Attributes
    ----------
    n_files, n_bytes : int
        All that is in it.
    n_known_files : int
        Those of them that an earlier start had hashed.
    not_listed : tuple of NotListed
        What lies in the folder and is not in it; empty folders are no loss.
    """

    n_files: int
    n_bytes: int
    n_known_files: int
    not_listed: tuple[NotListed, ...]


class _LeftOutError(Exception):
    """A file cannot be listed; the message says why."""


def save_manifest(
    folder: str | os.PathLike[str],
    host: str,
    output: str | os.PathLike[str],
    report: Callable[[int, int], None] = lambda _n_files, _n_bytes: None,
) -> Inventory:
    """Write the manifest of a folder to a file, which appears when it is whole.

    Parameters
    ----------
    folder : path-like
    host : str
        Whose files they are: the column ``host``.
    output : path-like
        The manifest. It is replaced. Within the folder, it does not list itself.
    report : callable, optional
        Takes the files and bytes so far, after each file, and while a large one is read.

    Returns
    -------
    Inventory

    Raises
    ------
    ProblemError
        The folder cannot be read, or another process makes this manifest.
    NotWrittenError
        The manifest cannot be written; what is hashed is noted, as far as there was room.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a").write_bytes(b"abc")
    ...     made = save_manifest(folder, "S", f"{folder}/files.csv")
    ...     print(pathlib.Path(folder, "files.csv").read_text())
    host,path,bytes,sha256
    S,a,3,ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
    <BLANKLINE>
    >>> made.n_files, made.not_listed
    (1, ())
    """
    file = Path(os.path.realpath(output))
    new, notes = (file.with_name(file.name + ending) for ending in (NEW, NOTES))
    require_folder(folder)
    with _noting(notes) as noted, _removed_in_the_end(new):
        known, note = _Known(noted), _begin_run(noted)
        with _told_of(file), new.open("w", encoding="utf-8", newline="") as rows:
            ours = {str(path) for path in (file, new, notes)}
            made = _listed(folder, host, rows.write, report, known, note, ours)
            rows.flush()
            # What is lost with its name is made again.
            name_durably(new, file, fd=rows.fileno(), folders=())
        notes.unlink()
    return made


def stream_manifest(
    folder: str | os.PathLike[str],
    host: str,
    write: Callable[[str], object],
    report: Callable[[int, int], None] = lambda _n_files, _n_bytes: None,
) -> Inventory:
    """Hand the lines of a folder's manifest over, one by one; nothing is noted.

    Parameters
    ----------
    folder, host, report
        As in `save_manifest`.
    write : callable
        Takes each row, its end of line with it.

    Raises
    ------
    ProblemError
        The folder cannot be read.
    """
    require_folder(folder)
    return _listed(folder, host, write, report, _Known(io.BytesIO()), None, set())


def size_of_folder(folder: str | os.PathLike[str]) -> tuple[int, int]:
    """Return how many files a manifest of a folder would list, and how many bytes they have.

    Files that come, go or change meanwhile make it another manifest: it shows how far one
    is.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a").write_bytes(b"abc")
    ...     size_of_folder(folder)
    (1, 3)
    """
    require_folder(folder)
    base = os.path.realpath(folder).rstrip("/")
    n_files = n_bytes = 0
    for path, why in _walk(base):
        if not why and not why_no_path(path):
            with suppress(OSError):
                n_bytes += os.lstat(f"{base}/{path}").st_size
                n_files += 1
    return n_files, n_bytes


def require_folder(folder: str | os.PathLike[str]) -> None:
    """Raise `ProblemError` where there is no folder that can be read."""
    try:
        with os.scandir(folder):
            pass
    except (OSError, ValueError) as error:
        raise ProblemError(
            f"{document_name(folder)}: must be a folder that can be read: {_reason(error)}; check "
            "the path"
        ) from None


def _listed(
    folder: str | os.PathLike[str],
    host: str,
    write: Callable[[str], object],
    report: Callable[[int, int], None],
    known: _Known,
    note: Callable[[str, _Stamp, str], None] | None,
    ours: set[str],
) -> Inventory:
    """Walk the folder and write a row for each file."""
    base = os.path.realpath(folder).rstrip("/")
    text = io.StringIO()
    # Before Python 3.13 a name that holds \r is put in quotes only where lines end in it.
    table = csv.writer(text, lineterminator="\r\n")
    not_listed: list[NotListed] = []
    n_files = n_bytes = n_known = 0

    def row(cells: Iterable[Any]) -> None:
        table.writerow(cells)
        write(text.getvalue().removesuffix("\r\n") + "\n")
        text.seek(0)
        text.truncate()

    row(HEADER)
    for path, why in _walk(base):
        if f"{base}/{path}" in ours:
            continue
        try:
            if why or (why := why_no_path(path)):
                raise _LeftOutError(why)
            reading = partial(_report_within_file, report, n_files, n_bytes)
            size, digest, is_known = _looked_up(base, path, known, note, reading)
        except _LeftOutError as error:
            not_listed.append(NotListed(path, str(error)))
            continue
        row((host, path, size, digest))
        n_files, n_bytes, n_known = n_files + 1, n_bytes + size, n_known + is_known
        report(n_files, n_bytes)
    return Inventory(n_files, n_bytes, n_known, tuple(not_listed))


# The folder ---------------------------------------------------------------------------------


def _walk(base: str) -> Iterator[tuple[str, str | None]]:
    """Return each file's path in the order of `_key`; or why something is no file to list."""
    folders: list[Iterator[tuple[str, str | None, bool]]] = [_entries(base, "")]
    while folders:
        entry = next(folders[-1], None)
        if entry is None:
            folders.pop()
            continue
        path, why, is_folder = entry
        if is_folder:
            folders.append(_entries(base, path))
        else:
            yield path, why


def _entries(base: str, place: str) -> Iterator[tuple[str, str | None, bool]]:
    """Return what a folder holds, sorted: path, why it is left out, whether it is a folder."""
    found: list[tuple[bytes, str, str | None, bool]] = []
    try:
        with os.scandir(f"{base}/{place}") as entries:
            for entry in entries:
                path = f"{place}/{entry.name}" if place else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                why = None
                if entry.is_symlink():
                    why = "it is a symbolic link; links are not followed"
                elif not is_folder and not entry.is_file(follow_symlinks=False):
                    why = "this is not a regular file"
                found.append((os.fsencode(entry.name), path, why, is_folder))
    except OSError as error:
        # What was seen of it is listed all the same; the folder itself comes before it.
        yield place or ".", f"the folder cannot be read to its end: {_reason(error)}", False
    found.sort()
    for _, path, why, is_folder in found:
        yield path, why, is_folder


def _key(path: str) -> _Key:
    """Return by what files are ordered: folder by folder, names by their bytes."""
    return tuple(os.fsencode(path).split(b"/"))


def _stamp(found: os.stat_result) -> _Stamp:
    """Return what differs once a file has changed, or is another."""
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _report_within_file(
    report: Callable[[int, int], None], n_files: int, n_bytes: int, n_read: int
) -> None:
    report(n_files, n_bytes + n_read)


def _looked_up(
    base: str,
    path: str,
    known: _Known,
    note: Callable[[str, _Stamp, str], None] | None,
    reading: Callable[[int], None],
) -> tuple[int, str, bool]:
    """Return a file's size and SHA-256, and whether an earlier start had it."""
    try:
        for _ in range(TRIES):
            with _opened(f"{base}/{path}") as number:
                before = _stamp(os.fstat(number))
                size = before[2]
                if (digest := known.digest(path, before)) is not None:
                    return size, digest, True
                digest = _digest(number, size, reading)
                if digest is not None and _stamp(os.fstat(number)) == before:
                    if note is not None and before[4] + YOUNG_NS < time.time_ns():
                        note(path, before, digest)
                    return size, digest, False
    except OSError as error:
        raise _LeftOutError(f"the file cannot be read: {_reason(error)}") from None
    raise _LeftOutError(f"the file has changed while it was read, {TRIES} times in a row")


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """Open a regular file, and nothing else: what took its place meanwhile may wait for ever."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise _LeftOutError("this is not a regular file")
        yield number
    finally:
        os.close(number)


def _digest(number: int, size: int, reading: Callable[[int], None]) -> str | None:
    """Return the SHA-256 of a file of this size; None where it has another by now."""
    found, n_read = hashlib.sha256(), 0
    # No further than one byte behind its end: a file may grow as fast as it is read.
    while block := os.read(number, min(BLOCK_BYTES, size + 1 - n_read)):
        found.update(block)
        n_read += len(block)
        if n_read > size:
            return None
        if n_read < size:
            reading(n_read)
    return found.hexdigest() if n_read == size else None


# Notes --------------------------------------------------------------------------------------


class _Known:
    """Hashes of earlier starts, looked up in the order of the walk."""

    def __init__(self, notes: IO[bytes]) -> None:
        begins, at = [0], 0
        notes.seek(0)
        for line in notes:
            if line == b"\n":
                begins.append(at)
            at += len(line)
        pairs = pairwise([*begins, at])
        self._lines = heapq.merge(
            *(_run(notes, begin, stop) for begin, stop in pairs), key=lambda entry: entry[0]
        )
        self._next = next(self._lines, None)

    def digest(self, path: str, stamp: _Stamp) -> str | None:
        """Return the SHA-256 of a file that is as it was; None where it is not, or not known."""
        key, found = _key(path), None
        while self._next is not None and self._next[0] <= key:
            if self._next[0] == key and self._next[1] == stamp:
                found = self._next[2]
            self._next = next(self._lines, None)
        return found


def _run(notes: IO[bytes], begin: int, stop: int) -> Iterator[tuple[_Key, _Stamp, str]]:
    """Return the notes of one start, as far as they are whole."""
    while begin < stop:
        notes.seek(begin)
        line = notes.readline()
        begin += len(line)
        if line == b"\n":
            continue
        try:
            name, stamp, digest = json.loads(line)
            yield _key(os.fsdecode(bytes.fromhex(name))), stamp, digest
        except (ValueError, TypeError):
            return  # the last line of a start that was killed


@contextmanager
def _noting(path: Path) -> Iterator[IO[bytes]]:
    """Open the notes, for this process alone."""
    with _told_of(path):
        notes = path.open("a+b", buffering=0)
    with notes:
        with _told_of(path):
            is_free = take_lock(notes.fileno())
        if not is_free:
            raise ProblemError(
                f"{document_name(path)}: another process is making this manifest; wait until it "
                "ends, or name another file"
            )
        yield notes


def _begin_run(notes: IO[bytes]) -> Callable[[str, _Stamp, str], None]:
    """Return what adds a note of a file; an empty line parts this start from those before."""
    is_first = [True]

    def note(path: str, stamp: _Stamp, digest: str) -> None:
        line = json.dumps([os.fsencode(path).hex(), stamp, digest]).encode() + b"\n"
        notes.write(b"\n\n" + line if is_first[0] else line)
        is_first[0] = False

    return note


@contextmanager
def _removed_in_the_end(path: Path) -> Iterator[None]:
    """Remove a file in the end, if it is there."""
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Say of what is written why it cannot be."""
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from None


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or shown(str(error))
