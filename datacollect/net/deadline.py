"""Deadlines of steps: a time-out counts per step, not per system call; who drips is late.

Of steps without a known number enough must come, too: see `Flow`.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# A step goes on while at least this many bytes come within this many seconds: 512 bytes a second.
RENEWED_BY_BYTES, RENEWED_WITHIN_S = 5120, 10.0
# A list goes on while so much comes, or so many names.
LEAST_BYTES_PER_S, LEAST_NAMES_PER_S = 512.0, 1.0


class Flow:
    """Test that enough comes of a list of unknown length, over each `patience_s` of waiting.

    Only the time within `waiting` counts: who waits may be slow himself in between.

    Parameters
    ----------
    patience_s : float
    clock : callable
        Returns seconds, and never jumps.

    Attributes
    ----------
    is_over : bool
        Whether too little has come.

    Examples
    --------
    >>> flow = Flow(9.0, iter([0.0, 8.0, 8.0, 9.5, 9.5]).__next__)
    >>> with flow.waiting():
    ...     flow.came(80)
    >>> flow.named(2)
    >>> with flow.waiting():
    ...     flow.left_s()
    Traceback (most recent call last):
    TimeoutError: 2 names and 80 bytes came in 9.5 s
    """

    def __init__(self, patience_s: float, clock: object = None) -> None:
        self._clock = clock if callable(clock) else time.monotonic
        self._patience_s = patience_s
        self._waited_s, self._since_s = 0.0, 0.0
        self._n_bytes = self._n_names = 0
        self.is_over = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of this block."""
        self._since_s = self._clock()
        try:
            yield
        finally:
            self._waited_s += self._clock() - self._since_s

    def came(self, n_bytes: int) -> None:
        """Bytes have come."""
        self._n_bytes += n_bytes

    def named(self, n_names: int) -> None:
        """New names have come."""
        self._n_names += n_names

    def left_s(self) -> float:
        """Return the seconds after which it is to be asked again, while somebody waits.

        Raises
        ------
        TimeoutError
            Too little has come.
        """
        now_s = self._clock()
        waited_s = self._waited_s + now_s - self._since_s
        if waited_s < self._patience_s:
            return self._patience_s - waited_s
        is_enough = self._n_bytes >= LEAST_BYTES_PER_S * waited_s
        if not (is_enough or self._n_names >= LEAST_NAMES_PER_S * waited_s):
            self.is_over = True
            came = f"{self._n_names} names and {self._n_bytes} bytes"
            raise TimeoutError(f"{came} came in {waited_s:.3g} s")
        self._waited_s, self._since_s = 0.0, now_s
        self._n_bytes = self._n_names = 0
        return self._patience_s


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
    flow : Flow or None
        Of all steps together, where there is no telling how many there are.

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

    def __init__(self, timeout_s: float, clock: object = None, *, flow: Flow | None = None) -> None:
        self._clock = clock if callable(clock) else time.monotonic
        self._timeout_s, self._flow = timeout_s, flow
        self._mark_s = self._clock()
        self._until_s = self._mark_s + timeout_s
        self._mark_bytes = 0

    @property
    def is_over(self) -> bool:
        """Return whether no time is left."""
        return bool(self._clock() >= self._until_s)

    def left_s(self) -> float:
        """Return the seconds that are left, or after which it is to be asked again.

        Raises
        ------
        TimeoutError
            None are.
        """
        left_s: float = self._until_s - self._clock()
        if left_s <= 0:
            raise TimeoutError(f"the step took longer than {self._timeout_s:g} s")
        return left_s if self._flow is None else min(left_s, self._flow.left_s())

    def came(self, n_bytes: int) -> None:
        """Note that bytes have come; enough of them renew the deadline."""
        if self._flow is not None:
            self._flow.came(n_bytes)
        now_s = self._clock()
        if now_s - self._mark_s > RENEWED_WITHIN_S:
            self._mark_s, self._mark_bytes = now_s, 0
        self._mark_bytes += n_bytes
        if self._mark_bytes >= RENEWED_BY_BYTES:
            self._until_s = now_s + self._timeout_s
            self._mark_s, self._mark_bytes = now_s, 0
