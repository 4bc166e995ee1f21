"""The receiver's core: what of the packets is new, and where it goes; reads no clock or socket.

Messages go to their place in a file at once, whatever their order; what is missing is decided where
it lies a whole ring behind the newest, and at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.feeds.udp.heads import words_of
from datacollect.feeds.udp.pacing import CATCH_UP
from datacollect.feeds.udp.reports import ReceiverReport
from datacollect.feeds.udp.ring import Ring, Run

if TYPE_CHECKING:
    from datacollect.feeds.udp.heads import Heads

# Beside what may be caught up: a second's worth, for clocks and queues.
AT_ONCE_S = 1.0
# Numbers of greetings, see `datacollect.net.udp`: no message has such a number.
FIRST_GREETING, MOST_GREETINGS = 2**62, 32
# From one packet's head to the next one's: the nonce's words, message, packet.
_STEPS = np.array([[0], [0], [1], [1]], np.uint64)


class _Row(NamedTuple):
    """Packets in a row whose numbers follow each other: place, numbers, how many, whose."""

    at: int
    message: int
    packet: int
    n: int
    is_ours: bool


class Place(NamedTuple):
    """Packets in a row of those that came together, which go to one place.

    Attributes
    ----------
    at : int
        The first one's place among these packets.
    message : int
        Number of its message.
    n : int
    """

    at: int
    message: int
    n: int


@dataclass(frozen=True)
class UdpTerms:
    """Terms on which both ends agree.

    Attributes
    ----------
    nonce : bytes
    message_bytes : int
        Only the last message may be shorter.
    packets_per_s : float
        Of the source: faster than that, and what may be caught up, no packets are taken.
    most_messages : int
        So many have room.
    reorder : int
    """

    nonce: bytes
    message_bytes: int
    packets_per_s: float
    most_messages: int
    reorder: int


@dataclass
class Receiving:
    """Takes the packets of a feed over one connection.

    Parameters
    ----------
    feed : UdpTerms
    begin : int
        The first message; what became of those before it is decided.
    now_s : float
        By the clock of all that follows.

    Attributes
    ----------
    holes : list of Run
        Messages that are missing for good, since `take_holes` was called last.
    greetings : list of int
        Numbers of those that have arrived.
    n_foreign : int
        Packets that are none of this feed's, or of no size that it has.
    n_excess : int
        Those beyond its rate, or its room.
    n_host : int
        How often this host had no room; whoever sees it counts it here.
    """

    feed: UdpTerms
    begin: int
    now_s: float
    holes: list[Run] = field(default_factory=list)
    greetings: list[int] = field(default_factory=list)
    n_foreign: int = 0
    n_excess: int = 0
    n_host: int = 0

    def __post_init__(self) -> None:
        """Begin."""
        self._nonce = np.frombuffer(self.feed.nonce, ">u8").tolist()
        self._messages = Ring(self.feed.reorder, self._add_hole, self.begin)
        # Holes among packets are the path's, among messages what was left out, too.
        self._packets = Ring(self.feed.reorder, lambda _: None)
        self._numbers = count(1)
        # The last message, where a shorter one has come.
        self._last: int | None = None
        self.last_bytes = self.feed.message_bytes

    def _add_hole(self, hole: Run) -> None:
        self.holes.append(hole)

    @property
    def decided(self) -> int:
        """Return what became of all messages below this one is decided."""
        return self._messages.base

    @property
    def next(self) -> int:
        """One above the newest message."""
        return self._messages.next

    @property
    def n_received(self) -> int:
        """Messages that have come over this connection, in time."""
        return self._messages.n_come

    @property
    def n_twice(self) -> int:
        """Messages that have come twice."""
        return self._messages.n_twice

    def take(self, now_s: float, heads: Heads, last_bytes: int) -> list[Place]:
        """Take packets that came together; return where those that are new go.

        Parameters
        ----------
        now_s : float
        heads : Heads
        last_bytes : int
            Size of the last packet's message; those before it have the feed's.
        """
        n, size = len(heads), self.feed.message_bytes
        if not 0 < last_bytes <= size:
            self.n_foreign += n
            return []
        found: list[Place] = []
        for row in self._rows(heads, is_short=last_bytes < size):
            is_short = last_bytes < size and row.at == n - 1
            found += self._take_row(now_s, row, last_bytes if is_short else None)
        return _joined(found)

    def _rows(self, heads: Heads, *, is_short: bool) -> list[_Row]:
        """Return packets as few rows, nearly always one; the last, where it is short, alone."""
        if not len(heads):
            return []
        words = words_of(heads)[: len(_STEPS)]
        follows = words[:, 1:] - words[:, :-1] == _STEPS
        firsts = [0] if follows.all() else [0, *(np.flatnonzero(~follows.all(0)) + 1).tolist()]
        if is_short and firsts[-1] != len(heads) - 1:
            firsts.append(len(heads) - 1)
        found = []
        for at, stop in pairwise([*firsts, len(heads)]):
            *nonce, message, packet = words[:, at].tolist()
            found.append(_Row(at, message, packet, stop - at, nonce == self._nonce))
        return found

    def _take_row(self, now_s: float, row: _Row, short_bytes: int | None) -> list[Place]:
        if not row.is_ours:
            self.n_foreign += row.n
            return []
        if row.message >= FIRST_GREETING:
            self._greet(row)
            return []
        most = min(
            self._most() - row.message, math.ceil(self._most_packets(now_s) - row.packet), row.n
        )
        n = max(most, 0)
        self.n_excess += row.n - n
        if not n:
            return []
        if short_bytes is not None and not self._may_be_last(row.message, short_bytes):
            self.n_foreign += n
            return []
        self._packets.take(row.packet, n)
        return self._places(row.at, row.message, n)

    def _greet(self, row: _Row) -> None:
        n = min(MOST_GREETINGS - len(self.greetings), row.n)
        self.greetings += range(row.message, row.message + n)
        self.n_foreign += row.n - n

    def _may_be_last(self, message: int, short_bytes: int) -> bool:
        """Return whether a message that is shorter may be the last: nothing comes after it."""
        if self._last is None and message >= self._messages.next:
            self._last, self.last_bytes = message, short_bytes
        return (message, short_bytes) == (self._last, self.last_bytes)

    def _most(self) -> int:
        """Return how many messages there may be."""
        return self.feed.most_messages if self._last is None else self._last + 1

    def _most_packets(self, now_s: float) -> float:
        """Return how many packets may have come by now."""
        passed_s = now_s - self.now_s + AT_ONCE_S
        return passed_s * CATCH_UP * self.feed.packets_per_s + AT_ONCE_S

    def _places(self, at: int, message: int, n: int) -> list[Place]:
        new = self._messages.take(message, n)
        return [Place(at + run.first - message, run.first, run.n) for run in new]

    def take_holes(self) -> list[Run]:
        """Return what is missing for good, and was not returned before."""
        holes, self.holes = self.holes, []
        return holes

    def report(self) -> ReceiverReport:
        """Return the next report."""
        return ReceiverReport(
            number=next(self._numbers),
            n_packets=self._packets.next,
            n_lost=self._packets.n_missing,
            n_events=self._packets.n_gaps,
            n_host=self.n_host,
            n_received=self._messages.n_come,
            n_twice=self._messages.n_twice,
            n_late=self._messages.n_late,
            n_foreign=self.n_foreign + self.n_excess,
        )

    def end(self, made: int | None = None) -> None:
        """Decide all below `made`, which the sender has said, or below what has come."""
        stop = self._messages.next if made is None else max(made, self._messages.next)
        self._messages.end(stop)


def _joined(places: list[Place]) -> list[Place]:
    found: list[Place] = []
    for place in places:
        last = found[-1] if found else None
        if last and last.at + last.n == place.at and last.message + last.n == place.message:
            found[-1] = Place(last.at, last.message, last.n + place.n)
        else:
            found.append(place)
    return found
