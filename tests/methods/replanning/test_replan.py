"""Planning again: what remains, how little changes, how soon it ends, and what is refused."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given
from instances.replanned import (
    MANY_DISCARDED,
    bytes_over,
    in_large_units,
    into_d_from,
    mesh,
    plan_over_k,
    planned,
    relay_problem,
    times,
    with_room_for_rounding,
)
from instances.small_problems import MB
from instances.strategies import FEATURES, problems
from judges import oracle

import datacollect as dc
from datacollect.flow.network.layered import with_room_for_returns

# How soon -----------------------------------------------------------------------------------


def test_a_slower_link_moves_what_does_not_fit_to_the_other_relay():
    """K -> D drops to 0.5 MB/s with 4 MB left, none at relays: 2 s without J would need 8/3 s.

    T* = 4 / (1 + 0.5 + 1) = 1.6 s with all three ways; old links alone need 4 / 1.5 s.
    Within 1.6 s exactly, 1.6 MB have to take J.
    """
    plan, problem = plan_over_k(), relay_problem()
    progress = dc.Progress.from_schedule(problem, plan, 2.0)
    slower = problem.replace(bandwidth_bytes_per_s=np.where(into_d_from(problem, "K"), 0.5e6, 1e6))
    rest = dc.replan(slower, plan, progress, stability=0.0)
    assert rest.lower_bound_s == pytest.approx(1.6)
    assert rest.makespan_s == pytest.approx(1.6)
    assert bytes_over(rest)["J", "D"] == pytest.approx(1.6 * MB, abs=2)
    # With 10 % more time, 0.16 s, the old ways carry 0.24 MB more.
    later = dc.replan(slower, plan, progress, stability=0.1)
    assert later.makespan_s == pytest.approx(1.76)
    assert bytes_over(later)["J", "D"] == pytest.approx((4 - 1.76 * 1.5) * MB, abs=2)
    # With enough time J is not needed; and not more of it is taken than the old ways need.
    without_j = dc.replan(slower, plan, progress, stability=1.0)
    assert without_j.makespan_s == pytest.approx(4 / 1.5)
    assert ("J", "D") not in bytes_over(without_j)


def test_time_is_not_spent_where_it_spares_no_new_link():
    """K is lost: J has to carry 2 MB of the 4 MB left in 2 s, and no leeway changes that."""
    problem, plan = relay_problem(), plan_over_k()
    progress = dc.Progress.from_schedule(problem, plan, 2.0)
    lost = dc.Progress(2.0, progress.held, lost_hosts=("K",))
    direct = into_d_from(problem, "S")
    # The direct link carries nothing any more: all has to take J, sooner or later.
    without = problem.replace(bandwidth_bytes_per_s=np.where(direct, 0.0, 1e6))
    rest = dc.replan(without, plan, lost, stability=0.5)
    assert rest.makespan_s == pytest.approx(4.0)
    assert set(bytes_over(rest)) == {("S", "J"), ("J", "D")}


@given(problems(), st.floats(0.0, 1.0))
@MANY_DISCARDED
def test_without_news_the_rest_ends_no_later_than_planned(problem, part):
    problem = in_large_units(problem)
    plan = planned(problem, chunk_s=0.0)
    at_s = part * plan.makespan_s
    progress = dc.Progress.from_schedule(problem, plan, at_s)
    roomy = with_room_for_rounding(problem)
    rest = dc.replan(roomy, plan, progress)
    rest.check(dc.remaining_problem(roomy, progress))
    left_s = plan.makespan_s - at_s + 1e-6 * plan.makespan_s
    assert rest.lower_bound_s <= left_s
    if not problem.shared:
        assert rest.makespan_s <= left_s


@given(problems(FEATURES - {"shared", "forecast", "release", "storage"}), st.floats(0.0, 1.0))
@MANY_DISCARDED
def test_with_chunks_the_rest_ends_a_chunk_per_hop_later_at_most(problem, part):
    problem = in_large_units(problem)
    plan = planned(problem)
    at_s = part * plan.makespan_s
    progress = dc.Progress.from_schedule(problem, plan, at_s)
    rest = dc.replan(with_room_for_rounding(problem), plan, progress)
    hops = max((route.n_hops for route in rest.routes), default=1)
    left_s = plan.makespan_s - at_s + 1e-6 * plan.makespan_s
    assert rest.makespan_s <= left_s + (hops - 1) * rest.chunk_s


@given(
    problems(),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=1, max_size=12),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 0.01, 0.3]),
)
@MANY_DISCARDED
def test_the_bound_is_that_of_an_independent_program(problem, factors, part, stability):
    """Links become faster, slower or useless; the old plan knows nothing of that."""
    problem = in_large_units(problem)
    plan = planned(problem, chunk_s=0.0)
    progress = dc.Progress.from_schedule(problem, plan, part * plan.makespan_s)
    bandwidth = problem.bandwidth_bytes_per_s
    factor = np.resize(factors, bandwidth.shape)
    changed = problem.replace(bandwidth_bytes_per_s=bandwidth * factor)
    remaining = dc.remaining_problem(changed, progress)
    expected_s = oracle.fluid_makespan_s(remaining)
    # What is left is rounded up to whole bytes, for which exactly enough may be too little: then
    # they never arrive, or only after a pause.
    tight_s, roomy_s = (oracle.fluid_makespan_s(times(remaining, 1 + d)) for d in (-1e-6, 1e-6))
    assume(expected_s is None or (tight_s is not None and tight_s <= roomy_s * 1.001))
    # A network gives data that return to their owner others' room there, and knows that it does.
    may_waste_room = with_room_for_returns(remaining) is not None
    try:
        rest = dc.replan(changed, plan, progress, stability=stability)
    except dc.InfeasibleError:
        assert expected_s is None or may_waste_room
        return
    assert expected_s is not None
    rest.check(remaining)
    if may_waste_room and rest.status == "heuristic":
        assert rest.lower_bound_s <= expected_s * (1 + 1e-6)
        return
    assert rest.lower_bound_s == pytest.approx(expected_s, rel=1e-6)
    assert rest.makespan_s <= expected_s * (1 + stability) * (1 + 1e-6)


# Slots, shared bottlenecks, other wishes ----------------------------------------------------


@given(problems(FEATURES - {"shared", "forecast", "release"}), st.integers(0, 6))
@MANY_DISCARDED
def test_slots_go_on_where_they_stopped(problem, n_done):
    plan = planned(problem, slot_s=0.5)
    assume(plan.makespan_s <= 20.0)
    at_s = 0.5 * n_done
    progress = dc.Progress.from_schedule(problem, plan, at_s)
    rest = dc.replan(problem, plan, progress, stability=0.0)
    rest.check(dc.remaining_problem(problem, progress))
    assert rest.slot_s == plan.slot_s
    assert rest.makespan_s <= max(plan.makespan_s - at_s, 0.0) + 1e-9


def test_an_end_that_rounding_puts_before_the_bound_is_no_deadline():
    """2.5 TB and 2500 bytes leave S at 1 TB/s: five slots of 0.5 s, as rounding permits."""
    hosts = [dc.Host("S", 4 * 10**12, uplink_bytes_per_s=1e12), dc.Host("K"), dc.Host("D")]
    links = [dc.Link("K", "D", 2e12), dc.Link("S", "D", 1e12), dc.Link("S", "K", 1e12)]
    problem = dc.Problem.from_hosts(hosts, links, "D", held=[dc.Held("K", "S", 0, 10**12)])
    plan = dc.coordinated(problem, slot_s=0.5)
    progress = dc.Progress(0.5, (dc.Held("D", "S", 0, 1_499_999_997_500),))
    rest = dc.replan(problem, plan, progress, stability=0.0)
    rest.check(dc.remaining_problem(problem, progress))
    assert rest.makespan_s <= 3.0


@pytest.mark.parametrize("shape", [{"chunk_s": 0.0}, {"slot_s": 0.1}])
def test_new_links_carry_least_with_shared_bottlenecks_and_in_slots(shape):
    """As above, with K -> D at half its rate by a shared bottleneck: J takes what does not fit."""
    problem, plan = relay_problem(), plan_over_k()
    shared = (dc.SharedBottleneck("wire", 0.5e6, [("K", "D")]),)
    slower = problem.replace(shared=shared if "chunk_s" in shape else ())
    if "slot_s" in shape:
        slower = problem.replace(
            bandwidth_bytes_per_s=np.where(into_d_from(problem, "K"), 0.5e6, 1e6)
        )
    progress = dc.Progress.from_schedule(problem, plan, 2.0)
    free = dc.replan(slower, plan, progress, stability=1.0, **shape)
    assert ("J", "D") not in bytes_over(free)
    tight = dc.replan(slower, plan, progress, stability=0.0, **shape)
    tight.check(dc.remaining_problem(slower, progress))
    assert tight.makespan_s == pytest.approx(1.6, abs=0.11)
    assert ("J", "D") in bytes_over(tight)


def test_a_wish_counts_instead_of_the_old_links():
    problem, plan = relay_problem(), plan_over_k()
    fastest = dc.replan(problem, plan, dc.Progress(0.0), prefer="relay-bytes", chunk_s=0.0)
    assert fastest.makespan_s == pytest.approx(8 / 3)


@pytest.mark.parametrize("method", [dc.direct, dc.best_path])
def test_plans_of_other_methods_are_taken_on(method):
    problem = mesh(8, 3, limits=False)
    plan = method(problem)
    progress = dc.Progress.from_schedule(problem, plan, 0.5 * plan.makespan_s)
    rest = dc.replan(problem, plan, progress)
    rest.check(dc.remaining_problem(problem, progress))
    assert rest.method == "coordinated"


# Hosts lost, nothing left, bad input ------------------------------------------------------------


def test_a_lost_relay_is_avoided():
    problem, plan = relay_problem(), plan_over_k(chunk_s=1.0)
    progress = dc.Progress.from_schedule(problem, plan, 3.0)
    lost = dc.Progress(3.0, progress.held, lost_hosts=("K",))
    rest = dc.replan(problem, plan, lost)
    rest.check(dc.remaining_problem(problem, lost))
    assert all("K" not in route.hosts for route in rest.routes)
    # 1 MB was at K, 2 MB still at S: 3 MB over the two ways that are left.
    assert rest.lower_bound_s == pytest.approx(1.5)


def test_data_at_relays_start_there():
    problem, plan = relay_problem(), plan_over_k(chunk_s=1.0)
    rest = dc.replan(problem, plan, dc.Progress.from_schedule(problem, plan, 3.0))
    starts = {route.hosts[0] for route in rest.routes}
    assert starts == {"S", "K"}


def test_a_lost_source_is_named():
    problem, plan = relay_problem(), plan_over_k()
    progress = dc.Progress.from_schedule(problem, plan, 1.0)
    lost = dc.Progress(1.0, progress.held, lost_hosts=("S",))
    with pytest.raises(dc.InfeasibleError, match=r"6000000 bytes lie at 'S' only.*lost") as caught:
        dc.replan(problem, plan, lost)
    assert caught.value.hosts == ("S",)


def test_a_lost_source_whose_data_lie_elsewhere_is_no_loss():
    problem, plan = relay_problem(), plan_over_k()
    held = (dc.Held("K", "S", 0, 2 * MB), dc.Held("D", "S", 2 * MB, 6 * MB))
    rest = dc.replan(problem, plan, dc.Progress(3.0, held, lost_hosts=("S",)))
    assert bytes_over(rest) == {("K", "D"): 2 * MB}


def test_data_cut_off_are_named():
    problem, plan = relay_problem(), plan_over_k()
    cut = problem.replace(bandwidth_bytes_per_s=np.zeros((1, problem.n_links)))
    with pytest.raises(dc.InfeasibleError, match="the data at 'S' cannot reach"):
        dc.replan(cut, plan, dc.Progress(0.0))


@pytest.mark.parametrize("slot_s", [None, 0.5])
def test_after_the_end_nothing_is_left_to_do(slot_s):
    problem = relay_problem()
    plan = dc.coordinated(problem, slot_s=slot_s)
    progress = dc.Progress.from_schedule(problem, plan, plan.makespan_s + 5.0)
    rest = dc.replan(problem, plan, progress)
    assert (rest.n_transfers, rest.makespan_s) == (0, 0.0)
    rest.check(dc.remaining_problem(problem, progress))


def test_bad_progress_is_refused():
    problem, plan = relay_problem(), plan_over_k()
    with pytest.raises(dc.ProblemError, match="this is a schedule; name the problem first"):
        dc.replan(problem, plan, {"format": "datacollect-progress/1", "at_s": 1, "transfers": []})
    with pytest.raises(dc.ProblemError, match="at_s must be >= 0 and finite, got -1"):
        dc.Progress(-1.0)
    with pytest.raises(dc.ProblemError, match="unknown host 'X'"):
        dc.replan(problem, plan, dc.Progress(0.0, lost_hosts=("X",)))
    with pytest.raises(dc.ProblemError, match=r"unknown host 'X'.*of another problem"):
        dc.replan(problem, plan, dc.Progress(0.0, held=(dc.Held("X", "S", 0, 1),)))
    with pytest.raises(dc.ProblemError, match="stability must be >= 0"):
        dc.replan(problem, plan, dc.Progress(0.0), stability=-0.1)
    twice = dc.NewLinks(
        np.array([0, 0]), np.array([1, 1]), np.ones((1, 2)), np.full(2, np.nan), np.zeros(1)
    )
    with pytest.raises(dc.ProblemError, match="links: 'S' -> 'K' given twice"):
        dc.replan(problem, plan, dc.Progress(0.0, links=twice))


# Files and the command ----------------------------------------------------------------------


def test_a_collection_far_ahead_of_its_plan_is_planned_anew():
    """All but 6 of 2 MB have arrived at 1 s, when the plan would still send half of them."""
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 1000003.0], [0, 0]], [2000006, 0], "D")
    plan = dc.coordinated(problem)
    progress = dc.Progress(1.0, (dc.Held("D", "S", 0, 2_000_000),))
    rest = dc.replan(problem, plan, progress)
    rest.check(dc.remaining_problem(problem, progress))
    assert rest.makespan_s == pytest.approx(6 / 1000003)
