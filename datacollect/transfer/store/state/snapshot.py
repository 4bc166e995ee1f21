"""Snapshot of a state at one instant, read into memory: nothing is written.

The file and its write-ahead log are copied, in this order: a page that a checkpoint brings into the
file meanwhile is in the log too, which is read afterwards and is laid over the file. That holds as
long as the log is not begun again in between; then its head has other salts, and all is read again.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import apsw

from datacollect.errors import FULL, ProblemError, StoreError
from datacollect.transfer.store.state.failures import StateErrors
from datacollect.transfer.store.state.reading import Reading
from datacollect.transfer.store.state.schema import VERSION, version_of

if TYPE_CHECKING:
    from pathlib import Path

HEAD_BYTES = 32
# Where a pull begins its log again each time that it is read.
MOST_TRIES, WAIT_S = 100, 0.02
_READ_BYTES = 2**20


def snapshot_of(path: Path) -> Reading | None:
    """Return what a state says now; None: nothing was ever noted in it.

    Raises
    ------
    ProblemError
        It is damaged, cannot be read, or is of another version.
    StoreError
        The disk fails.
    """
    errors = StateErrors(path)
    try:
        with errors:
            copies = _copies(path)
    except OSError as error:
        what = f"{path}: cannot be read: {error.strerror}"
        raise (StoreError if error.errno in FULL else ProblemError)(what) from None
    if not copies[""]:
        return None
    with errors:
        vfs = _MemoryVfs(copies)
        try:
            db = apsw.Connection("state", vfs=vfs.name)
        finally:
            vfs.unregister()
        try:
            is_begun, version = _begun(db, errors if copies["-wal"] else None)
        except BaseException:
            db.close()
            raise
    if is_begun and version == VERSION:
        return Reading(db, threading.RLock(), errors)
    # Collected as garbage, its files might go first.
    db.close()
    if not is_begun:
        return None
    if not isinstance(version, int):
        raise errors.damaged("it holds no collection")
    raise ProblemError(
        f"{path}: must be state of version {VERSION}, got {version!r}; use the version of "
        "datacollect that began this pull"
    )


def _begun(db: apsw.Connection, errors: StateErrors | None) -> tuple[bool, object]:
    """Return whether anything was ever noted, and the state's version.

    `errors`: for a state with a log, which may be of another instant.
    """
    # The log's index is kept in memory then.
    db.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
    db.execute("PRAGMA synchronous=OFF").fetchall()
    db.execute("PRAGMA temp_store=MEMORY").fetchall()
    if not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall():
        return False, None
    if errors is not None:
        errors.require_whole(db)
    return True, version_of(db)


def _copies(path: Path) -> dict[str, bytearray]:
    """Return the file and its log, by what is put behind the name."""
    log = path.with_name(f"{path.name}-wal")
    for _ in range(MOST_TRIES):
        before = _head(log)
        main = _read_main(path)
        try:
            copy = bytearray(log.read_bytes())
        except FileNotFoundError:
            copy = bytearray()
        if bytes(copy[:HEAD_BYTES]) == before and _head(log) == before:
            return {"": main, "-wal": copy}
        time.sleep(WAIT_S)
    raise StoreError(f"{path}: cannot be read: the running pull writes without pause; try again")


def _head(log: Path) -> bytes:
    try:
        with log.open("rb", buffering=0) as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError:
        return b""


def _read_main(path: Path) -> bytearray:
    """Read the file through SQLite.

    A pull in this very process has locks on it, which the system drops as soon as anyone in the
    process closes the file; SQLite knows, and waits with it.
    """
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0]
    path.stat()  # with the system's own words, if it is not there
    file = apsw.VFSFile("", str(path), flags)
    try:
        left, found = file.xFileSize(), bytearray()
        while left > 0:
            found += file.xRead(min(left, _READ_BYTES), len(found))
            left = file.xFileSize() - len(found)
        return found
    finally:
        file.xClose()


class _MemoryVfs(apsw.VFS):
    """Files in memory, by what is put behind the name; what is written stays there."""

    def __init__(self, files: dict[str, bytearray]) -> None:
        self.name = f"memory-{id(files)}"
        self._files = files
        super().__init__(self.name, base="", makedefault=False)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's name
        flags[1] = flags[0]
        path = "" if name is None else (name if isinstance(name, str) else name.filename())
        return _MemoryFile(self._files.setdefault(_behind(path), bytearray()))

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802 - SQLite's name
        return bool(self._files.get(_behind(pathname)))

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's name
        self._files.pop(_behind(filename), None)

    def xFullPathname(self, name: str) -> str:  # noqa: N802 - SQLite's name
        return name


def _behind(path: str) -> str:
    return path.removeprefix("state") if path.startswith("state") else f" {path}"


class _MemoryFile:
    """One file in memory."""

    def __init__(self, data: bytearray) -> None:
        self._data = data

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        return bytes(self._data[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        if len(self._data) < offset:
            self._data.extend(bytes(offset - len(self._data)))
        self._data[offset : offset + len(data)] = data

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's name
        del self._data[size:]

    def xFileSize(self) -> int:  # noqa: N802 - SQLite's name
        return len(self._data)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Nothing is to be kept."""

    def xLock(self, level: int) -> None:  # noqa: N802 - SQLite's name
        """Nobody else has it."""

    def xUnlock(self, level: int) -> None:  # noqa: N802 - SQLite's name
        """Nobody else has it."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802 - SQLite's name
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802 - SQLite's name
        return False

    def xSectorSize(self) -> int:  # noqa: N802 - SQLite's name
        return 0

    def xDeviceCharacteristics(self) -> int:  # noqa: N802 - SQLite's name
        return 0

    def xClose(self) -> None:  # noqa: N802 - SQLite's name
        """Its bytes go with it."""
