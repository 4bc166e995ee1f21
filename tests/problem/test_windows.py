"""Windows in which links and hosts are open: what is written, and when that is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances.how_many import many
from judges.oracle import fluid_makespan_s

import datacollect as dc
from datacollect.files.clock import Clock
from datacollect.methods.finishing.recurring import planned_to_the_end
from datacollect.problem import calendar
from datacollect.problem.windows import DAYS, spans_s, windows_of

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3600.0
ZURICH = "Europe/Zurich"


def _spans(text: str, start: str, hours: float, zone: str = ZURICH) -> list[tuple[float, float]]:
    found = spans_s(windows_of(text, "open"), Clock.of(start, zone), hours * HOUR)
    return [(begin / HOUR, end / HOUR) for begin, end in found]


def _problem(hours_of_data: float, start: str, **keys: Any) -> dc.Problem:
    """S has some hours of data for its link to D, 1 byte/s, which has the keys."""
    return dc.Problem.from_dict(
        {
            "destination": "D",
            "start": start,
            "timezone": ZURICH,
            "hosts": {"S": {"backlog_bytes": round(hours_of_data * HOUR)}, "D": {}},
            "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 1.0} | keys],
        }
    )


def test_a_night_goes_on_past_midnight() -> None:
    """From noon: 20:00 is 8 h away and 06:00 18 h; what began yesterday is on at the start."""
    assert _spans("20:00-06:00", "2026-11-22T12:00", 48) == [(8, 18), (32, 42)]
    assert _spans("20:00-06:00", "2026-11-22T02:00", 24) == [(0, 4), (18, 24)]


def test_several_windows_and_all_day_are_joined() -> None:
    assert _spans("12:00-13:00, 13:00-14:00; 1:30-2:00", "2026-11-22T00:00", 24) == [
        (1.5, 2),
        (12, 14),
    ]
    assert _spans("00:00-24:00", "2026-11-22T07:00", 72) == [(0, 72)]


def test_days_are_those_on_which_a_window_opens() -> None:
    """Friday's night lasts into Saturday; the next is Monday's, 72 hours after Friday's 20:00."""
    assert _spans("Mo-Fr 20:00-06:00", "2026-11-27T18:00", 90) == [(2, 12), (74, 84)]
    assert _spans("Sa Su 00:00-24:00", "2026-11-27T18:00", 90) == [(6, 54)]
    assert windows_of("Fr-Mo 1:00-2:00", "open") == windows_of(
        "Fri Sat sun mon 01:00-02:00", "open"
    )


def test_a_window_may_name_its_own_zone() -> None:
    """20:00 in New York is 02:00 of the next day in Zurich."""
    assert _spans("20:00-06:00 America/New_York", "2026-11-22T12:00", 24) == [(14, 24)]


def test_nights_in_which_clocks_change_are_an_hour_longer_or_shorter() -> None:
    assert _spans("20:00-06:00", "2026-10-24T12:00", 24) == [(8, 19)]
    assert _spans("20:00-06:00", "2026-03-28T12:00", 24) == [(8, 17)]


def test_what_clocks_skip_is_when_they_jump_and_what_they_show_twice_is_the_first_time() -> None:
    """02:00 to 03:00 is skipped on 29 March and shown twice on 25 October."""
    assert _spans("02:15-02:45", "2026-03-29T00:00", 24) == []
    assert _spans("01:00-02:30", "2026-03-29T00:00", 24) == [(1, 2)]
    assert _spans("02:15-02:45", "2026-10-25T00:00", 24) == [(2.25, 2.75)]
    assert _spans("02:30-04:00", "2026-10-25T00:00", 24) == [(2.5, 5)]


def test_a_plan_waits_for_windows_and_the_check_refuses_one_that_does_not() -> None:
    """11 hours from noon: a night of 10 hours from 20:00, and one hour of the next."""
    problem = _problem(11, "2026-11-22T12:00", open="20:00-06:00")
    for plan in (dc.coordinated(problem), dc.direct(problem), dc.best_path(problem)):
        assert plan.makespan_s == pytest.approx(33 * HOUR)
        assert plan.lower_bound_s == pytest.approx(33 * HOUR)
        plan.check(problem)
    in_slots = dc.coordinated(problem, slot_s=1800.0)
    assert in_slots.makespan_s == pytest.approx(33 * HOUR)
    by_day = dc.direct(_problem(11, "2026-11-22T12:00"))
    with pytest.raises(dc.ScheduleError, match="no capacity"):
        by_day.check(problem)


@pytest.mark.parametrize("method", ["direct", "coordinated"])
def test_the_fluid_engine_waits_too(tmp_path: Path, method: str) -> None:
    """Also beyond the days that are listed: a weekly hour, five times."""
    (tmp_path / "p.toml").write_text(
        'destination = "D"\nstart = 2026-11-22T20:00:00+01:00\n'
        "[hosts.S]\nbacklog_bytes = 18_000\n[hosts.D]\n[[links]]\n"
        'from = "S"\nto = "D"\nbandwidth_bytes_per_s = 1.0\nopen = "Mo 20:00-21:00"\n'
    )
    (tmp_path / "s.toml").write_text(
        f'problem = "p.toml"\n[method]\nname = "{method}"\n[run]\ntime_limit_s = 1e9\n'
    )
    run = dc.simulate(str(tmp_path / "s.toml"), engine="fluid")
    assert run.makespan_s == pytest.approx((24 + 4 * 168 + 1) * HOUR)


def test_a_link_is_open_while_both_hosts_and_itself_are() -> None:
    """S from 20:00 to 06:00, the link until 23:00, D from 22:00 on: an hour a day, and K's none."""
    tree = {
        "destination": "D",
        "start": "2026-11-22T12:00+01:00",
        "hosts": {
            "S": {"backlog_bytes": 7200, "open": "20:00-06:00"},
            "K": {},
            "D": {"open": ["22:00-24:00"]},
        },
        "links": [
            {"from": "S", "to": "D", "bandwidth_bytes_per_s": 1.0, "open": "12:00-23:00"},
            {"from": "S", "to": "K", "bandwidth_bytes_per_s": 1.0},
            {"from": "K", "to": "D", "bandwidth_bytes_per_s": 0.0},
        ],
    }
    problem = dc.Problem.from_dict(tree)
    link = problem.link_indices([0], [2])[0]
    is_open = problem.bandwidth_bytes_per_s[:-1, link] > 0
    assert (problem.periods_s[:-1][is_open][:2] / HOUR).tolist() == [10, 34]
    assert dc.coordinated(problem).makespan_s == pytest.approx(35 * HOUR)


def test_windows_close_what_has_hours_of_the_day() -> None:
    """From 20:00 2 bytes/s, from 08:00 1; open from 06:00 to 10:00: 4 h of 2, 2 and 1, 1."""
    problem = dc.Problem.from_dict(
        {
            "destination": "D",
            "start": "2026-11-22T12:00+01:00",
            "daily_periods": ["08:00", "20:00"],
            "hosts": {"S": {"backlog_bytes": 3600 * 7}, "D": {}},
            "links": [
                {
                    "from": "S",
                    "to": "D",
                    "bandwidth_bytes_per_s": [1.0, 2.0],
                    "open": "06:00-10:00",
                }
            ],
        }
    )
    # Six hours' worth until 10:00, 22 h after noon; half an hour of the next morning's two.
    assert dc.coordinated(problem).makespan_s == pytest.approx(42.5 * HOUR)


def test_more_days_are_the_same_days() -> None:
    """Listed further, it is what would have been listed at once, and the same problem.

    What is not listed is closed: nobody plans with it.
    """
    problem = _problem(1, "2026-10-20T12:00", open="Mo 20:00-06:00, Th 09:00-10:00")
    assert problem.daily is not None
    far = problem.until(5 * problem.daily.until_s)
    again = far.until(2 * problem.daily.until_s)
    assert far is again
    assert far.daily is not None
    assert far.daily.until_s == 8 * problem.daily.until_s
    n = problem.n_periods - 1
    assert far.periods_s[:n].tolist() == problem.periods_s[:n].tolist()
    assert (far.bandwidth_bytes_per_s[:n] == problem.bandwidth_bytes_per_s[:n]).all()
    spans = spans_s(far.daily.windows[0].windows, far.clock, far.daily.until_s)
    opened = far.bandwidth_bytes_per_s[:-1, 0] > 0
    assert far.periods_s[:-1][opened].tolist() == [begin for begin, _ in spans]
    assert far.bandwidth_bytes_per_s[-1, 0] == 0.0
    assert far == problem


def test_what_is_open_once_a_week_is_planned_to_its_end() -> None:
    """An hour each Monday at 20:00, five hours of data: the fifth Monday from 23 November on."""
    from datacollect.methods.finishing.recurring import planned_to_the_end

    problem = _problem(5, "2026-11-22T20:00", open="Mo 20:00-21:00")
    _, plan = planned_to_the_end(problem, dc.coordinated, lambda found: found.makespan_s)
    assert plan.makespan_s == pytest.approx((24 + 4 * 168 + 1) * HOUR)


@pytest.mark.parametrize("method", [dc.direct, dc.best_path, dc.coordinated])
def test_who_plans_beyond_the_days_that_are_listed_lists_more(method: Any) -> None:
    """The fourth Monday lies behind 16 days: four hours of data need more of them."""
    problem = _problem(4, "2026-11-22T20:00", open="Mo 20:00-21:00")
    assert problem.daily is not None
    assert problem.daily.until_s == 16 * 24 * HOUR
    plan = method(problem)
    assert plan.makespan_s == pytest.approx((24 + 3 * 168 + 1) * HOUR)
    assert plan.problem_sha256 == problem.sha256
    plan.check(problem)
    assert dc.lower_bound(problem)[0] == pytest.approx((24 + 3 * 168 + 1) * HOUR)
    assert dc.explain(problem, plan).lower_bound_s == pytest.approx((24 + 3 * 168 + 1) * HOUR)


@pytest.mark.parametrize("method", [dc.direct, dc.best_path, dc.coordinated])
def test_a_bound_that_is_known_from_a_longer_listing_is_no_plan_of_a_shorter_one(
    method: Any,
) -> None:
    """The bound lists 32 days, and is remembered; the plan begins with 16 of the same calendar."""
    problem = _problem(4, "2026-11-22T20:00", open="Mo 20:00-21:00")
    end_s = (24 + 3 * 168 + 1) * HOUR
    assert dc.lower_bound(problem)[0] == pytest.approx(end_s)
    plan = method(problem)
    assert plan.makespan_s == pytest.approx(end_s)
    plan.check(problem)


def test_what_remains_keeps_its_windows() -> None:
    """Two of eleven hours are there at 22:00; nine remain, eight of them that night."""
    problem = _problem(11, "2026-11-22T12:00", open="20:00-06:00")
    progress = dc.Progress(10 * HOUR, (dc.Held("D", "S", 0, 7200),))
    rest = dc.remaining_problem(problem, progress)
    assert rest.daily is not None
    assert rest.daily.windows
    assert dc.coordinated(rest).makespan_s == pytest.approx((8 + 14 + 1) * HOUR)


def test_hosts_and_links_in_python_have_windows() -> None:
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 11 * 3600), dc.Host("D", open="20:00-06:00")],
        [dc.Link("S", "D", 1.0)],
        destination="D",
        start="2026-11-22T12:00",
        timezone=ZURICH,
    )
    assert problem == _problem(11, "2026-11-22T12:00", open="20:00-06:00")


def test_a_csv_has_a_column_of_windows(tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_text(
        'from,to,bandwidth_bytes_per_s,open\nS,D,1,"Mo-Fr 20:00-06:00, Sa 1:00-2:00"\nK,D,1,\n'
    )
    tree = {
        "destination": "D",
        "start": "2026-11-22T12:00+01:00",
        "bandwidth_csv": "grid.csv",
        "hosts": {"S": {"backlog_bytes": 1}, "K": {}, "D": {}},
    }
    problem = dc.Problem.from_dict(tree, tmp_path)
    assert (problem.bandwidth_bytes_per_s[:-1].min(axis=0) == [0.0, 1.0]).all()
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_bytes_per_s,open\nS,D,1,nights\n")
    with pytest.raises(
        dc.ProblemError, match=r"line 2: open must be windows of hours, got 'nights'"
    ):
        dc.Problem.from_dict(tree, tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nights", "must be windows of hours, got 'nights'; write it like"),
        ("25:00-06:00", "must be windows of hours, got '25:00-06:00'"),
        ("20:00-20:00", 'all day is "00:00-24:00"'),
        ("8:00-08:00:00", 'all day is "00:00-24:00"'),
        ("20:00-06:00,", "must be windows of hours, got ''"),
        ("20:00-06:00 Mars/Olympus", r"links\[0\].open: timezone must be an IANA name"),
        ([], "must be windows of hours, got \\[\\]"),
        (8, "must be windows of hours, got 8"),
    ],
)
def test_what_is_no_window_is_refused(given: Any, message: str) -> None:
    with pytest.raises(dc.ProblemError, match=message):
        _problem(1, "2026-11-22T12:00", open=given)


def test_windows_need_a_clock_and_no_other_periods() -> None:
    tree = _problem(1, "2026-11-22T12:00").to_dict()
    del tree["timezone"]
    tree["links"][0]["open"] = "20:00-06:00"
    with pytest.raises(dc.ProblemError, match="open and periods_s cannot be combined"):
        dc.Problem.from_dict(tree | {"periods_s": [0.0, 5.0]})
    rates = {"per_connection_bytes_per_s": 1.0}
    with pytest.raises(dc.ProblemError, match="open and rates by connections cannot be combined"):
        dc.Problem.from_dict(tree | {"links": [tree["links"][0] | rates]})
    del tree["start"]
    with pytest.raises(dc.ProblemError, match="open needs start"):
        dc.Problem.from_dict(tree)


_NIGHTS = st.sampled_from([None, (20, 6), (12, 23), (0, 9), (22, 3)])


@pytest.mark.slow
@settings(max_examples=many(40))  # the judge's linear programs have 192 periods
@given(
    st.lists(st.integers(1, 9), min_size=4, max_size=4),
    st.lists(_NIGHTS, min_size=4, max_size=4),
    st.tuples(st.integers(0, 40), st.integers(1, 40)),
    st.integers(0, 23),
)
def test_plans_with_windows_end_when_another_linear_program_says(
    rates: list[int],
    nights: list[tuple[int, int] | None],
    hours_of_data: tuple[int, int],
    start: int,
) -> None:
    """A and B to D, directly or over K; the judge gets periods of an hour, from arithmetic.

    Its problem has no windows: a link has its rate in the hours that lie between the two of its
    night, 0 in the others, over eight days.
    """
    ends = [("A", "D"), ("B", "D"), ("A", "K"), ("K", "D")]
    hosts = [
        dc.Host("A", hours_of_data[0] * 3600),
        dc.Host("B", hours_of_data[1] * 3600),
        dc.Host("K"),
        dc.Host("D"),
    ]
    problem = dc.Problem.from_hosts(
        hosts,
        [
            dc.Link(
                *pair,
                float(rate),
                open=None if night is None else f"{night[0]:02d}:00-{night[1]:02d}:00",
            )
            for pair, rate, night in zip(ends, rates, nights, strict=True)
        ],
        destination="D",
        start=f"2026-11-02T{start:02d}:00",
        timezone=ZURICH,
    )
    listed = range(8 * 24)
    hourly = dc.Problem.from_hosts(
        hosts,
        [
            dc.Link(*pair, [rate * _is_night(night, (start + hour) % 24) for hour in listed])
            for pair, rate, night in zip(ends, rates, nights, strict=True)
        ],
        destination="D",
        periods_s=[hour * HOUR for hour in listed],
    )
    expected = fluid_makespan_s(hourly)
    assert expected is not None
    assert expected < 8 * 24 * HOUR
    plan = dc.coordinated(problem)
    assert plan.lower_bound_s == pytest.approx(expected, rel=1e-6)
    plan.check(hourly)


def _is_night(night: tuple[int, int] | None, hour: int) -> bool:
    if night is None:
        return True
    opens, closes = night
    return opens <= hour < closes if opens < closes else hour >= opens or hour < closes


_HOURS = st.integers(0, 23).map(lambda hour: f"{hour:02d}:00")
_WEEK = st.sets(st.integers(0, 6), min_size=1)
_WINDOW = st.tuples(_WEEK, _HOURS, _HOURS).filter(lambda window: window[1] != window[2])


@given(st.lists(_WINDOW, min_size=1, max_size=3), st.integers(0, 47))
def test_every_half_hour_is_as_the_clock_on_the_wall_says(
    windows: list[tuple[set[int], str, str]], ahead: int
) -> None:
    """Judged by the time of day alone, in weeks in which no clock changes."""
    text = ", ".join(
        f"{' '.join(DAYS[day] for day in sorted(days))} {opens}-{closes}"
        for days, opens, closes in windows
    )
    first = datetime(2026, 11, 2, tzinfo=ZoneInfo(ZURICH)) + timedelta(hours=ahead)
    problem = _problem(1, first.isoformat(), open=text)
    for half_hour in range(2 * 24 * 9):
        at = first + timedelta(minutes=30 * half_hour)
        shown = f"{at:%H:%M}"
        expected = any(
            (at.weekday() in days and opens <= shown and (shown < closes or closes < opens))
            or ((at.weekday() - 1) % 7 in days and shown < closes < opens)
            for days, opens, closes in windows
        )
        period = int(np.searchsorted(problem.periods_s, half_hour * HOUR / 2, side="right")) - 1
        assert (problem.bandwidth_bytes_per_s[period, 0] > 0) == expected, at


def _many(n_hosts: int, windows: list[str], backlog_bytes: int = 1000) -> dc.Problem:
    """Hosts from S0 on, each with a link to D of a byte a second, and one of the windows."""
    hosts = [
        dc.Host(f"S{i}", backlog_bytes, open=windows[i % len(windows)]) for i in range(n_hosts)
    ]
    links = [dc.Link(host.name, "D", 1.0) for host in hosts]
    start = "2026-11-23T00:00"
    return dc.Problem.from_hosts([*hosts, dc.Host("D")], links, "D", start=start, timezone=ZURICH)


def test_windows_that_many_hosts_share_are_listed_as_those_of_one(monkeypatch) -> None:
    """On Monday, open at the weekend: of many hosts too few days were listed to see it."""
    monkeypatch.setattr(calendar, "MOST_PERIODS", 50)
    one, many = (_many(n, ["Sa Su 00:00-24:00"]) for n in (1, 40))
    assert many.periods_s.tolist() == one.periods_s.tolist()
    plan = dc.direct(many)
    assert plan.makespan_s == 5 * 24 * HOUR + 1000.0
    plan.check(many)


def test_more_windows_than_can_be_listed_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(calendar, "MOST_PERIODS", 50)
    windows = ["08:00-09:00", "08:00-10:00"]
    with pytest.raises(dc.ProblemError, match="2 windows that differ and 0 daily periods"):
        _many(2, windows)


def test_a_plan_beyond_all_that_can_be_listed_is_refused(monkeypatch) -> None:
    """Two hours a night, forty nights; 25 can be listed, until 18 December."""
    monkeypatch.setattr(calendar, "MOST_PERIODS", 50)
    problem = _many(2, ["20:00-22:00"], 40 * 2 * 3600)
    looked = "searched until Fri 2026-12-18 00:00:00 .01:00, 25 days after the start"
    for method in (dc.direct, dc.best_path, dc.coordinated, dc.explain):
        with pytest.raises(dc.InfeasibleError, match=looked):
            method(problem)
    longest, _ = planned_to_the_end(_many(2, ["20:00-22:00"], 3600), dc.direct, lambda _: 1e9)
    assert longest.until(1e9) is longest


def test_windows_of_another_zone_and_daily_periods_exclude_each_other() -> None:
    """Clocks change weeks apart: a rate might never be seen while its link is open."""
    tree = _problem(1, "2026-11-22T12:00").to_dict()
    tree["daily_periods"] = ["08:00", "20:00"]
    link = tree["links"][0]
    link |= {"bandwidth_bytes_per_s": [1.0, 2.0], "open": "14:00-15:00 America/New_York"}
    with pytest.raises(dc.ProblemError, match=r"another time zone \(America/New_York\)"):
        dc.Problem.from_dict(tree)
    link["open"] = "14:00-15:00 Europe/Zurich"
    assert dc.Problem.from_dict(tree).daily is not None


def test_each_distinct_list_of_windows_is_expanded_as_often_as_for_one_link(monkeypatch):
    """Reading thousands of links with the same windows costs what reading one does."""
    counted, expand = [], Clock.spans

    def spans(self, *given):
        counted.append(given)
        return expand(self, *given)

    monkeypatch.setattr(Clock, "spans", spans)

    def times(n_sources):
        hosts = {f"S{i}": {"backlog_bytes": 10} for i in range(n_sources)}
        links = [
            {"from": name, "to": "D", "bandwidth_bytes_per_s": 5.0, "open": "20:00-06:00"}
            for name in hosts
        ]
        tree = {"destination": "D", "start": "2026-11-22T20:00:00+01:00", "links": links}
        counted.clear()
        dc.Problem.from_dict({**tree, "hosts": {**hosts, "D": {}}})
        return len(counted)

    assert 0 < times(1) == times(30)
