"""The core's books: what is to be fetched, and what was asked for on each session."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datacollect.control.decisions import Send


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
    rate_bytes_per_s: float = 0.0
    seen_s: float = 0.0
    mark_s: float = 0.0
    mark_bytes: int = 0

    @property
    def source(self) -> str:
        """Whose data come over it."""
        return self.hosts[0]
