"""One epoll loop: file descriptors and what is called when something can be done with them."""

from __future__ import annotations

import heapq
import itertools
import os
import select
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TICK_S = 0.5

READABLE = select.EPOLLIN | select.EPOLLRDHUP
WRITABLE = select.EPOLLOUT
# Edge-triggered: the reader must go on until nothing goes any more.
BOTH_ON_CHANGE = READABLE | WRITABLE | select.EPOLLET
FAILED = select.EPOLLERR


class Loop:
    """Calls back; from other threads only `run_soon` and `finish` may be called.

    Parameters
    ----------
    tick : callable
        Called about every half second.
    failed : callable
        Called with what a handler has raised, which is watched no more.
    """

    def __init__(self, tick: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        self._tick = tick
        self._failed = failed
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._soon: deque[Callable[[], None]] = deque()
        # When, in which order, what; only the loop's own thread touches them.
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._finished = False

    def watch(self, number: int, mask: int, handler: Callable[[int], None]) -> None:
        """Call the handler, with what can be done, when one of these things can be."""
        if number in self._handlers:
            self._epoll.modify(number, mask)
        else:
            try:
                self._epoll.register(number, mask)
            except FileExistsError:  # it could not be taken out before
                self._epoll.modify(number, mask)
        self._handlers[number] = handler

    def forget(self, number: int) -> None:
        """Watch it no more; must be called before it is closed."""
        if self._handlers.pop(number, None) is not None:
            with suppress(OSError):  # it is closed next, which takes it out as well
                self._epoll.unregister(number)

    def run_soon(self, call: Callable[[], None]) -> None:
        """Call something in the loop's own thread."""
        self._soon.append(call)
        self._wake_up()

    def run_later(self, wait_s: float, call: Callable[[], None]) -> None:
        """Call something after a while; only from the loop's own thread."""
        heapq.heappush(self._later, (time.monotonic() + wait_s, next(self._order), call))

    def finish(self) -> None:
        """End `run`."""
        self._finished = True
        self._wake_up()

    def run(self) -> None:
        """Call back until `finish`, then release what the loop itself holds."""
        next_tick_s = time.monotonic() + TICK_S
        while not self._finished:
            wait_s = 0.0 if self._soon else max(self._next_s(next_tick_s) - time.monotonic(), 0.0)
            for number, mask in self._epoll.poll(wait_s):
                if number == self._wake:
                    os.eventfd_read(self._wake)
                elif number in self._handlers:
                    self._handle(number, mask)
            while self._later and self._later[0][0] <= time.monotonic():
                self._guard(heapq.heappop(self._later)[2])
            # Calls that are added meanwhile wait for the next round: all get their turn.
            for _ in range(len(self._soon)):
                self._guard(self._soon.popleft())
            if time.monotonic() >= next_tick_s:
                self._tick()
                next_tick_s = time.monotonic() + TICK_S
        self._epoll.close()
        os.close(self._wake)

    def _next_s(self, next_tick_s: float) -> float:
        """Return when there is something to do, whatever happens."""
        return min(next_tick_s, self._later[0][0]) if self._later else next_tick_s

    def _handle(self, number: int, mask: int) -> None:
        if not self._guard(lambda: self._handlers[number](mask)):
            self.forget(number)

    def _guard(self, call: Callable[[], None]) -> bool:
        """Return whether a call succeeds; one connection that fails must not end all others."""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - reported, whatever it is
            self._failed(error)
            return False
        return True

    def _wake_up(self) -> None:
        with suppress(OSError):  # the loop has ended
            os.eventfd_write(self._wake, 1)
