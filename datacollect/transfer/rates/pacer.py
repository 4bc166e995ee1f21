"""Pacer of one session: all limits that its bytes pass under on their way.

The receiver keeps them by reading no faster: a small window lets nothing more be sent. What fits
into that window comes at once when a session opens, so it is paid for beforehand.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.errors import TransferError
from datacollect.net.tcp_info import tcp_info

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.transfer.rates.throttle import Throttle

# What a connection may have received before it is read, at its share of the rate: for this time, or
# some round trips; at least a record of TLS, and more.
WINDOW_S, WINDOW_ROUND_TRIPS, LEAST_WINDOW_BYTES = 0.1, 3.0, 32 * 1024


class Pacer:
    """The limits of one session. All but `end` is for its thread.

    Parameters
    ----------
    throttles : sequence of Throttle
        At least one.

    Attributes
    ----------
    is_waiting : bool
        Whether it waits for its turn.

    Examples
    --------
    >>> from datacollect.transfer.rates.throttle import Throttle
    >>> pacer = Pacer([Throttle(1e6), Throttle(5e5)])
    >>> pacer.allowed(10**9)
    10000
    """

    def __init__(self, throttles: Sequence[Throttle]) -> None:
        self.is_waiting = False
        self._throttles = tuple(throttles)
        self._credit_bytes = 0
        self._over, self._ending = threading.Event(), threading.Lock()
        self._connection: socket.socket | None = None
        self._fitted_bytes_per_s, self._window_bytes = 0.0, 0

    def allowed(self, most_bytes: int) -> int:
        """Return how many bytes may pass now, at least one; wait for it.

        Raises
        ------
        TransferError
            The session was ended meanwhile.
        """
        if not self._credit_bytes:
            n_bytes = min(each.turn_bytes(most_bytes) for each in self._throttles)
            self._wait(max(each.owe(n_bytes, self) for each in self._throttles))
            self._credit_bytes = n_bytes
            self._fit()
        return min(self._credit_bytes, most_bytes)

    def passed(self, n_bytes: int) -> None:
        """So many of the bytes that were allowed have passed."""
        self._credit_bytes -= n_bytes

    def count(self, n_bytes: int) -> None:
        """Count bytes that have not waited: what is small, as questions and lists."""
        for each in self._throttles:
            each.owe(n_bytes)

    def reading(self, connection: socket.socket) -> Callable[[Any], int]:
        """Return what reads from a connection as its ``recv_into`` does, no faster than that."""
        with self._ending:
            if self._connection is None and not self._over.is_set():
                for each in self._throttles:
                    each.join(1)
            self._connection, self._fitted_bytes_per_s = connection, 0.0
        self._fit()

        def recv_into(view: memoryview) -> int:
            n_bytes = connection.recv_into(view[: self.allowed(len(view))])
            self.passed(n_bytes)
            return n_bytes

        return recv_into

    def end(self) -> None:
        """Share the limits no more, and wait no longer; from any thread."""
        with self._ending:
            has_joined = self._connection is not None and not self._over.is_set()
            self._over.set()
        if has_joined:
            for each in self._throttles:
                each.join(-1, self)

    def _wait(self, wait_s: float) -> None:
        if wait_s <= 0:
            return
        self.is_waiting = True
        try:
            # An infinite wait is beyond what threads can wait for.
            if self._over.wait(min(wait_s, threading.TIMEOUT_MAX)):
                raise TransferError("the session was ended")
        finally:
            self.is_waiting = False

    def _fit(self) -> None:
        """Make the window as small as its share of the rate allows; larger, where others pause.

        Never smaller again: what has come and does not fit any more would be thrown away.
        """
        if self._connection is None:
            return
        is_first = not self._fitted_bytes_per_s
        share_bytes_per_s = min(
            each.share_bytes_per_s(of_active=not is_first) for each in self._throttles
        )
        if share_bytes_per_s < 2 * self._fitted_bytes_per_s:
            return
        self._fitted_bytes_per_s = share_bytes_per_s
        rtt_s = tcp_info(self._connection).get("rtt_s", 0.0)
        window_s = max(WINDOW_S, WINDOW_ROUND_TRIPS * rtt_s)
        window_bytes = max(int(share_bytes_per_s * window_s), LEAST_WINDOW_BYTES)
        with suppress(OSError):  # it has ended, as the next to read will learn
            # The kernel takes twice as much, for what it keeps with the data (man 7 socket).
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window_bytes // 2)
        self.count(window_bytes - self._window_bytes)
        self._window_bytes = window_bytes
