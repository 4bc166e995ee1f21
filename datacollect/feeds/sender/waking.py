"""Ends a wait of another thread."""

from __future__ import annotations

import os
import threading
from contextlib import suppress


class Waker:
    """Has who polls it go on; for all threads. Once it is closed, to wake does nothing.

    Examples
    --------
    >>> waker = Waker()
    >>> waker.wake()
    >>> waker.close()
    >>> waker.wake()
    """

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # Its number may be that of another file as soon as it is closed.
        self._lock = threading.Lock()
        self._is_closed = False

    def fileno(self) -> int:
        """Return what is polled."""
        return self._fd

    def wake(self) -> None:
        """End a wait, or the next one."""
        with self._lock:
            if not self._is_closed:
                os.eventfd_write(self._fd, 1)

    def clear(self) -> None:
        """Take note of having been woken; for who polls."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._fd)

    def close(self) -> None:
        """Close it; nobody polls it any more. Again does nothing."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._fd)
