"""Log of a server: what it writes to standard error, in files of a bounded length."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from datacollect.files.documents import not_written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Of each file; as much is kept beside, of before.
MOST_LOG_BYTES = 10_000_000
_BLOCK_BYTES = 64 * 1024
# What a process has written stands in the pipe once it has ended, and is soon read.
READ_WITHIN_S = 2.0


class ServerLog:
    """Writes what a server says into a file, and renames that once it is long.

    The server has a pipe, which is always read: neither a long log nor a full disk keeps it.

    Parameters
    ----------
    path : Path
        What has become long is kept beside as ``NAME.1``, in place of what was kept before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader: threading.Thread | None = None

    @contextmanager
    def taking(self) -> Iterator[BinaryIO]:
        """Yield what a server is to be started with, whose words are read until it has ended.

        Raises
        ------
        NotWrittenError
            The file cannot be written.
        """
        try:
            self._path.open("ab").close()
            ours, theirs = os.pipe()
        except OSError as error:
            raise not_written(self._path, error) from None
        self._reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self._reader.start()
        with os.fdopen(theirs, "wb") as out:
            yield out

    def await_end(self) -> None:
        """Wait until all is in the file that a server had written before it ended."""
        if self._reader is not None:
            self._reader.join(READ_WITHIN_S)

    def _read(self, pipe: int) -> None:
        with os.fdopen(pipe, "rb", buffering=0) as said:
            while data := said.read(_BLOCK_BYTES):
                # What a full disk does not take is lost; the next may find room.
                with suppress(OSError):
                    self._write(data)

    def _write(self, data: bytes) -> None:
        # Opened each time: somebody may have removed or rewritten it.
        with self._path.open("ab", buffering=0) as file:
            file.write(data)
            if file.tell() < MOST_LOG_BYTES:
                return
            try:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            except OSError:
                file.truncate(0)
