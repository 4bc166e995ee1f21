"""Requests under way: sessions until their ends are known, and the pieces requested on each.

Each session learns its rate, asks ahead in proportion to it, and says when it is stuck.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Sequence

    from datacollect.control.decisions import Send

# A session is asked ahead for this many seconds of its rate, as libtorrent does, yet for no more
# requests than the other side keeps in mind.
AHEAD_S, MOST_REQUESTS = 3.0, 32
LEAST_AHEAD_BYTES = 2**20
# Time constant of the mean of rates.
RATE_MEMORY_S = 2.0
# A session that brings less than this for that time, once its answer has begun, is stuck; while
# other files wait, also after this part of the patience with their source: they are to be tried
# before that is over. How long the first byte may take is another matter: see `Patience`.
STALL_S, LEAST_BYTES_PER_S, STALL_PART = 10.0, 512.0, 0.5
# What a session waits for.
CONNECTION, DATA = "connection", "data"


def stall_s(patience_s: float, *, others_wait: bool) -> float:
    """Return after what time a session is stuck whose answer has begun.

    >>> stall_s(60.0, others_wait=True), stall_s(4.0, others_wait=True)
    (10.0, 2.0)
    >>> stall_s(4.0, others_wait=False)
    10.0
    """
    return min(STALL_S, STALL_PART * patience_s) if others_wait else STALL_S


@dataclass
class AskedRange:
    """A range that the controller wants sent, and how many of its pieces have not come."""

    send: Send
    left: int


@dataclass
class Session:
    """A session, from the decision to open it until its end is known."""

    number: int
    hosts: tuple[str, ...]
    moved_s: float  # when it began to wait for what has not come since
    is_open: bool = False
    is_closing: bool = False  # at once, by our wish
    is_stuck: bool = False
    drains: bool = False  # once all ranges are there
    ranges: deque[AskedRange] = field(default_factory=deque)
    ranges_of: defaultdict[int, list[AskedRange]] = field(  # by pieces that have not come
        default_factory=lambda: defaultdict(list)
    )
    queue: deque[int] = field(default_factory=deque)
    asked: dict[int, int] = field(default_factory=dict)
    asked_bytes: int = 0
    arrived_bytes: int = 0
    answered_bytes: int = 0  # of them, those of whole answers
    rate_bytes_per_s: float = 0.0
    seen_s: float = 0.0
    mark_s: float = 0.0
    mark_bytes: int = 0

    @property
    def source(self) -> str:
        """Return whose data come over it."""
        return self.hosts[0]

    @property
    def has_begun(self) -> bool:
        """Return whether something of the answer that is awaited has come by the last look."""
        return self.arrived_bytes > self.answered_bytes

    @property
    def waited_s(self) -> float:
        """Return how long at most there was too little by the last look."""
        return self.seen_s - min(self.moved_s, self.mark_s)

    @property
    def awaited(self) -> str | None:
        """Return what is to come over it at present."""
        if self.is_closing:
            return None
        return (DATA if self.asked else None) if self.is_open else CONNECTION

    def wants(self, send: Send, pieces: Collection[int]) -> None:
        """Note a range that is to be sent, and its pieces that have not come."""
        asked = AskedRange(send, len(pieces))
        self.ranges.append(asked)
        for piece in pieces:
            self.ranges_of[piece].append(asked)
        self.queue.extend(pieces)

    def came(self, piece: int) -> list[Send]:
        """Note that a piece is there, or cannot be had; return the ranges that have come by that.

        In their order: a range that has come waits for those before it.
        """
        for each in self.ranges_of.pop(piece, ()):
            each.left -= 1
        found = []
        while self.ranges and not self.ranges[0].left:
            found.append(self.ranges.popleft().send)
        return found

    def next_piece(self, sizes: Sequence[int], room_bytes: int) -> int | None:
        """Take what is to be asked for next off the queue; None where it is enough for now.

        Parameters
        ----------
        sizes : sequence of int
            Bytes of each piece.
        room_bytes : int
            What may be asked for besides, of all sessions; one piece may be in any case.
        """
        while self.is_open and not self.is_closing and self.queue:
            n_bytes = sizes[self.queue[0]]
            ahead = max(2 * n_bytes, LEAST_AHEAD_BYTES, AHEAD_S * self.rate_bytes_per_s)
            over = n_bytes > room_bytes or self.asked_bytes + n_bytes > ahead
            if self.asked and (over or len(self.asked) >= MOST_REQUESTS):
                return None
            piece = self.queue.popleft()
            if piece not in self.asked:
                return piece
        return None

    def ask(self, piece: int, n_bytes: int) -> None:
        """Note that a piece is asked for."""
        self.asked[piece] = n_bytes
        self.asked_bytes += n_bytes

    def answered(self, piece: int, n_bytes: int, now_s: float) -> int:
        """Note that a piece has its whole answer, of so many bytes; return what was asked for.

        The next answer has all its time.
        """
        # What the last look has seen is not all of this answer, and nothing of the next.
        self.answered_bytes = max(self.answered_bytes + n_bytes, self.arrived_bytes)
        self.moved_s = now_s
        asked_bytes = self.asked.pop(piece, 0)
        self.asked_bytes -= asked_bytes
        return asked_bytes

    def observe(self, now_s: float, arrived_bytes: int, *, is_waiting: bool) -> float | None:
        """Learn the rate from all that has arrived by now.

        Parameters
        ----------
        now_s : float
        arrived_bytes : int
        is_waiting : bool
            It does not wait for an answer.

        Returns
        -------
        float or None
            How long the first byte of an answer has taken, where it has come since the last look.
        """
        passed_s = now_s - self.seen_s
        if passed_s > 0:
            weight = min(1.0, passed_s / RATE_MEMORY_S)
            rate = (arrived_bytes - self.arrived_bytes) / passed_s
            self.rate_bytes_per_s += weight * (rate - self.rate_bytes_per_s)
        is_asked, had_begun = bool(self.asked) and not is_waiting, self.has_begun
        waited_s = now_s - self.moved_s
        if arrived_bytes > self.arrived_bytes or not is_asked:
            self.moved_s = now_s
        self.arrived_bytes, self.seen_s = arrived_bytes, now_s
        if not (is_asked and had_begun):  # its rate counts from the first byte on
            self.mark_s, self.mark_bytes = now_s, arrived_bytes
        return waited_s if is_asked and self.has_begun and not had_begun else None

    def is_silent(self, first_s: float, stall_s: float) -> bool:
        """Return whether too little has come by the last look.

        Parameters
        ----------
        first_s : float
            How long the first byte of an answer may take.
        stall_s : float
            After what time with too little it is stuck, once the answer has begun.
        """
        if not self.has_begun:
            return self.seen_s - self.moved_s >= first_s
        waited_s = self.seen_s - self.mark_s
        is_slow = False
        if waited_s >= stall_s:
            is_slow = self.arrived_bytes - self.mark_bytes < LEAST_BYTES_PER_S * waited_s
            self.mark_s, self.mark_bytes = self.seen_s, self.arrived_bytes
        return is_slow or self.seen_s - self.moved_s >= stall_s


class UnderWay(dict[int, Session]):
    """Sessions by their numbers, from the decision to open them until their ends are known.

    Parameters
    ----------
    in_flight_bytes : int
        Most that is asked for and has not come.

    Attributes
    ----------
    asked_bytes : int
        What is asked for and has not come, on all of them.
    """

    def __init__(self, in_flight_bytes: int) -> None:
        super().__init__()
        self._in_flight_bytes, self.asked_bytes = in_flight_bytes, 0
        self._routes: dict[int, tuple[str, ...]] = {}

    def begin(self, session: Session) -> None:
        """Note a session that is to be opened."""
        self[session.number] = session
        self._routes[session.number] = session.hosts

    def route(self, number: int) -> tuple[str, ...]:
        """Return the hosts of a session, whose end may be known: its last answers come later."""
        return self._routes[number]

    def is_dry(self, but_for: Container[str] = ()) -> bool:
        """Return whether nothing is asked for, but of these sources."""
        return not any(session.asked and session.source not in but_for for session in self.values())

    def of(self, source: str) -> list[Session]:
        """Return those to a source."""
        return [session for session in self.values() if session.source == source]

    def awaited(self, source: str) -> set[int]:
        """Return the pieces of a source whose answers come next, on each session one."""
        return {next(iter(session.asked)) for session in self.of(source) if session.asked}

    def n_open(self, hosts: tuple[str, ...]) -> int:
        """Return how many are open on a route."""
        return sum(session.is_open and session.hosts == hosts for session in self.values())

    def ended(self, number: int) -> Session | None:
        """Note that a session's end is known; None if it was known before."""
        session = self.pop(number, None)
        if session is not None:
            self.asked_bytes -= session.asked_bytes
        return session

    def answered(self, number: int, piece: int, n_bytes: int, now_s: float) -> Session | None:
        """Note that a piece has its whole answer; None where the session's end is known."""
        session = self.get(number)
        if session is not None:
            self.asked_bytes -= session.answered(piece, n_bytes, now_s)
        return session

    def next_piece(self, session: Session, sizes: Sequence[int]) -> int | None:
        """Take what is to be asked for next off a session's queue; None where it is enough."""
        return session.next_piece(sizes, self._in_flight_bytes - self.asked_bytes)

    def ask(self, session: Session, piece: int, n_bytes: int) -> None:
        """Note that a piece is asked for."""
        session.ask(piece, n_bytes)
        self.asked_bytes += n_bytes
