"""Deadlines of steps: a time-out counts per step, not per system call; who drips is late."""

from __future__ import annotations

import time

# A step goes on while at least this many bytes come within this many seconds: 512 bytes a second.
RENEWED_BY_BYTES, RENEWED_WITHIN_S = 5120, 10.0


class Deadline:
    """The instant by which a step must end; it moves on while enough arrives.

    A step is one contact, one page of a list, one confirmation: whatever its system calls. It may
    take `timeout_s`, and as long again whenever 5120 bytes have come within ten seconds. So a peer
    that sends a byte now and then does not keep anybody waiting.

    Parameters
    ----------
    timeout_s : float
    clock : callable
        Returns seconds, and never jumps.

    Examples
    --------
    >>> now = iter([0.0, 1.0, 6.0])
    >>> deadline = Deadline(5.0, lambda: next(now))
    >>> deadline.left_s()
    4.0
    >>> deadline.left_s()
    Traceback (most recent call last):
    TimeoutError: the step took longer than 5 s
    """

    def __init__(self, timeout_s: float, clock: object = None) -> None:
        self._clock = clock if callable(clock) else time.monotonic
        self._timeout_s = timeout_s
        self._mark_s = self._clock()
        self._until_s = self._mark_s + timeout_s
        self._mark_bytes = 0

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return bool(self._clock() >= self._until_s)

    def left_s(self) -> float:
        """Return the seconds that are left.

        Raises
        ------
        TimeoutError
            None are.
        """
        left_s: float = self._until_s - self._clock()
        if left_s <= 0:
            raise self.passed()
        return left_s

    def passed(self) -> TimeoutError:
        """Return what to raise where a call has waited until the end."""
        return TimeoutError(f"the step took longer than {self._timeout_s:g} s")

    def came(self, n_bytes: int) -> None:
        """Note that bytes have come; enough of them renew the deadline."""
        now_s = self._clock()
        if now_s - self._mark_s > RENEWED_WITHIN_S:
            self._mark_s, self._mark_bytes = now_s, 0
        self._mark_bytes += n_bytes
        if self._mark_bytes >= RENEWED_BY_BYTES:
            self._until_s = now_s + self._timeout_s
            self._mark_s, self._mark_bytes = now_s, 0
