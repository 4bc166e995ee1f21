"""Failures of the destination folder in words: the only place that knows SQLite's errors.

What the system's own mean, and what mends them, is in `files.refusals`. A full disk, one that fails
and one that may not be written are distinguished from damage. Only damage asks for anything to be
taken away, and even then it is the state alone: files stay.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import apsw

from datacollect.errors import DatacollectError, ProblemError, StoreError
from datacollect.files.refusals import (
    MAKE_ROOM,
    MEND_DISK,
    Refusal,
    refusal_of,
    refusal_of_number,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# What keeps others from writing somewhere, though the disk is sound.
CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)
# A file system with less than this left is full to SQLite: it writes whole pages, and many.
LEAST_FREE_BYTES = 64 * 1024
# Of what a pull takes there is less then.
LESS_CONNECTIONS = ", or lower `limits.connections` in the collection file"
_DAMAGE = (apsw.CorruptError, apsw.NotADBError)
# What is asked for is always the same: a state that has it not has lost it.
_LOST = ("no such column", "no such table", "has no column named", "unsupported file format")


def not_written(error: BaseException, folder: Path) -> DatacollectError:
    """Return what to say where the destination folder cannot be written.

    >>> print(not_written(OSError(28, "No space left on device"), "into"))
    into: cannot be written: No space left on device; nothing verified is lost: make room, and \
start the same command again
    """
    if isinstance(error, DatacollectError):
        return error
    found = refusal_of(error)
    if getattr(error, "errno", None) == errno.EMFILE:
        found = found._replace(remedy=f"{found.remedy}{LESS_CONNECTIONS}")
    if found.remedy is None and not isinstance(error, OSError):
        found = Refusal(f"{type(error).__name__}: {error}", None)
    return refused(folder, "cannot be written", found)


def refused(folder: Path, what: str, refusal: Refusal) -> StoreError:
    """Return what to say where the system refuses something: with what mends it."""
    remedy = refusal.remedy or f"{MAKE_ROOM}, or {MEND_DISK}"
    return StoreError(
        f"{folder}: {what}: {refusal.reason}; nothing verified is lost: {remedy}, and start the "
        "same command again"
    )


@contextmanager
def passing_over(numbers: Collection[int]) -> Iterator[None]:
    """Go on after errors of the system with some numbers."""
    try:
        yield
    except OSError as error:
        if error.errno not in numbers:
            raise


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn what fails inside into `StoreError`; for use around whatever touches the folder."""
    try:
        yield
    except OSError as error:
        raise not_written(error, folder) from error


class StateErrors:
    """Turn what SQLite raises inside into our errors.

    Parameters
    ----------
    path : Path
        Of the state, below the destination folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.db: apsw.Connection | None = None

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _at: object) -> None:
        """Turn an error of SQLite into ours."""
        if isinstance(error, apsw.Error):
            raise self.of(error) from error
        if isinstance(error, UnicodeDecodeError):
            raise self.damaged("a text in it is not UTF-8") from error

    @contextmanager
    def interpreting(self) -> Iterator[None]:
        """Tell that values in it that mean nothing are damage."""
        try:
            yield
        except DatacollectError:
            raise
        except (ValueError, TypeError, OverflowError) as error:
            raise self.damaged(f"malformed value: {error}") from error

    def require_whole(self, db: apsw.Connection) -> None:
        """Raise that it is damaged where its parts do not fit together.

        Nobody who writes leaves it so; a copy that was made meanwhile may have the file of one
        instant and the log of another.
        """
        rows = db.execute("PRAGMA integrity_check(1)").fetchall()
        if rows != [("ok",)]:
            *_, reason = str(rows[0][0]).splitlines()
            raise self.damaged(f"its file and log are from different times: {reason}")

    def of(self, error: apsw.Error) -> DatacollectError:
        """Return our error for one of SQLite's."""
        if isinstance(error, apsw.SQLError) and any(words in str(error) for words in _LOST):
            return self.damaged(str(error))
        if isinstance(error, _DAMAGE) or "malformed" in str(error):
            # What could not be read SQLite calls malformed, too: look before anybody moves it.
            if not self._is_sound():
                return self.damaged(str(error))
            return refused(self._folder, "its state cannot be read", Refusal(str(error), None))
        return refused(self._folder, "cannot be written", self._refusal(error))

    def damaged(self, why: str) -> ProblemError:
        """Return what to say of a file that is no state: only that file has to go."""
        return ProblemError(
            f"{self._path}: is not the state of a collection, or damaged: {why}; move "
            f"{self._path.name} and its neighbours {self._path.name}-* away, and nothing else: "
            "files that are there are then compared by hash, and not fetched again"
        )

    def _is_sound(self) -> bool:
        """Return whether the file itself, as it lies there, is found to be whole."""
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        try:
            db = apsw.Connection(f"file:{quote(str(self._path))}?immutable=1", flags=flags)
            try:
                return bool(db.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)])
            finally:
                db.close()
        except apsw.Error:
            return False

    @property
    def _folder(self) -> Path:
        return self._path.parent.parent

    def _refusal(self, error: apsw.Error) -> Refusal:
        # A disk that is full when SQLite syncs is an I/O error to it.
        if isinstance(error, apsw.FullError) or self._errno() in NO_ROOM or self._is_full():
            return Refusal(
                "its disk is full, or the one of temporary files (SQLITE_TMPDIR, /var/tmp, /tmp)",
                MAKE_ROOM,
            )
        if isinstance(error, apsw.NoMemError):
            return refusal_of(MemoryError())
        if isinstance(error, (apsw.BusyError, apsw.LockedError)):
            return Refusal("another program holds its state open", "end that")
        if isinstance(error, (apsw.ReadOnlyError, apsw.PermissionsError)):
            return Refusal(
                "it, or its disk, is read-only",
                "give this user permission to write there, or mount it so",
            )
        if isinstance(error, (apsw.IOError, apsw.CantOpenError)) and (number := self._errno()):
            reason, remedy = refusal_of_number(number)
            return Refusal(f"{error} ({reason})", remedy)
        return Refusal(str(error), None)

    def _errno(self) -> int:
        try:
            return 0 if self.db is None else self.db.system_errno
        except apsw.Error:  # closed meanwhile
            return 0

    def _is_full(self) -> bool:
        try:
            found = os.statvfs(self._path.parent)
        except OSError:
            return False
        return found.f_blocks > 0 and found.f_bavail * found.f_frsize < LEAST_FREE_BYTES
