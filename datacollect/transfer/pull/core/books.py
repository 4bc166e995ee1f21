"""The core's books: what is to be fetched, and what was asked for on each session."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.transfer.protocol.source import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.control.decisions import Send

# A session is asked for so many seconds of its rate ahead, as libtorrent does, yet for no more
# requests than the other side keeps in mind.
AHEAD_S, MOST_REQUESTS = 3.0, 32
LEAST_AHEAD_BYTES = 2**20
# Rates are remembered for about so long.
RATE_MEMORY_S = 2.0
# A session that brings less than this for so long is stuck; while other files wait, also after this
# part of the patience with their source: they are to be tried before that is over.
STALL_S, LEAST_BYTES_PER_S, STALL_PART = 10.0, 512.0, 0.5
# What a session waits for.
CONNECTION, DATA = "connection", "data"


def stall_s(patience_s: float, *, others_wait: bool) -> float:
    """Return after what time a session is stuck.

    >>> stall_s(60.0, others_wait=True), stall_s(4.0, others_wait=True)
    (10.0, 2.0)
    >>> stall_s(4.0, others_wait=False)
    10.0
    """
    return min(STALL_S, STALL_PART * patience_s) if others_wait else STALL_S


def only(piece: int) -> range:
    """Return a piece as one that has no kin.

    >>> list(only(3))
    [3]
    """
    return range(piece, piece + 1)


@dataclass(frozen=True)
class SourceWork:
    """What is to be fetched from a source.

    Attributes
    ----------
    starts, sizes : tuple of int
        Where each of its pieces begins, and its bytes.
    needed : frozenset of int
        The pieces that are to be fetched.
    kin : callable
        Takes a piece; returns all pieces that hold parts of the same files.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    needed: frozenset[int]
    kin: Callable[[int], range] = only

    @property
    def needed_bytes(self) -> int:
        """Bytes to be fetched."""
        return sum(self.sizes[piece] for piece in self.needed)

    def beginning_in(self, offset_bytes: int, n_bytes: int) -> range:
        """Return the pieces that begin in a range: each is in one of several ranges side by side.

        >>> SourceWork((0, 64, 128), (64, 64, 5), frozenset()).beginning_in(64, 65)
        range(1, 3)
        """
        first = bisect_left(self.starts, offset_bytes)
        return range(first, bisect_left(self.starts, offset_bytes + n_bytes))


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
    answered_bytes: int = 0  # of them, when the last answer was whole
    rate_bytes_per_s: float = 0.0
    seen_s: float = 0.0
    mark_s: float = 0.0
    mark_bytes: int = 0

    @property
    def source(self) -> str:
        """Whose data come over it."""
        return self.hosts[0]

    @property
    def awaited(self) -> str | None:
        """What is to come over it at present."""
        if self.is_closing:
            return None
        return (DATA if self.asked else None) if self.is_open else CONNECTION

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

    def answered(self, piece: int, now_s: float) -> int:
        """Note that a piece has its whole answer; return the bytes that it was asked for.

        The next answer has all its time.
        """
        self.answered_bytes = self.mark_bytes = self.arrived_bytes
        self.mark_s = self.moved_s = now_s
        n_bytes = self.asked.pop(piece, 0)
        self.asked_bytes -= n_bytes
        return n_bytes

    def observe(
        self, now_s: float, arrived_bytes: int, stall_s: float, *, is_waiting: bool
    ) -> bool:
        """Learn the rate from all that has arrived by now; whether the session is stuck.

        Parameters
        ----------
        now_s : float
        arrived_bytes : int
        stall_s : float
            After what time with too little it is stuck.
        is_waiting : bool
            It does not wait for an answer.
        """
        passed_s = now_s - self.seen_s
        if passed_s > 0:
            weight = min(1.0, passed_s / RATE_MEMORY_S)
            rate = (arrived_bytes - self.arrived_bytes) / passed_s
            self.rate_bytes_per_s += weight * (rate - self.rate_bytes_per_s)
        is_asked = bool(self.asked) and not is_waiting
        if arrived_bytes > self.arrived_bytes or not is_asked:
            self.moved_s = now_s
        self.arrived_bytes, self.seen_s = arrived_bytes, now_s
        waited_s, is_silent = now_s - self.mark_s, now_s - self.moved_s >= stall_s
        if is_asked and waited_s < stall_s:
            return is_silent
        is_slow = is_asked and arrived_bytes - self.mark_bytes < LEAST_BYTES_PER_S * waited_s
        self.mark_s, self.mark_bytes = now_s, arrived_bytes
        return is_silent or is_slow


# Why a piece is given up whose answers are no good.
TROUBLES = {
    Verdict.CORRUPT: "its bytes were not those that the source had hashed, time after time",
    Verdict.CHANGED: "it changes while it is fetched, time after time",
    Verdict.UNREADABLE: "the source cannot read it to its end",
}
