"""Savings of more bandwidth where links share bottlenecks: by hand, and by differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from instances.hand_made import links
from instances.shared_problems import random_mesh, shared_end
from instances.small_problems import MB, figure_1

from datacollect.flow.network.layered import layered_network
from datacollect.flow.shared.length_bounds import length_bound
from datacollect.flow.shared.model import SharedModel
from datacollect.flow.shared.pricing import largest_share
from datacollect.problem.hosts import Host, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def test_savings_of_figure_1():
    """2 bytes over two wires of 1 byte/s each: 2 / (2 + x) s, so 1/2 s less per byte/s on each."""
    savings = shared_end(figure_1(MB)).savings
    assert savings.shared * MB == pytest.approx([0.5, 0.5])
    assert not savings.link.any()
    assert not savings.uplink.any()


def test_savings_where_a_shared_bottleneck_does_not_delay():
    """10 bytes at 5 bytes/s: 0.4 s less per byte/s on the link, nothing on the wire."""
    problem = Problem.from_hosts(
        [Host("S", 10), Host("D")],
        links("S -> D 5"),
        "D",
        shared=[SharedBottleneck("wire", 9.0, [("S", "D")])],
    )
    savings = shared_end(problem).savings
    assert savings.link == pytest.approx([0.4])
    assert not savings.shared.any()


def test_savings_add_up_over_periods():
    """1 byte/s for 4 s, then 3 bytes/s: 10 bytes end at 6 s.

    With 1 + x and 3 + x: 4 + (10 - 4 (1 + x)) / (3 + x) s, at x = 0 falling by 4/3 + 6/9 = 2.
    """
    problem = Problem.from_hosts(
        [Host("S", 10), Host("D")],
        links("S -> D 1 3"),
        "D",
        shared=[SharedBottleneck("wire", 9.0, [("S", "D")])],
        periods_s=[0.0, 4.0],
    )
    assert shared_end(problem).savings.link == pytest.approx([2.0])


def test_prices_that_are_rounding_alone_prove_nothing():
    """What is needed is 2e-16 less than nothing, and nothing more passes however long it takes."""
    problem = figure_1(MB)
    network = layered_network(problem, [0.0])
    model, lengths = SharedModel.build(problem, network), np.array([0.5])
    found = largest_share(model.at(lengths), Budget())
    rounding = replace(
        found,
        node_price=np.full(network.n_nodes, -2e-16),
        row_price=np.zeros_like(found.row_price),
        reduced_cost=np.zeros(network.n_arcs),
    )
    assert length_bound(model, lengths, rounding).least_s == np.inf


def capacities(problem: Problem) -> dict[tuple[str, int], float]:
    """Every capacity that is finite, by kind and number."""
    found = {("link", i): float(r) for i, r in enumerate(problem.bandwidth_bytes_per_s.min(0))}
    for kind in ("uplink", "downlink"):
        rates = getattr(problem, f"{kind}_bytes_per_s").min(0)
        found |= {(kind, i): float(r) for i, r in enumerate(rates) if np.isfinite(r)}
    rates = [shared.bandwidth_bytes_per_s for shared in problem.shared]
    return found | {("shared", i): rate for i, rate in enumerate(rates)}


def with_more(problem: Problem, kind: str, number: int, more: float) -> Problem:
    if kind == "shared":
        shared = list(problem.shared)
        rate = shared[number].bandwidth_bytes_per_s + more
        shared[number] = replace(shared[number], bandwidth_bytes_per_s=rate)
        return problem.replace(shared=shared)
    name = "bandwidth_bytes_per_s" if kind == "link" else f"{kind}_bytes_per_s"
    rates = getattr(problem, name).copy()
    rates[..., number] += more
    return problem.replace(**{name: rates})


def assert_savings_by_differences(problem: Problem, seed: int) -> None:
    """The end is convex in a capacity: a saving lies between the differences on its two sides.

    Each seed looks at every second capacity.
    """
    end = shared_end(problem)
    for (kind, number), rate in [*capacities(problem).items()][seed % 2 :: 2]:
        step = rate * 1e-4
        saving = float(getattr(end.savings, kind)[number])
        noise = 1e-7 * end.makespan_s / step
        wider = shared_end(with_more(problem, kind, number, step)).makespan_s
        narrower = shared_end(with_more(problem, kind, number, -step)).makespan_s
        assert (end.makespan_s - wider) / step <= saving * (1 + 1e-3) + noise, (kind, number)
        assert (narrower - end.makespan_s) / step >= saving * (1 - 1e-3) - noise, (kind, number)


@pytest.mark.parametrize("seed", range(6))
def test_savings_agree_with_differences(seed):
    problem = random_mesh(7, seed, n_shared=3)
    assert_savings_by_differences(problem, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_savings_agree_with_differences_under_forecasts(seed):
    """Two more periods, the second half as fast, that begin while data move."""
    problem = random_mesh(6, seed, n_shared=3)
    end_s = shared_end(problem).makespan_s
    bandwidth = problem.bandwidth_bytes_per_s[0] * np.array([[1.0], [0.5], [1.2]])
    problem = problem.replace(
        bandwidth_bytes_per_s=bandwidth, periods_s=np.array([0.0, 0.3, 0.6]) * end_s
    )
    assert_savings_by_differences(problem, seed)
