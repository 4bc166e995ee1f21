"""Limits of hosts that change on days of the week, against clocks that are read every minute."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime, timedelta
from functools import cache
from itertools import accumulate
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datacollect as dc
from datacollect.problem.recurring_hours import in_order, last_rows
from datacollect.problem.windows import DAYS

ZURICH = ZoneInfo("Europe/Zurich")
# A plain Monday, and days before clocks skip an hour and before they show one twice.
STARTS = ("2026-11-23T07:30", "2027-03-27T22:10", "2026-10-24T13:05")
WEEK = 7 * 24 * 60
WORKING_DAYS = "Mon-Fri 08:00 10 MB/s, Mon-Fri 20:00 100 MB/s, Sat-Sun 200 MB/s"


def problem_of(uplink: str, start: str = STARTS[0], n_bytes: int = 10**9, **more) -> dc.Problem:
    return dc.Problem.from_dict(
        {
            "destination": "D",
            "start": start,
            "timezone": "Europe/Zurich",
            "hosts": {
                "S": {"backlog_bytes": n_bytes, "uplink_bytes_per_s": uplink} | more,
                "D": {},
            },
            "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e12}],
        }
    )


def limits_at(problem: dc.Problem, instants_s: np.ndarray) -> np.ndarray:
    """Return the uplink of S at each instant."""
    rows = np.searchsorted(problem.periods_s, instants_s, side="right") - 1
    return problem.uplink_bytes_per_s[rows, 0]


def test_a_week_has_the_rates_of_its_days():
    """From Friday 07:30: Friday's 08:00 and 20:00, weekend from midnight on, Monday from 08:00."""
    problem = problem_of(WORKING_DAYS, "2026-11-27T07:30")
    hours = {0: 100, 0.5: 10, 12.5: 100, 16.5: 200, 40.5: 200, 72: 200, 72.5: 10, 84.5: 100}
    found = limits_at(problem, np.array(list(hours)) * 3600) / 1e6
    assert found.tolist() == list(hours.values())


def test_a_plan_waits_for_the_weekend():
    """From Friday 20:00 on 1 B/s, 4 h; from Saturday on 3 B/s: 14400 bytes, then 600 s of 3."""
    problem = problem_of("Mo-Fr 1 B/s, Sa Su 3 B/s", "2026-11-27T20:00", 16_200)
    plan = dc.coordinated(problem)
    assert plan.makespan_s == pytest.approx(4 * 3600 + 600)
    assert plan.lower_bound_s == pytest.approx(plan.makespan_s)
    plan.check(problem)


def test_weeks_of_hosts_windows_and_hours_of_links_are_one_listing():
    """Each has its own changes; a link has what the hour of the day and its window say."""
    tree = problem_of(WORKING_DAYS, open="06:00-22:00").to_dict()
    tree = {key: value for key, value in tree.items() if key != "periods_s"}
    tree |= {"daily_periods": ["09:00", "18:00"]}
    tree["hosts"]["S"] |= {"uplink_bytes_per_s": WORKING_DAYS, "open": "06:00-22:00"}
    tree["links"][0]["bandwidth_bytes_per_s"] = [3.0, 4.0]
    problem = dc.Problem.from_dict(tree)
    hours = np.array([7.5, 8, 9, 18, 20, 22, 30])
    rows = np.searchsorted(problem.periods_s, (hours - 7.5) * 3600, side="right") - 1
    assert (problem.uplink_bytes_per_s[rows, 0] / 1e6).tolist() == [200, 10, 10, 10, 100, 100, 100]
    assert problem.bandwidth_bytes_per_s[rows, 0].tolist() == [4, 4, 3, 4, 4, 0, 4]
    # On the weekend of that week all night long.
    assert limits_at(problem, np.array([6 * 86_400.0])).tolist() == [200e6]


def test_more_weeks_have_the_same_days_and_what_remains_too():
    problem = problem_of(WORKING_DAYS)
    longer = problem.until(60 * 86_400.0)
    minutes = np.arange(2 * WEEK) * 60.0
    again = limits_at(longer, minutes + 5 * 7 * 86_400.0)
    assert (again == limits_at(problem, minutes)).all()
    at_s = 1_321_920.0  # 15.3 days
    rest = dc.remaining_problem(problem, dc.Progress(at_s, (dc.Held("D", "S", 0, 4),)))
    later = rest.until(40 * 86_400.0)
    assert (limits_at(later, minutes) == limits_at(longer, minutes + at_s)).all()


def test_what_says_no_day_and_what_says_each_is_the_same_problem():
    each = problem_of("Mo-Su 08:00 1 MB/s, Mo-Su 20:00 2 MB/s")
    every = problem_of("08:00 1 MB/s, 20:00 2 MB/s").until(each.daily.until_s)
    assert every.periods_s[: each.n_periods].tolist() == each.periods_s.tolist()
    assert (every.uplink_bytes_per_s[: each.n_periods] == each.uplink_bytes_per_s).all()


@cache
def shown_minutes(start: str) -> list[int]:
    """Return the latest minute of the week that clocks have shown, in each minute of 9 days.

    An hour that clocks show twice is over when they first have shown it; one that they skip is
    there at once.
    """
    first = datetime.fromisoformat(start).replace(tzinfo=ZURICH).astimezone(ZoneInfo("UTC"))
    monday = datetime(2026, 9, 28)  # noqa: DTZ001 - what clocks show, and no instant
    before = 120
    shown = (
        (first + timedelta(minutes=i - before)).astimezone(ZURICH).replace(tzinfo=None) - monday
        for i in range(before + 9 * 24 * 60)
    )
    return list(accumulate((since // timedelta(minutes=1) for since in shown), max))[before:]


MINUTES = st.integers(0, 24 * 60 - 1)
CHANGES = st.dictionaries(
    st.tuples(st.none() | st.integers(0, 6), MINUTES), st.integers(1, 9), min_size=1, max_size=6
)


@given(CHANGES, st.sampled_from(STARTS))
def test_rates_are_those_of_clocks_that_are_read_every_minute(changes, start):
    """The last change that clocks of the week have shown; before the first, the last of all."""
    said = {minute for day, minute in changes if day is not None}
    changes = {at: rate for at, rate in changes.items() if at[0] is not None or at[1] not in said}
    parts = [
        f"{'' if day is None else DAYS[day].title()} {minute // 60}:{minute % 60:02} {rate} MB/s"
        for (day, minute), rate in changes.items()
    ]
    of_week = {
        one * 24 * 60 + minute: rate
        for (day, minute), rate in changes.items()
        for one in (range(7) if day is None else [day])
    }
    known = sorted(of_week)
    shown = shown_minutes(start)
    rates = [of_week[known[bisect_right(known, at % WEEK) - 1]] for at in shown]
    problem = problem_of(", ".join(parts), start).until(9 * 86_400.0)
    found = limits_at(problem, np.arange(len(shown)) * 60.0)
    assert (found / 1e6).tolist() == rates


@given(st.lists(st.sampled_from(in_order(["Mo 00:00", "12:00", "20:00:30"])), min_size=1))
def test_last_rows_are_those_of_the_week_before(hours):
    """The last that is no later in the week; before the first, the last."""
    every = in_order(["Mo 00:00", "12:00", "20:00:30"])
    known = in_order(hours)
    place = [every.index(hour) for hour in known]
    expected = [max((p for p in place if p <= i), default=place[-1]) for i in range(len(every))]
    assert [place[row] for row in last_rows(known, every)] == expected
