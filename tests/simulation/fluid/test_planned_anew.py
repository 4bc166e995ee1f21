"""Collections planned again on the way, carried out over links that are fluids."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from instances.planned_anew import triangle
from instances.small_problems import shared_relay
from instances.strategies import problems

import datacollect as dc
from datacollect.control.planned.replanning import ReplanningController
from datacollect.control.planned.scheduled import AsapController
from datacollect.errors import InfeasibleError
from datacollect.methods.remaining_planner import RemainingPlanner
from datacollect.problem.hosts import SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.schedule.progress import remaining_problem
from datacollect.simulation.fluid.engine import simulate_problem


def run_of(problem, plan, *, truth=None, run=None, **options):
    """Carry a plan out, the rest planned again; return the controller, too."""
    controller = ReplanningController(problem, plan, **options)
    plan_remaining = RemainingPlanner(problem, plan)
    found = simulate_problem(
        problem, controller, truth=truth, plan_remaining=plan_remaining, **(run or {})
    )
    return found, controller


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
    run, controller = run_of(problem, plan, truth=truth, replan_s=5.0, piece_bytes=1)
    assert run.makespan_s == pytest.approx(21.4, abs=2.0)
    assert controller.answer["replans"] == 4
    assert controller.answer["predicted_end_s"][0] == pytest.approx(21.4, abs=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"lanes": 3}, {"shared_connections": True}])
def test_with_an_interval_longer_than_the_run_it_is_the_plan_as_soon_as_possible(options):
    """Pieces wait at relays until they are whole: 8 KiB of 8 MB, as many at a time as lanes."""
    problem = shared_relay()
    plan = dc.coordinated(problem)
    asap = simulate_problem(problem, AsapController(plan, **options))
    run, _ = run_of(problem, plan, replan_s=1e6, **options)
    assert run.makespan_s == pytest.approx(asap.makespan_s, rel=5e-3)
    assert run.routes["bytes"].sum() == asap.routes["bytes"].sum()


@pytest.mark.slow
def test_a_relay_that_has_little_room_is_never_overfull_and_loses_no_time():
    """Room for 2 % of what goes through K."""
    problem = shared_relay()
    plan = dc.coordinated(problem)
    room = 160_000
    options = {"replan_s": 0.5, "piece_bytes": 10_000, "room_bytes": {"K": float(room)}}
    run, _ = run_of(problem, plan, run={"relay_buffer_bytes": room}, **options)
    at_k = run.storage[run.storage["host"] == "K"]["others_bytes"]
    assert 0 < at_k.max() <= room
    assert run.makespan_s == pytest.approx(plan.makespan_s, rel=0.02)


def test_a_lost_relay_costs_what_it_held():
    """Over K 5 bytes/s, straight 10: 15 together. At 4 s 40 are at D by the one way, and of the 20
    that left by the other all but what K holds. The rest goes straight."""
    problem = triangle(150)
    plan = dc.coordinated(problem)
    lost = {"lost_hosts_s": {"K": 4.0}}
    run, controller = run_of(problem, plan, run=lost, replan_s=100.0, piece_bytes=1)
    assert run.complete
    assert run.makespan_s == pytest.approx(4.0 + (150 - 60) / 10, abs=0.5)
    assert controller.answer["replans"] == 1


def test_who_asks_for_a_plan_where_nobody_plans_is_told_so():
    problem = triangle(150)
    controller = ReplanningController(problem, dc.coordinated(problem), replan_s=2.0)
    with pytest.raises(
        dc.SimulationError, match="the engine has no planner; give it plan_remaining"
    ):
        simulate_problem(problem, controller)


def test_it_can_be_sent_to_another_process_before_it_starts():
    problem = triangle(150)
    plan = dc.coordinated(problem)
    options = {"replan_s": 2.0, "piece_bytes": 1}
    sent = (ReplanningController(problem, plan, **options), RemainingPlanner(problem, plan))
    controller, plan_remaining = pickle.loads(pickle.dumps(sent))
    truth = slower_than_planned(problem)
    there = simulate_problem(problem, controller, truth=truth, plan_remaining=plan_remaining)
    here, _ = run_of(problem, plan, truth=truth, **options)
    assert there.makespan_s == here.makespan_s
    assert there.events == here.events


ANY_BUT_FORECASTS = frozenset({"limits", "shared", "release", "storage", "held"})


@pytest.mark.slow
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

    def plan_remaining(progress):
        return dc.coordinated(remaining_problem(problem, progress))

    controller = ReplanningController(
        problem,
        plan,
        replan_s=replan_s,
        lanes=lanes,
        shared_connections=shared,
        piece_bytes=piece,
        room_bytes=rooms,
    )
    run = simulate_problem(
        problem,
        controller,
        relay_buffer_bytes=room,
        time_limit_s=2000.0,
        plan_remaining=plan_remaining,
    )
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
    run, controller = run_of(problem, plan, replan_s=5.0, piece_bytes=1)
    assert run.makespan_s == pytest.approx(25.0, rel=0.05)
    assert controller.answer["predicted_end_s"] == pytest.approx([23.75] * 4, abs=1.5)


def test_estimates_once_replaced_stay_so_when_the_rest_is_planned_again():
    """100 bytes at 5 per second; at 10 s 20 are there and 2 per second are observed: 40 s are left.
    At 20 s 40 are there, and nothing new is known: 30 s at 2 per second."""
    problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [100, 0], "D")
    plan_remaining = RemainingPlanner(problem, dc.coordinated(problem))
    link = [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 2.0}]

    def progress(at_s, n_bytes, links):
        held = [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": n_bytes}]
        return dc.Progress.from_dict(
            {"format": "datacollect-progress/1", "at_s": at_s, "held": held, "links": links},
            problem,
        )

    assert plan_remaining(progress(10.0, 20, link)).makespan_s == pytest.approx(40.0)
    assert plan_remaining(progress(20.0, 40, [])).makespan_s == pytest.approx(30.0)
