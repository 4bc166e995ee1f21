"""Sends a feed by UDP: its core, a thread that sends packets, one that hears the receiver.

The connection over TLS shows who receives, opens the port for packets, and carries reports; where
it ends, what is made is lost until it is open again.
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectError, RefusedError, TransferError
from datacollect.feeds.formats import frames
from datacollect.feeds.formats.clock import SteadyClock
from datacollect.feeds.formats.frames import FrameError, Hello, welcome_of
from datacollect.feeds.formats.packets import HEAD, raw_nonce
from datacollect.feeds.formats.report import Delays, FeedCounts, FeedReport, FeedStopped
from datacollect.feeds.sender.ending import require_end
from datacollect.feeds.sender.link import Link, opened_link, opener_of
from datacollect.feeds.sender.rate_seen import RateSeen
from datacollect.feeds.sender.waking import Waker
from datacollect.feeds.udp.reports import ReceiverReport
from datacollect.feeds.udp.sending import Sending
from datacollect.feeds.udp.sockets import PacketSender, before_others
from datacollect.net.safe_text import safe_text
from datacollect.net.tickets import is_nonce
from datacollect.net.udp import GREETINGS, connected_udp, greeting_number, none_has_arrived

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from datacollect.feeds.formats.feed_file import FeedFile

FIRST_GREETING = 2**62
GREETED_S, ANSWER_S = 3.0, 10.0
# How long what was sent last may take.
ARRIVED_S = 1.0
IDLE_S, LOOK_S = 0.02, 0.1
LEAST_SLEEP_S = 1e-4
RETRY_S, MOST_RETRY_S = 0.2, 5.0
COMPARISONS = 5
# Status of a refusal that does not last.
AGAIN = 503


class Control:
    """A connection to the receiver, for one thread at a time."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.address = link.address
        self._heard: list[dict[str, Any]] = []

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self._link.send(data)
        while True:
            self._heard += self._link.move()
            if self._link.can_take_more:
                return
            self._link.wait(LOOK_S, sending=True)

    def receive(self, within_s: float) -> list[dict[str, Any]]:
        """Return what the receiver has said, as soon as that is something, or the time is over.

        Raises
        ------
        TransferError
            The connection has ended, and what it said before was returned.
        """
        try:
            self._heard += self._link.move()
            if not self._heard:
                self._link.wait(within_s, sending=False)
                self._heard += self._link.move()
        except TransferError:
            if not self._heard:
                raise
        heard, self._heard = self._heard, []
        return heard

    def close(self) -> None:
        """End it."""
        self._link.close()


class UdpFeed:
    """A feed that is being sent by UDP; made by `datacollect.feeds.send`.

    All methods may be called from any thread. Leaving its ``with`` block ends it.

    Parameters
    ----------
    feed : FeedFile
    tell : callable
        Takes lines that somebody would want to know at once.

    Attributes
    ----------
    report : FeedReport or None
        What the receiver has written down of it, once it has ended there.

    Raises
    ------
    ProblemError
        The receiver takes no such feed.
    TransferError
        It cannot be reached.

    Examples
    --------
    >>> import datacollect as dc
    >>> with dc.feeds.send("scan7.toml") as out:  # doctest: +SKIP
    ...     behind_s = out.write(b"x" * 1412)
    ...     if out.alarm is not None:
    ...         print(out.alarm)
    """

    # Nothing of it outlasts its process.
    goes_on_at_bytes, had_ended = 0, False

    def __init__(self, feed: FeedFile, tell: Callable[[str], None]) -> None:
        self.file, self._settings, self._stream = feed, feed.udp, secrets.token_hex(16)
        self._clock, self._tell = SteadyClock(), tell
        self._waker = Waker()
        self._opener = opener_of(feed, tell)
        self._lock = threading.Lock()
        per_s = feed.rate_bytes_per_s / feed.message_bytes
        most = max(feed.buffer_bytes // feed.message_bytes, 1)
        self._core = Sending(
            *(self._settings, feed.message_bytes, per_s, most, feed.when_full), self._now_s()
        )
        self._rate_seen = RateSeen(feed.rate_bytes_per_s)
        self._tail = b""
        self._is_idle, self._made = True, threading.Event()
        self._is_over, self._is_ended = threading.Event(), threading.Event()
        # Whether it was, over any connection.
        self._has_sent_end = False
        self._is_closed = False
        self._control: Control | None = None
        self._n_connections = 0
        self._told_alarm: str | None = None
        # Of the last connection that has ended.
        self._why = ""
        self.report: FeedReport | None = None
        self._progress: tuple[FeedCounts, Delays] = (FeedCounts(), Delays())
        self._clock_said = ""
        self._failure: Exception | None = None
        self._packets: PacketSender | None = None
        self._nonce = b""
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True)
            for name, run in (("feed hear", self._hear_all), ("feed send", self._send_all))
        ]
        try:
            self._opened = self._open()
        except BaseException:
            self._waker.close()
            raise
        for thread in self._threads:
            thread.start()

    # The source ------------------------------------------------------------------------------

    def write(self, block: bytes | bytearray | memoryview) -> float:
        """Take what the source has made; never waits.

        Parameters
        ----------
        block : bytes-like
            Of any length; messages of ``message_bytes`` are cut from it.

        Returns
        -------
        float
            How far behind it is: how long ago that was made that is sent next, seconds. Where the
            guard has fired, `alarm` says why.

        Raises
        ------
        FeedStopped
            The feed has ended: nobody acted upon an alarm, or the receiver takes no more.

        Examples
        --------
        >>> import datacollect as dc
        >>> out = dc.feeds.send("scan7.toml")  # doctest: +SKIP
        >>> behind_s = out.write(b"x" * 1412)  # doctest: +SKIP
        """
        size, now_s = self.file.message_bytes, self._now_s()
        if self._failure is not None:
            raise self._stopped(str(self._failure))
        if self._is_closed:
            raise self._stopped("it has ended here; begin another one")
        with self._lock:
            data = self._behind_tail(block)
            stop = len(data) // size * size
            self._tail = bytes(data[stop:])
            made_ns = self._clock.now_ns()
            self._core.make(data[:stop], now_s, made_ns)
            behind_s, ended = self._core.behind_s(now_s), self._core.ended
        if self._is_idle:
            self._made.set()
        if ended is not None:
            raise self._stopped(ended)
        said = self._rate_seen.made(len(block), made_ns)
        if said is not None:
            self._tell(said)
        return behind_s

    def _behind_tail(self, block: bytes | bytearray | memoryview) -> memoryview:
        """Return what was no whole message before, and a block; copied where that has to be."""
        data = memoryview(block)
        if self._tail or not data.c_contiguous:
            data = memoryview(self._tail + bytes(block))
        return data.cast("B")

    def is_placed(self, within_s: float) -> bool:
        """Whether it is known where the source begins: always.

        Parameters
        ----------
        within_s : float

        Returns
        -------
        bool

        Examples
        --------
        >>> import datacollect as dc
        >>> out = dc.feeds.send("scan7.toml")  # doctest: +SKIP
        >>> out.is_placed(0.0)  # doctest: +SKIP
        True
        """
        return True

    @property
    def alarm(self) -> str | None:
        """Say why the guard has fired: what is made is dropped soon, unless that passes; else None.

        Returns
        -------
        str or None
        """
        return self._core.alarm

    @property
    def clock(self) -> str:
        """Return how `delays` are measured; "": nothing has been told yet.

        Returns
        -------
        str
        """
        return self._clock_said

    @property
    def counts(self) -> FeedCounts:
        """Return what has become of messages so far, as far as it is known here.

        Returns
        -------
        FeedCounts
        """
        counts = self._progress[0].copy() if self.report is None else self.report.counts.copy()
        with self._lock:
            counts.made, counts.made_bytes = self._core.made, self._core.made_bytes
            counts.sent = self._core.n_sent
        counts.reconnections = max(self._n_connections - 1, 0)
        return counts

    @property
    def delays(self) -> Delays:
        """Return how late messages came so far.

        Returns
        -------
        Delays
        """
        return self._progress[1] if self.report is None else self.report.delays

    @property
    def not_sent(self) -> dict[str, int]:
        """Return what was made and not sent, by why.

        Returns
        -------
        dict
        """
        return dict(vars(self._core.not_sent))

    def close(self) -> None:
        """End the feed: wait until the receiver has said what has come.

        Raises
        ------
        FeedStopped
            It has not said so.

        Examples
        --------
        >>> import datacollect as dc
        >>> out = dc.feeds.send("scan7.toml")  # doctest: +SKIP
        >>> out.close()  # doctest: +SKIP
        """
        if self._is_closed:
            return
        if self._tail:
            with self._lock:
                self._core.make(self._tail, self._now_s(), self._clock.now_ns())
            self._tail = b""
        self._is_ended.set()
        self._made.set()
        give_up_s = time.monotonic() + self.file.give_up_s
        while self._threads[0].is_alive() and time.monotonic() < give_up_s:
            self._threads[0].join(LOOK_S)
        self.abandon()
        if self.report is None:
            raise self._stopped(str(self._failure or "the receiver could not be reached for long"))

    def abandon(self) -> None:
        """Send nothing more, whatever waits; again does nothing.

        Examples
        --------
        >>> import datacollect as dc
        >>> out = dc.feeds.send("scan7.toml")  # doctest: +SKIP
        >>> out.abandon()  # doctest: +SKIP
        """
        self._is_over.set()
        self._made.set()
        self._waker.wake()
        for thread in self._threads:
            thread.join()
        self._cut()
        if not self._is_closed:
            self._is_closed = True
            self._waker.close()

    def __enter__(self) -> UdpFeed:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End it; after an error of the source what was made until then is sent all the same."""
        if error is None:
            self.close()
        else:
            with suppress(FeedStopped):
                self.close()

    def _stopped(self, why: str) -> FeedStopped:
        before = f"{self._why}; " if self._why and self._why != why else ""
        return FeedStopped(f"the feed ends: {before}{why}", self.counts)

    def _now_s(self) -> float:
        return self._clock.now_ns() / 1e9

    # The connection --------------------------------------------------------------------------

    def _open(self) -> Iterator[dict[str, Any]]:
        """Connect, and greet the port; return what the receiver says from then on."""
        control = self._control = Control(opened_link(self._opener, self.file, self._waker))
        lines = _lines(control, self._is_over)
        try:
            feed = self.file
            hello = Hello(
                *(feed.name, self._stream, feed.transport, feed.rate_bytes_per_s),
                *(feed.message_bytes, feed.late_after_s, self._clock.boot, self._clock.base_ns),
            )
            control.send(hello.line())
            told = _awaited(lines, ("welcome", "ended"))
            if "ended" in told:
                self._end(told["ended"])
                return iter(())
            welcome = welcome_of(told)
            control.send(frames.note_frame({"counts": {}, "udp": self._settings.to_dict()}))
            port = _awaited(lines, ("udp",))["udp"]
            if welcome.boot != self._clock.boot:
                self._compare_clocks(control, lines)
            self._greet(control, lines, port)
        except BaseException:
            control.close()
            raise
        self._n_connections += 1
        self._why = ""
        return lines

    def _compare_clocks(self, control: Control, lines: Iterator[dict[str, Any]]) -> None:
        """Tell the receiver how far its clock is ahead of this one."""
        found = []
        for _ in range(COMPARISONS):
            sent_ns = self._clock.now_ns()
            control.send(frames.time_frame(sent_ns))
            told = _awaited(lines, ("time",))
            came_ns = self._clock.now_ns()
            at_ns = told.get("at_ns")
            if told["time"] != sent_ns or type(at_ns) is not int:
                raise FrameError("malformed time of a feed")
            found.append((came_ns - sent_ns, at_ns - (sent_ns + came_ns) // 2))
        round_trip_ns, ahead_ns = min(found)
        control.send(frames.note_frame({"counts": {}, "clock": [ahead_ns, round_trip_ns]}))

    def _greet(self, control: Control, lines: Iterator[dict[str, Any]], told: Any) -> None:
        """Send greetings to the port that the receiver has named, until it says one of them."""
        nonce, port = _port_of(told)
        self._nonce = raw_nonce(nonce)
        connected = connected_udp((control.address, port), self.file.to.name)
        try:
            size = HEAD.size + self.file.message_bytes
            numbers = {greeting_number(FIRST_GREETING) for _ in range(GREETINGS)}
            failure = ""
            for number in numbers:
                packet = HEAD.pack(self._nonce, number, 0, 0).ljust(size, b"\0")
                try:
                    connected.send(packet)
                except OSError as error:
                    failure = str(error.strerror)
            until_s = time.monotonic() + GREETED_S
            for line in lines:
                greeted = line.get("greeted")
                if isinstance(greeted, list) and numbers & {*_numbers(greeted)}:
                    break
                if time.monotonic() > until_s:
                    raise none_has_arrived(self.file.to.name, GREETINGS, port, failure)
        except BaseException:
            connected.close()
            raise
        self._start_packets(connected, size)

    def _start_packets(self, connected: socket.socket, size: int) -> None:
        self._socket = connected
        with self._lock:
            self._packets = PacketSender(connected, size)
            self._core.connected(self._now_s(), self._nonce)

    def _cut(self) -> None:
        """Send nothing more over this connection."""
        with self._lock:
            self._core.disconnected()
            if self._packets is not None:
                self._packets = None
                self._socket.close()
        if self._control is not None:
            self._control.close()

    # The thread that hears -------------------------------------------------------------------

    def _hear_all(self) -> None:
        lines, wait_s = self._opened, RETRY_S
        try:
            while True:
                try:
                    self._hear(lines)
                except RefusedError as error:
                    if error.status != AGAIN:
                        raise
                    self._say(error)
                except TransferError as error:
                    self._say(error)
                self._cut()
                if self.report is not None or self._is_over.wait(wait_s):
                    return
                while True:
                    try:
                        lines, wait_s = self._open(), RETRY_S
                        break
                    except RefusedError as error:
                        if error.status != AGAIN:
                            raise
                        self._say(error)
                    except TransferError as error:
                        self._say(error)
                    wait_s = min(2 * wait_s, MOST_RETRY_S)
                    if self._is_over.wait(wait_s):
                        return
        except Exception as error:  # noqa: BLE001 - whoever writes is told, whatever it is
            self._fail(error)
        finally:
            self._is_over.set()
            self._made.set()

    def _fail(self, error: Exception) -> None:
        """Have the feed end for this; what came before it counts."""
        if not isinstance(error, DatacollectError | OSError):
            error = TransferError(f"{self.file.name}: {type(error).__name__}: {error}")
        self._failure = self._failure or error

    def _say(self, error: TransferError) -> None:
        """Tell why there is no connection: what is made now is lost."""
        why = str(error)
        if why != self._why:
            self._why = why
            self._tell(f"{why}; connecting again; what is made meanwhile is lost")

    def _hear(self, lines: Iterator[dict[str, Any]]) -> None:
        """Take what the receiver says, until it has said that all is there.

        Raises
        ------
        TransferError
            The connection has ended before.
        """
        if self.report is not None:
            return
        end_at_s: float | None = None
        is_end_sent = False
        for line in lines:
            if "packets" in line:
                with self._lock:
                    report = ReceiverReport.from_dict(line["packets"])
                    self._core.report(self._now_s(), report)
            self._take(line)
            if self.report is not None:
                return
            if self._is_ended.is_set() and not is_end_sent and not self._core.n_waiting:
                end_at_s = end_at_s or time.monotonic() + ARRIVED_S
                if self._core.have_arrived or time.monotonic() >= end_at_s:
                    self._send_end()
                    is_end_sent = True
        raise TransferError(f"{self.file.to.name}: the connection has ended")

    def _take(self, line: dict[str, Any]) -> None:
        if "why" in line:
            raise RefusedError(
                f"{self.file.to.name}: refuses: {safe_text(str(line['why']))}",
                AGAIN if line.get("again") is True else 403,
            )
        if "report" in line:
            told = line["report"]
            if not isinstance(told, dict):
                raise FrameError("malformed report of a feed by its receiver")
            self._progress = (
                FeedCounts.from_dict(told.get("counts")),
                Delays.from_dict(told.get("delay")),
            )
            self._clock_said = safe_text(str(told.get("clock", "")))
        if "ended" in line:
            self._end(line["ended"])

    def _end(self, told: Any) -> None:
        """Take the receiver's last report."""
        report = FeedReport.from_dict(told)
        with self._lock:
            core = self._core
            here = FeedCounts(made=core.made, made_bytes=core.made_bytes, lost=core.not_sent.n)
        receiver = self.file.to.name
        require_end(report.counts, here, is_ended=self._has_sent_end, receiver=receiver)
        self._clock_said, self.report = safe_text(report.clock), report

    def _send_end(self) -> None:
        assert self._control is not None
        with self._lock:
            made, made_bytes, sent = self._core.made, self._core.made_bytes, self._core.n_sent
            self._has_sent_end = True
        counts = {"sent": sent, "reconnections": self._n_connections - 1}
        self._control.send(
            frames.note_frame({"counts": counts}) + frames.end_frame(made, made_bytes)
        )

    # The thread that sends -------------------------------------------------------------------

    def _send_all(self) -> None:
        try:
            with before_others():
                self._send_until_over()
        except Exception as error:  # noqa: BLE001 - whoever writes is told, whatever it is
            self._fail(error)
            self._is_over.set()

    def _send_until_over(self) -> None:
        while not self._is_over.is_set():
            wait_s = self._send()
            if wait_s is None:
                self._is_idle = True
                self._made.wait(IDLE_S)
                self._made.clear()
                self._is_idle = False
            elif wait_s > 0:
                time.sleep(wait_s)

    def _send(self) -> float | None:
        """Send what may leave; return how long to wait then, None: until something is made."""
        core = self._core
        with self._lock:
            now_s = self._now_s()
            due, packets = core.due(now_s), self._packets
            wait_s = core.next_s - now_s
            if due is None:
                alarm, has_more = core.alarm, core.n_waiting > 0
                if alarm != self._told_alarm:
                    self._told_alarm = alarm
                    self._tell(alarm or "the path works well again")
                return max(wait_s, LEAST_SLEEP_S) if has_more else None
        # Without a connection nothing waits.
        assert packets is not None
        try:
            packets.send(due)
        except OSError:
            # The port is closed, or the socket: the connection says which.
            return 0.01
        return wait_s if wait_s > LEAST_SLEEP_S else 0.0


def _numbers(told: list[Any]) -> Iterator[int]:
    return (number for number in told if type(number) is int)


def _lines(control: Control, is_over: threading.Event) -> Iterator[dict[str, Any]]:
    """Yield what a receiver says, and an empty line now and then."""
    while not is_over.is_set():
        yield from control.receive(LOOK_S) or ({},)


def _awaited(lines: Iterator[dict[str, Any]], keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the first line that has one of some keys."""
    until_s = time.monotonic() + ANSWER_S
    for line in lines:
        if "why" in line:
            status = AGAIN if line.get("again") is True else 403
            raise RefusedError(safe_text(str(line["why"])), status)
        if any(key in line for key in keys):
            return line
        if time.monotonic() > until_s:
            break
    raise TransferError(f"the receiver does not say {' or '.join(keys)}")


def _port_of(told: Any) -> tuple[str, int]:
    nonce, port = (told.get(key) if isinstance(told, dict) else None for key in ("nonce", "port"))
    if not is_nonce(nonce) or type(port) is not int or not 0 < port < 65_536:
        raise FrameError("malformed port of a feed")
    assert isinstance(nonce, str)
    return nonce, port
