"""The controller that has the rest planned again, by hand.

Everything holds a few hundred bytes, in pieces of 10: a connection has four of them on its way at
first.
"""

from __future__ import annotations

import pytest
from instances.by_hand import opens, sends, wakes
from instances.hand_made_plans import plan_of
from instances.planned_anew import (
    STRAIGHT,
    Planner,
    drive_of,
    held,
    observed,
    over_k,
    straight,
    triangle,
)

import datacollect as dc
from datacollect.control.decisions import Close, PlanRemaining
from datacollect.control.events import (
    ConnectionClosed,
    ConnectionStalled,
    HostLost,
    RemainingPlanned,
    Timer,
)
from datacollect.errors import InfeasibleError, ProblemError, TimeLimitError
from datacollect.problem.hosts import Held, Host, Link
from datacollect.problem.problem import Problem
from datacollect.schedule.progress import remaining_problem


def test_a_relay_passes_a_piece_on_once_it_has_it():
    drive, first = drive_of(over_k())
    assert opens(first) == [(0, "S", "K"), (1, "K", "D")]
    assert [c for c, _, _ in sends(first)] == [0, 0, 0, 0]
    assert sends(drive.arrive(1.0, 0)) == [(0, 40, 10), (1, 0, 10)]
    assert sends(drive.arrive(2.0, 1)) == []


def test_nothing_leaves_before_its_release():
    problem = triangle(S={"backlog_bytes": 200, "release_s": 3.0})
    drive, first = drive_of(straight(), problem=problem)
    assert opens(first)
    assert sends(first) == []
    assert wakes(first) == [3.0, 10.0]
    assert len(sends(drive.tell(Timer(3.0, 1)))) == 4


def test_what_is_on_its_way_counts_as_lying_where_it_arrives():
    """At 10 s 40 bytes are at D and 40 on their way; at K 20 wait, 30 come, 10 are gone on."""
    planner = Planner(straight(160, 40))
    drive, _ = drive_of(straight(), planner)
    for i in range(4):
        drive.arrive(2.0 * i, 0)
    drive.tell(Timer(10.0, 0))
    assert planner.asked[0].at_s == 10.0
    assert held(planner.asked[0]) == [("D", "S", 0, 80)]

    planner = Planner(over_k(80, 120))
    drive, _ = drive_of(over_k(), planner)
    for _ in range(4):
        drive.arrive(1.0, 0)
    drive.arrive(2.0, 1)
    drive.tell(Timer(10.0, 0))
    assert held(planner.asked[0]) == [("D", "S", 0, 40), ("K", "S", 40, 40)]


def test_connections_that_the_new_plan_uses_stay_and_others_close_when_they_are_empty():
    """First straight, then over K from 40 on: the straight connection closes after its four."""
    planner = Planner(over_k(40, 160), straight(80, 120))
    drive, _ = drive_of(straight(), planner)
    anew = drive.tell(Timer(10.0, 0))
    assert opens(anew) == [(1, "S", "K"), (2, "K", "D")]
    assert sends(anew) == [(1, 40 + 10 * i, 10) for i in range(4)]
    assert wakes(anew) == [20.0]
    for _ in range(3):
        assert drive.arrive(11.0, 0) == []
    # Again straight before the last one is there: that connection is still open.
    back = drive.tell(Timer(20.0, 0))
    assert opens(back) == []
    assert sends(back) == [(0, 80 + 10 * i, 10) for i in range(3)]
    # What was on its way to K is none of the new plan's: it goes nowhere (D has it, so to speak).
    assert [drive.arrive(21.0, 1) for _ in range(3)] == [[], [], []]
    assert drive.arrive(21.0, 1) == [Close(1)]


def test_what_arrives_later_goes_on_as_the_new_plan_says():
    """40 bytes are on their way to K when the rest is planned: 25 of them are to go on over L."""
    problem = Problem.from_hosts(
        [Host("S", 40), Host("K"), Host("L"), Host("D")],
        [Link("S", "K", 5.0), Link("K", "D", 5.0), Link("K", "L", 5.0), Link("L", "D", 5.0)],
        "D",
    )
    rest = plan_of(
        [("K", "D"), ("K", "L", "D")],
        [(0, 0, 0, 15, 0.0, 3.0), (1, 0, 15, 25, 0.0, 5.0), (1, 1, 15, 25, 0.0, 5.0)],
    )
    rest = rest.replace(routes=tuple(dc.Route("S", route.hosts) for route in rest.routes))
    planner = Planner(rest)
    drive, _ = drive_of(over_k(n_bytes=40), planner, problem)
    anew = drive.tell(Timer(10.0, 0))
    assert held(planner.asked[0]) == [("K", "S", 0, 40)]
    assert opens(anew) == [(2, "K", "L"), (3, "L", "D")]
    assert sends(anew) == []
    assert sends(drive.arrive(11.0, 0)) == [(1, 0, 10)]
    assert sends(drive.arrive(12.0, 0)) == [(1, 10, 5), (2, 15, 5)]
    assert sends(drive.arrive(13.0, 0)) == [(2, 20, 10)]
    last = drive.arrive(14.0, 0)
    assert last[0] == Close(0)
    assert sends(last) == [(2, 30, 10)]
    assert sends(drive.arrive(15.0, 2)) == [(3, 15, 5)]


def test_it_counts_its_plannings_and_what_they_promised():
    planner = Planner(straight(40, 160, finish_s=25.0), straight(80, 120, finish_s=9.0))
    drive, _ = drive_of(straight(), planner)
    drive.tell(Timer(10.0, 0))
    for _ in range(4):
        drive.arrive(15.0, 0)
    drive.tell(Timer(20.0, 0))
    assert drive.controller.answer == {
        "replans": 2,
        "at_s": [10.0, 20.0],
        "predicted_end_s": [35.0, 29.0],
    }


def test_without_a_better_plan_the_one_under_way_goes_on():
    planner = Planner(InfeasibleError("no way"), TimeLimitError("no time"))
    drive, _ = drive_of(straight(), planner)
    assert wakes(drive.tell(Timer(10.0, 0))) == [20.0]
    assert sends(drive.arrive(11.0, 0)) == [(0, 40, 10)]
    assert wakes(drive.tell(Timer(20.0, 0))) == [30.0]
    assert drive.controller.answer["replans"] == 0


def test_until_the_plan_is_there_connections_get_nothing_more():
    """Asked at 10 s with 40 bytes on their way over K, answered at 13 s. What comes to K meanwhile
    waits there; then it goes on as the new plan says, or as the old one where there is none."""

    def waited(schedule):
        drive, _ = drive_of(over_k())
        (asked,) = drive.controller.handle(Timer(10.0, 0))
        assert isinstance(asked, PlanRemaining)
        assert held(asked.progress) == [("K", "S", 0, 40)]
        assert drive.arrive(11.0, 0) == []
        return drive.tell(RemainingPlanned(13.0, asked.number, schedule))

    assert sends(waited(None)) == [(0, 40, 10), (1, 0, 10)]
    rest = plan_of([("K", "D"), STRAIGHT], [(0, 0, 0, 40, 0.0, 8.0), (1, 0, 40, 160, 0.0, 16.0)])
    anew = waited(rest.replace(routes=tuple(dc.Route("S", route.hosts) for route in rest.routes)))
    assert (0, 40, 10) not in sends(anew)
    assert sends(anew) == [(1, 0, 10), *((2, 40 + 10 * i, 10) for i in range(4))]
    assert wakes(anew) == [23.0]


def test_a_plan_from_before_a_loss_is_of_no_use():
    drive, _ = drive_of(over_k())
    (first,) = drive.controller.handle(Timer(10.0, 0))
    second = drive.controller.handle(HostLost(11.0, "K"))[-1]
    assert second.progress.lost_hosts == ("K",)
    assert drive.tell(RemainingPlanned(12.0, first.number, over_k())) == []
    anew = drive.tell(RemainingPlanned(13.0, second.number, straight()))
    assert opens(anew) == [(2, *STRAIGHT)]
    assert wakes(anew) == [23.0]


def test_nothing_is_planned_once_all_is_on_its_way_to_the_destination():
    """And no more timers once it is there."""
    drive, _ = drive_of(straight(n_bytes=40), problem=triangle(40))
    assert wakes(drive.tell(Timer(10.0, 0))) == [20.0]
    for _ in range(4):
        drive.arrive(12.0, 0)
    assert drive.tell(Timer(20.0, 0)) == []


def test_data_that_are_held_elsewhere_at_first_are_known_to_lie_there():
    problem = triangle().replace(held=[Held("K", "S", 0, 50), Held("D", "S", 50, 30)])
    plan = plan_of([("K", "D"), STRAIGHT], [(0, 0, 0, 50, 0.0, 10.0), (1, 0, 80, 120, 0.0, 12.0)])
    plan = plan.replace(routes=tuple(dc.Route("S", route.hosts) for route in plan.routes))
    planner = Planner(plan)
    drive, _ = drive_of(plan, planner, problem)
    drive.tell(Timer(10.0, 0))
    assert held(planner.asked[0]) == [
        ("D", "S", 0, 40), ("D", "S", 50, 70), ("K", "S", 40, 10),
    ]  # fmt: skip


def test_a_stuck_connection_is_replaced_and_its_pieces_are_sent_again():
    drive, _ = drive_of(straight())
    anew = drive.tell(ConnectionStalled(5.0, 0))
    assert anew[0] == Close(0, drop_queue=True)
    assert opens(anew) == [(1, *STRAIGHT)]
    assert sends(anew) == [(1, 10 * i, 10) for i in range(4)]
    assert sends(drive.arrive(6.0, 1)) == [(1, 40, 10)]


def test_a_stuck_connection_that_no_route_uses_is_given_up_and_its_data_planned_from_the_sender():
    planner = Planner(over_k(40, 160), over_k(0, 40))
    drive, _ = drive_of(straight(), planner)
    drive.tell(Timer(10.0, 0))
    assert held(planner.asked[0]) == [("D", "S", 0, 40)]
    assert drive.tell(ConnectionStalled(15.0, 0)) == [Close(0, drop_queue=True)]
    assert drive.tell(ConnectionClosed(15.0, 0)) == []
    drive.tell(Timer(20.0, 0))
    assert held(planner.asked[1]) == [("K", "S", 40, 40)]


def test_a_lost_relay_has_the_rest_planned_at_once_without_it():
    """At K lay 20 bytes, and 40 were on their way to it: S has them all."""
    planner = Planner(straight(0, 200))
    drive, _ = drive_of(over_k(), planner)
    drive.arrive(1.0, 0)
    drive.arrive(2.0, 0)
    anew = drive.tell(HostLost(3.0, "K"))
    assert planner.asked[0].lost_hosts == ("K",)
    assert held(planner.asked[0]) == []
    assert observed(planner.asked[0]) == {}
    assert opens(anew) == [(2, *STRAIGHT)]
    assert sends(anew) == [(2, 10 * i, 10) for i in range(4)]


def test_what_only_a_lost_source_had_is_waited_for_no_more():
    problem = Problem.from_hosts(
        [Host("A", 100), Host("B", 100), Host("D")], [Link("A", "D", 1.0), Link("B", "D", 1.0)], "D"
    )
    plan = plan_of([("A", "D"), ("B", "D")], [(r, 0, 0, 100, 0.0, 100.0) for r in (0, 1)])
    planner = Planner(plan_of([("B", "D")], [(0, 0, 40, 60, 0.0, 60.0)]))
    drive, _ = drive_of(plan, planner, problem)
    drive.arrive(1.0, 0)
    drive.tell(HostLost(3.0, "A"))
    progress = planner.asked[0]
    assert sorted(held(progress)) == [("D", "A", 0, 100), ("D", "B", 0, 40)]
    assert remaining_problem(problem, progress).total_bytes == 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replan_s": 0.0}, "replan_s must be > 0, got 0.0"),
        ({"lanes": 0}, "lanes must be > 0, got 0"),
        ({"piece_bytes": 0}, "piece_bytes must be > 0, got 0"),
    ],
)
def test_numbers_out_of_range_are_refused(options, message):
    with pytest.raises(ProblemError, match=message):
        drive_of(straight(), **options)


def test_plans_in_slots_are_refused():
    slotted = plan_of([STRAIGHT], [(0, 0, 0, 200, 0.0, 20.0)], slot_s=20.0)
    with pytest.raises(ProblemError, match=r"must be pipelined .* got slots of 20 s"):
        drive_of(slotted)
