"""A folder that one process holds, and a database in it; what goes wrong with them, in words.

What a database has committed is on the disk: write-ahead log, synchronous=FULL.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from datacollect.errors import NotWrittenError, ProblemError, StoreError
from datacollect.files.durability import synchronise
from datacollect.files.locks import take_lock
from datacollect.files.refusals import (
    MAKE_ROOM,
    MEND_DISK,
    Refusal,
    refusal_of,
    refusal_of_number,
)
from datacollect.installation import command_for_package, is_absent

try:
    import apsw
except ImportError as error:  # the agent alone comes without: only a spool needs it there
    if not is_absent(error, "apsw"):
        raise
    raise ProblemError(
        f"spool: apsw is not installed, which keeping pieces needs: {command_for_package('apsw')}"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# A file system with less than this left is full to SQLite: it writes whole pages, and many.
LEAST_FREE_BYTES = 64 * 1024


class NoRoomError(StoreError):
    """The disk is full."""


class Held:
    """A folder that this process alone has, until `close`; made where it is absent.

    A copy of the process has it, too, until it closes its own.

    Raises
    ------
    NotWrittenError
        It cannot be made or written.
    ProblemError
        Another process has it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._lock_fd = os.open(folder / "lock", flags, 0o600)
        except OSError as error:
            raise _unusable(folder, error) from None
        try:
            is_free = take_lock(self._lock_fd)
        except OSError as error:
            self.close()
            raise _unusable(folder, error) from None
        if not is_free:
            self.close()
            raise ProblemError(
                f"{folder}: another process is using this folder; stop that process first, or "
                "name another folder"
            )

    def close(self) -> None:
        """Let others have it; again does nothing."""
        lock_fd, self._lock_fd = self._lock_fd, -1
        with suppress(OSError):
            os.close(lock_fd)


def _unusable(folder: Path, error: OSError) -> NotWrittenError:
    reason, remedy = refusal_of(error)
    return NotWrittenError(
        f"{folder}: is not a folder that can be written to: {reason}; {remedy or 'fix that'}, or "
        "name another",
        error.errno,
    )


class Database:
    """An SQLite file of one kind and one owner, in a folder that is held.

    Parameters
    ----------
    folder : Path
    name : str
        Of the file.
    schema : str
        SQL that makes the tables of a new one.
    owner : str
        Whose it is; one of somebody else is refused.
    is_read_beside : bool
        Whether this process reads it over other connections, too, which `reader` makes.

    Raises
    ------
    ProblemError
        It is of somebody else, or is no such file.
    StoreError
        The disk is full, or fails.
    """

    def __init__(
        self, folder: Path, name: str, schema: str, owner: str, *, is_read_beside: bool = False
    ) -> None:
        self._folder, self._name = folder, name
        self._locking = "NORMAL" if is_read_beside else "EXCLUSIVE"
        self._db: apsw.Connection | None = None
        with self.errors():
            self._db = apsw.Connection(str(folder / name))
        try:
            with self.errors():
                self._begin(schema, owner)
        except BaseException:
            self.close()
            raise

    def _begin(self, schema: str, owner: str) -> None:
        for pragma in (f"locking_mode={self._locking}", "journal_mode=WAL", "synchronous=FULL"):
            self.rows(f"PRAGMA {pragma}")
        with self.transaction():
            if not self.rows("SELECT 1 FROM sqlite_schema LIMIT 1"):
                self._open.execute(f"CREATE TABLE owner (name TEXT NOT NULL); {schema}")
                self._open.execute("INSERT INTO owner VALUES (?)", (owner,))
                self._sync_folder()
        found = self.rows("SELECT name FROM owner")
        if found != [(owner,)]:
            raise ProblemError(
                f"{self._folder}: the folder belongs to {found[0][0] if found else 'nobody'}, not "
                f"to {owner}; name another folder"
            )

    def _sync_folder(self) -> None:
        """Make sure that the file's name outlasts a loss of power."""
        for folder in (self._folder, self._folder.parent):
            sync_folder(folder)

    @property
    def _open(self) -> apsw.Connection:
        assert self._db is not None
        return self._db

    def reader(self) -> apsw.Connection:
        """Return a connection that only reads, and never waits for what is being written."""
        with self.errors():
            return reader_of(self._folder / self._name)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return what a question finds."""
        with self.errors():
            return self._open.execute(sql, values).fetchall()

    def each(self, sql: str) -> Iterator[Any]:
        """Yield what a question finds, one row after the other."""
        with self.errors():
            yield from self._open.execute(sql)

    def many(self, sql: str, values: Iterator[Sequence[Any]]) -> None:
        """Do the same for many values."""
        with self.errors():
            self._open.executemany(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; on the disk afterwards."""
        with self.errors():
            self._open.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._open.execute("COMMIT")
            except BaseException:
                # A full disk has rolled it back already.
                with suppress(apsw.Error):
                    if self._open.in_transaction:
                        self._open.execute("ROLLBACK")
                raise

    def require_whole(self) -> None:
        """Raise `StoreError` where its pages do not fit each other; see `is_damage`."""
        with self.errors():
            if self.rows("PRAGMA quick_check(1)") != [("ok",)]:
                raise apsw.CorruptError("the database's pages do not fit each other")

    def close(self) -> None:
        """Close the file; nothing is lost with what is only closed."""
        if self._db is not None:
            with suppress(apsw.Error):
                self._db.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what fails inside into `StoreError`, or into `ProblemError` where it is damage."""
        try:
            yield
        except apsw.NotADBError as error:
            raise ProblemError(
                f"{self._folder / self._name}: is not a database: {error}; restore the newest copy"
            ) from error
        except apsw.Error as error:
            number = self._db.system_errno if self._db is not None else 0
            if isinstance(error, apsw.FullError) or number in NO_ROOM or self._is_full():
                raise _no_room(self._folder) from error
            raise _not_written(self._folder, _refusal(error, number)) from error
        except OSError as error:
            raise not_written(self._folder, error) from error

    def _is_full(self) -> bool:
        with suppress(OSError):
            found = os.statvfs(self._folder)
            return found.f_bavail * found.f_frsize < LEAST_FREE_BYTES
        return False


def is_damage(error: Exception) -> bool:
    """Whether a `Database` says by an error that its file is damaged, and not the disk full."""
    return isinstance(error.__cause__, apsw.CorruptError | apsw.NotADBError)


def reader_of(path: Path) -> apsw.Connection:
    """Return a connection that only reads a database, which another process may hold."""
    return apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the disk of a folder refuses inside into `StoreError`."""
    try:
        yield
    except OSError as error:
        raise not_written(folder, error) from error


def not_written(folder: Path, error: OSError) -> StoreError:
    """Return what to say where a file of a folder cannot be written or read."""
    return _no_room(folder) if error.errno in NO_ROOM else _not_written(folder, refusal_of(error))


def _no_room(folder: Path) -> StoreError:
    return NoRoomError(
        f"{folder}: no room is left on its disk; what was acknowledged is kept; {MAKE_ROOM}"
    )


def _not_written(folder: Path, refusal: Refusal) -> StoreError:
    remedy = refusal.remedy or f"{MAKE_ROOM}, or {MEND_DISK}"
    return StoreError(
        f"{folder}: cannot be written or read: {refusal.reason}; what was acknowledged is kept; "
        f"{remedy}"
    )


def _refusal(error: apsw.Error, number: int) -> Refusal:
    if isinstance(error, apsw.NoMemError):
        return refusal_of(MemoryError())
    if number:
        return refusal_of_number(number)
    return Refusal(f"{type(error).__name__}: {error}", None)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder outlast a loss of power.

    Where its file system does not know how, what is acknowledged could be lost: that is an error.
    """
    synchronise(folder, is_required=True)
