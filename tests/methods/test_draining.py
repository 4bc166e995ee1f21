"""Pipelines drain before rates change: default chunks cost next to nothing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from instances.hand_made import links
from instances.small_problems import MB, relay
from instances.strategies import FEATURES, problems

import datacollect as dc
from datacollect.flow.paths import earliest_pieces, fluid_paths
from datacollect.methods.coordinated import draining
from datacollect.methods.coordinated.draining import MOST_DELAY
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem

# Of the lower bound: so near a plan by default is, whatever changes.
NEAR = 1.003


def changing_mesh(n_hosts: int, n_periods: int, period_s: float) -> Problem:
    """A full mesh, lognormal MB/s that change in every period; a quarter of the hosts send.

    What they send takes about nine tenths of all periods.
    """
    rng = np.random.default_rng(n_hosts + n_periods)
    bandwidth = rng.lognormal(0.0, 1.0, (n_hosts, n_hosts)) * MB
    factor = np.clip(rng.lognormal(0.0, 0.4, (n_periods, n_hosts, n_hosts)), 0.1, 10.0)
    backlog = np.zeros(n_hosts)
    sources = rng.choice(np.arange(1, n_hosts), n_hosts // 4, replace=False)
    into = float((bandwidth * factor.mean(axis=0))[1:, 0].sum())
    backlog[sources] = 0.9 * n_periods * period_s * into / len(sources)
    return Problem.from_matrix(
        [f"h{i}" for i in range(n_hosts)],
        bandwidth * factor,
        np.rint(backlog),
        "h0",
        periods_s=np.arange(n_periods) * period_s,
    )


@pytest.mark.parametrize(("n_hosts", "n_periods"), [(20, 200), (50, 40), (6, 400)])
def test_many_short_periods_cost_next_to_nothing(n_hosts, n_periods):
    """A thousandth of the bound would drain for a fifth of each period, or for all of it."""
    problem = changing_mesh(n_hosts, n_periods, 10.0)
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert plan.lower_bound_s > 0.5 * n_periods * 10.0
    assert 0 < plan.chunk_s <= plan.lower_bound_s / 1000 / n_periods * 2
    assert plan.makespan_s <= NEAR * plan.lower_bound_s


def test_many_releases_cost_next_to_nothing():
    """A hundred sources with data that come one after the other, most of them over K."""
    n = 100
    hosts = [Host(f"S{i}", MB, release_s=float(i)) for i in range(n)]
    problem = Problem.from_hosts(
        [*hosts, Host("K"), Host("D")],
        links(", ".join([f"S{i} -> K 1e6, S{i} -> D 1e5" for i in range(n)] + ["K -> D 1e6"])),
        "D",
    )
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert plan.chunk_s > 0
    assert plan.makespan_s <= NEAR * plan.lower_bound_s


def test_a_fast_period_before_a_slow_one_drains_briefly():
    """What K does not pass on in the first second takes a thousand times as long afterwards.

    10 MB/s for 1 s, then 0.01: 10.5 MB take 51 s. A chunk of 1/1000 of that, halved, would leave
    0.255 MB to the second period, and so end 25.5 s late.
    """
    problem = Problem.from_hosts(
        [Host("S", 10_500_000), Host("K"), Host("D")],
        links("S -> K 1e7 1e4, K -> D 1e7 1e4"),
        "D",
        periods_s=[0.0, 1.0],
    )
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert plan.lower_bound_s == pytest.approx(51.0)
    assert 0 < plan.chunk_s < 0.0255
    assert plan.makespan_s <= NEAR * 51.0


def test_long_routes_have_short_chunks():
    """Nine hops in a row: eight chunks delay the end, together by two thousandths."""
    names = [f"h{i}" for i in range(10)]
    problem = Problem.from_hosts(
        [Host(names[0], 8 * MB), *map(Host, names[1:])],
        links(", ".join(f"{a} -> {b} 1e6" for a, b in pairwise(names))),
        names[-1],
    )
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert plan.chunk_s == pytest.approx(8.0 * MOST_DELAY / 8)
    assert plan.makespan_s == pytest.approx(8.0 * (1 + MOST_DELAY))


def test_short_routes_and_no_change_leave_a_thousandth():
    assert dc.coordinated(relay()).chunk_s == pytest.approx(2.0 / 1000)


@given(problem=problems(features=FEATURES - {"shared"}, large=True))
@settings(suppress_health_check=list(HealthCheck))
def test_every_default_plan_is_as_near_to_cut_through(problem):
    """Where nothing is wasted on owners' limits cut-through ends at the bound, and default near."""
    try:
        ideal = dc.coordinated(problem, chunk_s=0.0)
    except dc.InfeasibleError:
        assume(False)
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert plan.makespan_s <= NEAR * ideal.makespan_s


def test_explained_plans_are_planned_again_alike():
    """The chunk that was chosen, asked for, gives the same plan."""
    for n_hosts, n_periods in ((8, 30), (12, 12)):
        problem = changing_mesh(n_hosts, n_periods, 10.0)
        plan = dc.coordinated(problem)
        again = dc.coordinated(problem, chunk_s=plan.chunk_s)
        assert again.makespan_s == plan.makespan_s


def test_a_chunk_that_delays_too_much_costs_no_plan(monkeypatch):
    """That is known from maximum flows: without chunks is planned, and with the one taken."""
    planned, tried = [], []

    def counted_paths(problem, optimum, guard_s, *rest):
        planned.append(guard_s)
        return fluid_paths(problem, optimum, guard_s, *rest)

    def counted_pieces(problem, optimum, starts_s, guard_s, budget):
        tried.append(guard_s)
        return earliest_pieces(problem, optimum, starts_s, guard_s, budget)

    monkeypatch.setattr(draining, "fluid_paths", counted_paths)
    monkeypatch.setattr(draining, "earliest_pieces", counted_pieces)
    plan = dc.coordinated(changing_mesh(6, 100, 10.0))
    too_long_s, taken_s = tried
    assert planned == [0.0, taken_s]
    assert too_long_s > taken_s
    assert taken_s == pytest.approx(3 * plan.chunk_s)
    assert plan.makespan_s <= NEAR * plan.lower_bound_s
