"""Ranges one after another and totals over time, against loops that do the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from datacollect.numbers.arrays import ranges, running_totals


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 5)), max_size=20))
def test_ranges_are_those_of_a_loop(pairs):
    first, counts = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    expected = [number for begin, count in pairs for number in range(begin, begin + count)]
    assert ranges(first, counts).tolist() == expected


events = st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(-9, 9))


@given(st.lists(events, max_size=30))
def test_running_totals_are_those_of_a_loop(rows):
    """At each instant of a key the sum of all of its changes up to then."""
    key, time_s, change = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    keys, times_s, (total, twice) = running_totals(key, time_s.astype(float), change, 2 * change)
    expected = {
        (k, t): sum(delta for other, when, delta in rows if other == k and when <= t)
        for k, t, _ in rows
    }
    assert list(zip(keys.tolist(), times_s.tolist(), strict=True)) == sorted(expected)
    assert total.tolist() == [expected[pair] for pair in sorted(expected)]
    assert (twice == 2 * total).all()


def test_totals_of_whole_numbers_stay_whole():
    """Floats do not distinguish bytes beyond 2**53."""
    large = np.array([2**60 + 1, -1])
    _, _, (total,) = running_totals(np.zeros(2, np.int64), np.array([0.0, 1.0]), large)
    assert total.tolist() == [2**60 + 1, 2**60]
