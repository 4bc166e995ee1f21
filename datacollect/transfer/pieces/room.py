"""Room of a store of pieces: what lies there, what may go, what is promised.

Anybody may have these asked for with each block that he sends: each step takes the same time,
however many uploads and segments there are.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView, Mapping

# Of the disk nothing reserves these: databases and indices need room as well.
SPARE_BYTES = 64 * 2**20


class Room:
    """Bytes of segments, and those that may still come.

    Parameters
    ----------
    most_bytes : int
        For everything.
    closed : mapping of int to (int, float)
        By number of each closed segment: its bytes, and when it was closed.
    released : mapping of int to float
        By number of those that the destination needs no more: since when.

    Attributes
    ----------
    open_bytes : int
        Of open segments.
    released_bytes : int
        What segments take that may go, and stays while there is room.
    reserved_bytes : int
        What was promised and has not come.
    """

    def __init__(
        self,
        most_bytes: int,
        closed: Mapping[int, tuple[int, float]],
        released: Mapping[int, float],
    ) -> None:
        self.open_bytes = self.released_bytes = self.reserved_bytes = 0
        self._most_bytes = most_bytes
        self._closed = dict(closed)
        self._closed_bytes = sum(n_bytes for n_bytes, _ in closed.values())
        self._released: dict[int, float] = {}
        # The same as a heap; some of it has been dropped, or is needed again.
        self._first: list[int] = []
        # When the oldest was closed that is needed, where that is known.
        self._oldest: tuple[float | None] | None = None
        for number, since_s in released.items():
            self.release([number], since_s)

    # Segments ---------------------------------------------------------------------------------

    @property
    def closed(self) -> KeysView[int]:
        """Numbers of all closed segments."""
        return self._closed.keys()

    @property
    def released(self) -> KeysView[int]:
        """Numbers of those that the destination needs no more."""
        return self._released.keys()

    @property
    def stored_bytes(self) -> int:
        """Return what segments take that the destination still needs."""
        return self.open_bytes + self._closed_bytes - self.released_bytes

    @property
    def oldest_s(self) -> float | None:
        """Return when the oldest segment that the destination still needs was closed."""
        if self._oldest is None:
            needed = self._closed.keys() - self._released.keys()
            self._oldest = (min((self._closed[number][1] for number in needed), default=None),)
        return self._oldest[0]

    def bytes_of(self, number: int) -> int:
        """Return what a closed segment takes; 0 where there is none of that number."""
        return self._closed.get(number, (0, 0.0))[0]

    def close(self, number: int, now_s: float, n_bytes: int | None = None) -> None:
        """An open segment of so many bytes is closed; by default the only one."""
        n_bytes = self.open_bytes if n_bytes is None else n_bytes
        self._closed[number] = (n_bytes, now_s)
        self._closed_bytes += n_bytes
        self.open_bytes -= n_bytes
        self._oldest = None

    def release(self, numbers: Iterable[int], now_s: float) -> None:
        """The destination needs some segments no more."""
        for number in numbers:
            self._released[number] = now_s
            self.released_bytes += self._closed[number][0]
            heapq.heappush(self._first, number)
        self._oldest = None

    def need(self, numbers: Iterable[int]) -> None:
        """The destination needs some segments again."""
        for number in numbers:
            del self._released[number]
            self.released_bytes -= self._closed[number][0]
        self._oldest = None

    def drop(self, numbers: Iterable[int]) -> None:
        """Some segments are no more."""
        for number in numbers:
            n_bytes, _ = self._closed.pop(number)
            self._closed_bytes -= n_bytes
            if self._released.pop(number, None) is not None:
                self.released_bytes -= n_bytes
        self._oldest = None

    def released_before(self, now_s: float, keep_s: float) -> list[int]:
        """Return which were released so long ago."""
        for number, since_s in self._released.items():
            # A clock that was set back must not keep it for as long.
            self._released[number] = min(since_s, now_s)
        return [n for n, since_s in self._released.items() if now_s - since_s >= keep_s]

    def drop_for_promised(self, disk_bytes: int | None) -> list[int]:
        """Drop what may go, the first of it first, until all has room that is promised.

        `disk_bytes` are what the disk has left, where that is known.
        """
        short = self.stored_bytes + self.released_bytes + self.reserved_bytes - self._most_bytes
        if disk_bytes is not None:
            short = max(short, self.reserved_bytes + SPARE_BYTES - disk_bytes)
        going = []
        while short > 0 and self._first:
            number = heapq.heappop(self._first)
            if number in self._released:
                short -= self._closed[number][0]
                going.append(number)
                self.drop([number])
        return going

    # Promises ---------------------------------------------------------------------------------

    def free_bytes(self, disk_bytes: int) -> int:
        """Return how much may still be promised, where the disk has so much left."""
        on_disk = disk_bytes + self.released_bytes - self.reserved_bytes - SPARE_BYTES
        return max(min(self.unpromised_bytes, on_disk), 0)

    @property
    def unpromised_bytes(self) -> int:
        """Return what is neither there nor promised, wherever the disk has it.

        Below 0: too much is.
        """
        return self._most_bytes - self.stored_bytes - self.reserved_bytes
