"""Replanning with shared bottlenecks: the bound, and what new links carry, by other programs."""

from __future__ import annotations

import numpy as np
import pytest
from instances.how_many import many
from instances.replanned import bytes_over, new_bytes, shared_mesh, two_sources_on_a_wire
from instances.small_problems import MB, returning
from judges import oracle

import datacollect as dc
from datacollect.methods.replanning import earliest_end, link_prices, other_links
from datacollect.methods.replanning.replan import old_use

# How soon -----------------------------------------------------------------------------------


def test_data_that_return_to_their_owner_need_no_room_there_and_the_bound_knows():
    """As in test_fluid: T* = 16/9 s, the plan takes 4 s, and claims no more than that."""
    problem = returning(storage_bytes=4)
    plan = dc.coordinated(problem)
    rest = dc.replan(problem, plan, dc.Progress(0.0, problem.held))
    assert rest.lower_bound_s == pytest.approx(16 / 9)
    assert (rest.status, rest.makespan_s) == ("heuristic", pytest.approx(4.0, rel=0.01))
    unlimited = returning()
    rest = dc.replan(unlimited, dc.coordinated(unlimited), dc.Progress(0.0, unlimited.held))
    assert (rest.status, rest.makespan_s) == ("optimal", pytest.approx(16 / 9, rel=0.01))


# How little changes -------------------------------------------------------------------------


def assert_least_over_new_links(problem, plan, progress, stability) -> int:
    """Compare with a linear program on all links, where a new link costs 1; return new bytes."""
    remaining = dc.remaining_problem(problem, progress)
    rest = dc.replan(problem, plan, progress, stability=stability, chunk_s=0.0)
    rest.check(remaining)
    expected_s = oracle.fluid_makespan_s(remaining)
    assert rest.lower_bound_s == pytest.approx(expected_s, rel=1e-6)
    assert rest.makespan_s <= expected_s * (1 + stability) * (1 + 1e-6)
    price = np.ones(remaining.n_links)
    price[old_use(remaining, plan, 0.0).links] = 0.0
    # A hair later, so that rounding does not make the program infeasible.
    end_s = rest.lower_bound_s * (1 + max(stability, 1e-7))
    least = oracle.least_cost(remaining.replace(price_per_gb=price), "money", end_s) * 1e9
    found, total = new_bytes(remaining, plan, rest), remaining.total_bytes
    assert found == pytest.approx(least, rel=1e-4, abs=1e-6 * total)
    return found


CASES = [(seed, changes) for seed in range(6) for changes in (False, True)]


@pytest.mark.parametrize(("seed", "changes"), CASES)
def test_as_little_as_can_be_goes_over_new_links(seed, changes):
    problem = shared_mesh(8 if changes else 11, seed, limits=seed % 2 == 0, changes=changes)
    plan = dc.coordinated(problem, chunk_s=0.0) if seed % 3 else dc.direct(problem)
    part = [0.02, 0.1, 0.5][seed % 3]
    assert_stays_near(problem, plan, part, seed)


def assert_stays_near(problem, plan, part, seed) -> None:
    progress = dc.Progress.from_schedule(problem, plan, 0.3 * plan.makespan_s)
    shape = problem.bandwidth_bytes_per_s.shape
    factor = np.random.default_rng(seed).uniform(1 - part, 1 + part, shape)
    changed = problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * factor)
    for stability in (0.0, 0.01, 0.2):
        assert_least_over_new_links(changed, plan, progress, stability)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 6 + many(54)))
def test_as_little_as_can_be_goes_over_new_links_of_many(seed):
    problem = shared_mesh(9, seed, limits=seed % 2 == 0, changes=seed % 4 < 2)
    plan = dc.coordinated(problem, chunk_s=0.0) if seed % 3 else dc.direct(problem)
    assert_stays_near(problem, plan, [0.02, 0.1, 0.5][seed % 3], seed)


@pytest.mark.parametrize("few_per_host", [0, 16])
def test_links_may_be_added_one_by_one(monkeypatch, few_per_host):
    """How many are added or tried at a time changes the way to the answer, not the answer."""
    monkeypatch.setattr(earliest_end, "FEW_PER_HOST", few_per_host)
    monkeypatch.setattr(earliest_end, "WIDEST_PER_HOST", 1)
    for module in (other_links, link_prices):
        monkeypatch.setattr(module, "LINKS_AT_A_TIME", 1)
    problem = shared_mesh(11, 4, limits=True)
    plan = dc.direct(problem)
    progress = dc.Progress.from_schedule(problem, plan, 0.2 * plan.makespan_s)
    assert assert_least_over_new_links(problem, plan, progress, 0.0) > 0


def test_a_lost_relay_is_avoided_and_what_it_held_starts_again():
    """After 2 s K, which carried half of all data, is lost with 1 MB that it had not passed on."""
    problem = two_sources_on_a_wire()
    plan = dc.coordinated(problem, chunk_s=1.0)
    progress = dc.Progress.from_schedule(problem, plan, 2.0)
    lost = dc.Progress(2.0, progress.held, lost_hosts=("K",))
    assert lost.lost_data
    rest = dc.replan(problem, plan, lost)
    rest.check(dc.remaining_problem(problem, lost))
    collected = sum(h.n_bytes for h in progress.held if h.host == "D")
    assert set(bytes_over(rest)) <= {("S", "D"), ("T", "D")}
    assert rest.lower_bound_s == pytest.approx((8 * MB - collected) / 1e6)


def test_without_news_every_link_carries_what_it_would_have():
    problem = shared_mesh(12, 3, limits=True)
    plan = dc.coordinated(problem, chunk_s=0.0)
    at_s = 0.4 * plan.makespan_s
    progress = dc.Progress.from_schedule(problem, plan, at_s)
    remaining = dc.remaining_problem(problem, progress)
    rest = dc.replan(problem, plan, progress)
    before, after = old_use(remaining, plan, at_s), old_use(remaining, rest, 0.0)
    assert set(after.links) <= set(before.links)
    planned = before.n_bytes[:, np.searchsorted(before.links, after.links)]
    # Bytes under way are rounded.
    np.testing.assert_allclose(after.n_bytes, planned, atol=1e-6 * remaining.total_bytes)
