"""Relays with little room, against arithmetic: they store no more, and nothing stands still."""

import math

import pandas as pd
import pytest
from instances.hand_made_plans import plan_of
from judges.run_judge import stored_at

import datacollect as dc
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.problem.hosts import Held, Host, Link
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_problem


def test_bounded_relay_never_stores_more():
    """20 in, 10 out, room for 30: full at 3 s; the makespan is the outgoing link's all the same."""
    problem = Problem.from_matrix(
        ["S", "K", "D"], [[0, 20.0, 0], [0, 0, 10.0], [0, 0, 0]], [200, 0, 0], "D"
    )
    plan = plan_of([("S", "K", "D")], [(0, 0, 0, 200, 0.0, 5.0), (0, 1, 0, 200, 0.0, 10.0)])
    run = simulate_problem(problem, AsapController(plan), relay_buffer_bytes=30)
    assert run.makespan_s == pytest.approx(20.0)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(30.0)
    assert stored_at(run, "K", 3.0) == pytest.approx(30.0)
    assert run.connections["stalls"].sum() == 0


def bounded_line(room, others=math.inf):
    """S sends 200 bytes to K at 20 bytes/s, K on to D at 10; K has `room`."""
    problem = Problem.from_hosts(
        [Host("S", 200), Host("K", storage_bytes=room), Host("D", storage_bytes=others)],
        [Link("S", "K", 20.0), Link("K", "D", 10.0)],
        "D",
    )
    rows = [(0, 0, 0, 200, 0.0, 10.0), (0, 1, 0, 200, 0.0, 20.0)]
    return problem, plan_of([("S", "K", "D")], rows)


@pytest.mark.parametrize("room", [0, 1, 30, 99])
@pytest.mark.parametrize("buffer", [math.inf, 30.0])
def test_host_s_own_storage_limit_bounds_it(room, buffer):
    """K passes on 10 bytes/s however little it stores; without a limit it would store 100. The
    destination's limit is not meant: it is where all has to go."""
    problem, plan = bounded_line(room, others=5)
    run = simulate_problem(problem, AsapController(plan), relay_buffer_bytes=buffer)
    assert run.makespan_s == pytest.approx(20.0)
    most = min(room, buffer)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(most, abs=0.5)
    assert run.settings["storage_bytes"] == {"K": room}
    assert run.connections["stalls"].sum() == 0


def test_limit_that_is_never_reached_changes_nothing():
    """K stores 100 bytes at most."""
    runs = []
    for room in (math.inf, 101):
        problem, plan = bounded_line(room)
        runs.append(simulate_problem(problem, AsapController(plan)))
    free, bound = runs
    assert (free.makespan_s, free.events) == (bound.makespan_s, bound.events)
    for name in ("storage", "routes", "wires", "connections"):
        pd.testing.assert_frame_equal(getattr(free, name), getattr(bound, name))


def test_limit_is_the_true_problem_s():
    problem, plan = bounded_line(math.inf)
    truth = problem.replace(storage_bytes=[math.inf, 30.0, math.inf])
    run = simulate_problem(problem, AsapController(plan), truth=truth)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(30.0)


def test_data_held_at_the_start_take_room():
    """K holds 25 of A's bytes and has room for 30; B's come at 10 bytes/s and leave at 1 after
    A's, which leave at 1: 5 more fit beside what leaves in the meantime."""
    problem = Problem.from_hosts(
        [Host("A", 25), Host("B", 40), Host("K", storage_bytes=30), Host("D")],
        [Link("A", "D", 1.0), Link("B", "K", 10.0), Link("K", "D", 1.0)],
        "D",
        held=[Held("K", "A", 0, 25)],
    )
    plan = plan_of(
        [("A", "K", "D"), ("B", "K", "D")],
        [(0, 1, 0, 25, 0.0, 25.0), (1, 0, 0, 40, 0.0, 4.0), (1, 1, 0, 40, 25.0, 65.0)],
    )
    run = simulate_problem(problem, AsapController(plan))
    assert run.makespan_s == pytest.approx(65.0)
    assert stored_at(run, "K", 5.0) == pytest.approx(30.0)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(30.0)


def test_slot_s_bytes_leave_in_the_next_slot_though_the_transfer_lasts_longer():
    """20 bytes in two slots of 1 s over a relay with room for 10: a transfer of two slots is
    not one range of 20 bytes, which would not fit."""
    problem = Problem.from_hosts(
        [Host("S", 20), Host("K", storage_bytes=10), Host("D")],
        [Link("S", "K", 10.0), Link("K", "D", 10.0)],
        "D",
    )
    plan = dc.coordinated(problem, slot_s=1.0)
    assert plan.makespan_s == 3.0
    for controller in (PlannedController(plan), AsapController(plan)):
        run = simulate_problem(problem, controller)
        assert run.makespan_s == pytest.approx(3.0)
        assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(10.0)


def test_relay_with_room_left_takes_the_rest_of_what_it_waits_for():
    """Ranges of 10 bytes at 12 bytes/s in and 18 out, room for 10: when the first has left, more
    than half of the room holds a part of the second, which is of no use without the rest."""
    problem = Problem.from_hosts(
        [Host("S", 20), Host("K", storage_bytes=10), Host("D")],
        [Link("S", "K", 12.0), Link("K", "D", 18.0)],
        "D",
    )
    rows = [(0, hop, 10 * i, 10, float(i + hop), i + hop + 1.0) for i in (0, 1) for hop in (0, 1)]
    run = simulate_problem(problem, AsapController(plan_of([("S", "K", "D")], rows, slot_s=1.0)))
    assert run.makespan_s == pytest.approx(20 / 12 + 10 / 18)


@pytest.mark.parametrize(("shared", "makespan_s"), [(False, 11.0), (True, 20.0)])
def test_full_relay_lets_through_what_leaves_first(shared, makespan_s):
    """A sends 10 bytes to K at 1 per second, B 100 at 10; K sends 10 per second to D. On one
    connection to D A's 10 bytes go first: B's fill K's room of 30 at 3 s, and A's must still get
    in. At 10 s they are through, and B's take 10 s. On two connections B's fill the gaps."""
    problem = Problem.from_matrix(
        ["A", "B", "K", "D"],
        [[0, 0, 1.0, 0], [0, 0, 10.0, 0], [0, 0, 0, 10.0], [0] * 4],
        [10, 100, 0, 0],
        "D",
    )
    plan = plan_of(
        [("A", "K", "D"), ("B", "K", "D")],
        [(r, hop, 0, n, float(r * hop), 10.0) for r, n in ((0, 10), (1, 100)) for hop in (0, 1)],
    )
    controller = AsapController(plan, shared_connections=shared)
    run = simulate_problem(problem, controller, relay_buffer_bytes=30)
    assert run.makespan_s == pytest.approx(makespan_s)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] <= 30.5


def test_shared_connections_do_not_wait_for_each_other():
    """A's and B's 100 bytes each over L and K at 10 bytes/s. By the plan's starts B's go first from
    L to K, A's first from K to D: B's would fill K, behind A's on the one connection, before
    them on the other, for ever. In one order they take 20 s."""
    names, links = ["A", "B", "L", "K", "D"], [("A", "L"), ("B", "L"), ("L", "K"), ("K", "D")]
    problem = Problem.from_hosts(
        [Host(name, 100 if name in "AB" else 0) for name in names],
        [Link(*pair, 10.0) for pair in links],
        "D",
    )
    starts_s = {(0, 0): 0.0, (1, 0): 0.0, (1, 1): 1.0, (0, 1): 11.0, (0, 2): 12.0, (1, 2): 22.0}
    plan = plan_of(
        [("A", "L", "K", "D"), ("B", "L", "K", "D")],
        [(r, hop, 0, 100, at_s, at_s + 10.0) for (r, hop), at_s in starts_s.items()],
    )
    for room in (30, 1):
        controller = AsapController(plan, shared_connections=True)
        run = simulate_problem(problem, controller, relay_buffer_bytes=room)
        assert run.makespan_s == pytest.approx(20.0)
        assert run.peak_storage_bytes().loc[["K", "L"], "others_bytes"].max() <= room + 0.5


def test_two_full_relays_with_data_for_each_other_exchange_them():
    """A's 100 bytes go over K and L to D, B's over L and K. K and L exchange 5 bytes/s, and send
    1 each to D: both fill up with data for each other. All the same D gets 2 bytes/s."""
    problem = Problem.from_hosts(
        [Host("A", 100), Host("B", 100), Host("K"), Host("L"), Host("D")],
        [
            *(Link(*pair, 10.0) for pair in (("A", "K"), ("B", "L"))),
            *(Link(*pair, 5.0) for pair in (("K", "L"), ("L", "K"))),
            *(Link(*pair, 1.0) for pair in (("K", "D"), ("L", "D"))),
        ],
        "D",
    )
    plan = plan_of(
        [("A", "K", "L", "D"), ("B", "L", "K", "D")],
        [(r, hop, 0, 100, float(hop), 100.0) for r in (0, 1) for hop in (0, 1, 2)],
    )
    run = simulate_problem(problem, AsapController(plan), relay_buffer_bytes=30)
    assert run.makespan_s == pytest.approx(100.0)
    assert run.peak_storage_bytes().loc[["K", "L"], "others_bytes"].max() <= 30.5


def test_full_relay_shares_what_it_frees():
    """K has room for 30 and sends 3 bytes/s of A's and of B's. Both bring up to 10 per second, and
    take even shares of what K frees: neither starves, and both end at 600 / 3."""
    problem = Problem.from_hosts(
        [Host("A", 600), Host("B", 600), Host("K", storage_bytes=30), Host("D")],
        [Link("A", "K", 10.0), Link("B", "K", 10.0), Link("K", "D", 6.0)],
        "D",
    )
    plan = plan_of(
        [("A", "K", "D"), ("B", "K", "D")],
        [(r, hop, 0, 600, 0.0, 200.0) for r in (0, 1) for hop in (0, 1)],
    )
    run = simulate_problem(problem, AsapController(plan))
    assert run.source_finish_s == pytest.approx({"A": 200.0, "B": 200.0})
