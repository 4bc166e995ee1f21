"""The ring of numbers, against a dictionary of all numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datacollect.feeds.udp.ring import Ring, Run


class Dictionary:
    """The same by a dictionary of all numbers that ever were: what has become of each."""

    def __init__(self, size: int) -> None:
        self.size, self.what, self.next = size, {}, 0
        self.twice = self.late = 0

    def take(self, first: int, n: int) -> list[int]:
        new = []
        for number in range(first, first + n):
            for skipped in range(self.next, number):
                self.what[skipped] = "missing"
            if self.what.get(number) == "come":
                in_window = number >= self.next - self.size
                self.twice, self.late = self.twice + in_window, self.late + (not in_window)
            elif self.what.get(number) == "hole":
                self.late += 1
            else:
                self.what[number] = "come"
                new.append(number)
            self.next = max(self.next, number + 1)
            for old in range(self.next - self.size):
                if self.what[old] == "missing":
                    self.what[old] = "hole"
        return new

    def numbers(self, *kinds: str) -> list[int]:
        return sorted(number for number, kind in self.what.items() if kind in kinds)

    def n_gaps(self) -> int:
        missing = set(self.numbers("missing", "hole"))
        return sum(number - 1 not in missing for number in missing)


def numbers_of(runs: list[Run]) -> list[int]:
    return [number for run in runs for number in range(run.first, run.first + run.n)]


@settings(deadline=None)
@given(
    size=st.integers(1, 9),
    takes=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=25),
    more=st.integers(0, 20),
)
def test_a_ring_says_of_every_number_what_a_dictionary_says(
    size: int, takes: list[tuple[int, int]], more: int
) -> None:
    holes: list[Run] = []
    ring, oracle = Ring(size, holes.append), Dictionary(size)
    for first, n in takes:
        assert numbers_of(ring.take(first, n)) == oracle.take(first, n)
        assert (ring.next, ring.n_come) == (oracle.next, len(oracle.numbers("come")))
        assert (ring.n_twice, ring.n_late) == (oracle.twice, oracle.late)
        assert numbers_of(holes) == oracle.numbers("hole")
        assert ring.n_missing == len(oracle.numbers("missing", "hole"))
        assert ring.n_gaps == oracle.n_gaps()
        # All below the base is decided, and it lies as high as it can.
        missing = oracle.numbers("missing")
        assert ring.base == (missing[0] if missing else oracle.next)
    stop = oracle.next + more
    ring.end(stop)
    assert len(numbers_of(holes)) + ring.n_come == stop == ring.base == ring.next
    assert set(numbers_of(holes)).isdisjoint(oracle.numbers("come"))
    assert ring.take(0, 3) == []


def test_what_comes_late_by_less_than_the_window_goes_to_its_place() -> None:
    """Of 8 numbers the fourth comes 4 behind, the first 7 behind: too late for a window of 6."""
    holes: list[Run] = []
    ring = Ring(6, holes.append)
    for number in (1, 2, 4, 5, 6, 7):
        ring.take(number, 1)
    assert holes == [Run(0, 1)]
    assert ring.take(3, 1) == [Run(3, 1)]
    assert ring.take(0, 1) == []
    assert (ring.n_late, ring.base) == (1, 8)


@pytest.mark.parametrize("n", [1, 7])
def test_a_leap_over_more_than_the_window_is_a_hole_but_for_its_end(n: int) -> None:
    holes: list[Run] = []
    ring = Ring(4, holes.append, begin=10)
    assert ring.take(1000, n) == [Run(1000, n)]
    assert numbers_of(holes) == list(range(10, 1000 + n - 4))[:990]
    ring.end(1000 + n)
    assert numbers_of(holes) == list(range(10, 1000))
