"""Memory that nobody had a moment ago: what one pull has freed, the next must not get.

A long pull fills memory that was free for long, or that held pages of other files. A short one gets
what the one before it has freed, which is still in caches. In a virtual machine the difference may
be a second of processors for each GiB: its host has large blocks that were free for a while, and is
slow to give them. Pulls write so little at once that they get what is left of smaller blocks first
(`datacollect.transfer.store.store`); short ones find enough of it again and again.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

BLOCK_BYTES = 2**20


@contextmanager
def memory_held(folder: str | Path) -> Iterator[Callable[[int], None]]:
    """Yield what holds so many bytes more of memory, until the end.

    They are pages of a file of holes, each by itself, so that smaller blocks go first. The system
    takes them back wherever it needs memory. A file system that knows no holes, or lies in memory,
    holds nothing.

    Parameters
    ----------
    folder : path-like
        Where that file lies; it takes no room on the disk.
    """
    block = bytearray(BLOCK_BYTES)
    with tempfile.TemporaryFile(prefix=".calibrate-", dir=folder, buffering=0) as file:
        if hasattr(os, "posix_fadvise"):  # read ahead, pages would be as large as blocks
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)

        def hold(n_bytes: int) -> None:
            with suppress(OSError):  # a limit of the length of files
                end = file.seek(0, os.SEEK_END)
                file.truncate(end + n_bytes)
                if os.fstat(file.fileno()).st_blocks:
                    file.truncate(0)
                while file.readinto(block):
                    pass

        yield hold
