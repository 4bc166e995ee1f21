"""Plans that are through with windows and deadlines some time before; derived by hand.

The line: S -> D, 10 MB/s for 1000 s, then nothing until 5000 s, then 10 MB/s again.
"""

from __future__ import annotations

import pytest
from instances.small_problems import MB

import datacollect as dc
from datacollect.methods.finishing.margins import with_margin


def line(n_bytes, rates=(10.0 * MB, 0.0, 10.0 * MB), **of_source):
    hosts = [dc.Host("S", n_bytes, **of_source), dc.Host("D")]
    links = [dc.Link("S", "D", list(rates))]
    return dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 1000.0, 5000.0])


def test_what_would_leave_in_the_last_minute_waits_for_the_next_window():
    """9.7 GB take 970 s; 9.4 GB fit before 940 s, 0.3 GB take 30 s from 5000 s on."""
    problem = line(9_700 * MB)
    assert dc.coordinated(problem).makespan_s == pytest.approx(970.0)
    plan = dc.coordinated(problem, margin_s="1 min")
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(5030.0)
    assert plan.lower_bound_s == pytest.approx(970.0)
    assert (plan.margin_s, plan.status) == (60.0, "heuristic")
    assert plan.problem_sha256 == problem.sha256


def test_what_ends_before_the_margin_is_as_it_was():
    problem = line(9_000 * MB)
    assert dc.coordinated(problem, margin_s=60).makespan_s == pytest.approx(900.0)


def test_a_faster_hour_counts_until_the_margin_before_its_end():
    """9.4 GB until 940 s at 10 MB/s, 0.06 GB at 1 MB/s until 1000 s, 0.24 GB until 1240 s."""
    problem = line(9_700 * MB, rates=(10.0 * MB, 1.0 * MB, 10.0 * MB))
    assert dc.coordinated(problem, margin_s=60).makespan_s == pytest.approx(1240.0)


def test_limits_of_hosts_that_fall_have_the_margin_too():
    limited = line(9_700 * MB, rates=(20.0 * MB,) * 3).replace(
        uplink_bytes_per_s=[[10.0 * MB, 1e18], [1.0 * MB, 1e18], [10.0 * MB, 1e18]]
    )
    assert dc.coordinated(limited, margin_s=60).makespan_s == pytest.approx(1240.0)


def test_the_deadline_has_the_margin_and_stays_what_it_was():
    problem = line(8_000 * MB)
    plan = dc.coordinated(problem, deadline_s=900, margin_s=60)
    assert plan.makespan_s <= 840.0
    assert plan.deadline_s == 900.0
    with pytest.raises(dc.InfeasibleError, match=r"cannot be met.*planned with a margin of 2"):
        dc.coordinated(problem, deadline_s=900, margin_s=120)
    with pytest.raises(dc.ProblemError, match="margin_s must be less than deadline_s, 900, got 9"):
        dc.coordinated(problem, deadline_s=900, margin_s=900)


def test_windows_of_a_calendar_close_early_every_night():
    """Nine hours by 10 MB/s every night but ten minutes: two nights carry 636 GB, three do 700."""
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 640_000 * MB, open="22:00-07:00"), dc.Host("D")],
        [dc.Link("S", "D", 10.0 * MB)],
        "D",
        start="2026-11-22T22:00",
        timezone="UTC",
    )
    assert dc.coordinated(problem).makespan_s == pytest.approx(24 * 3600 + 31_600)
    plan = dc.coordinated(problem, margin_s="10 min")
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(48 * 3600 + 400)


def test_relays_that_keep_what_they_forward_and_slots_take_a_margin():
    rate = [10.0 * MB, 0.0, 10.0 * MB]
    hosts = [dc.Host("S", 9_000 * MB), dc.Host("K", storage_bytes=5_000 * MB), dc.Host("D")]
    links = [dc.Link("S", "K", rate), dc.Link("K", "D", rate), dc.Link("S", "D", 1.0 * MB)]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 1000.0, 5000.0])
    for options in ({"keep_relayed": True}, {"slot_s": 20.0}):
        plan = dc.coordinated(problem, margin_s=60, **options)
        plan.check(problem)
        relayed = plan.transfers.query("to == 'K'")
        early = relayed.query("start_s < 1000")
        assert early["finish_s"].max() <= 940.0 + 1e-6


def test_margins_have_no_end_before_they_begin():
    with pytest.raises(dc.ProblemError, match="margin_s must be > 0 and finite, got 0"):
        dc.coordinated(line(MB), margin_s=0)
    with pytest.raises(dc.ProblemError, match="connections cannot be combined with margin_s"):
        dc.coordinated(line(MB), margin_s=1, connections=2)


def test_without_periods_nothing_changes():
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    assert with_margin(problem, 1.0).sha256 == problem.sha256


def test_the_file_of_a_schedule_knows_its_margin(tmp_path):
    plan = dc.coordinated(line(8_000 * MB), margin_s=60)
    plan.to_file(tmp_path / "s.json")
    assert dc.Schedule.from_file(tmp_path / "s.json").margin_s == 60.0
