"""The tool `tcp`: some connections for some seconds, what came of them, and where data go.

The data travel within TLS, over the port where the other agent listens anyway: nobody who is not
the other end gets any, and nothing along the way can compress them. What the kernel says was
acknowledged counts, headers of TLS included, which are 0.2 % of it.
"""

from __future__ import annotations

import fcntl
import select
import socket
import struct
import termios
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, RefusedError, TransferError
from datacollect.files.documents import peer_json
from datacollect.measuring.agent.host_tests import ENDED_EARLY
from datacollect.measuring.agent.host_tool import (
    PREFIX,
    SECONDS,
    HostTool,
    Limits,
    require_receiver,
)
from datacollect.net.pacing import set_pacing_rate
from datacollect.net.safe_text import safe_text
from datacollect.net.tcp_info import tcp_info

if TYPE_CHECKING:
    import ssl

    from datacollect.measuring.agent.host_tests import RunningTest
    from datacollect.measuring.agent.host_tool import Host, Sending
    from datacollect.measuring.plan.measure_tickets import MeasureTicket
    from datacollect.transfer.agent.shell.handling import Exchange

BLOCK = bytes(64 * 1024)
SAMPLE_EVERY_S = 0.1
# Where all is sent, and the last bytes are on their way: the end is to be seen when it comes.
ENDING_EVERY_S = 0.005
# Of a connection that takes nothing: looked after whether the test is over.
STALL_S = 0.5
MOST_ANSWER_BYTES = 16 * 1024
# Of struct linger: on, for no time at all.
ABANDONING = struct.pack("ii", 1, 0)
SINK_PATH = f"{PREFIX}sink"
FACTS = (
    *("rtt_s", "retransmits", "busy_s", "receiver_limited_s", "send_buffer_limited_s"),
    "application_limited",
)


def send_tcp(
    sending: Sending,
    streams: int,
    seconds: float,
    window_bytes: int | None = None,
    begin_s: float | None = None,
) -> dict[str, Any]:
    """Send to another agent until the time, the bytes or the lease is over.

    Parameters
    ----------
    sending : Sending
        Its rate is the most of all connections together.
    streams : int
    seconds : float
        From the instant at which all connections are there.
    window_bytes : int, optional
        So much of each connection may be on its way at a time; by default the kernel decides.
    begin_s : float, optional
        Nothing is sent before, from when the first connection was asked for: tests at once wait for
        each other's connections, which take long where the data of the first flow already.

    Returns
    -------
    dict
        ``ended`` (``"done"`` or why not), ``sent_bytes`` (payload), ``curve`` (pairs of seconds
        since the first connection was asked for, and bytes acknowledged by then), ``facts`` (of
        each connection, some of `tcp_info`), ``rate_bytes_per_s``.

    Raises
    ------
    ProblemError
        The kernel allows no such window.
    """
    test = sending.test
    if window_bytes is not None:
        _require_window(window_bytes)
    curve = _Curve([], [(0.0, 0)])
    ended = "done"
    try:
        # Those that are there when one fails are in the list, and closed below.
        curve.streams.extend(_Stream(sending, streams, window_bytes) for _ in range(streams))
        if begin_s is not None:
            test.over.wait(max(0.0, curve.begun_s + begin_s - time.monotonic()))
        curve.begin()
        for stream in curve.streams:
            stream.start()
        _watch(curve, test, min(time.monotonic() + seconds, test.until_s))
    except TransferError as error:
        ended = str(error)
    was_cut = test.over.is_set() or time.monotonic() >= test.until_s
    facts = [_facts(stream.connection) for stream in curve.streams]
    for stream in curve.streams:
        stream.stop()
    failure = next((stream.failure for stream in curve.streams if stream.failure), "")
    if ended == "done" and (was_cut or failure):
        ended = ENDED_EARLY if was_cut else failure
    return {
        "ended": ended,
        "sent_bytes": test.sent_bytes,
        "curve": curve.rows,
        "facts": facts,
        "rate_bytes_per_s": sending.rate_bytes_per_s,
    }


def _watch(curve: _Curve, test: RunningTest, until_s: float) -> None:
    """Return when all has arrived, the time or the lease is over, or the other end has answered."""
    while time.monotonic() < until_s and any(stream.is_busy for stream in curve.streams):
        if any(stream.is_answered for stream in curve.streams):
            break
        is_sending = any(stream.is_sending for stream in curve.streams)
        if test.over.wait(SAMPLE_EVERY_S if is_sending else ENDING_EVERY_S):
            break
        curve.add()
    curve.add()


def _require_window(n_bytes: int) -> None:
    """Raise where the kernel does not allow so large a window."""
    with socket.socket() as any_socket:
        allowed_bytes = _set_window(any_socket, n_bytes)
    if allowed_bytes < n_bytes:
        raise ProblemError(
            f"this host's kernel allows windows of at most {allowed_bytes} bytes, but the test "
            f"asks for {n_bytes}; raise net.core.wmem_max on this host, or ask for less"
        )


def _set_window(connection: socket.socket, n_bytes: int) -> int:
    """Set what may be on its way, and return what the kernel makes of it.

    Kernels take twice what they are told, for what they keep with the data (man 7 socket).
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, n_bytes)
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2


@dataclass
class _Curve:
    """Curve of bytes acknowledged over time, of all connections together."""

    streams: list[_Stream]
    rows: list[tuple[float, int]]
    begun_s: float = field(default_factory=time.monotonic)
    greeting_bytes: int = 0

    def begin(self) -> None:
        """Leave out what was acknowledged so far: greetings are no data of the test."""
        self.greeting_bytes = self._acknowledged_bytes()
        self.add()

    def add(self) -> None:
        """Add this instant."""
        n_bytes = self._acknowledged_bytes() - self.greeting_bytes
        self.rows.append((round(time.monotonic() - self.begun_s, 6), n_bytes))

    def _acknowledged_bytes(self) -> int:
        facts = (tcp_info(each.connection) for each in self.streams)
        return sum(int(each.get("acknowledged_bytes", 0)) for each in facts)


def _facts(connection: ssl.SSLSocket) -> dict[str, float]:
    found = tcp_info(connection)
    return {name: round(found[name], 6) for name in FACTS if name in found}


def _unacknowledged_bytes(connection: ssl.SSLSocket) -> int:
    """Return what lies in the kernel's queue, sent or not."""
    try:
        (n_bytes,) = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))
    except OSError:
        return 0
    return int(n_bytes)


class _Stream:
    """One connection, and the thread that sends over it."""

    def __init__(self, sending: Sending, streams: int, window_bytes: int | None) -> None:
        self._far, self._test, self._throttle = sending.far, sending.test, sending.throttle
        self.failure = ""
        self._is_stopped = False
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.connection: ssl.SSLSocket = self._far.connected()
        self.connection.settimeout(STALL_S)
        if sending.rate_bytes_per_s is not None:
            set_pacing_rate(self.connection, sending.rate_bytes_per_s / streams)
        if window_bytes is not None:
            _set_window(self.connection, window_bytes)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    @property
    def is_sending(self) -> bool:
        """Return whether there is more to send, and the other side takes it."""
        return self._thread.is_alive()

    @property
    def is_busy(self) -> bool:
        """Return whether it is sending, or something that was sent is not acknowledged yet."""
        return self.is_sending or (not self.failure and _unacknowledged_bytes(self.connection) > 0)

    @property
    def is_answered(self) -> bool:
        """Return whether the other end has said something, or has ended the connection."""
        # Not `select`, which knows a thousand descriptors.
        polling = select.poll()
        polling.register(self.connection, select.POLLIN)
        return bool(polling.poll(0))

    def stop(self) -> None:
        """End the connection; what the kernel has not sent yet is never sent.

        The next test begins as soon as the lease is given back.
        """
        was_answered = self.is_answered  # not only for what is done here
        self._is_stopped = True
        with suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
        if self._thread.ident is not None:
            self._thread.join()
        if was_answered:
            self.failure = self._refusal() or self.failure
        with suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABANDONING)
        self.connection.close()

    def _refusal(self) -> str:
        """Return why the other end takes nothing, if it says so."""
        answer = b""
        with suppress(OSError):
            while len(answer) < MOST_ANSWER_BYTES and (data := self.connection.recv(4096)):
                answer += data
        head, _, body = answer.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 200 "):
            return ""
        try:
            return f"{self._far.name}: refuses: {safe_text(str(peer_json(body)['why']))}"
        except (TypeError, KeyError):
            return f"{self._far.name}: ended the connection"

    def _send(self) -> None:
        head = self._far.request("POST", SINK_PATH, self._test.ticket.most_bytes)
        try:
            self.connection.sendall(head)
            while n_bytes := self._test.take_to_send(len(BLOCK)):
                if self._throttle is not None:
                    self._wait(self._throttle.owe(n_bytes))
                self._send_block(n_bytes)
        except OSError as error:
            if not self._is_stopped:
                why = error.strerror or str(error)
                self.failure = f"{self._far.name}: ended the connection: {why}"

    def _wait(self, wait_s: float) -> None:
        """Wait for the turn of a block, unless the test ends before."""
        until_s = time.monotonic() + wait_s
        while not self._is_stopped and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, SAMPLE_EVERY_S))

    def _send_block(self, n_bytes: int) -> None:
        left = memoryview(BLOCK)[:n_bytes]
        while left:
            try:
                left = left[self.connection.send(left) :]
            except TimeoutError:
                # TLS goes on with the same bytes where it has stopped.
                if self._is_stopped:
                    raise


def _sink(host: Host, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
    """Take what the sender sends, and throw it away."""
    require_receiver(ticket)
    test = host.tests.begin(ticket, TCP.name)
    with test.changed:
        test.n_senders += 1
    try:
        while data := exchange.read():
            try:
                test.took(len(data))
            except RefusedError as error:
                exchange.cut(str(error))
                raise TransferError(str(error)) from None
    finally:
        with test.changed:
            test.n_senders -= 1
            test.changed.notify_all()
    return {}


TCP = HostTool(
    "tcp",
    {
        "streams": Limits(1, 64, is_whole=True),
        "seconds": SECONDS,
        "window_bytes": Limits(1, 2**30, is_whole=True, is_optional=True),
        "begin_s": Limits(0.0, 10.0, is_optional=True),
    },
    "tcp test",
    ("streams", "seconds"),
    send_tcp,
    {SINK_PATH: _sink},
)
