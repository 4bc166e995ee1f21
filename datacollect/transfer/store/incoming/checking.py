"""Whole files against hashes that a manifest says, in a thread of its own: large ones take long."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple

from datacollect.transfer.store.incoming.worker import Worker

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
        self._worker = Worker("checks", self.check)

    def take(self, source: str, file: int, listed: Listed) -> bool:
        """Have a whole file checked, if a hash of it is known and it was not checked before."""
        if listed.sha256 is None or file in self.verdicts:
            return False
        self.n_under_way += 1
        self._worker.add(Check(source, file, listed.sha256))
        return True

    @property
    def is_busy(self) -> bool:
        """Return whether checks are under way; those of a thread that is gone are not."""
        return self.n_under_way > 0 and self._worker.is_alive

    def cancel(self) -> None:
        """Let nothing more be checked: what is whole is checked by the next start."""
        self._worker.cancel()

    def close(self) -> None:
        """End, however much is left to be checked."""
        self._worker.close()

    def check(self, check: Check) -> None:
        """Check a file now."""
        why = self._why_not(check)
        if not self._worker.is_cancelled:
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
        while not self._worker.is_cancelled and (n_bytes := file.readinto(buffer)):
            hasher.update(buffer[:n_bytes])
        return hasher.hexdigest()
