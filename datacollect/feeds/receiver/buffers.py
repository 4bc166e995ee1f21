"""Buffers between a thread that reads and one that writes: few, as long as that keeps up."""

from __future__ import annotations

import threading

# What is read together; what may be read and not be written yet; and what is kept meanwhile.
BUFFER_BYTES, MOST_BUFFERS, KEPT_BUFFERS = 3 * 2**19, 21, 2


class Buffers:
    """Buffers of `BUFFER_BYTES`, for all threads: 33 MB at most, and 3 MB where few are in use.

    Examples
    --------
    >>> buffers = Buffers()
    >>> taken = [buffers.take(0.0) for _ in range(MOST_BUFFERS)]
    >>> buffers.take(0.0) is None
    True
    >>> for buffer in taken:
    ...     buffers.give(buffer)
    >>> buffers.n_kept
    2
    """

    def __init__(self) -> None:
        self._free: list[bytearray] = []
        self._n_taken = 0
        self._changed = threading.Condition()

    @property
    def n_kept(self) -> int:
        """How many wait to be taken."""
        return len(self._free)

    def take(self, within_s: float) -> bytearray | None:
        """Return a buffer; None where so long all are in use."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._n_taken < MOST_BUFFERS, within_s):
                return None
            self._n_taken += 1
            return self._free.pop() if self._free else bytearray(BUFFER_BYTES)

    def give(self, buffer: bytearray) -> None:
        """Give one back."""
        with self._changed:
            self._n_taken -= 1
            if len(self._free) < KEPT_BUFFERS:
                self._free.append(buffer)
            self._changed.notify()
