"""Coordinated schedules: pipelined and slotted, by every solver, judged from first principles."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from instances.hand_made import links
from instances.how_many import many
from instances.small_problems import MB, figure_1, relay, shared_relay
from instances.strategies import problems
from judges.oracle import slotted_makespan_slots

import datacollect as dc
from datacollect.flow.network.layered import with_room_for_returns
from datacollect.problem.hosts import Held, Host
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def test_figure_1_pipelined_takes_one_unit_and_a_chunk(linear_solver):
    """1 s and, over two hops, one chunk (Chou et al. 2002, Figure 1)."""
    problem = figure_1()
    plan = dc.coordinated(problem, chunk_s=0.01, solver=linear_solver)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(1.01, rel=1e-6)
    assert plan.chunk_s == 0.01
    assert plan.slot_s is None


def test_figure_1_in_half_unit_slots_takes_one_and_a_half(linear_solver):
    """The paper's 1.5: while S1 sends to D, S2 fills K, which needs half a unit more."""
    problem = figure_1()
    plan = dc.coordinated(problem, slot_s=0.5, solver=linear_solver)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(1.5, rel=1e-12)
    assert plan.slot_s == 0.5
    assert plan.chunk_s is None


def test_pipelined_ends_at_the_bound_and_a_chunk_per_further_hop(solver):
    """The relay example: 2 s and 0.05 s; by default a thousandth of the bound."""
    problem = relay()
    plan = dc.coordinated(problem, chunk_s=0.05, solver=solver)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(2.05, rel=1e-9)
    by_default = dc.coordinated(problem, solver=solver)
    assert by_default.makespan_s == pytest.approx(2.002, rel=1e-9)
    assert by_default.status == "optimal"


def test_a_relay_holds_one_chunk_of_each_route(solver):
    """2 MB/s through K, forwarded 0.05 s later: 100 kB are there."""
    plan = dc.coordinated(relay(), chunk_s=0.05, solver=solver)
    assert plan.peak_storage_bytes == {"K": 100_000}


def test_zero_chunk_is_cut_through(solver):
    problem = relay()
    plan = dc.coordinated(problem, chunk_s=0.0, solver=solver)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(2.0, rel=1e-9)


def test_direct_links_are_preferred_where_they_suffice(solver):
    """S -> D alone carries what binds elsewhere: no byte needs a second hop."""
    problem = Problem.from_hosts(
        [Host("S", 1 * MB), Host("L", 8 * MB), Host("D")],
        links("S -> D 1e6, S -> L 5e6, L -> D 2e6, L -> S 1e6"),
        "D",
    )
    plan = dc.coordinated(problem, solver=solver)
    assert {route.hosts for route in plan.routes if route.source == "S"} == {("S", "D")}


def test_slots_count_a_hop_each(solver):
    """relay() in 0.5 s slots: 0.5 MB direct and 1 MB to K per slot, K forwards a slot later.

    By the end of slot n: 0.5 n + (n - 1) MB >= 6 MB needs n = 5.
    """
    problem = relay()
    plan = dc.coordinated(problem, slot_s=0.5, solver=solver)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(2.5)


def test_a_host_without_storage_is_no_slotted_relay_but_a_pipelined_one(solver):
    """storage_bytes = 0: only the direct 1 MB/s are left in slots, 6 s; pipelined still 2 s."""
    problem = relay(K={"storage_bytes": 0})
    slotted = dc.coordinated(problem, slot_s=0.5, solver=solver)
    slotted.check(problem)
    assert slotted.makespan_s == pytest.approx(6.0)
    pipelined = dc.coordinated(problem, chunk_s=0.0, solver=solver)
    pipelined.check(problem)
    assert pipelined.makespan_s == pytest.approx(2.0)


def test_storage_limits_what_waits_at_slot_boundaries(solver):
    """Room for 0.5 MB at K: each slot 0.5 MB direct and 0.5 MB through K, first after a slot.

    0.5 n + 0.5 (n - 1) >= 6 needs n = 7 slots of 0.5 s.
    """
    problem = relay(K={"storage_bytes": 500_000})
    plan = dc.coordinated(problem, slot_s=0.5, solver=solver)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(3.5)
    assert plan.peak_storage_bytes == {"K": 500_000}


def test_slotted_data_arrive_as_early_as_they_can(solver):
    """3 MB at 1 MB/s in slots of 1 s: a MB per slot, none held back for the end."""
    problem = Problem.from_hosts(
        [Host("S", 2 * MB), Host("T", 5 * MB), Host("D")], links("S -> D 2e6, T -> D 1e6"), "D"
    )
    plan = dc.coordinated(problem, slot_s=1.0, solver=solver)
    plan.check(problem)
    assert plan.source_completion_s() == {"S": 1.0, "T": 5.0}


def test_a_slot_that_straddles_two_periods_has_the_lower_bandwidth(solver):
    """4 bytes/s until 1.5 s, then 1: slots of 1 s carry 4, 1, 1 ...; 6 bytes need 3."""
    problem = Problem.from_hosts(
        [Host("S", 6), Host("D")], links("S -> D 4 1"), "D", periods_s=[0.0, 1.5]
    )
    plan = dc.coordinated(problem, slot_s=1.0, solver=solver)
    plan.check(problem)
    assert plan.makespan_s == 3.0


def test_data_released_inside_a_slot_leave_in_the_next(solver):
    problem = Problem.from_hosts([Host("S", 4, release_s=0.25), Host("D")], links("S -> D 4"), "D")
    plan = dc.coordinated(problem, slot_s=1.0, solver=solver)
    plan.check(problem)
    assert plan.transfers["start_s"].tolist() == [1.0]
    assert plan.makespan_s == 2.0


def test_held_data_start_at_their_holder(solver):
    """K holds 4 of S's 6 MB and sends 3 MB/s; S sends 2 MB at 1 + 2 MB/s: together 3 + 1."""
    problem = relay().replace(held=(Held("K", "S", 1 * MB, 4 * MB),))
    for options in ({"chunk_s": 0.01}, {"slot_s": 0.25}):
        plan = dc.coordinated(problem, solver=solver, **options)
        plan.check(problem)
        starts = {route.hosts[0] for route in plan.routes}
        assert starts == {"S", "K"}
    assert dc.lower_bound(problem)[0] == pytest.approx(1.5)


def test_pipelines_drain_before_rates_change(solver):
    """Rates through K change at 1 s; with 3 hops and chunks the plan is still valid and close."""
    problem = Problem.from_hosts(
        [Host("S", 20 * MB), Host("K"), Host("L"), Host("D")],
        links("S -> K 4e6 2e6, K -> L 4e6 3e6, L -> D 3e6 4e6, S -> D 1e6 2e6"),
        "D",
        periods_s=[0.0, 1.0],
    )
    plan = dc.coordinated(problem, chunk_s=0.001, solver=solver)
    plan.check(problem)
    assert plan.lower_bound_s < plan.makespan_s < plan.lower_bound_s + 0.01


def test_empty_problem_gives_an_empty_schedule():
    problem = Problem.from_hosts([Host("D", 7)], [], "D")
    for options in ({}, {"slot_s": 1.0}):
        plan = dc.coordinated(problem, **options)
        plan.check(problem)
        assert (plan.makespan_s, plan.n_transfers, plan.n_routes) == (0.0, 0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slot_s": 0.0}, "slot_s must be > 0"),
        ({"slot_s": math.nan}, "slot_s must be > 0"),
        ({"chunk_s": -1.0}, "chunk_s must be >= 0"),
        ({"chunk_s": math.inf}, "chunk_s must be >= 0"),
        ({"slot_s": 1.0, "chunk_s": 1.0}, "cannot be combined"),
        ({"slot_s": 1e-9}, "slot_s is too short"),
        ({"time_limit_s": 0.0}, "time_limit_s must be > 0"),
        ({"solver": "ortool"}, "did you mean 'ortools'"),
    ],
)
def test_bad_options_are_refused_with_the_remedy(options, message):
    with pytest.raises(dc.ProblemError, match=message):
        dc.coordinated(relay(), **options)


def test_links_of_less_than_a_byte_per_slot_are_explained():
    problem = Problem.from_hosts([Host("S", 4), Host("D")], links("S -> D 1"), "D")
    with pytest.raises(dc.InfeasibleError, match="use longer slots"):
        dc.coordinated(problem, slot_s=0.5)
    assert dc.coordinated(problem, slot_s=1.0).makespan_s == 4.0


def test_one_byte_per_second_and_a_petabyte():
    slow = Problem.from_hosts(
        [Host("S", 3), Host("K"), Host("D")], links("S -> K 1, K -> D 1"), "D"
    )
    plan = dc.coordinated(slow)
    plan.check(slow)
    assert plan.makespan_s == pytest.approx(3.0, rel=1e-2)
    large = shared_relay().replace(backlog_bytes=np.array([10**15, 10**15, 0, 0]))
    for options in ({}, {"slot_s": 1e8}):
        plan = dc.coordinated(large, **options)
        plan.check(large)
        assert plan.makespan_s >= 1e9
        assert int(plan.columns.n_bytes[plan.columns.hop == 0].sum()) == 2 * 10**15


def test_a_time_limit_that_passes_is_an_error_not_half_a_schedule():
    rng = np.random.default_rng(0)
    n = 60
    problem = Problem.from_matrix(
        [f"h{i}" for i in range(n)],
        rng.lognormal(0, 1, (n, n)) * 1e6,
        np.where(np.arange(n) > 0, 10**9, 0),
        "h0",
    )
    with pytest.raises(dc.TimeLimitError) as caught:
        dc.coordinated(problem, slot_s=1.0, time_limit_s=0.05)
    assert caught.value.status == "time_limit"


def test_a_generous_time_limit_changes_nothing():
    problem = relay()
    plan = dc.coordinated(problem, slot_s=0.5, time_limit_s=60.0)
    plan.check(problem)
    assert (plan.makespan_s, plan.status) == (2.5, "optimal")


def test_threads_may_plan_at_once():
    """Eight threads, four problems: the same answers as one after the other."""
    tasks = [
        (relay(), {}),
        (relay(), {"slot_s": 0.5}),
        (figure_1(), {}),
        (figure_1(), {"slot_s": 0.5}),
    ] * 2
    expected = [dc.coordinated(problem, **options).makespan_s for problem, options in tasks]
    found: list[float | None] = [None] * len(tasks)

    def run(i: int) -> None:
        problem, options = tasks[i]
        found[i] = dc.coordinated(problem.replace(), **options).makespan_s

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == pytest.approx(expected)


@given(problems(most_hosts=3))
def test_fewest_slots_agree_with_a_brute_force_time_expansion(problem):
    _compare_slots(problem, 1.0)


@pytest.mark.slow
@given(problems())
@settings(max_examples=many(300))
def test_fewest_slots_agree_on_many_problems(problem):
    _compare_slots(problem, 1.0)
    _compare_slots(problem, 0.7)


def _compare_slots(problem: Problem, slot_s: float) -> None:
    try:
        plan = dc.coordinated(problem, slot_s=slot_s)
    except dc.InfeasibleError:
        if with_room_for_returns(problem) is None:
            assert slotted_makespan_slots(problem, slot_s, 12) is None
        return
    plan.check(problem)
    n_slots = round(plan.makespan_s / slot_s)
    if n_slots > 25:
        return  # the brute force would take minutes
    expected = slotted_makespan_slots(problem, slot_s, 25) if problem.total_bytes else 0
    if plan.status == "optimal":
        assert n_slots == expected
    else:  # data that may return to their owner
        assert n_slots >= expected


def test_a_limit_during_the_last_wishes_leaves_the_fastest_plan(monkeypatch):
    """Fewest slots are found, the cheapest flow is not: complete, valid, and marked so."""

    class WithoutMinCost:
        name = "stopped"

        def __init__(self, inner):
            self.max_flow = inner.max_flow

        def min_cost_flow(self, network, supply):
            raise dc.TimeLimitError("stopped")

    whole = Budget.flow_solver
    monkeypatch.setattr(Budget, "flow_solver", lambda self: WithoutMinCost(whole(self)))
    problem = relay()
    plan = dc.coordinated(problem, slot_s=0.5)
    plan.check(problem)
    assert (plan.makespan_s, plan.status) == (2.5, "time_limit")


def test_byte_rounding_excuses_no_false_lower_bound():
    """Three transfers of megabytes may be wrong by three bytes: a bound 1e-5 too high is not."""
    problem = relay()
    plan = dc.coordinated(problem)
    with pytest.raises(dc.ScheduleError, match="lower_bound_s must not exceed makespan_s"):
        plan.replace(lower_bound_s=plan.makespan_s * (1 + 1e-5)).check(problem)
