"""Whole files against hashes that a manifest says, in a thread of its own: large ones take long."""

from __future__ import annotations

import hashlib
import os
import queue
import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO

    from datacollect.transfer.protocol.source import Listed


_READ_BYTES = 2**20


class Check(NamedTuple):
    """A file in the folder of what is not whole yet, and the SHA-256 that it must have."""

    source: str
    file: int
    sha256: str


class Checks:
    """Hashes files one after the other.

    Parameters
    ----------
    folder_of : callable
        Returns the descriptor of the folder in which a source's files lie under their numbers.
    report : callable
        Called by the thread when a check is done.

    Attributes
    ----------
    n_under_way : int
        Checks that are wanted, less those that `report` has taken off.
    verdicts : dict of int to (str or None)
        Why files that were checked are not what they should be; None where they are.
    """

    def __init__(self, folder_of: Callable[[str], int], report: Callable[[Check], None]) -> None:
        self._folder_of, self._report = folder_of, report
        self.n_under_way = 0
        self.verdicts: dict[int, str | None] = {}
        self._is_cancelled = False
        self._wanted: queue.SimpleQueue[Check | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def take(self, source: str, file: int, listed: Listed) -> bool:
        """Have a whole file checked, if a hash of it is known and it was not checked before."""
        if listed.sha256 is None or file in self.verdicts:
            return False
        self.n_under_way += 1
        self._add(Check(source, file, listed.sha256))
        return True

    def _add(self, check: Check) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="checks", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):  # no thread to be had: it is checked here
                self.check(check)
                return
            self._thread = thread
        self._wanted.put(check)

    @property
    def is_busy(self) -> bool:
        """Whether checks are under way; those of a thread that is gone are not."""
        is_alive = self._thread is None or self._thread.is_alive()
        return self.n_under_way > 0 and is_alive and not self._is_cancelled

    def cancel(self) -> None:
        """Let nothing more be checked: what is whole is checked by the next start."""
        self._is_cancelled = True

    def close(self) -> None:
        """End, however much is left to be checked."""
        self.cancel()
        if self._thread is not None:
            self._wanted.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (check := self._wanted.get()) is not None and not self._is_cancelled:
            self.check(check)

    def check(self, check: Check) -> None:
        """Check a file now."""
        why = self._why_not(check)
        if not self._is_cancelled:
            self.verdicts[check.file] = why
            self._report(check)

    def _why_not(self, check: Check) -> str | None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(str(check.file), flags, dir_fd=self._folder_of(check.source))
            with os.fdopen(fd, "rb", buffering=0) as file:
                found = self._sha256_of(file)
        except OSError as error:
            return f"it cannot be read to be checked: {error.strerror}"
        if found == check.sha256:
            return None
        return (
            f"its SHA-256 must be {check.sha256}, as the manifest says, and is {found}; the server "
            "has another version, or the manifest is old"
        )

    def _sha256_of(self, file: FileIO) -> str:
        """Return the hash of a file, or of what was read of it until nobody wanted it any more."""
        hasher, buffer = hashlib.sha256(), memoryview(bytearray(_READ_BYTES))
        while not self._is_cancelled and (n_bytes := file.readinto(buffer)):
            hasher.update(buffer[:n_bytes])
        return hasher.hexdigest()
