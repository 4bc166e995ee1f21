"""The core's books: what is to be fetched, and what was asked for on each session."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datacollect.control.decisions import Send

# Rates are remembered for about so long.
RATE_MEMORY_S = 2.0
# A session that brings less than this for so long is stuck.
STALL_S, LEAST_BYTES_PER_S = 10.0, 512.0


@dataclass(frozen=True)
class SourceWork:
    """What is to be fetched from a source.

    Attributes
    ----------
    starts, sizes : tuple of int
        Where each of its pieces begins, and its bytes.
    needed : frozenset of int
        The pieces that are to be fetched.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    needed: frozenset[int]

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
    is_open: bool = False
    is_closing: bool = False  # at once, by our wish
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

    def observe(self, now_s: float, arrived_bytes: int) -> bool:
        """Learn the rate from all that has arrived by now; whether the session is stuck."""
        passed_s = now_s - self.seen_s
        if passed_s > 0:
            weight = min(1.0, passed_s / RATE_MEMORY_S)
            rate = (arrived_bytes - self.arrived_bytes) / passed_s
            self.rate_bytes_per_s += weight * (rate - self.rate_bytes_per_s)
        self.arrived_bytes, self.seen_s = arrived_bytes, now_s
        waited_s = now_s - self.mark_s
        if self.asked and waited_s < STALL_S:
            return False
        is_stuck = bool(self.asked) and arrived_bytes - self.mark_bytes < (
            LEAST_BYTES_PER_S * waited_s
        )
        self.mark_s, self.mark_bytes = now_s, arrived_bytes
        return is_stuck
