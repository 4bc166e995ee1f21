"""Whole cycles of a calendar: data pass some day, or never, and slots fit or do not."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.problem import calendar
from datacollect.problem.cycles import stranded_hosts

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def _over_relay(storage_bytes: float, first: str, second: str, **hosts) -> dc.Problem:
    """S has an hour's worth for K, from where it goes on to D, both at 1 MB/s."""
    return dc.Problem.from_hosts(
        [
            dc.Host("S", 3_600_000_000),
            dc.Host("K", storage_bytes=storage_bytes),
            dc.Host("D"),
        ],
        [dc.Link("S", "K", 1e6, open=first), dc.Link("K", "D", 1e6, open=second)],
        "D",
        start=hosts.get("start", "2026-06-01T12:00"),
        timezone="UTC",
    )


def _alone(open_s: str, open_link: str | None = None, start: str = "2026-06-01T12:00", hours=1.0):
    return dc.Problem.from_hosts(
        [dc.Host("S", round(hours * 3_600_000_000), open=open_s), dc.Host("D")],
        [dc.Link("S", "D", 1e6, open=open_link)],
        "D",
        start=start,
        timezone="UTC",
    )


@pytest.mark.parametrize(
    "answer", [dc.coordinated, dc.best_path, dc.compare, dc.lower_bound, dc.explain]
)
def test_hours_that_never_meet_pass_nothing_where_nothing_is_stored(answer) -> None:
    """By day to K, at night from it: with room at K all is there at 21:00, without it never."""
    day, night = "08:00-20:00", "20:00-08:00"
    with pytest.raises(dc.InfeasibleError) as refused:
        answer(_over_relay(0, day, night))
    assert refused.value.hosts == ("S",)
    problem = _over_relay(4e9, day, night)
    assert dc.coordinated(problem, chunk_s=0.0).makespan_s == pytest.approx(9 * HOUR_S)


def test_it_is_said_that_hours_never_meet() -> None:
    with pytest.raises(dc.InfeasibleError, match=r"'S' can never reach .* never meet, and no"):
        dc.coordinated(_over_relay(0, "08:00-20:00", "20:00-08:00"))
    # The remedies.
    for storage, night in ((4e9, "20:00-08:00"), (0, "19:00-08:00")):
        dc.coordinated(_over_relay(storage, "08:00-20:00", night))
    alone = _over_relay(0, "08:00-20:00", "08:00-20:00").with_links([0])
    with pytest.raises(dc.InfeasibleError, match="no usable links lead there"):
        dc.coordinated(alone)


def test_never_is_decided_without_listing_years(monkeypatch) -> None:
    """Two weeks tell; nobody asks for more days than that."""
    listed = []
    unrolled = calendar.unrolled
    monkeypatch.setattr(
        calendar, "unrolled", lambda *given: listed.append(given[3]) or unrolled(*given)
    )
    with pytest.raises(dc.InfeasibleError):
        dc.coordinated(_over_relay(0, "08:00-20:00", "20:00-08:00"))
    assert max(listed) <= 16 * DAY_S


def test_clocks_that_change_on_other_days_let_hours_meet() -> None:
    """S from 01:00 to 02:00 UTC, the link an hour later until New York changes on 8 March.

    Half an hour's worth is there on the 9th at 01:30, 21 days and 13.5 hours after the start.
    """
    zurich, new_york = "02:00-03:00 Europe/Zurich", "21:00-22:00 America/New_York"
    problem = _alone(zurich, new_york, "2026-02-15T12:00", 0.5)
    end_s = 21 * DAY_S + 13.5 * HOUR_S
    for method in (dc.direct, dc.best_path, dc.coordinated):
        plan = method(problem)
        assert plan.makespan_s == pytest.approx(end_s)
        plan.check(problem)
    later = _alone(zurich, new_york, "2026-03-01T12:00", 0.5)
    assert dc.coordinated(later).makespan_s == pytest.approx(end_s - 14 * DAY_S)


def test_hours_of_two_zones_that_never_meet_are_told_by_a_year() -> None:
    """Noon in Zurich is between 10 and 11 UTC; in New York it is 16 or 17 UTC."""
    problem = _alone("12:00-13:00 Europe/Zurich", "12:00-13:00 America/New_York")
    with pytest.raises(dc.InfeasibleError, match="can never reach"):
        dc.coordinated(problem)


@pytest.mark.parametrize("method", [dc.coordinated, dc.best_path])
def test_slots_that_fit_no_window_are_refused_with_some_that_do(method) -> None:
    """From 20:30 to 21:30, the start at noon: slots of an hour begin on the hour."""
    # Best-path sends over relays in slots; directly, too.
    problem = _alone("20:30-21:30")
    said = "no whole slot of 3600 s lies in the hours of S; slots of 1800 s do"
    with pytest.raises(dc.InfeasibleError) as refused:
        method(problem, slot_s=3600.0)
    assert str(refused.value) == said
    plan = method(problem, slot_s=1800.0)
    assert plan.makespan_s == 9.5 * HOUR_S
    plan.check(problem)


def test_slots_that_fit_each_window_but_not_both_at_once() -> None:
    """S from 20:00 to 21:00, the link from 20:30: half an hour in common."""
    problem = _alone("20:00-21:00", "20:30-22:00", hours=0.5)
    with pytest.raises(dc.InfeasibleError, match=r"lead from 'S' onwards; slots of 1800 s do"):
        dc.coordinated(problem, slot_s=3600.0)
    assert dc.coordinated(problem, slot_s=1800.0).makespan_s == 9 * HOUR_S


def test_slots_that_drift_through_the_day_fit_some_day() -> None:
    """Slots of 5 h begin at another hour each day; the window of 6 h has one by the third at last.

    From the start at noon slots begin after 0, 5, 10, … h; the window is open from 10.5 h to
    16.5 h of each day, 24 h apart: of 10, 15, 20, …, 35 h the slot from 35 h to 40 h lies within
    34.5 h to 40.5 h.
    """
    problem = _alone("22:30-04:30", hours=5.0)
    assert dc.coordinated(problem, slot_s=5 * HOUR_S).makespan_s == 40 * HOUR_S


def test_what_waits_at_its_source_needs_no_storage_and_at_others_does() -> None:
    """S stores nothing for others, but its own data wait until 20:00."""
    problem = _alone("20:00-21:00").replace(storage_bytes=0.0)
    assert stranded_hosts(problem) == []
    assert dc.coordinated(problem).makespan_s == pytest.approx(9 * HOUR_S)
