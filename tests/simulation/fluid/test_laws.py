"""Invariants of the fluid engine, for any problem and plan."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from instances.small_problems import MB
from instances.strategies import problems
from judges.run_judge import conserved, rows_of

import datacollect as dc
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.errors import InfeasibleError
from datacollect.simulation.fluid.engine import simulate_problem

SCHEDULES = st.tuples(
    problems(frozenset({"limits", "shared", "release", "held"})),
    st.sampled_from([None, 0.5, 1.0]),
    st.booleans(),
)


@given(SCHEDULES)
def test_any_schedule_is_carried_out_byte_for_byte(case):
    problem, slot_s, shared = case
    assume(problem.total_bytes >= MB or not problem.total_bytes)
    try:
        plan = dc.coordinated(problem, slot_s=slot_s)
    except InfeasibleError:
        return
    for controller in (
        PlannedController(plan, pace=True, shared_connections=shared),
        AsapController(plan, shared_connections=shared),
        AsapController(plan, lanes=2),
    ):
        run = simulate_problem(problem, controller, event_limit=20_000)
        conserved(run, problem)
        # Fair shares are not the plan's rates, but no link idles that has work. Nothing promises a
        # factor: 1.8 has been met.
        assert run.makespan_s <= 2 * plan.makespan_s + 1e-6


@pytest.mark.slow
@given(
    problems(frozenset({"limits", "shared", "release", "held", "storage"}), most_hosts=5),
    st.booleans(),
    st.sampled_from([1.0, 0.5]),
)
def test_no_pipelined_collection_comes_to_a_standstill_at_storage_limits(problem, shared, true):
    """Nor is any limit exceeded, though the links turn out to carry less than the plan's."""
    assume(problem.total_bytes >= MB or not problem.total_bytes)
    try:
        plan = dc.coordinated(problem)
    except InfeasibleError:
        return
    truth = problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * true)
    for controller in (
        PlannedController(plan),
        AsapController(plan, shared_connections=shared),
        AsapController(plan, shared_connections=shared, lanes=2),
    ):
        run = simulate_problem(problem, controller, truth=truth, event_limit=20_000)
        conserved(run, problem)
        peaks = run.peak_storage_bytes()["others_bytes"]
        for name, room in zip(problem.names, problem.storage_bytes.tolist(), strict=True):
            if name != problem.destination:
                assert peaks.get(name, 0.0) <= room * (1 + 1e-6) + 1


@pytest.mark.slow
@given(problems(most_hosts=5), st.booleans(), st.sampled_from([0.2, 0.7, 30.0]))
def test_nothing_is_sent_twice_where_connections_stall(problem, shared, stall_s):
    """Links carry nothing in some periods: connections are replaced, and go on where they were.

    A period may be missed with nothing afterwards: not every run is complete.
    """
    try:
        plan = dc.coordinated(problem)
    except InfeasibleError:
        return
    for controller in (
        PlannedController(plan),
        AsapController(plan, shared_connections=shared),
        AsapController(plan, shared_connections=shared, lanes=2),
    ):
        run = simulate_problem(problem, controller, stall_s=stall_s, time_limit_s=1000.0)
        if run.complete:
            conserved(run, problem)
        into = sum(n for head, n in rows_of(run.routes, "to", "bytes") if head == "D")
        assert into <= problem.total_bytes


@given(problems(frozenset({"limits"})))
def test_paced_plan_takes_as_long_as_it_says(problem):
    """Rates are constant on every route, and sum to no more than any capacity: all are had.

    But for rounding: each route carries whole bytes, up to one more than its share.
    """
    assume(problem.total_bytes >= MB or not problem.total_bytes)  # plans are in whole bytes
    try:
        plan = dc.coordinated(problem)
    except InfeasibleError:
        return
    run = simulate_problem(problem, PlannedController(plan, pace=True))
    capacities = (problem.bandwidth_bytes_per_s, problem.uplink_bytes_per_s)
    slowest = min(c.min() for c in (*capacities, problem.downlink_bytes_per_s))
    rounding_s = len(plan.routes) / slowest
    assert run.makespan_s <= plan.makespan_s * (1 + 1e-6) + rounding_s
    assert run.makespan_s >= plan.lower_bound_s * (1 - 1e-6)


@given(problems(frozenset({"limits", "shared"})), st.integers(1, 3))
def test_nothing_beats_the_lower_bound(problem, lanes):
    assume(problem.total_bytes >= MB or not problem.total_bytes)
    try:
        plan = dc.coordinated(problem)
    except InfeasibleError:
        return
    run = simulate_problem(problem, AsapController(plan, lanes=lanes))
    assert run.makespan_s >= plan.lower_bound_s * (1 - 1e-6)
