"""Lookup of what lies where files belong, without reading it."""

from __future__ import annotations

import errno
import os
import stat
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from datacollect.transfer.store.attributes import is_as_placed
from datacollect.transfer.store.folder.paths import Folders

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from datacollect.transfer.protocol.source import Listed
    from datacollect.transfer.store.state.reading import Reading

# What is wrong with a name, or with what lies there, and not with the disk.
ABOUT_NAMES = (
    errno.ENOTDIR,
    errno.ELOOP,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.EINVAL,
    errno.EILSEQ,
    errno.ENOTEMPTY,
    errno.EEXIST,
    errno.EACCES,
    errno.EPERM,
    errno.EBUSY,
    errno.EXDEV,
)

_GONE = "no longer exists; start the same pull again, which fetches it"
_OTHER = "differs in size or times from when it came; start the same pull again, which compares it"


class PathKind(Enum):
    """Kind of what was found above a place, or at it."""

    NOTHING = "nothing"
    FILE = "a file"
    FOLDER = "a folder"
    LINK = "a link"
    OTHER = "not a regular file"
    MOUNT = "a file system of its own"
    CLOSED = "closed"


class PathFound(NamedTuple):
    """Finding at a place, or what keeps from it.

    Attributes
    ----------
    kind : PathKind
    at : str
        Where it lies, below the destination folder.
    stat : os.stat_result or None
    why : str
        In the system's words, where it is closed.
    """

    kind: PathKind
    at: str
    stat: os.stat_result | None = None
    why: str = ""


class PathLookup:
    """Looks at places of one destination folder. Not for several threads.

    Parameters
    ----------
    root_fd : int
    """

    def __init__(self, root_fd: int) -> None:
        self.folders = Folders(root_fd)

    def look(self, source: str, path: str) -> PathFound:
        """Return what lies where a file belongs.

        Raises
        ------
        OSError
            What is wrong has nothing to do with the name.
        """
        *above, last = (source, *path.split("/"))
        at = f"{source}/{path}"
        try:
            fd = self.folders.open(tuple(above), make=False)
            return self._at(fd, last, at)
        except FileNotFoundError:
            return PathFound(PathKind.NOTHING, at)
        except OSError as error:
            if error.errno not in ABOUT_NAMES:
                raise
            blocked = str(error.filename or at)
            if error.errno == errno.EXDEV:
                return PathFound(PathKind.MOUNT, blocked)
            if error.errno in (errno.ENOTDIR, errno.ELOOP) and blocked != at:
                return self._blocking(blocked)
            return PathFound(PathKind.CLOSED, blocked, why=os.strerror(error.errno))

    def close(self) -> None:
        """Close what is open."""
        self.folders.close()

    def _at(self, fd: int, name: str, at: str) -> PathFound:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISREG(found.st_mode):
            return PathFound(PathKind.FILE, at, found)
        if stat.S_ISDIR(found.st_mode):
            return PathFound(PathKind.FOLDER, at, found)
        return PathFound(
            PathKind.LINK if stat.S_ISLNK(found.st_mode) else PathKind.OTHER, at, found
        )

    def _blocking(self, at: str) -> PathFound:
        """Return what lies where a folder is wanted."""
        *above, last = at.split("/")
        return self._at(self.folders.open(tuple(above), make=False), last, at)


class Displaced(NamedTuple):
    """A file that is done and does not lie where it was placed, as it was, and why."""

    source: str
    file: Listed
    why: str


def displaced_files(folder: Path, state: Reading) -> Iterator[Displaced]:
    """Yield the files of wanted sources that are done, still listed, and not as they were placed.

    Raises
    ------
    OSError
        The folder cannot be looked at.
    """
    numbers = {name: number for number, name in state.source_names().items()}
    root_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    places = PathLookup(root_fd)
    shared = _Shared(places.folders)
    try:
        for source in state.wanted():
            for row in state.placed(numbers[source.name]):
                if row.is_gone:
                    continue
                path = row.listed.path
                found = places.look(source.name, path)
                if found.kind is PathKind.CLOSED:
                    why = f"{found.at} cannot be examined: {found.why}; fix that"
                    yield Displaced(source.name, row.listed, why)
                    continue
                is_there = found.kind is PathKind.FILE and found.at == f"{source.name}/{path}"
                if not is_there or found.stat is None:
                    yield Displaced(source.name, row.listed, _GONE)
                elif not is_as_placed(found.stat, row.placed):
                    yield Displaced(source.name, row.listed, _OTHER)
                elif (first := shared.first_of(source.name, path)) is not None:
                    other, _, below = f"{first}/{path.rpartition('/')[2]}".partition("/")
                    if state.is_expected(numbers[other], below):
                        yield Displaced(source.name, row.listed, _why_shared(first))
    finally:
        places.close()
        os.close(root_fd)


class _Shared:
    """Folders that were seen: two of one number are one, mounted twice, and so are their files."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._seen: dict[tuple[int, int], str] = {}
        self._last: tuple[str, str | None] = ("", None)

    def first_of(self, source: str, path: str) -> str | None:
        """Return as what the folder of a file was seen before; None: as no other."""
        at = f"{source}/{path}".rpartition("/")[0]
        if at != self._last[0]:
            found = os.fstat(self._folders.open(tuple(at.split("/")), make=False))
            first = self._seen.setdefault((found.st_dev, found.st_ino), at)
            self._last = at, None if first == at else first
        return self._last[1]


def _why_shared(first: str) -> str:
    return (
        f"lies in the folder {first}, which is mounted twice, and has a file of the same name "
        "there: unmount it, or mount another one"
    )
