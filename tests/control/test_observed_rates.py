"""Observed rates of links for the planner: pieces of 10 bytes, by hand."""

from __future__ import annotations

from instances.hand_made_plans import plan_of
from instances.planned_anew import OVER_K, STRAIGHT, Planner, drive_of, observed, straight

from datacollect.control.events import Timer
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem


def test_links_that_were_busy_all_the_time_have_the_rate_observed():
    """Four pieces in 10 s straight: 4 bytes/s. K had nothing to send at first: as estimated."""
    both = plan_of(
        [STRAIGHT, OVER_K],
        [(0, 0, 0, 100, 0.0, 10.0), (1, 0, 100, 100, 0.0, 20.0), (1, 1, 100, 100, 0.0, 20.0)],
    )
    planner = Planner(both, both)
    drive, _ = drive_of(both, planner)
    for i in range(4):
        drive.arrive(2.0 * i, 0)
    for i in range(2):
        drive.arrive(3.0 * i, 1)
        drive.arrive(3.0 * i + 0.1, 2)
    drive.tell(Timer(10.0, 0))
    assert observed(planner.asked[0]) == {STRAIGHT: 4.0, ("S", "K"): 2.0}


def test_parallel_connections_of_a_link_are_observed_together():
    planner = Planner(straight(120, 80))
    drive, _ = drive_of(straight(), planner, lanes=2)
    for connection in (0, 0, 0, 1):
        drive.arrive(5.0, connection)
    drive.tell(Timer(10.0, 0))
    assert observed(planner.asked[0]) == {STRAIGHT: 4.0}


def test_an_observed_rate_holds_until_the_forecasts_next_period():
    problem = Problem.from_hosts(
        [Host("S", 200), Host("D")], [Link("S", "D", [10.0, 2.0, 7.0])], "D", periods_s=[0, 5, 30]
    )
    planner = Planner(straight(80, 120))
    drive, _ = drive_of(straight(), planner, problem)
    for _ in range(4):
        drive.arrive(5.0, 0)
    drive.tell(Timer(10.0, 0))
    links = planner.asked[0].links
    assert links.periods_s.tolist() == [0.0, 20.0]
    assert links.bandwidth_bytes_per_s.tolist() == [[4.0], [7.0]]
