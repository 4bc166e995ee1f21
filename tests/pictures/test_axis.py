"""The axis of time, and what clocks show on it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from datacollect.files.clock import Clock
from datacollect.pictures.axis import STEPS_S, clock_ticks, offsets

HOUR_S, DAY_S = 3600.0, 86_400.0


def test_ticks_stand_at_round_clock_times():
    """From 20:15 on, ten hours: 21:00, 00:00, 03:00, 06:00."""
    ticks = clock_ticks(Clock.of("2026-11-22T20:15", "Europe/Zurich"), 10 * HOUR_S, most=5)
    assert [tick.time for tick in ticks] == ["21:00", "00:00", "03:00", "06:00"]
    assert [tick.at_s / HOUR_S for tick in ticks] == [0.75, 3.75, 6.75, 9.75]
    assert [tick.day for tick in ticks] == ["Sun 22 Nov", "Mon 23 Nov", "", ""]


def test_an_end_a_rounding_error_before_a_round_time_has_its_tick():
    clock = Clock.of("2026-11-22T20:00", "Europe/Zurich")
    for end_s in (35_999.99999999997, 36_000.0):
        assert clock_ticks(clock, end_s)[-1].time == "06:00"
    assert clock_ticks(clock, 35_999.0)[-1].time == "04:00"


def test_ticks_follow_clocks_that_change():
    """On 25 October 2026 clocks in Zurich go from 3:00 back to 2:00: 3:00 is 4 h after midnight."""
    clock = Clock.of("2026-10-25T00:00", "Europe/Zurich")
    ticks = {tick.time: tick.at_s / HOUR_S for tick in clock_ticks(clock, 9 * HOUR_S, most=4)}
    assert ticks == {"00:00": 0, "03:00": 4, "06:00": 7}
    # On 29 March 2026 they jump from 2:00 to 3:00.
    clock = Clock.of("2026-03-29T00:00", "Europe/Zurich")
    ticks = {tick.time: tick.at_s / HOUR_S for tick in clock_ticks(clock, 9 * HOUR_S, most=4)}
    assert ticks == {"00:00": 0, "03:00": 2, "06:00": 5, "09:00": 8}


@pytest.mark.parametrize("span_s", [3.0, 90.0, 4000.0, 30 * HOUR_S, 9 * DAY_S, 400 * DAY_S, 1e10])
@pytest.mark.parametrize("zone", ["Europe/Zurich", "Asia/Kathmandu", "UTC"])
def test_ticks_are_few_and_where_clocks_show_them(span_s, zone):
    clock = Clock.of("2026-11-22T20:13:07", zone)
    ticks = clock_ticks(clock, span_s)
    assert 1 <= len(ticks) <= 10
    for tick in ticks:
        shown = clock.moment(tick.at_s)
        assert 0 <= tick.at_s <= span_s
        assert not tick.time or f"{shown:%H:%M:%S}".startswith(tick.time)
        assert (shown - timedelta(seconds=1)).date() != shown.date() or tick.time


def test_a_year_has_two_changes_and_a_zone_without_them_none():
    clock = Clock.of("2026-01-01T00:00+01:00", "Europe/Zurich")
    assert [offset.ahead_s for offset in offsets(clock, 365 * DAY_S)] == [3600, 7200, 3600]
    assert len(offsets(Clock.of("2026-01-01T00:00+01:00", None), 365 * DAY_S)) == 1


def test_beyond_all_calendars_there_are_no_ticks():
    assert clock_ticks(Clock.of("2026-01-01T00:00+01:00", None), 1e12) == []


def test_steps_divide_days_or_are_days():
    assert all(DAY_S % step == 0 or step % DAY_S == 0 for step in STEPS_S)
