"""Bytes that tests have used at a host: kept on the disk, so that caps count across restarts.

The bytes that a test may take count from before it sends the first; what it has not taken is given
back at its end. An end that nobody sees, as by kill -9, gives nothing back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, RefusedError
from datacollect.files.documents import document_name, read_text, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

HOUR_S = 3600.0
# Tickets hold for an hour at most: after two a test that was run cannot be asked for again.
KEPT_S = 2 * HOUR_S


class UsedBytes:
    """Tests by their nonces, with when they began and what they may take, or have taken.

    Parameters
    ----------
    path : Path
    most_bytes : int
        In an hour.

    Raises
    ------
    ProblemError
        The file is there, and was not written by this class.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path, self._most_bytes = path, most_bytes
        self._tests: dict[str, tuple[float, int]] = {}
        if path.exists():
            try:
                rows = json.loads(read_text(path))
                self._tests = {str(name): (float(at_s), int(n)) for name, at_s, n in rows}
            except (ValueError, TypeError):
                raise ProblemError(
                    f"{document_name(path)}: is not what the agent writes into this file, which "
                    "counts the bytes of tests: move the file away, and wait an hour before tests "
                    "run again"
                ) from None

    def left_bytes(self, now_s: float) -> int:
        """Return what tests may still take in the hour that ends now."""
        used = (n_bytes for at_s, n_bytes in self._tests.values() if at_s > now_s - HOUR_S)
        return self._most_bytes - sum(used)

    def reserve(self, nonce: str, n_bytes: int, now_s: float) -> None:
        """Count what a test may take, on the disk when this returns.

        Raises
        ------
        RefusedError
            It has been run before, or would take more than is left.
        NotWrittenError
            The disk fails; nothing is reserved.
        """
        if nonce in self._tests:
            raise RefusedError("this ticket has been used; ask for the test with a new one", 403)
        left_bytes = self.left_bytes(now_s)
        if n_bytes > left_bytes:
            raise RefusedError(
                f"the test may take {n_bytes} bytes, and {max(left_bytes, 0)} of the "
                f"{self._most_bytes} of bytes_per_hour are left; ask for less, or try later",
                429,
            )
        kept = {name: row for name, row in self._tests.items() if row[0] > now_s - KEPT_S}
        self._write(kept | {nonce: (now_s, n_bytes)})

    def settle(self, nonce: str, n_bytes: int) -> None:
        """Count what a test has taken instead of what it might have."""
        self._write(self._tests | {nonce: (self._tests[nonce][0], n_bytes)})

    def _write(self, tests: dict[str, tuple[float, int]]) -> None:
        rows = [[nonce, *row] for nonce, row in tests.items()]
        write_atomically(self._path, json.dumps(rows).encode())
        self._tests = tests
