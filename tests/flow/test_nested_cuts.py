"""Nested minimum cuts where nothing changes: the envelope of all cuts, by few maximum flows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from instances.hand_made import links
from instances.strategies import problems

import datacollect as dc
from datacollect.flow import arrival_curve as module
from datacollect.flow.arrival_bounds import Timeline, tight_bounds
from datacollect.flow.nested_cuts import leaving_s
from datacollect.flow.network.layered import layered_network
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


class Counting:
    """A flow solver that counts what it is asked."""

    def __init__(self):
        self.solver, self.n_flows = Budget().flow_solver(), 0

    def max_flow(self, network, source, sink):
        self.n_flows += 1
        return self.solver.max_flow(network, source, sink)


def leaving(problem, solver):
    network = layered_network(problem, [0.0])
    end_s = dc.lower_bound(problem)[0]
    return leaving_s(network, end_s, 1e-9 * problem.total_bytes, solver)


def test_a_relay_is_done_before_who_has_more(solver):
    """A and B send over K, at 4 and 1 bytes/s, which passes on 3: A has 10 bytes, B 9.

    K's link binds while A has more than 2 bytes/s to give: by t K has passed on 3 t, and B alone
    could have sent t. A is done where 10 + t = 3 t, at 5 s; then B's link binds until 9 s.
    """
    problem = Problem.from_hosts(
        [Host("A", 10), Host("B", 9), Host("K"), Host("D")],
        links("A -> K 4, B -> K 1, K -> D 3"),
        "D",
    )
    found = leaving(problem, Budget(solver).flow_solver())
    assert found.tolist() == pytest.approx([5, 9, 5, 0])


def star(n_sources: int) -> Problem:
    rng = np.random.default_rng(1)
    hosts = [Host(f"S{i}", int(rng.integers(10**6, 10**7))) for i in range(n_sources)]
    each = [f"S{i} -> D {rate:.6g}" for i, rate in enumerate(rng.lognormal(12, 1, n_sources))]
    return Problem.from_hosts([*hosts, Host("D")], links(", ".join(each)), "D")


def test_sources_with_own_links_need_no_flow():
    """Each leaves when its own link has carried what it has."""
    problem, counting = star(300), Counting()
    found = leaving(problem, counting)
    own_s = problem.backlog_bytes[:-1] / problem.bandwidth_bytes_per_s[0]
    assert found[:-1] == pytest.approx(own_s, rel=1e-9)
    assert counting.n_flows == 0


def test_hundreds_of_bends_behind_relays_take_few_flows():
    """One flow divides all groups of nodes at once: not one for each of 200 bends."""
    rng = np.random.default_rng(2)
    relays = [f"K{i}" for i in range(5)]
    hosts = [Host(f"S{i}", int(rng.integers(10**6, 10**7))) for i in range(300)]
    rates = rng.lognormal(12, 1, 300)
    each = [f"S{i} -> {rng.choice(relays)} {rate:.6g}" for i, rate in enumerate(rates)]
    each += [f"{relay} -> D {0.1 * rates.sum():.6g}" for relay in relays]
    problem = Problem.from_hosts(
        [*hosts, *map(Host, relays), Host("D")], links(", ".join(each)), "D"
    )
    counting = Counting()
    found = leaving(problem, counting)
    assert len(np.unique(found)) > 150
    assert counting.n_flows <= 20


@given(problem=problems(frozenset({"limits", "held"}), most_hosts=6))
def test_nested_cuts_and_single_ones_give_the_same_curve(problem):
    """The envelope found by one minimum cut for each bend, which supposes no order of cuts."""
    budget = Budget()
    try:
        end_s = dc.lower_bound(problem)[0]
    except dc.InfeasibleError:
        assume(False)
    assume(problem.total_bytes)
    network, timeline = layered_network(problem, [0.0]), Timeline(np.zeros(1), end_s)
    nested = module._curve(
        problem, network, timeline, module._nested(problem, network, end_s, budget)
    )
    tight_at = tight_bounds(problem, network, timeline, budget)
    single = module._curve(
        problem, network, timeline, module._lower_envelope(problem, network, timeline, tight_at)
    )
    assert nested.time_s == pytest.approx(single.time_s, rel=1e-9)
    assert nested.arrived_bytes == pytest.approx(single.arrived_bytes, rel=1e-9)
    assert tuple(nested.bottlenecks) == tuple(single.bottlenecks)
