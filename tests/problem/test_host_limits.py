"""Limits of hosts that change by time: what files and Python say, and what that comes to.

Ends are derived by hand: what passes until a change, and how long the rest takes after it.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from judges.contract_check import judge

import datacollect as dc
from datacollect.commands.json_schemas import problem_schema
from datacollect.control.planned.scheduled import AsapController
from datacollect.errors import ProblemError
from datacollect.files.kinds import Number
from datacollect.problem.hourly_rates import hourly_rate
from datacollect.simulation.fluid.engine import simulate_problem

DAY_S = 86_400.0
EIGHT_THEN_TWENTY = "08:00 10 Mbit/s, 20:00 1 Gbit/s"


def pair(n_bytes=100, **limits) -> dc.Problem:
    """S sends to D over a wide link; 1 byte/s for 10 s, 10 bytes/s after, unless other limits."""
    limits = limits or {"uplink_bytes_per_s": [1.0, 10.0]}
    at_d = {key: limits.pop(key) for key in ("downlink_bytes_per_s",) if key in limits}
    hosts = [dc.Host("S", n_bytes, **limits), dc.Host("D", **at_d)]
    return dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 1e9)], "D", periods_s=[0.0, 10.0])


def tree(uplink=EIGHT_THEN_TWENTY, **changes) -> dict:
    """S has 4.5 GB at 07:30, in Zurich, and a wide link."""
    return {
        "destination": "D",
        "start": "2026-11-22T07:30+01:00",
        "timezone": "Europe/Zurich",
        "hosts": {"S": {"backlog_bytes": 4_500_000_000, "uplink_bytes_per_s": uplink}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e12}],
    } | changes


@pytest.mark.parametrize("key", ["uplink_bytes_per_s", "downlink_bytes_per_s"])
@pytest.mark.parametrize(
    "plan",
    [dc.coordinated, dc.direct, dc.best_path, lambda p: dc.coordinated(p, chunk_s=0.0)],
    ids=["coordinated", "direct", "best-path", "cut-through"],
)
def test_hundred_bytes_end_nine_seconds_after_the_limit_rises(key, plan):
    """10 bytes until 10 s, the other 90 at 10 bytes/s."""
    problem = pair(**{key: [1.0, 10.0]})
    found = plan(problem)
    assert found.makespan_s == pytest.approx(19.0, rel=1e-6)
    assert found.lower_bound_s == pytest.approx(19.0, rel=1e-6)
    found.check(problem)
    assert judge(problem.to_dict(), found.to_dict()) is None


def test_slots_take_the_lowest_limit_of_the_periods_that_they_touch():
    """Slots of 4 s: the third, to 12 s, straddles: 3 x 4 bytes, then 88 at 40 a slot: 3 more."""
    problem = pair()
    found = dc.coordinated(problem, slot_s=4.0)
    assert found.makespan_s == 24.0
    found.check(problem)
    assert judge(problem.to_dict(), found.to_dict()) is None


def test_the_simulation_runs_at_the_limit_of_the_period():
    run = simulate_problem(pair(), AsapController(dc.direct(pair())))
    assert run.makespan_s == pytest.approx(19.0, rel=1e-6)


def test_a_plan_for_the_higher_limit_is_refused_by_both_judges():
    wide = dc.direct(pair(uplink_bytes_per_s=[10.0, 10.0]))
    with pytest.raises(dc.ScheduleError, match=r"uplink of host 'S' \(forecast from 0 s\)"):
        wide.replace(problem_sha256=pair().sha256).check(pair())
    assert "uplink" in str(judge(pair().to_dict(), wide.to_dict()))


def test_what_is_left_has_the_limits_that_are_left():
    """At 4 s 96 bytes are left: 6 until 10 s, 90 after: at 19 s, 15 s from then on."""
    problem = pair()
    rest = dc.remaining_problem(problem, dc.Progress(4.0, (dc.Held("D", "S", 0, 4),)))
    assert rest.periods_s.tolist() == [0.0, 6.0]
    assert rest.uplink_bytes_per_s[:, 0].tolist() == [1.0, 10.0]
    assert dc.direct(rest).makespan_s == pytest.approx(15.0, rel=1e-6)


def test_hours_of_the_day_are_those_of_the_file_s_time_zone_every_day():
    problem = dc.Problem.from_dict(tree())
    hours = [0.0, 0.5, 12.5, 24.5, 36.5]
    assert (problem.periods_s[:5] / 3600).tolist() == hours
    slow, fast = 1.25e6, 1.25e8
    assert problem.uplink_bytes_per_s[:5, 0].tolist() == [fast, slow, fast, slow, fast]
    # Half an hour at 125 MB/s is 225 GB: 4.5 GB take 36 s.
    assert dc.coordinated(problem).makespan_s == pytest.approx(36.0)


def test_a_plan_lists_as_many_days_as_it_takes():
    """By day 12 h at 1.25 MB/s are 54 GB, by night at 12.5 MB/s 540 GB: ten times both."""
    said = tree("08:00 10 Mbit/s, 20:00 100 Mbit/s", start="2026-11-22T08:00+01:00")
    said["hosts"]["S"]["backlog_bytes"] = 594 * 10**9 * 10
    assert dc.coordinated(dc.Problem.from_dict(said)).makespan_s == pytest.approx(10 * DAY_S)


def test_hours_of_hosts_and_of_links_are_one_listing():
    said = tree("06:00 1 MB/s, 12:00 2 MB/s", daily_periods=["09:00", "18:00"])
    said["links"][0]["bandwidth_bytes_per_s"] = [3.0, 4.0]
    problem = dc.Problem.from_dict(said)
    assert (problem.periods_s[:6] / 3600 + 7.5).tolist() == [7.5, 9.0, 12.0, 18.0, 30.0, 33.0]
    assert problem.bandwidth_bytes_per_s[:6, 0].tolist() == [4.0, 3.0, 3.0, 4.0, 4.0, 3.0]
    assert problem.uplink_bytes_per_s[:6, 0].tolist() == [1e6, 1e6, 2e6, 2e6, 1e6, 1e6]


def test_windows_and_limits_by_hours_are_one_listing():
    said = tree("20:00 10 MB/s, 08:00 1 MB/s")
    said["hosts"]["S"]["open"] = "18:00-06:00"
    problem = dc.Problem.from_dict(said)
    edges = [7.5, 8.0, 18.0, 20.0, 30.0, 32.0]
    assert (problem.periods_s[:6] / 3600 + 7.5).tolist() == edges
    assert problem.bandwidth_bytes_per_s[:6, 0].tolist() == [0.0, 0.0, 1e12, 1e12, 0.0, 0.0]
    assert problem.uplink_bytes_per_s[:6, 0].tolist() == [1e7, 1e6, 1e6, 1e7, 1e7, 1e6]
    # From 18:00 on 1 MB/s: 4.5 GB take 4500 s.
    assert dc.coordinated(problem).makespan_s == pytest.approx(10.5 * 3600 + 4500)


def test_more_days_have_the_same_hours():
    problem = dc.Problem.from_dict(tree())
    longer = problem.until(30 * DAY_S)
    assert longer.n_periods > problem.n_periods
    assert (longer.uplink_bytes_per_s[:5] == problem.uplink_bytes_per_s[:5]).all()
    assert longer.uplink_bytes_per_s[-2:, 0].tolist() in ([1.25e6, 1.25e8], [1.25e8, 1.25e6])


def test_python_says_hours_as_files_do():
    hosts = [dc.Host("S", 4_500_000_000, uplink_bytes_per_s=EIGHT_THEN_TWENTY), dc.Host("D")]
    links = [dc.Link("S", "D", 1e12)]
    problem = dc.Problem.from_hosts(
        hosts, links, "D", start="2026-11-22T07:30+01:00", timezone="Europe/Zurich"
    )
    assert problem == dc.Problem.from_dict(tree())


def test_lists_have_one_number_for_each_period():
    said = tree([1.0, "2 MB/s"], daily_periods=["08:00", "20:00"])
    problem = dc.Problem.from_dict(said)
    assert problem.uplink_bytes_per_s[:3, 0].tolist() == [2e6, 1.0, 2e6]


def test_tables_take_lists_among_numbers():
    links = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_bytes_per_s": [1e9]})
    hosts = pd.DataFrame({"uplink_bytes_per_s": [[1.0, 10.0], None]}, index=["S", "D"])
    made = {"hosts": hosts, "periods_s": [0.0, 10.0]}
    assert dc.Problem.from_dataframe(links, {"S": 100}, "D", **made) == pair()
    made["hosts"] = pd.DataFrame({"uplink_bytes_per_s": [[1.0, 2.0, 3.0], None]}, index=["S", "D"])
    with pytest.raises(ProblemError, match=r"uplink_bytes_per_s of 'S' must .* \(2\), got 3"):
        dc.Problem.from_dataframe(links, {"S": 100}, "D", **made)
    made["hosts"] = pd.DataFrame(
        {"uplink_bytes_per_s": [EIGHT_THEN_TWENTY, None]}, index=["S", "D"]
    )
    with pytest.raises(ProblemError, match=r"of 'S': hours of the day need start, .*from_hosts"):
        dc.Problem.from_dataframe(links, {"S": 100}, "D", **made)


def test_matrices_take_a_row_for_each_period():
    rates = [[[0, 5.0], [0, 0]]] * 2
    limit = [[1.0, math.inf], [2.0, math.inf]]
    problem = dc.Problem.from_matrix(
        ["S", "D"], rates, [10, 0], "D", periods_s=[0, 4], uplink_bytes_per_s=limit
    )
    assert problem.uplink_bytes_per_s.tolist() == limit
    assert dc.direct(problem).makespan_s == pytest.approx(7.0, rel=1e-6)


@pytest.mark.parametrize("varying", [True, False], ids=["varying", "constant"])
def test_trees_and_graphs_say_the_same_problem(varying):
    problem = pair() if varying else pair(uplink_bytes_per_s=[3.0, 3.0])
    said = json.loads(json.dumps(problem.to_dict()))
    assert said["hosts"]["S"]["uplink_bytes_per_s"] == ([1.0, 10.0] if varying else 3.0)
    assert dc.Problem.from_dict(said) == problem
    assert dc.Problem.from_networkx(problem.to_networkx()) == problem


def test_a_constant_limit_takes_no_room_and_has_the_hash_of_before():
    """However it is written; the hash is that of a version in which limits could not vary."""
    one = pair(uplink_bytes_per_s=3.0)
    assert one.sha256 == pair(uplink_bytes_per_s=[3.0, 3.0]).sha256
    assert one.uplink_bytes_per_s.strides[0] == one.downlink_bytes_per_s.strides[0] == 0
    assert one.sha256.startswith("9ad77fe039c0b83c78c250a0")
    assert pair().sha256 != one.sha256


def test_other_periods_need_other_limits_only_where_these_vary():
    changes = {"periods_s": [0.0, 1.0, 2.0], "bandwidth_bytes_per_s": [[1.0]] * 3}
    assert pair(uplink_bytes_per_s=3.0).replace(**changes).uplink_bytes_per_s.shape == (3, 2)
    with pytest.raises(ProblemError, match="a row of these for each of 3 periods"):
        pair().replace(**changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("08:00 10", "leave out the quotes, or give the unit"),
        ("08:00 10 Mb/s", "may be bits or bytes"),
        ("10 Mbit/s, 20:00 1 Gbit/s", "got '10 Mbit/s'; write it like"),
        ("Mo-Fr 08:00 1 Mbit/s, Sa Fr 08:00 2 Mbit/s", "keep one of the rates of Fr 08:00"),
        ("08:00 1 Mbit/s, Sa 8:00 2 Mbit/s", "got 'Sa 8:00 2 Mbit/s'; keep one of the rates of Sa"),
        ("Monday 08:00 1 Mbit/s", "got 'Monday 08:00 1 Mbit/s'; write it like"),
        ("Mo-Fr, Sa 1 Mbit/s", "got 'Mo-Fr'; write it like"),
        ("Mo 08:00-20:00 1 Mbit/s", "write it like"),
        ("Sa Su 1", "leave out the quotes, or give the unit"),
        ("08:00-20:00 1 Mbit/s", "write it like"),
        ("08:00 1 Mbit/s, 8:00 2 Mbit/s", "each hour once, got '8:00 2 Mbit/s'"),
        ("25:00 1 Mbit/s", "write it like"),
        ("08:00 -1 Mbit/s", ">= 0"),
        ("08:00 1 Mbit/s,", "got ''; write it like"),
    ],
)
def test_texts_that_are_no_rates_by_hours_are_refused(text, said):
    with pytest.raises(ProblemError) as caught:
        dc.Problem.from_dict(tree(text))
    assert str(caught.value).startswith("hosts.S.uplink_bytes_per_s must")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"start": None, "timezone": None},
            "host 'S': uplink_bytes_per_s: hours of the day need start",
        ),
        ({"periods_s": [0, 60]}, "host 'S': uplink_bytes_per_s: hours of the day and periods_s"),
    ],
    ids=["no start", "periods"],
)
def test_hours_need_a_clock_and_no_other_periods(changes, said):
    whole = {key: value for key, value in tree(**changes).items() if value is not None}
    with pytest.raises(ProblemError, match=said):
        dc.Problem.from_dict(whole)


@pytest.mark.parametrize(
    ("periods", "said"),
    [({}, "one number"), ({"periods_s": [0, 1, 2]}, r"a number or one .* periods_s \(3\)")],
    ids=["one period", "three"],
)
def test_lists_of_another_length_are_refused(periods, said):
    with pytest.raises(ProblemError, match=f"hosts.S.uplink_bytes_per_s must be {said}"):
        dc.Problem.from_dict(tree([1.0, 2.0], **periods))


def test_a_limit_is_finite_in_all_periods_or_in_none():
    with pytest.raises(ProblemError, match="inf in period 1; write what its line"):
        pair(uplink_bytes_per_s=[1.0, math.inf])


def test_bad_numbers_name_their_period():
    with pytest.raises(ProblemError, match="'S': uplink_bytes_per_s must be >= 0, got -1 in per"):
        pair(uplink_bytes_per_s=[1.0, -1.0])


def test_connections_are_refused_where_limits_vary():
    with pytest.raises(ProblemError, match="do not change"):
        dc.coordinated(pair(), connections=2)


def test_no_capacity_by_day_is_no_capacity():
    problem = pair(uplink_bytes_per_s=[0.0, 10.0])
    assert dc.coordinated(problem).makespan_s == pytest.approx(20.0, rel=1e-6)
    assert dc.best_path(problem).makespan_s == pytest.approx(20.0, rel=1e-6)


def test_the_schema_knows_texts_and_lists():
    import jsonschema

    for uplink in (3, "10 Mbit/s", EIGHT_THEN_TWENTY, [1, "2 MB/s"]):
        jsonschema.validate(tree(uplink), problem_schema())
    for uplink in (-3, "fast", [], [[1]]):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tree(uplink), problem_schema())


def test_hours_come_in_a_day_s_order():
    said = hourly_rate("20:00:30 1 B/s; 6:00 2 B/s", "here", Number("bytes per second"))
    assert said.hours == ("06:00", "20:00:30")
    assert said.bytes_per_s == (2.0, 1.0)


def test_a_summer_night_that_skips_an_hour_goes_on_at_the_later_rate():
    """In Zurich clocks skip from 02:00 to 03:00 on 2027-03-28."""
    said = tree(
        "01:00 1 MB/s, 02:15 2 MB/s, 02:45 3 MB/s",
        start="2027-03-28T00:00",
        timezone="Europe/Zurich",
    )
    problem = dc.Problem.from_dict(said)
    assert (problem.periods_s[:3] / 3600).tolist() == [0.0, 1.0, 2.0]
    assert problem.uplink_bytes_per_s[:3, 0].tolist() == [3e6, 1e6, 3e6]


def test_explain_tells_the_period_that_binds_and_widens_all():
    """One byte/s more, 2 and 11: 20 bytes until 10 s, 80 at 11: 17.27 s."""
    problem = pair(100 * 125_000, uplink_bytes_per_s=[125_000.0, 1_250_000.0])
    found = dc.explain(problem, dc.coordinated(problem))
    relaxation = found.advice.alone[0]
    assert relaxation.relaxed[0].name == "uplink of 'S'"
    values = [(then.from_s, then.value) for then in relaxation.relaxed[0].values]
    assert values == [(0.0, 125_000.0), (10.0, 1_250_000.0)]
    wider = problem.replace(uplink_bytes_per_s=problem.uplink_bytes_per_s + 125_000.0)
    assert relaxation.saves_s == pytest.approx(
        dc.coordinated(problem).lower_bound_s - dc.coordinated(wider).lower_bound_s
    )
    assert relaxation.saves_s == pytest.approx(19.0 - (10 + 80 / 11))


def test_only_what_varies_has_rows_of_its_own():
    problem = pair()
    assert np.ndim(problem.storage_bytes) == np.ndim(problem.release_s) == 1
