"""The controller that has the rest planned anew: by hand, and over links that are fluids.

By hand everything holds a few hundred bytes, in pieces of 10: a connection has four of them on its
way at first.
"""

from __future__ import annotations

import math
import pickle

import pytest
from by_hand import ByHand, opens, sends, wakes
from hand_made_plans import plan_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_problems import shared_relay
from strategies import problems

import datacollect as dc
from datacollect.control import Close, ConnectionClosed, ConnectionStalled, HostLost, Send, Timer
from datacollect.controllers import AdaptiveController, AsapController
from datacollect.errors import InfeasibleError, ProblemError, TimeLimitError
from datacollect.planning import RestPlanner
from datacollect.problem import Held, Host, Link, Problem, SharedBottleneck
from datacollect.progress import remaining_problem
from datacollect.simulation.fluid import simulate_problem

STRAIGHT = ("S", "D")
OVER_K = ("S", "K", "D")


def triangle(n_bytes=200, **hosts):
    """S holds some bytes; to D lead 10 bytes/s straight, 5 over K."""
    known = {"S": {"backlog_bytes": n_bytes}, "K": {}, "D": {}}
    return Problem.from_hosts(
        [Host(name, **(known[name] | hosts.get(name, {}))) for name in known],
        [Link("S", "D", 10.0), Link("S", "K", 5.0), Link("K", "D", 5.0)],
        "D",
    )


def straight(offset=0, n_bytes=200, finish_s=20.0):
    return plan_of([STRAIGHT], [(0, 0, offset, n_bytes, 0.0, finish_s)])


def over_k(offset=0, n_bytes=200):
    return plan_of([OVER_K], [(0, hop, offset, n_bytes, 0.0, 40.0) for hop in (0, 1)])


def never(progress):
    raise AssertionError("nothing is to be planned")


class Planner:
    """Answers with the schedules it was given, and keeps what it was asked."""

    def __init__(self, *schedules):
        self.schedules = list(schedules)
        self.asked = []

    def __call__(self, progress):
        self.asked.append(progress)
        answer = self.schedules.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def drive_of(schedule, plan_rest=never, problem=None, **options):
    options = {"replan_s": 10.0, "piece_bytes": 10} | options
    drive = ByHand(AdaptiveController(problem or triangle(), schedule, plan_rest, **options))
    return drive, drive.start()


def held(progress):
    return [(h.host, h.source, h.offset_bytes, h.n_bytes) for h in progress.held]


def observed(progress, names=("S", "K", "D")):
    links = progress.links
    if links is None:
        return {}
    pairs = zip(links.link_from.tolist(), links.link_to.tolist(), strict=True)
    rates = links.bandwidth_bytes_per_s[0].tolist()
    return {(names[a], names[b]): r for (a, b), r in zip(pairs, rates, strict=True)}


# Pieces ----------------------------------------------------------------------------------------


def test_a_connection_gets_four_pieces_then_one_for_each_that_arrives():
    drive, first = drive_of(straight())
    assert opens(first) == [(0, *STRAIGHT)]
    assert sends(first) == [(0, 0, 10), (0, 10, 10), (0, 20, 10), (0, 30, 10)]
    assert wakes(first) == [10.0]
    assert sends(drive.arrive(1.0, 0)) == [(0, 40, 10)]
    assert sends(drive.arrive(2.0, 0)) == [(0, 50, 10)]


def test_a_fast_connection_has_on_its_way_what_arrived_in_two_seconds():
    """Four pieces arrive in no time, then the four that replaced them: each of the latter is
    replaced by two, so that eight are on their way. Two seconds later all that is forgotten: four
    of them are not replaced."""
    drive, _ = drive_of(straight())
    assert [len(sends(drive.arrive(0.1, 0))) for _ in range(4)] == [1, 1, 1, 1]
    assert [len(sends(drive.arrive(0.2, 0))) for _ in range(4)] == [2, 2, 2, 2]
    assert [len(sends(drive.arrive(2.2, 0))) for _ in range(6)] == [0, 0, 0, 0, 2, 2]


def test_a_relay_passes_a_piece_on_once_it_has_it():
    drive, first = drive_of(over_k())
    assert opens(first) == [(0, "S", "K"), (1, "K", "D")]
    assert [c for c, _, _ in sends(first)] == [0, 0, 0, 0]
    assert sends(drive.arrive(1.0, 0)) == [(0, 40, 10), (1, 0, 10)]
    assert sends(drive.arrive(2.0, 1)) == []


def test_parallel_lanes_take_pieces_as_they_have_room():
    drive, first = drive_of(straight(), lanes=2)
    assert opens(first) == [(0, *STRAIGHT), (1, *STRAIGHT)]
    assert sorted(offset for _, offset, _ in sends(first)) == list(range(0, 80, 10))
    assert sends(drive.arrive(1.0, 1)) == [(1, 80, 10)]


def test_shared_connections_carry_what_the_plan_sends_first():
    """The plan sends A's 80 bytes from 0 to 8 s, B's 80 from 1 to 2 s. Four pieces of A were handed
    to K's connection when all others have come to K: B's are before those of A that are left."""
    problem = Problem.from_hosts(
        [Host("A", 80), Host("B", 80), Host("K"), Host("D")],
        [Link("A", "K", 10.0), Link("B", "K", 80.0), Link("K", "D", 90.0)],
        "D",
    )
    rows = [(0, hop, 0, 80, 0.0, 8.0) for hop in (0, 1)]
    rows += [(1, hop, 0, 80, 1.0, 2.0) for hop in (0, 1)]
    plan = plan_of([("A", "K", "D"), ("B", "K", "D")], rows)
    _, first = drive_of(plan, problem=problem)
    assert len(opens(first)) == 4
    drive, first = drive_of(plan, problem=problem, shared_connections=True)
    assert opens(first) == [(0, "A", "K"), (1, "K", "D"), (2, "B", "K")]
    for time_s, connection in enumerate([0] * 4 + [2] * 4 + [0] * 4 + [2] * 4):
        drive.arrive(3.0 * time_s, connection)
    left = [send.source for send in drive.queue[1]]
    for time_s in range(20, 32):
        left += [d.source for d in drive.arrive(3.0 * time_s, 1) if isinstance(d, Send)]
    assert left == ["A"] * 4 + ["B"] * 8 + ["A"] * 4


def test_nothing_leaves_before_its_release():
    problem = triangle(S={"backlog_bytes": 200, "release_s": 3.0})
    drive, first = drive_of(straight(), problem=problem)
    assert opens(first)
    assert sends(first) == []
    assert wakes(first) == [3.0, 10.0]
    assert len(sends(drive.tell(Timer(3.0, 1)))) == 4


def test_pieces_of_a_large_collection_are_a_4000th_of_it_and_64_kib_at_most():
    """And 8 KiB at least; a range is cut evenly."""
    for n_bytes, piece in ((100_000, 8192), (40_000_000, 10_000), (10**9, 1 << 16)):
        plan = straight(n_bytes=n_bytes)
        _, first = drive_of(plan, problem=triangle(n_bytes), piece_bytes=None)
        assert sends(first)[0][2] == n_bytes // -(-n_bytes // piece)


# Planning anew ---------------------------------------------------------------------------------


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


# Room ------------------------------------------------------------------------------------------


def test_a_relay_is_sent_no_more_than_it_has_room_for():
    """Room for 40 bytes: four pieces on their way to K fill it. One that went on and is at D makes
    room for the next; being held up the link to K is not observed."""
    planner = Planner(over_k(50, 150))
    drive, first = drive_of(over_k(), planner, room_bytes={"K": 40})
    assert len(sends(first)) == 4
    assert sends(drive.arrive(1.0, 0)) == [(1, 0, 10)]
    assert sends(drive.arrive(2.0, 1)) == [(0, 40, 10)]
    drive.arrive(3.0, 0)
    drive.tell(Timer(10.0, 0))
    assert observed(planner.asked[0]) == {}


def test_pieces_are_a_quarter_of_the_least_room_at_most():
    _, first = drive_of(over_k(), room_bytes={"K": 12, "S": 1e9})
    assert {n for _, _, n in sends(first)} <= {2, 3}
    assert sum(n for _, _, n in sends(first)) <= 12
    with pytest.raises(ProblemError, match=r"host 'K': its room .* must be >= 4 bytes .* got 0"):
        drive_of(over_k(), room_bytes={"K": 0.0})


# Trouble ---------------------------------------------------------------------------------------


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


# Carried out -----------------------------------------------------------------------------------


def adaptive(problem, plan, **options):
    return AdaptiveController(problem, plan, RestPlanner(problem, plan), **options)


def slower_than_planned(problem):
    """The straight link carries 2 bytes/s instead of 10."""
    by_ends = {("S", "K"): 5.0, ("S", "D"): 2.0, ("K", "D"): 5.0}
    names = problem.names
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    return problem.replace(bandwidth_bytes_per_s=[[by_ends[names[a], names[b]] for a, b in ends]])


def test_a_slow_link_is_found_out_and_its_data_go_round():
    """15 bytes/s are planned for 150 bytes: 100 straight, 50 over K. The straight ones take 50 s.
    At 5 s 10 and 25 are there; the other 115 take 16.4 s at 2 + 5 bytes/s. What is on its way
    cannot be told otherwise: 2 s."""
    problem = triangle(150)
    truth, plan = slower_than_planned(problem), dc.coordinated(problem)
    blind = simulate_problem(problem, AsapController(plan), truth=truth)
    assert blind.makespan_s == pytest.approx(50.0, rel=1e-3)
    controller = adaptive(problem, plan, replan_s=5.0, piece_bytes=1)
    run = simulate_problem(problem, controller, truth=truth)
    assert run.makespan_s == pytest.approx(21.4, abs=2.0)
    assert controller.answer["replans"] == 4
    assert controller.answer["predicted_end_s"][0] == pytest.approx(21.4, abs=2.0)


@pytest.mark.parametrize("options", [{}, {"lanes": 3}, {"shared_connections": True}])
def test_with_an_interval_longer_than_the_run_it_is_the_plan_as_soon_as_possible(options):
    """Pieces wait at relays until they are whole: 8 KiB of 8 MB, as many at a time as lanes."""
    problem = shared_relay()
    plan = dc.coordinated(problem)
    asap = simulate_problem(problem, AsapController(plan, **options))
    run = simulate_problem(problem, adaptive(problem, plan, replan_s=1e6, **options))
    assert run.makespan_s == pytest.approx(asap.makespan_s, rel=5e-3)
    assert run.routes["bytes"].sum() == asap.routes["bytes"].sum()


def test_a_relay_that_has_little_room_is_never_overfull_and_loses_no_time():
    """Room for 2 % of what goes through K."""
    problem = shared_relay()
    plan = dc.coordinated(problem)
    room = 160_000
    controller = adaptive(
        problem, plan, replan_s=0.5, piece_bytes=10_000, room_bytes={"K": float(room)}
    )
    run = simulate_problem(problem, controller, relay_buffer_bytes=room)
    at_k = run.storage[run.storage["host"] == "K"]["others_bytes"]
    assert 0 < at_k.max() <= room
    assert run.makespan_s == pytest.approx(plan.makespan_s, rel=0.02)


def test_a_lost_relay_costs_what_it_held():
    """Over K 5 bytes/s, straight 10: 15 together. At 4 s 40 are at D by the one way, and of the 20
    that left by the other all but what K holds. The rest goes straight."""
    problem = triangle(150)
    plan = dc.coordinated(problem)
    controller = adaptive(problem, plan, replan_s=100.0, piece_bytes=1)
    run = simulate_problem(problem, controller, lost_hosts_s={"K": 4.0})
    assert run.complete
    assert run.makespan_s == pytest.approx(4.0 + (150 - 60) / 10, abs=0.5)
    assert controller.answer["replans"] == 1


def test_it_can_be_sent_to_another_process_before_it_starts():
    problem = triangle(150)
    plan = dc.coordinated(problem)
    controller = pickle.loads(pickle.dumps(adaptive(problem, plan, replan_s=2.0, piece_bytes=1)))
    truth = slower_than_planned(problem)
    there = simulate_problem(problem, controller, truth=truth)
    here = simulate_problem(
        problem, adaptive(problem, plan, replan_s=2.0, piece_bytes=1), truth=truth
    )
    assert there.makespan_s == here.makespan_s
    assert there.events == here.events


ANY_BUT_FORECASTS = frozenset({"limits", "shared", "release", "storage", "held"})


@settings(max_examples=40)
@given(
    problems(ANY_BUT_FORECASTS),
    st.sampled_from([0.3, 1.0, 2.5]),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([math.inf, 20.0, 100.0]),
)
def test_every_byte_arrives_once_however_often_the_rest_is_planned(
    problem, replan_s, lanes, shared, room_pieces
):
    """A forecast could be missed, with no capacity afterwards. Planned by `coordinated`."""
    try:
        plan = dc.coordinated(problem)
    except InfeasibleError:
        assume(False)
    assume(problem.total_bytes > 0)
    piece = max(1, problem.total_bytes // 200)
    room = room_pieces * piece
    rooms = {
        name: min(own, room)
        for name, own in zip(problem.names, problem.storage_bytes.tolist(), strict=True)
    }
    rooms = {name: own for name, own in rooms.items() if own < math.inf}
    assume(all(own >= 4 for name, own in rooms.items() if name != "D"))

    def plan_rest(progress):
        return dc.coordinated(remaining_problem(problem, progress))

    controller = AdaptiveController(
        problem,
        plan,
        plan_rest,
        replan_s=replan_s,
        lanes=lanes,
        shared_connections=shared,
        piece_bytes=piece,
        room_bytes=rooms,
    )
    run = simulate_problem(problem, controller, relay_buffer_bytes=room, time_limit_s=2000.0)
    assert run.complete
    into = run.routes[run.routes["to"] == "D"].groupby("source")["bytes"].sum()
    # A byte per hop is what rounding amounts to in the log.
    assert into.sum() == pytest.approx(problem.total_bytes, rel=1e-9, abs=len(run.routes))
    last = run.storage.groupby("host")["others_bytes"].last().drop("D", errors="ignore")
    assert last.to_numpy() == pytest.approx(0.0, abs=1e-6 * problem.total_bytes + 2)


def test_shared_bottlenecks_are_kept_when_the_rest_is_planned():
    """Both ways cross one wire of 6 bytes/s, which the plan knows: 150 bytes take 25 s. New plans
    know nothing of what is on its way, 2 s worth of it and a little more."""
    problem = triangle(150)
    wire = SharedBottleneck("wire", 6.0, [("S", "D"), ("S", "K")])
    problem = problem.replace(shared=(wire,))
    plan = dc.coordinated(problem)
    controller = adaptive(problem, plan, replan_s=5.0, piece_bytes=1)
    assert simulate_problem(problem, controller).makespan_s == pytest.approx(25.0, rel=0.05)
    assert controller.answer["predicted_end_s"] == pytest.approx([23.75] * 4, abs=1.5)


def test_estimates_once_replaced_stay_so_when_the_rest_is_planned_again():
    """100 bytes at 5 per second; at 10 s 20 are there and 2 per second are observed: 40 s are left.
    At 20 s 40 are there, and nothing new is known: 30 s at 2 per second."""
    problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [100, 0], "D")
    plan_rest = RestPlanner(problem, dc.coordinated(problem))
    link = [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 2.0}]

    def progress(at_s, n_bytes, links):
        held = [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": n_bytes}]
        return dc.Progress.from_dict(
            {"format": "datacollect-progress/1", "at_s": at_s, "held": held, "links": links},
            problem,
        )

    assert plan_rest(progress(10.0, 20, link)).makespan_s == pytest.approx(40.0)
    assert plan_rest(progress(20.0, 40, [])).makespan_s == pytest.approx(30.0)
