"""Sets of bytes, kept as ranges: what has arrived somewhere, counted once however often it came."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class ByteRanges:
    """A set of byte positions as sorted ranges that neither touch nor overlap.

    Examples
    --------
    >>> there = ByteRanges()
    >>> there.add(0, 10), there.add(5, 10), there.total_bytes
    (10, 5, 15)
    >>> there.missing(0, 20)
    [(15, 5)]
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.total_bytes = 0

    def add(self, offset_bytes: int, n_bytes: int) -> int:
        """Add a range; return how many of its bytes are new."""
        if n_bytes <= 0:
            return 0
        start, end = offset_bytes, offset_bytes + n_bytes
        # Ranges first ... last - 1 touch the new one and become one with it.
        first, last = bisect_left(self._ends, start), bisect_right(self._starts, end)
        had = 0
        if first < last:
            had = sum(self._ends[first:last]) - sum(self._starts[first:last])
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        new = end - start - had
        self.total_bytes += new
        return new

    def ranges(self) -> list[tuple[int, int]]:
        """Return all ranges (offset, bytes), in order.

        >>> there = ByteRanges()
        >>> there.add(20, 5), there.add(0, 10), there.ranges()
        (5, 10, [(0, 10), (20, 5)])
        """
        pairs = zip(self._starts, self._ends, strict=True)
        return [(start, end - start) for start, end in pairs]

    def end_after(self, position: float) -> int | None:
        """Return where the range that holds a position ends; None if it is in no range."""
        i = bisect_right(self._starts, position) - 1
        return self._ends[i] if i >= 0 and position < self._ends[i] else None

    def missing(self, offset_bytes: int, n_bytes: int) -> list[tuple[int, int]]:
        """Return the parts (offset, bytes) of a range that are not in the set."""
        gaps = []
        position, end = offset_bytes, offset_bytes + n_bytes
        for i in range(bisect_right(self._ends, offset_bytes), len(self._starts)):
            if self._starts[i] >= end:
                break
            if self._starts[i] > position:
                gaps.append((position, self._starts[i] - position))
            position = self._ends[i]
        if position < end:
            gaps.append((position, end - position))
        return gaps
