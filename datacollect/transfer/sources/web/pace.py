"""Back-off from servers: how many requests at a time, and when, by 429, 503, Retry-After.

At first there is no limit. A server that is asked too much gets its pause; then whoever waits
comes by itself, each a moment after the other, and half as many at a time as were under way. After
a run of good answers there may be one more. Where even one at a time is too much, requests keep a
distance.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from datacollect.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# After a pause, those who waited come one by one, this time apart.
SPREAD_S = 0.1
# Good answers before one more is let in: twice as many after each time that it was too much.
SHORTEST_RUN, LONGEST_RUN = 8, 512
# Of the distance between requests, at first, and at most.
FIRST_DISTANCE_S, LONGEST_DISTANCE_S = 0.05, 10.0
LOOK_S = 0.25
# What helps where that is longer than anybody waits.
LATER_OR_LONGER = "start again later, or set a longer patience_s in [limits]"


class ServerPace:
    """Pace that all sessions of one server keep to; for any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cond = threading.Condition()
        self._until_s = self._next_s = self._distance_s = 0.0
        self._n_pauses = self._n_waiting = self._n_under_way = 0
        self._width: int | None = None
        self._run, self._run_needed = 0, SHORTEST_RUN

    @property
    def is_narrow(self) -> bool:
        """Return whether there is a limit: who is not under way then keeps no connection open."""
        return self._width is not None

    @contextmanager
    def turn(
        self,
        name: str = "",
        most_s: float = math.inf,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Iterator[int]:
        """Wait for a turn, and have it for the block; it has a number, for `busy`.

        Parameters
        ----------
        name : str
            The server, for messages.
        most_s : float
            How long it may want to be left alone.
        is_over : callable
            Whether to wait no more.

        Raises
        ------
        TransferError
            It wants to be left alone for longer, or it is over.
        """
        number = self._begin(name, most_s, is_over)
        try:
            yield number
        finally:
            with self._cond:
                self._n_under_way -= 1
                self._cond.notify_all()

    def busy(self, wait_s: float, number: int) -> None:
        """The server cannot now, says an answer of a turn: leave it alone for this time."""
        with self._cond:
            self._until_s = max(self._until_s, self._clock() + wait_s)
            # Those that were under way together have heard the same: it counts once.
            if number == self._n_pauses:
                self._slow_down()
            self._n_waiting = 0

    def went_well(self) -> None:
        """The server has given what was asked for."""
        if self._width is None:
            return
        with self._cond:
            self._run += 1
            if self._run < self._run_needed:
                return
            self._run = 0
            if self._distance_s:
                halved = self._distance_s / 2
                self._distance_s = halved if halved >= FIRST_DISTANCE_S / 2 else 0.0
            else:
                self._width += 1
                self._cond.notify_all()

    def pause(self, wait_s: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait, for one file's sake; all others go on."""
        until_s = self._clock() + wait_s
        with self._cond:
            while not is_over() and self._clock() < until_s:
                self._wait_until(until_s)

    def _wait_until(self, at_s: float) -> None:
        """Wait until then, or until others have changed something; never for long."""
        self._cond.wait(min(at_s - self._clock(), LOOK_S))

    def _slow_down(self) -> None:
        self._n_pauses += 1
        self._run = 0
        if self._width is not None:
            self._run_needed = min(2 * self._run_needed, LONGEST_RUN)
        if self._width == 1:
            self._distance_s = max(FIRST_DISTANCE_S, min(2 * self._distance_s, LONGEST_DISTANCE_S))
        at_a_time = min(self._width or self._n_under_way, self._n_under_way)
        self._width = max(1, at_a_time // 2)

    def _begin(self, name: str, most_s: float, is_over: Callable[[], bool]) -> int:
        own_s, pause_seen = 0.0, -1
        with self._cond:
            while True:
                if is_over():
                    raise TransferError(f"{name}: the session was ended")
                now_s = self._clock()
                if (left_s := self._until_s - now_s) > 0:
                    if left_s > most_s:
                        raise TransferError(
                            f"{name}: asks to wait {left_s:.0f} s more (Retry-After), and "
                            f"patience_s is {most_s:g}: {LATER_OR_LONGER}"
                        )
                    if pause_seen != self._n_pauses:
                        pause_seen = self._n_pauses
                        own_s = self._until_s + SPREAD_S * self._n_waiting
                        self._n_waiting += 1
                at_s = max(own_s, self._until_s, self._next_s)
                if now_s < at_s:
                    self._wait_until(at_s)
                elif self._width is not None and self._n_under_way >= self._width:
                    self._wait_until(math.inf)
                else:
                    self._n_under_way += 1
                    self._next_s = now_s + self._distance_s
                    return self._n_pauses
