"""Rates of links at once are those of the time in which all moved data."""

from __future__ import annotations

import pytest

from datacollect.measuring.probes.rates_at_once import rates_at_once


def curve(asked_s, begins_s, ends_s, rate):
    """Return the curve of a test that moves data at a rate, a row each tenth of a second."""
    n = round((ends_s - begins_s) * 10)
    rows = [(begins_s + i / 10, int(rate(begins_s + i / 10, begins_s))) for i in range(n + 1)]
    return [(asked_s, 0), *rows]


def sharing(late_s):
    """Return two tests of 5 s on a wire of 1000; the second begins so much later.

    Alone a test has the wire, beside the other half of it.
    """

    def one(at_s, _):
        return 1000 * min(at_s, late_s) + 500 * max(at_s - late_s, 0)

    def other(at_s, begins_s):
        return 500 * (min(at_s, 5.0) - begins_s) + 1000 * max(at_s - 5.0, 0)

    return curve(0.0, 0.0, 5.0, one), curve(0.0, late_s, late_s + 5.0, other)


@pytest.mark.parametrize("late_s", [0.0, 0.4, 0.9])
def test_a_wire_carries_no_more_at_once_than_it_has(late_s):
    """Each by its own time they had (1000 late + 500 (5 - late)) / 5: 1180 with 0.9 s of 5."""
    found = rates_at_once(sharing(late_s))
    assert sum(found.rates_bytes_per_s) == pytest.approx(1000, rel=0.01)
    assert found.together_bytes_per_s == pytest.approx(1000, rel=0.01)
    assert found.duration_s == pytest.approx(5.0 - late_s)


def test_tests_that_were_hardly_beside_each_other_say_nothing_together():
    assert rates_at_once(sharing(1.5)) is None


def test_what_lasts_for_less_than_half_of_the_time_is_not_what_was_shown():
    """100 for 3 s, then 1000 for 2 s: the mean is 460, and 100 is what there was mostly."""
    one = curve(0.0, 0.0, 5.0, lambda at_s, _: 100 * min(at_s, 3.0) + 1000 * max(at_s - 3.0, 0))
    found = rates_at_once([one, curve(0.0, 0.0, 5.0, lambda at_s, _: 100 * at_s)])
    assert found.together_bytes_per_s == pytest.approx(200, rel=0.02)


def test_a_link_over_which_nothing_came_gives_no_rates():
    assert rates_at_once([[(0.0, 0), (0.1, 0), (5.0, 0)], [(0.0, 0), (0.1, 0), (5.0, 50)]]) is None
