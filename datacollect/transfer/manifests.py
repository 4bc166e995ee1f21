"""Make a manifest: all files of folders, with their sizes and SHA-256, as a CSV file.

Terabytes take hours to read. What has been read is kept in a file beside the manifest, a line for
each file; started again, files that are as they were then are not read again.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import io
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.documents import document_name, write_atomically
from datacollect.errors import NotWrittenError, ProblemError
from datacollect.problem.manifest import require_path
from datacollect.transfer.agent.files import Folder, closing, words_of
from datacollect.transfer.agent.listing import walk
from datacollect.transfer.protocol.messages import FileEntry, LeftOut
from datacollect.transfer.protocol.patterns import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from os import PathLike

COLUMNS = ("host", "path", "bytes", "sha256")
BLOCK_BYTES = 2**20
# A file that changes while it is read is read so often.
TRIES = 2
CHANGES = "it changes while it is read; make the manifest when it is at rest"


class NotListed(NamedTuple):
    """What lies in a folder and is not in the manifest, and why."""

    host: str
    path: str
    why: str


@dataclass(frozen=True)
class WrittenManifest:
    """What a manifest lists.

    Attributes
    ----------
    n_files, n_bytes : int
    n_read_bytes : int
        Less than `n_bytes` where what an interrupted call had read was taken over.
    left_out : tuple of NotListed
        Files that are not in it: links, pipes, what cannot be read or changed meanwhile, names
        that no manifest takes.
    """

    n_files: int
    n_bytes: int
    n_read_bytes: int
    left_out: tuple[NotListed, ...]


def write_manifest(
    path: str | PathLike[str],
    folders: Mapping[str, str | PathLike[str]],
    *,
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    on_read: Callable[[int, int], None] | None = None,
) -> WrittenManifest:
    """List the files of folders: host, path, bytes, sha256. Interrupted, it goes on when repeated.

    Parameters
    ----------
    path : path
        The manifest, CSV. It is there, as a whole, once all has been read. What has been read until
        then lies in a file beside it, whose name ends in ``.part``.
    folders : mapping of str to path
        The folder of each host, whose files are listed by their paths within it, in their order.
    include, exclude : tuple of str
        Patterns of paths, ``**`` for any folders: which files are listed, by default all, and which
        of those are not.
    on_read : function of int and int, optional
        Called now and then with bytes that are done, and bytes of all files.

    Returns
    -------
    WrittenManifest

    Raises
    ------
    ProblemError
        A folder cannot be opened, or another call makes the same manifest.
    NotWrittenError
        The disk is full, or the like; what has been read is kept.

    Examples
    --------
    >>> import datacollect as dc
    >>> from pathlib import Path
    >>> Path("run7").mkdir()
    >>> _ = Path("run7", "a.bin").write_bytes(b"abc")
    >>> dc.write_manifest("files.csv", {"S1": "run7"}).n_bytes
    3
    >>> print(Path("files.csv").read_text()[:37])
    host,path,bytes,sha256
    S1,a.bin,3,ba7
    """
    path = Path(path)
    own = {path.resolve(), _part_of(path).resolve()}
    entries = [
        entry
        for host, folder in folders.items()
        for entry in _listed(host, Path(folder), include, exclude, own)
    ]
    found = [entry for entry in entries if isinstance(entry, _Found)]
    left_out = [entry for entry in entries if isinstance(entry, NotListed)]
    with _Kept(path) as kept:
        rows, n_read = _hashed(found, {h: Path(f) for h, f in folders.items()}, kept, on_read)
        left_out += (row for row in rows if isinstance(row, NotListed))
        lines = [row for row in rows if isinstance(row, _Row)]
        write_atomically(path, _csv(lines))
        kept.forget()
    total = sum(row.n_bytes for row in lines)
    return WrittenManifest(len(lines), total, n_read, tuple(left_out))


class _Found(NamedTuple):
    """A file to be read."""

    host: str
    entry: FileEntry


@dataclass(frozen=True)
class _Row:
    """A file that has been read, and what tells whether it is still the same."""

    host: str
    path: str
    n_bytes: int
    mtime_ns: int
    inode: int
    sha256: str

    def is_of(self, entry: FileEntry) -> bool:
        """Whether the file is as it was when it was read."""
        now = (entry.n_bytes, entry.mtime_ns, entry.inode)
        return (self.n_bytes, self.mtime_ns, self.inode) == now


# Which files ----------------------------------------------------------------------------------


def _listed(
    host: str,
    folder: Path,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    own: set[Path],
) -> Iterator[_Found | NotListed]:
    """Yield a folder's files, and what is none; not the manifest itself."""
    try:
        opened = Folder(folder)
    except OSError as error:
        raise ProblemError(
            f"{folder}: cannot be opened as a folder: {words_of(error)}; name the folder with the "
            f"files of {host!r}"
        ) from None
    try:
        for step in walk(opened, patterns=include or None):
            entry = step.entry
            if isinstance(entry, LeftOut):
                if not (exclude and matches(entry.name, exclude)):
                    yield NotListed(host, entry.name, entry.why)
            elif isinstance(entry, FileEntry):
                is_own = (folder / entry.path).resolve() in own
                if not is_own and not (exclude and matches(entry.path, exclude)):
                    yield _fitting(host, entry)
    finally:
        opened.close()


def _fitting(host: str, entry: FileEntry) -> _Found | NotListed:
    """Return the file, if a manifest may have such a path."""
    try:
        require_path(entry.path, host)
    except ProblemError as error:
        return NotListed(host, entry.path, str(error).removeprefix(f"{host}: "))
    return _Found(host, entry)


# Reading --------------------------------------------------------------------------------------


def _hashed(
    found: Iterable[_Found],
    folders: Mapping[str, Path],
    kept: _Kept,
    on_read: Callable[[int, int], None] | None,
) -> tuple[list[_Row | NotListed], int]:
    """Return a row for each file, and how many bytes were read for them."""
    found = list(found)
    total, done, n_read = sum(one.entry.n_bytes for one in found), 0, 0
    rows: list[_Row | NotListed] = []
    opened = {host: Folder(folder) for host, folder in folders.items()}

    def progress(n_bytes: int) -> None:
        if on_read is not None:
            on_read(done + n_bytes, total)

    try:
        for host, entry in found:
            row: _Row | NotListed | None = kept.row_of(host, entry)
            if row is None:
                row = _read(host, opened[host], entry.path, progress)
                if isinstance(row, _Row):
                    kept.add(row)
                    n_read += row.n_bytes
            rows.append(row)
            done += entry.n_bytes
            progress(0)
    finally:
        for folder in opened.values():
            folder.close()
    return rows, n_read


def _read(
    host: str, folder: Folder, path: str, progress: Callable[[int], None]
) -> _Row | NotListed:
    """Read a file once; again where it has changed meanwhile."""
    buffer = memoryview(bytearray(BLOCK_BYTES))
    for _ in range(TRIES):
        try:
            with closing(folder.open(path)) as number:
                before, digest, n_bytes = os.fstat(number), hashlib.sha256(), 0
                while n := os.readv(number, [buffer]):
                    digest.update(buffer[:n])
                    n_bytes += n
                    progress(n_bytes)
                after = os.fstat(number)
        except OSError as error:
            gone = error.errno == errno.ENOENT
            return NotListed(host, path, CHANGES if gone else f"cannot be read: {words_of(error)}")
        if n_bytes == after.st_size and _state(before) == _state(after):
            state = after.st_mtime_ns, after.st_ino
            return _Row(host, path, n_bytes, *state, digest.hexdigest())
    return NotListed(host, path, CHANGES)


def _state(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


# What an interrupted call has read ------------------------------------------------------------


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


class _Kept:
    """Rows of files that have been read, in a file of lines; only one call at a time has it."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = _part_of(path), document_name(path)
        self._rows: dict[tuple[str, str], _Row] = {}

    def __enter__(self) -> _Kept:
        try:
            self._number = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise self._not_kept(error) from None
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._take_over()
        except OSError as error:
            os.close(self._number)
            if isinstance(error, BlockingIOError):
                raise ProblemError(
                    f"{self._place}: another call is making it; wait until that has ended"
                ) from None
            raise self._not_kept(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._number)

    def row_of(self, host: str, entry: FileEntry) -> _Row | None:
        """Return what was read of a file, if it is as it was."""
        row = self._rows.get((host, entry.path))
        return row if row is not None and row.is_of(entry) else None

    def add(self, row: _Row) -> None:
        """Keep a row: it outlasts this process."""
        line = f"{json.dumps(asdict(row))}\n".encode()
        try:
            n = os.write(self._number, line)
            if n < len(line):
                os.write(self._number, line[n:])  # says why
        except OSError as error:
            raise self._not_kept(error) from None

    def forget(self) -> None:
        """Remove the file: the manifest has all of it."""
        self._path.unlink(missing_ok=True)

    def _take_over(self) -> None:
        """Read the rows that are there; a last line that is not whole is cut off."""
        text = self._path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        os.ftruncate(self._number, len(whole))
        for line in whole.splitlines():
            row = _row_of_line(line)
            if row is not None:
                self._rows[row.host, row.path] = row

    def _not_kept(self, error: OSError) -> NotWrittenError:
        return NotWrittenError(
            f"{self._path}: cannot be written: {words_of(error)}; what has been read until now is "
            "kept: repeat the call when there is room",
            error.errno,
        )


def _row_of_line(line: bytes) -> _Row | None:
    """Return the row; None of a line that nobody here has written."""
    try:
        return _Row(**json.loads(line))
    except (ValueError, TypeError):
        return None


def _csv(rows: Iterable[_Row]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((row.host, row.path, row.n_bytes, row.sha256) for row in rows)
    return text.getvalue().encode()


def totals(written: WrittenManifest) -> dict[str, Any]:
    """Return counts and what is left out, for JSON."""
    return asdict(written) | {"left_out": [one._asdict() for one in written.left_out]}
