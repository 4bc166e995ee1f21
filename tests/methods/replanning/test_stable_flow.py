"""Stable flows: against a linear program on all links, where a new link costs 1."""

from __future__ import annotations

import numpy as np
import pytest
from instances.replanned import ends, mesh, new_bytes, perturbed
from instances.small_problems import MB
from judges import oracle

import datacollect as dc
from datacollect.methods.replanning import earliest_end, other_links, stable_flow
from datacollect.methods.replanning.earliest_end import proved_optimum
from datacollect.methods.replanning.replan import old_use
from datacollect.solvers.budget import Budget


def assert_least_over_new_links(problem, plan, progress, stability) -> None:
    remaining = dc.remaining_problem(problem, progress)
    rest = dc.replan(problem, plan, progress, stability=stability)
    rest.check(remaining)
    assert rest.lower_bound_s == pytest.approx(dc.lower_bound(remaining)[0], rel=1e-9)
    price = np.ones(remaining.n_links)
    price[old_use(remaining, plan, 0.0).links] = 0.0
    # A hair later, so that rounding does not make the program infeasible.
    end_s = rest.lower_bound_s * (1 + max(stability, 1e-9))
    least = oracle.least_cost(remaining.replace(price_per_gb=price), "money", end_s) * 1e9
    total = remaining.total_bytes
    assert new_bytes(remaining, plan, rest) == pytest.approx(least, rel=1e-4, abs=1e-6 * total)


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("part", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("seed", [1, 2])
def test_as_little_as_can_be_goes_over_new_links(limits, part, seed):
    """Against a linear program on all links, where a new link costs 1."""
    problem = mesh(16, seed, limits=limits)
    plan = dc.coordinated(problem, chunk_s=0.0)
    progress = dc.Progress.from_schedule(problem, plan, 0.4 * plan.makespan_s)
    changed = perturbed(problem, part, seed)
    for stability in (0.0, 0.01):
        assert_least_over_new_links(changed, plan, progress, stability)


@pytest.mark.parametrize("stability", [0.0, 0.02])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_as_little_as_can_be_goes_over_new_links_as_time_passes(stability, seed):
    """As above with a forecast, late releases and storage limits."""
    rng = np.random.default_rng(seed)
    problem = mesh(9, seed, limits=True)
    problem = problem.replace(
        periods_s=np.array([0.0, 200.0, 500.0]),
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * rng.uniform(0, 2, (3, 1)) + 1e5,
        release_s=np.where(rng.random(9) < 0.3, 150.0, 0.0),
        storage_bytes=np.where(rng.random(9) < 0.5, 1e9, np.inf),
    )
    plan = dc.coordinated(problem, chunk_s=0.0)
    progress = dc.Progress.from_schedule(problem, plan, 120.0)
    assert progress.held
    factor = rng.uniform(0.5, 1.5, problem.bandwidth_bytes_per_s.shape)
    changed = problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * factor)
    assert_least_over_new_links(changed, plan, progress, stability)


def test_links_may_be_added_one_by_one(monkeypatch):
    """How many are added at a time changes the way to the answer, not the answer."""
    problem = mesh(16, 4, limits=True)
    plan = dc.direct(problem)
    progress = dc.Progress.from_schedule(problem, plan, 0.2 * plan.makespan_s)
    changed = perturbed(problem, 0.3)
    monkeypatch.setattr(earliest_end, "WIDEST_PER_HOST", 1)
    monkeypatch.setattr(other_links, "LINKS_AT_A_TIME", 1)
    assert_least_over_new_links(changed, plan, progress, 0.01)


@pytest.mark.parametrize("limits", [False, True])
def test_small_changes_of_estimates_move_few_bytes(limits):
    problem = mesh(40, 5, limits=limits)
    plan = dc.coordinated(problem)
    changed = perturbed(problem, 0.02)
    progress = dc.Progress.from_schedule(problem, plan, 0.3 * plan.makespan_s)
    remaining = dc.remaining_problem(changed, progress)
    old = old_use(remaining, plan, progress.at_s)
    before = np.zeros(remaining.n_links)
    before[old.links] = old.n_bytes.sum(axis=0)

    def moved(schedule: dc.Schedule) -> float:
        use = old_use(remaining, schedule, 0.0)
        more = use.n_bytes.sum(axis=0) - before[use.links]
        return float(np.maximum(more, 0).sum()) / remaining.total_bytes

    # Bandwidths differ by 1 % on average, up or down: half of that has to move.
    assert moved(dc.replan(changed, plan, progress)) < 0.02


def test_a_link_that_saves_others_is_found_among_all():
    """Q needs 100 s, S is in no hurry: over P two links are new, over J only the first.

    Nothing but its price speaks for S -> J: no cut needs it.
    """
    hosts = [dc.Host("S", 4 * MB), dc.Host("Q", 100 * MB), *map(dc.Host, ("P", "J", "D"))]
    pairs = [("S", "P"), ("P", "D"), ("S", "J"), ("J", "D"), ("Q", "D")]
    problem = dc.Problem.from_hosts(hosts, [dc.Link(a, b, 1e6) for a, b in pairs], "D")
    number = {ends(problem, i): i for i in range(problem.n_links)}
    old_links = np.sort([number["J", "D"], number["Q", "D"]])
    old = stable_flow.OldUse(old_links, np.zeros((1, 2)))
    optimum = proved_optimum(problem, np.array([number["S", "P"]]), 0.0, Budget())
    assert number["S", "J"] not in optimum.links
    plan = stable_flow.stable_plan(problem, old, optimum, 0.0, 101.0, Budget())
    over = {tuple(problem.names[host] for host in path.hosts) for path in plan.paths}
    assert over == {("S", "J", "D"), ("Q", "D")}
