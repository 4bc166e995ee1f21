"""The tool `pairs` where packets arrive: a socket for one test, and when its packets came.

The kernel stamps packets when it gets them from the network; when this program reads them does not
matter. Its stamps are by a clock that may be set meanwhile, which is noticed.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.errors import RefusedError
from datacollect.measuring.agent.host_tool import (
    PREFIX,
    SETTLED_S,
    body_of,
    number_in,
    require_receiver,
)
from datacollect.measuring.probes.pair_packets import MOST_PACKETS, PAGE, number_of
from datacollect.net.tickets import NUMBER_STOP
from datacollect.net.udp import bound_udp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.measuring.agent.host_tool import Host
    from datacollect.measuring.plan.measure_tickets import MeasureTicket
    from datacollect.transfer.agent.shell.handling import Exchange

NAME = "pairs"
OPEN_PATH, ARRIVED_PATH = f"{PREFIX}udp", f"{PREFIX}arrived"
# linux/asm-generic/socket.h; Python's socket module does not name it.
SO_TIMESTAMPNS = 35
TIMESPEC = struct.Struct("qq")
# How often it is looked whether the test is over.
LOOKED_AFTER_S = 0.1
MOST_PACKET_BYTES = 2048
# For packets that this program has not read yet; the kernel gives what it allows.
ROOM_BYTES = 2**20
# A clock that is set, not one that runs a little fast.
SET_BY_NS = 1_000_000


def set_clock_ns() -> int:
    """Return how far the clock of stamps is ahead of the one that is never set."""
    readings = []
    for _ in range(5):
        before = time.monotonic_ns()
        clock = time.time_ns()
        after = time.monotonic_ns()
        readings.append((after - before, clock - before))
    return min(readings)[1]


class PairReceiver:
    """Receives the packets of a test until that is over, or it is closed.

    Parameters
    ----------
    address : (str, int)
        Where to listen.
    nonce : str
        Of the test: packets without it are others'.
    took : callable
        Counts payload, and raises `RefusedError` where no more may come.
    over : threading.Event
        Set when the test is.
    clock_ns : callable
        As `set_clock_ns`.

    Attributes
    ----------
    arrivals : list of (int, int)
        Of each packet its number, and the nanoseconds of its stamp; the first one counts of those
        that come twice.

    Raises
    ------
    RefusedError
        The socket cannot be opened.
    """

    def __init__(
        self,
        address: tuple[str, int],
        nonce: str,
        took: Callable[[int], None],
        over: threading.Event,
        clock_ns: Callable[[], int] = set_clock_ns,
    ) -> None:
        self._nonce, self._took, self._over, self._clock_ns = nonce, took, over, clock_ns
        self._socket = bound_udp(address, "measure", _stamping)
        self._began_ns = clock_ns()
        self._changed = threading.Condition()
        self._is_closed = False
        self._numbers: set[int] = set()
        self.arrivals: list[tuple[int, int]] = []
        self.n_foreign = self.n_twice = 0
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Receive no more; what has come stays known."""
        self._is_closed = True

    def told(self, first: int, n: int, wait_s: float) -> dict[str, Any]:
        """Say what has come, from one of the arrivals on, and wait a while for some number of them.

        Parameters
        ----------
        first : int
            So many arrivals are known already.
        n : int
            So many more are waited for, at most.
        wait_s : float
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self.arrivals) >= first + n, wait_s)
            return {
                "arrivals": self.arrivals[first : first + n],
                "n_arrivals": len(self.arrivals),
                "foreign": self.n_foreign,
                "twice": self.n_twice,
                "clock_was_set": abs(self._clock_ns() - self._began_ns) > SET_BY_NS,
            }

    def _receive(self) -> None:
        with self._socket:
            while not (self._is_closed or self._over.is_set()):
                try:
                    data, ancillary, _, _ = self._socket.recvmsg(MOST_PACKET_BYTES, 128)
                except TimeoutError:
                    continue
                except OSError:
                    # Of a packet, as where its check sum is wrong; the next one may be well.
                    if self._socket.fileno() < 0:
                        return
                    # Where it is not of a packet, it comes again at once.
                    self._over.wait(LOOKED_AFTER_S / 10)
                    continue
                if not self._keep(data, ancillary):
                    return

    def _keep(self, data: bytes, ancillary: Sequence[tuple[int, int, bytes]]) -> bool:
        """Keep when a packet came; whether the test takes more."""
        number, stamp_ns = number_of(data, self._nonce), _stamp_ns(ancillary)
        with self._changed:
            if number is None or stamp_ns is None:
                self.n_foreign += 1
                return True
            with suppress(RefusedError):
                self._took(len(data))
                if number in self._numbers:
                    self.n_twice += 1
                elif len(self.arrivals) < MOST_PACKETS:
                    self._numbers.add(number)
                    self.arrivals.append((number, stamp_ns))
                    self._changed.notify_all()
                return True
        return False


def _stamp_ns(ancillary: Sequence[tuple[int, int, bytes]]) -> int | None:
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS) and len(data) == TIMESPEC.size:
            seconds, ns = TIMESPEC.unpack(data)
            return int(seconds) * 10**9 + int(ns)
    return None


def _stamping(opened: socket.socket) -> None:
    opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ROOM_BYTES)
    opened.settimeout(LOOKED_AFTER_S)


def open_port(host: Host, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
    """Open this host's port for the packets of a test, as long as the connection lasts."""
    require_receiver(ticket)
    body_of(exchange)
    port = host.measure.udp_port
    if not port:
        raise RefusedError(
            "this agent accepts no UDP packets: [measure] of its file has no udp_port, or a 0; "
            "write one, open it in the firewall, and start the agent again",
            403,
        )
    test = host.tests.begin(ticket, NAME)
    with test.changed:
        if NAME in test.kept:
            raise RefusedError("the port has been opened for this test before", 409)
        address = (host.config.listen[0], port)
        packets = PairReceiver(address, ticket.nonce, test.took, test.over)
        test.kept[NAME] = packets
    exchange.at_end(f"udp {ticket.nonce}", packets.close)
    return {"nonce": ticket.nonce, "port": port}


def tell_arrived(host: Host, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
    """Say which packets of a test have arrived, and when, by the kernel."""
    asked = body_of(exchange)
    packets: PairReceiver | None = host.tests.running(ticket).kept.get(NAME)
    if packets is None:
        raise RefusedError("no port has been opened for this test", 409)
    first = int(number_in(asked, "first", 0, NUMBER_STOP))
    n = int(number_in(asked, "n", 1, PAGE))
    return packets.told(first, n, number_in(asked, "wait_s", 0.0, SETTLED_S))
