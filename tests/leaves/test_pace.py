"""Pace of work, and how long the rest takes, in two digits."""

from __future__ import annotations

import pytest

from datacollect.numbers.pace import Pace, about_bytes, about_duration, left_words, percent_words


def pace_after(*marks):
    pace = Pace()
    for at_s, done in marks:
        pace.note(at_s, done)
    return pace


def test_nothing_is_known_before_time_has_passed():
    assert (Pace().rate, Pace().left_s(5.0), pace_after((3.0, 9.0)).rate) == (None, None, None)


def test_the_rest_lies_between_the_highest_and_the_lowest_rate_of_late():
    """5, 1 and 2 a second: ten more take 2 s to 10 s. At the start it was slow, as ever."""
    pace = pace_after((0.0, 0.0), (2.0, 0.2), (4.0, 10.2), (6.0, 12.2), (8.0, 16.2))
    assert (pace.rate, pace.left_s(10.0)) == (2.0, (2.0, 10.0))
    assert pace_after((0.0, 0.0), (2.0, 0.2), (4.0, 10.2)).left_s(10.0) == (2.0, 100.0)


def test_a_stretch_without_anything_is_a_rate_but_tells_nothing_of_the_rest():
    pace = pace_after((0.0, 0.0), (2.0, 10.0), (4.0, 10.0))
    assert (pace.rate, pace.left_s(10.0)) == (0.0, (2.0, 2.0))
    assert pace_after((0.0, 0.0), (2.0, 0.0)).left_s(10.0) is None


def test_stretches_grow_with_time_and_old_ones_are_forgotten():
    """After 1000 s at one a second, 1000 s at two: the first are of no account any more."""
    pace = Pace()
    for second in range(1000):
        pace.note(float(second), float(second))
    for second in range(1000, 4000):
        pace.note(float(second), 1000.0 + 2.0 * (second - 1000))
    assert pace.rate == pytest.approx(2.0)
    assert pace.left_s(100.0) == pytest.approx((50.0, 50.0))


def test_what_is_undone_begins_a_new_count():
    """A file is refetched: what went on before is no rate of what is to do."""
    pace = pace_after((0.0, 0.0), (2.0, 10.0), (4.0, 5.0), (6.0, 7.0))
    assert (pace.rate, pace.left_s(10.0)) == (1.0, (10.0, 10.0))


def test_two_digits_and_no_percent_too_many():
    assert [percent_words(*each) for each in ((0, 9), (998, 1000), (1000, 1000))] == [
        "0 %",
        "99 %",
        "100 %",
    ]
    assert [about_bytes(n) for n in (0, 999, 12_345, 996_000_000)] == [
        "0 B",
        "1 kB",
        "12 kB",
        "1 GB",
    ]
    assert [about_duration(s) for s in (89, 90, 5399, 5400, 172_799, 172_800)] == [
        *("89 s", "1.5 min", "90 min", "1.5 h", "48 h", "2 days")
    ]
    assert left_words((59.9, 61.0)) == "60 s to 61 s left"
