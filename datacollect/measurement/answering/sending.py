"""The tool `tcp` where data are sent: some connections for some seconds, and what came of them.

The data travel within TLS, over the port where the other agent listens anyway: nobody who is not
the other end gets any, and nothing along the way can compress them. What the kernel says was
acknowledged counts, headers of TLS included, which are 0.2 % of it.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.errors import TransferError
from datacollect.net.tcp_info import tcp_info

if TYPE_CHECKING:
    import ssl

    from datacollect.measurement.answering.far_agent import FarAgent
    from datacollect.measurement.answering.host_tests import RunningTest

BLOCK = bytes(64 * 1024)
SAMPLE_EVERY_S = 0.1
# Of a connection that takes nothing: looked after whether the test is over.
STALL_S = 0.5
# linux/asm-generic/socket.h; Python's socket module does not name it.
SO_MAX_PACING_RATE = 47
SINK_PATH = "/measure/sink"
FACTS = (
    *("rtt_s", "retransmits", "busy_s", "receiver_limited_s", "send_buffer_limited_s"),
    "application_limited",
)


def send_tcp(
    far: FarAgent,
    test: RunningTest,
    n_streams: int,
    seconds: float,
    rate_bytes_per_s: float | None = None,
) -> dict[str, Any]:
    """Send to another agent until the time, the bytes or the lease is over.

    Parameters
    ----------
    far : FarAgent
    test : RunningTest
    n_streams : int
    seconds : float
        From the instant at which all connections are there.
    rate_bytes_per_s : float, optional
        Most of all connections together.

    Returns
    -------
    dict
        ``ended`` (``"done"`` or why not), ``sent_bytes`` (payload), ``curve`` (pairs of seconds
        since the first connection was asked for, and bytes acknowledged by then), ``facts`` (of
        each connection, some of `tcp_info`), ``rate_bytes_per_s``.
    """
    begun_s = time.monotonic()
    streams: list[_Stream] = []
    curve: list[tuple[float, int]] = [(0.0, 0)]
    ended = "done"
    try:
        rate = rate_bytes_per_s and rate_bytes_per_s / n_streams
        # Those that are there when one fails are in the list, and closed below.
        streams.extend(_Stream(far, test, rate) for _ in range(n_streams))
        # Greetings are no data of the test.
        greeting_bytes = _acknowledged(streams)
        curve.append((round(time.monotonic() - begun_s, 6), 0))
        for stream in streams:
            stream.start()
        until_s = min(time.monotonic() + seconds, test.until_s)
        while time.monotonic() < until_s and any(stream.is_sending for stream in streams):
            if test.over.wait(SAMPLE_EVERY_S):
                break
            n_bytes = _acknowledged(streams) - greeting_bytes
            curve.append((round(time.monotonic() - begun_s, 6), n_bytes))
        failures = [stream.failure for stream in streams if stream.failure]
        if test.over.is_set() or time.monotonic() >= test.until_s:
            ended = "the lease ended before the test"
        elif failures:
            ended = failures[0]
    except TransferError as error:
        ended = str(error)
    facts = [_facts(stream.connection) for stream in streams]
    for stream in streams:
        stream.stop()
    return {
        "ended": ended,
        "sent_bytes": test.sent_bytes,
        "curve": curve,
        "facts": facts,
        "rate_bytes_per_s": rate_bytes_per_s,
    }


def _facts(connection: ssl.SSLSocket) -> dict[str, float]:
    found = tcp_info(connection)
    return {name: round(found[name], 6) for name in FACTS if name in found}


def _acknowledged(streams: list[_Stream]) -> int:
    return sum(int(tcp_info(each.connection).get("acknowledged_bytes", 0)) for each in streams)


class _Stream:
    """One connection, and the thread that sends over it."""

    def __init__(self, far: FarAgent, test: RunningTest, rate_bytes_per_s: float | None) -> None:
        self._far, self._test = far, test
        self.failure = ""
        self._is_stopped = False
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.connection: ssl.SSLSocket = far.connected()
        self.connection.settimeout(STALL_S)
        if rate_bytes_per_s is not None:
            self.connection.setsockopt(
                socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("Q", int(rate_bytes_per_s) or 1)
            )

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    @property
    def is_sending(self) -> bool:
        """Whether there is more to send, and the other side takes it."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End the connection: what has left arrives, the rest is thrown away."""
        self._is_stopped = True
        with suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
        if self._thread.ident is not None:
            self._thread.join()
        self.connection.close()

    def _send(self) -> None:
        head = self._far.request("POST", SINK_PATH, self._test.ticket.most_bytes)
        try:
            self.connection.sendall(head)
            while n_bytes := self._test.take_to_send(len(BLOCK)):
                self._send_block(n_bytes)
        except OSError as error:
            if not self._is_stopped:
                why = error.strerror or str(error)
                self.failure = f"{self._far.name}: ended the connection: {why}"

    def _send_block(self, n_bytes: int) -> None:
        left = memoryview(BLOCK)[:n_bytes]
        while left:
            try:
                left = left[self.connection.send(left) :]
            except TimeoutError:
                # TLS goes on with the same bytes where it has stopped.
                if self._is_stopped:
                    raise
