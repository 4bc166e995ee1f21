"""The tool `pairs` where packets are sent: greetings, pairs back to back, then pairs a gap apart.

Packets go to the address where the other end has shown the ticket's nonce over TLS, and to the port
that it has named there. Greetings are a few, with numbers that nobody can guess: only where the
other end can say them, and so receives what is sent to that address and port, more is sent; and no
further where nothing of a train arrives. A connection that ends, ends the test.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import socket
import struct
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.errors import ProblemError, RefusedError, TransferError
from datacollect.files.documents import peer_json
from datacollect.measuring.agent.host_tests import ENDED_EARLY
from datacollect.measuring.agent.host_tool import SECONDS, HostTool, Limits
from datacollect.measuring.agent.pair_receiving import (
    ARRIVED_PATH,
    NAME,
    OPEN_PATH,
    open_port,
    tell_arrived,
)
from datacollect.measuring.probes import packet_pairs, pair_trains
from datacollect.measuring.probes.pair_packets import (
    FIRST_GREETING,
    PAGE,
    arrivals_of,
    packet,
)
from datacollect.net.deadline import Deadline
from datacollect.net.http_client import HttpChannel
from datacollect.net.safe_text import safe_text
from datacollect.net.udp import (
    GREETINGS,
    HEADERS_BYTES,
    connected_udp,
    greeting_number,
    none_has_arrived,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from datacollect.measuring.agent.far_agent import FarAgent
    from datacollect.measuring.agent.host_tool import Sending

ANSWER_S = 10.0
MOST_ANSWER_BYTES = 65_536
# How long what is on its way may take, the queue that it stands in included.
ARRIVED_S, GREETED_S = 1.0, 2.0
# Within a pair nobody looks whether the test is over; the other end says how slow the path is.
MOST_GAP_S = 0.5

# Of IP, headers included: what any path carries usually, and what it must carry in any case.
SIZES = (1500, 1280)
# linux/prctl.h
PR_SET_TIMERSLACK = 29
# linux/net_tstamp.h: stamps of packets as they leave the socket, by the kernel, without their data.
SO_TIMESTAMPING = 37
STAMPED = struct.pack("I", 1 << 8 | 1 << 4 | 1 << 11)
TIMESPEC = struct.Struct("qq")
# How late this thread was woken the last times: it goes to sleep for so much less.
WAKINGS = 15
USUALLY_LATE_NS = 30_000


@contextmanager
def punctual() -> Iterator[None]:
    """Have this thread woken as soon as it is due; before others, where the host permits that."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    usual = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, *usual)
        # As it was.
        libc.prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0)


class Alarm:
    """Sleeps until an instant, and for as much less as it was woken late before."""

    def __init__(self) -> None:
        self._late_ns = deque([USUALLY_LATE_NS], WAKINGS)

    def sleep_until(self, due_ns: int) -> None:
        """Return at an instant of the clock that is never set."""
        early_ns = due_ns - int(median(self._late_ns))
        left_ns = early_ns - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns / 1e9)
            self._late_ns.append(time.monotonic_ns() - early_ns)
        while time.monotonic_ns() < due_ns:
            pass


class FarReceiver:
    """The other end, as its agent answers over TLS.

    Parameters
    ----------
    far : FarAgent

    Attributes
    ----------
    address : str
        Where it has shown its certificate.
    arrivals : list of (int, int)
        What it has told so far.

    Raises
    ------
    TransferError
        It cannot be reached, or is another.
    """

    def __init__(self, far: FarAgent) -> None:
        self._far = far
        connection = far.connected()
        self.address: str = connection.getpeername()[0]
        self._channel = HttpChannel(connection, far.name, ANSWER_S)
        self.arrivals: list[tuple[int, int]] = []

    def __enter__(self) -> FarReceiver:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End the connection, and with it what the other end receives."""
        self._channel.close()

    def open(self, nonce: str) -> int:
        """Have it open its port, and return that; it shows the nonce of the test."""
        said = self._asked(OPEN_PATH, {})
        port = said.get("port")
        if said.get("nonce") != nonce:
            raise TransferError(
                f"{self._far.name}: its agent has not shown the nonce of the ticket"
            )
        if type(port) is not int or not 0 < port < 65_536:
            raise TransferError(f"{self._far.name}: its agent has named no port for the packets")
        return port

    def ask_arrived(self, n: int, wait_s: float) -> None:
        """Ask what has arrived, and wait a while for so many packets in all."""
        until_s = time.monotonic() + wait_s
        while (missing := n - len(self.arrivals)) > 0:
            left_s = max(until_s - time.monotonic(), 0.0)
            asked = {"first": len(self.arrivals), "n": min(missing, PAGE), "wait_s": left_s}
            said = arrivals_of(self._asked(ARRIVED_PATH, asked).get("arrivals"))
            if said is None:
                raise TransferError(f"{self._far.name}: malformed report on packets")
            self.arrivals += said
            if time.monotonic() >= until_s:
                return

    def _asked(self, path: str, tree: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(tree).encode()
        deadline = Deadline(ANSWER_S)
        self._channel.send(self._far.request("POST", path, len(data)) + data)
        head = self._channel.head(deadline)
        body = self._channel.body(head.length, MOST_ANSWER_BYTES, deadline)
        said = peer_json(body)
        if head.status != 200 or not isinstance(said, dict):
            why = said.get("why", head.status) if isinstance(said, dict) else head.status
            raise RefusedError(f"{self._far.name}: refuses: {safe_text(str(why))}", head.status)
        return said


class _OverError(Exception):
    """The bytes or the time of the test are used up."""


@dataclass
class _Packets:
    """The socket from which packets leave, no faster than they may."""

    sending: Sending
    socket: socket.socket
    until_s: float
    began_ns: int = field(default_factory=time.monotonic_ns)
    n_bytes: int = 0
    n_of_pairs: int = 0
    alarm: Alarm = field(default_factory=Alarm)
    next_ns: int = 0
    failure: str = ""

    def wait(self, apart_s: float) -> None:
        """Wait until the next may leave: so long after the last on average, by no fixed step.

        What is sent at fixed steps may meet others' steps each time (Baccelli, Machiraju, Veitch
        and Bolot, "The role of PASTA in network measurement", SIGCOMM 2006).
        """
        due_ns, rate_bytes_per_s = self.next_ns, self.sending.rate_bytes_per_s
        if rate_bytes_per_s is not None:
            due_ns = max(due_ns, self.began_ns + int(self.n_bytes / rate_bytes_per_s * 1e9))
        if due_ns / 1e9 >= self.until_s:
            raise _OverError
        if self.sending.test.over.wait(max(due_ns - time.monotonic_ns(), 0) / 1e9):
            raise TransferError(ENDED_EARLY)
        self.next_ns = time.monotonic_ns() + int(apart_s * random.uniform(0.5, 1.5) * 1e9)

    def made(self, number: int, n_bytes: int) -> bytes:
        """Return the next packet, of so many bytes with its headers, which is counted."""
        payload_bytes = n_bytes - HEADERS_BYTES[self.socket.family]
        test, throttle = self.sending.test, self.sending.throttle
        if test.take_to_send(payload_bytes) < payload_bytes:
            raise _OverError
        self.n_bytes += n_bytes
        if throttle is not None:
            throttle.owe(n_bytes)
        return packet(test.ticket.nonce, number, payload_bytes)

    def send(self, data: bytes) -> _Left | None:
        """Send a packet; return when it left, if it did."""
        began_ns = time.monotonic_ns()
        try:
            self.socket.send(data)
        except ConnectionRefusedError:
            name = self.sending.far.name
            raise TransferError(
                f"{name}: its host refuses packets at the UDP port of the test"
            ) from None
        except OSError as error:
            self.failure = str(error.strerror)
            return None
        return _Left(began_ns, stamp_ns(self.socket))

    def pair(self, k: int, gap_s: float, n_bytes: int) -> float | None:
        """Send a pair; return the gap with which it left, None where it did not."""
        # Nothing but waiting lies between the two.
        one, other = self.made(2 * k, n_bytes), self.made(2 * k + 1, n_bytes)
        self.n_of_pairs += 2
        first = self.send(one)
        if first is not None and gap_s:
            self.alarm.sleep_until(first.began_ns + int(gap_s * 1e9))
        second = self.send(other)
        if first is None or second is None:
            return None
        if first.stamp_ns is None or second.stamp_ns is None:
            return (second.began_ns - first.began_ns) / 1e9
        # By a clock that may be set meanwhile.
        return max(second.stamp_ns - first.stamp_ns, 0) / 1e9


class _Left(NamedTuple):
    """Times when a packet was handed to the kernel, and when that has sent it, if it says so."""

    began_ns: int
    stamp_ns: int | None


def stamp_ns(connected: socket.socket) -> int | None:
    """Return when the kernel has sent the last packet, by its clock; None where it does not say."""
    try:
        _, ancillary, _, _ = connected.recvmsg(1, 256, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
    except OSError:
        return None
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPING):
            seconds, ns = TIMESPEC.unpack_from(data)
            return int(seconds) * 10**9 + int(ns)
    return None


def send_pairs(sending: Sending, half_width: float, seconds: float) -> dict[str, Any]:
    """Send pairs to another agent until they tell enough, or bytes, time or lease are over.

    Parameters
    ----------
    sending : Sending
        Of its throttle packets count, and do not wait for it.
    half_width : float
        Wanted half of the interval, as a part of the available bandwidth.
    seconds : float
        At most.

    Returns
    -------
    dict
        ``ended`` (``"done"`` or why not), ``packet_bytes`` (with headers), ``sent_packets`` (of
        pairs), ``back_to_back_s`` (of each of these pairs the gap with which it left, None where it
        did not), ``sent_gaps_s`` (of each pair after them).
    """
    trains, n_sent = _Trains(half_width), 0
    far, test = sending.far, sending.test
    ended = "done"
    try:
        with FarReceiver(far) as to:
            place = to.address, to.open(test.ticket.nonce)
            with _connected(place, far.name) as connected:
                until_s = min(time.monotonic() + seconds, test.until_s)
                packets = _Packets(sending, connected, until_s)
                try:
                    trains.run(packets, to, place[1])
                finally:
                    n_sent = packets.n_of_pairs
    except TransferError as error:
        ended = str(error)
    except (ProblemError, _OverError):
        # Where pairs do not tell it, who asks sees the same, and why.
        pass
    return {
        "ended": ended,
        "packet_bytes": trains.packet_bytes,
        "sent_packets": n_sent,
        "back_to_back_s": trains.back_to_back_s,
        "sent_gaps_s": trains.sent_gaps_s,
    }


@dataclass
class _Trains:
    """Trains of a test that were sent."""

    half_width: float
    packet_bytes: int = 0
    back_to_back_s: list[float | None] = field(default_factory=list)
    sent_gaps_s: list[float | None] = field(default_factory=list)

    @property
    def capacity_pairs(self) -> int:
        return len(self.back_to_back_s)

    def run(self, packets: _Packets, to: FarReceiver, port: int) -> None:
        """Send all."""
        self.packet_bytes = _greeted(packets, to, port)
        n_greetings = len(to.arrivals)
        apart_s = pair_trains.apart_s(self.packet_bytes)
        with punctual():
            while self.capacity_pairs < pair_trains.CAPACITY_PAIRS:
                packets.wait(apart_s)
                gap_s = packets.pair(self.capacity_pairs, 0.0, self.packet_bytes)
                self.back_to_back_s.append(gap_s)
        to.ask_arrived(n_greetings + 2 * self.capacity_pairs, ARRIVED_S)
        capacity = pair_trains.capacity_by_train(
            self.packet_bytes, self.back_to_back_s, to.arrivals
        )
        if capacity > packet_pairs.MOST_AVAILABLE_BYTES_PER_S:
            return
        gap_s = self.packet_bytes / capacity
        if gap_s > MOST_GAP_S:
            return
        apart_s = pair_trains.apart_s(self.packet_bytes, capacity)
        found = None
        while n := pair_trains.more_pairs(len(self.sent_gaps_s), found):
            n_before = len(to.arrivals)
            self._train(packets, n, gap_s, apart_s)
            to.ask_arrived(n_before + 2 * n, ARRIVED_S)
            if len(to.arrivals) == n_before:
                return
            found = pair_trains.found_by_train(
                capacity,
                self.packet_bytes,
                self.capacity_pairs,
                self.sent_gaps_s,
                to.arrivals,
                self.half_width,
            )

    def _train(self, packets: _Packets, n: int, gap_s: float, apart_s: float) -> None:
        with punctual():
            for _ in range(n):
                packets.wait(apart_s)
                k = self.capacity_pairs + len(self.sent_gaps_s)
                self.sent_gaps_s.append(packets.pair(k, gap_s, self.packet_bytes))


def _greeted(packets: _Packets, to: FarReceiver, port: int) -> int:
    """Return the size of packets that arrive there."""
    sizes = {}
    for _ in range(GREETINGS):
        for n_bytes in SIZES:
            packets.wait(0.01)
            number = greeting_number(FIRST_GREETING)
            sizes[number] = n_bytes
            packets.send(packets.made(number, n_bytes))
    to.ask_arrived(len(sizes), GREETED_S)
    arrived = [sizes[number] for number, _ in to.arrivals if number in sizes]
    if not arrived:
        raise none_has_arrived(packets.sending.far.name, len(sizes), port, packets.failure)
    return max(arrived)


def _connected(place: tuple[str, int], name: str) -> socket.socket:
    made = connected_udp(place, name)
    with suppress(OSError):
        made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, STAMPED)
    return made


PAIRS = HostTool(
    NAME,
    {"half_width": Limits(0.01, 1.0), "seconds": SECONDS},
    "pairs test",
    ("half_width", "seconds"),
    send_pairs,
    {OPEN_PATH: open_port, ARRIVED_PATH: tell_arrived},
)
