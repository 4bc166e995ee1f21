"""Clock times in problem files: seconds, hours that recur, and days when clocks change."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.files.clock import Clock
from datacollect.problem.calendar import unroll

HOUR = 3600.0


def _tree(**changes: Any) -> dict[str, Any]:
    """Two hosts in Zurich from noon of the day before clocks go back (25 October 2026)."""
    tree: dict[str, Any] = {
        "destination": "D",
        "start": "2026-10-24T12:00:00+02:00",
        "timezone": "Europe/Zurich",
        "hosts": {"S": {"backlog_bytes": 1000}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 1.0}],
    }
    return tree | changes


def _release(when: Any, **changes: Any) -> float:
    hosts = {"S": {"backlog_bytes": 1000, "release_s": when}, "D": {}}
    return float(dc.Problem.from_dict(_tree(hosts=hosts, **changes)).release_s[0])


@pytest.mark.parametrize(
    ("when", "hours"),
    [
        ("18:00", 6),
        ("12:00", 0),
        ("11:00", 24),  # the next day: 23 hours, and the one that clocks show twice
        ("2026-10-25T11:00", 24),
        ("2026-10-25T11:00:00+01:00", 24),
        ("2026-10-24T11:00:00Z", 1),
        ("2026-10-25T02:30+02:00", 14.5),
        ("2026-10-25T02:30+01:00", 15.5),
        (dt.time(18, 0), 6),
        (dt.datetime.fromisoformat("2026-10-24T13:00"), 1),
        ("90 min", 1.5),
        (HOUR, 1),
    ],
)
def test_releases_are_clock_times_or_seconds(when: Any, hours: float) -> None:
    assert _release(when) == hours * HOUR


def test_clocks_that_go_forward_leave_an_hour_out() -> None:
    """From noon on 28 March 2026 to 11:00 the next day: 22 hours."""
    assert _release("11:00", start="2026-03-28T12:00") == 22 * HOUR


@pytest.mark.parametrize(
    ("changes", "when", "message"),
    [
        ({}, "2026-10-25T02:30", r"show 2026-10-25 02:30 twice; write .*\+02:00 for the first"),
        ({"start": "2026-03-28T12:00"}, "02:30", "skip 2026-03-29 02:30; write a later time"),
        ({}, "2026-10-24T11:00", "hosts.S.release_s must not lie before the start"),
        ({"start": None, "timezone": None}, "18:00", "hosts.S.release_s: a clock time needs start"),
        ({"start": None}, 0, "timezone needs start"),
        ({"timezone": "Europe/Zurch"}, 0, "did you mean 'Europe/Zurich'"),
        ({"timezone": "Asia/Tokyo"}, 0, r"start must have the offset of timezone, \+09:00"),
        ({"start": "2026-10-24T12:00", "timezone": None}, 0, "must have an offset from UTC"),
        ({"start": "2026-10-24"}, 0, "start must be a date and time"),
        ({"start": "2026-13-24T12:00"}, 0, "start must be a date and time"),
        ({}, "25:00", "release_s must be a finite number of seconds"),
        ({"daily_periods": ["20:00", "08:00"]}, 0, r"daily_periods\[1\] must be later than 20:00"),
        ({"daily_periods": ["08:00"], "periods_s": [0]}, 0, "cannot be combined"),
        ({"daily_periods": ["8 h"]}, 0, "must be an hour of the day"),
        ({"periods_s": [0, "2026-10-24T12:00"]}, 0, r"periods_s\[1\] must be > 0"),
    ],
)
def test_what_no_clock_shows_is_refused(changes: dict[str, Any], when: Any, message: str) -> None:
    tree = _tree(hosts={"S": {"backlog_bytes": 1000, "release_s": when}, "D": {}}, **changes)
    tree = {key: value for key, value in tree.items() if value is not None}
    with pytest.raises(ProblemError, match=message):
        dc.Problem.from_dict(tree)


def _daily(backlog_bytes: int, start: str = "2026-10-24T12:00") -> dc.Problem:
    link = {"from": "S", "to": "D", "bandwidth_bytes_per_s": [1.0, 10.0]}
    return dc.Problem.from_dict(
        _tree(
            start=start,
            hosts={"S": {"backlog_bytes": backlog_bytes}, "D": {}},
            daily_periods=["08:00", "20:00"],
            links=[link],
        )
    )


def test_hours_of_the_day_recur_and_the_night_of_the_change_is_longer() -> None:
    """From noon by day: 8 hours at 1, a night of 13 hours at 10, 12 hours at 1, a night ..."""
    problem = _daily(1000)
    assert (problem.periods_s / HOUR).tolist() == [0, 8, 21, 33, 45]
    assert problem.bandwidth_bytes_per_s.ravel().tolist() == [1, 10, 1, 10, 1]


def test_the_night_before_summer_time_is_shorter() -> None:
    problem = _daily(1000, "2026-03-28T12:00")
    assert (problem.periods_s / HOUR).tolist()[:3] == [0, 8, 19]


def test_a_plan_ends_when_the_clock_says() -> None:
    """8 hours bring 28 800 bytes, then 10 a second: 64 800 bytes take an hour more."""
    plan = dc.coordinated(_daily(28_800 + 36_000))
    assert plan.makespan_s == pytest.approx(9 * HOUR)


def test_days_are_listed_until_the_plan_ends() -> None:
    """The same rates, however far they are listed; twice as many days each time."""
    problem = _daily(1000)
    longer = problem.until(5 * 86_400.0)
    assert longer.daily is not None
    assert longer.daily.until_s == 8 * 86_400
    assert longer.periods_s[: problem.n_periods].tolist() == problem.periods_s.tolist()
    assert np.diff(longer.bandwidth_bytes_per_s.ravel()).all()
    assert longer.until(6 * 86_400.0) is longer
    assert problem.until(86_400.0) is problem


def test_clock_times_leave_the_hash_alone() -> None:
    plain = {key: v for key, v in _tree().items() if key not in ("start", "timezone")}
    assert dc.Problem.from_dict(plain).sha256 == dc.Problem.from_dict(_tree()).sha256


def test_what_is_written_is_read_back() -> None:
    problem = _daily(1000)
    again = dc.Problem.from_dict(problem.to_dict())
    assert again.sha256 == problem.sha256
    assert again.clock == problem.clock


# Lord Howe Island's clocks change by half an hour: back at 02:00 on 5 April 2026 (UTC+11 to
# UTC+10:30), forward at 02:00 on 4 October 2026.


@pytest.mark.parametrize(
    ("start", "when", "hours"),
    [
        ("2026-04-04T12:00", "11:00", 23.5),
        ("2026-04-04T12:00", "2026-04-05T01:45+11:00", 13.75),
        ("2026-04-04T12:00", "2026-04-05T01:45+10:30", 14.25),
        ("2026-10-03T12:00", "11:00", 22.5),
        ("2026-10-03T12:00", "02:30", 14),  # the first instant after the gap
    ],
)
def test_clocks_that_change_by_half_an_hour(start: str, when: str, hours: float) -> None:
    assert _release(when, start=start, timezone="Australia/Lord_Howe") == hours * HOUR


@pytest.mark.parametrize(
    ("start", "when", "message"),
    [
        ("2026-04-04T12:00", "2026-04-05T01:45", r"twice; write .*\+11:00 for the first .*10:30"),
        ("2026-10-03T12:00", "2026-10-04T02:15", "skip 2026-10-04 02:15"),
    ],
)
def test_half_hours_that_are_skipped_or_shown_twice(start: str, when: str, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        _release(when, start=start, timezone="Australia/Lord_Howe")


def test_hours_that_recur_where_clocks_change_by_half_an_hour() -> None:
    """From 02:15 on: skipped on 4 October, when it is 02:30; on 5 April as always."""
    link = {"from": "S", "to": "D", "bandwidth_bytes_per_s": [1.0, 10.0]}
    tree = _tree(timezone="Australia/Lord_Howe", daily_periods=["02:15", "20:00"], links=[link])
    spring = dc.Problem.from_dict(tree | {"start": "2026-10-03T20:00"})
    assert (spring.periods_s / HOUR).tolist()[:4] == [0, 6, 23.5, 29.75]
    autumn = dc.Problem.from_dict(tree | {"start": "2026-04-04T20:00"})
    assert (autumn.periods_s / HOUR).tolist()[:4] == [0, 6.75, 24.5, 30.75]


def test_where_a_day_is_left_out_the_next_one_begins() -> None:
    """Samoa went from Thursday's midnight to Saturday: Friday's hours are none, Saturday's are."""
    clock = Clock.of("2011-12-29T20:00", "Pacific/Apia")
    starts, which = unroll(["00:00", "08:00", "18:00"], clock, 86_400.0)
    assert [start / 3600 for start in starts] == [0.0, 4.0, 12.0, 22.0]
    assert which.tolist() == [2, 0, 1, 2]


@pytest.mark.parametrize(
    "start", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-06-01T00:00:00"]
)
@pytest.mark.parametrize("daily", [None, ["08:00", "18:00"]])
def test_years_that_not_every_zone_can_show_are_refused(
    start: str, daily: list[str] | None
) -> None:
    tree: dict[str, Any] = {
        "destination": "D",
        "start": start,
        "hosts": {"S": {"backlog_bytes": 10}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": [1.0, 2.0] if daily else 1.0}],
    }
    tree |= {"daily_periods": daily} if daily else {}
    tree |= {} if start[19:] else {"timezone": "UTC"}
    with pytest.raises(ProblemError, match=r"start must lie in the years 2 to 9998, got '"):
        dc.Problem.from_dict(tree)
    later = tree | {"start": "2026-11-22T20:00:00+00:00"}
    later["hosts"] = {"S": {"backlog_bytes": 10, "release_s": "9999-12-31T23:59:59-14:00"}, "D": {}}
    with pytest.raises(ProblemError, match=r"release_s must lie in the years 2 to 9998"):
        dc.Problem.from_dict(later)


def test_days_end_with_the_calendar() -> None:
    clock = Clock.of("9998-12-30T20:00:00+00:00", None)
    with pytest.raises(ProblemError, match="no calendar reaches"):
        unroll(["08:00", "18:00"], clock, 400 * 86_400.0)
