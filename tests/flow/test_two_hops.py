"""The fluid optimum by two hops: right where it answers, silent where it cannot."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations, pairwise

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from instances.hand_made import links
from instances.small_problems import MB, figure_1, relay, shared_relay

import datacollect as dc
from datacollect.flow.two_hops import two_hop_optimum
from datacollect.problem.hosts import Held, Host
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def amounts(problem, optimum):
    """Bytes by route."""
    found: Counter[str] = Counter()
    for path in optimum.paths:
        found[" ".join(problem.names[host] for host in path.hosts)] += path.amount
    return dict(found)


def test_the_rest_beyond_the_direct_link_goes_through_a_relay(solver):
    """6 MB at 1 MB/s directly and 2 MB/s through K: 2 s, all that leaves S is full."""
    problem = relay()
    optimum = two_hop_optimum(problem, Budget(solver))
    assert optimum.makespan_s == pytest.approx(2.0)
    assert optimum.bottleneck.kind == "source"
    assert amounts(problem, optimum) == pytest.approx({"S D": 2 * MB, "S K D": 4 * MB})


def test_what_fits_on_direct_links_stays_there(solver):
    """A's 8 MB bind at 2 s over 4 MB/s into D in all; B's 1 MB need no relay."""
    problem = Problem.from_hosts(
        [Host("A", 7 * MB), Host("B", 1 * MB), Host("D")],
        links("A -> D 3e6, A -> B 9e6, B -> A 9e6, B -> D 1e6"),
        "D",
    )
    optimum = two_hop_optimum(problem, Budget(solver))
    assert optimum.makespan_s == pytest.approx(2.0)
    assert optimum.bottleneck.kind == "destination"
    found = amounts(problem, optimum)
    assert found == pytest.approx({"A D": 6 * MB, "A B D": 1 * MB, "B D": 1 * MB})


def test_sources_without_a_direct_link_use_relays_only(solver):
    """A and B, 4 MB each, meet at K: 2 MB/s to D, 4 s."""
    problem = shared_relay()
    optimum = two_hop_optimum(problem, Budget(solver))
    assert optimum.makespan_s == pytest.approx(4.0)
    assert amounts(problem, optimum) == pytest.approx({"A K D": 4 * MB, "B K D": 4 * MB})


def test_one_relay_may_take_all_the_rest_to_the_last_byte(solver):
    """C -> D carries 20/3 bytes in T = 10/3 s: A's 5 and the 5/3 that B -> D leaves of B's 5."""
    problem = Problem.from_hosts(
        [Host("A", 5), Host("B", 5), Host("C"), Host("D")],
        links("A -> C 2, B -> C 1, B -> D 1, C -> D 2"),
        "D",
    )
    optimum = two_hop_optimum(problem, Budget(solver))
    assert optimum.makespan_s == pytest.approx(10 / 3)
    found = amounts(problem, optimum)
    assert found == pytest.approx({"B D": 10 / 3, "A C D": 5, "B C D": 5 / 3})


def test_a_sources_links_may_be_full_to_the_last_byte(solver):
    """E's byte needs all of 2 + 1 bytes/s, a third of a second; A's own leaves room for it."""
    problem = Problem.from_hosts(
        [Host("A", 1), Host("B"), Host("E", 1), Host("D")],
        links("A -> D 5, B -> D 1, E -> A 2, E -> B 1"),
        "D",
    )
    optimum = two_hop_optimum(problem, Budget(solver))
    assert optimum.makespan_s == pytest.approx(1 / 3)
    found = amounts(problem, optimum)
    assert found == pytest.approx({"A D": 1, "E A D": 2 / 3, "E B D": 1 / 3})


def test_held_data_start_where_they_lie():
    """8 of S's 10 bytes lie at K with 4 bytes/s, 2 at S with 1 byte/s: 2 s, nothing relayed."""
    problem = Problem.from_hosts(
        [Host("S", 10), Host("K"), Host("D")],
        links("S -> D 1, K -> D 4"),
        "D",
        held=[Held("K", "S", 0, 8)],
    )
    optimum = two_hop_optimum(problem, Budget("ortools"))
    assert optimum.makespan_s == pytest.approx(2.0)
    assert amounts(problem, optimum) == pytest.approx({"S D": 2, "K D": 8})


def test_a_tie_is_told_as_the_destinations():
    """One source with one link: its own cut is the destination's."""
    problem = Problem.from_hosts([Host("S", 10), Host("D")], links("S -> D 4"), "D")
    assert two_hop_optimum(problem, Budget("ortools")).bottleneck.kind == "destination"


@pytest.mark.parametrize(
    "problem",
    [
        relay(K={"uplink_bytes_per_s": 1e6}),
        relay(D={"downlink_bytes_per_s": 1e12}),
        figure_1(),  # shared bottlenecks
        Problem.from_hosts([Host("S", 1), Host("D")], [], "D"),
        # Three hops are needed.
        Problem.from_hosts(
            [Host("S", 1), Host("K"), Host("L"), Host("D")],
            links("S -> K 1, K -> L 1, L -> D 1"),
            "D",
        ),
        # Two hops carry data, but not all in time: L -> D is idle unless K passes data on to it.
        Problem.from_hosts(
            [Host("S", 4), Host("K"), Host("L"), Host("D")],
            links("S -> K 2, K -> L 1, K -> D 1, L -> D 1"),
            "D",
        ),
        # No path at all, for one source of two.
        Problem.from_hosts(
            [Host("S", 1), Host("T", 1), Host("D")], links("S -> D 1, D -> T 1"), "D"
        ),
    ],
)
def test_where_two_hops_or_links_alone_do_not_tell_it_stays_silent(problem):
    assert two_hop_optimum(problem, Budget("ortools")) is None


@st.composite
def meshes(draw):
    """Up to four hosts and D; whole rates, some links missing; host 0 always holds data."""
    n = draw(st.integers(2, 5))
    scale = draw(st.sampled_from([1, 10**6 + 3]))
    numbers = st.integers(0, 6) | st.integers(1, 40)
    rates = np.array(draw(st.lists(numbers, min_size=n * n, max_size=n * n)), dtype=float)
    backlog = draw(st.lists(st.sampled_from([0, 1, 5, 30]), min_size=n, max_size=n))
    backlog[0], backlog[-1] = max(backlog[0], 1), 0
    return Problem.from_matrix(
        [*"ABCEF"[: n - 1], "D"],
        rates.reshape(n, n) * scale,
        [size * scale for size in backlog],
        "D",
    )


def _matrix(problem):
    rates = np.zeros((problem.n_hosts, problem.n_hosts))
    rates[problem.link_from, problem.link_to] = problem.bandwidth_bytes_per_s[0]
    return rates


def _cuts(problem, sizes):
    """Time of the cut around every set of `n` hosts without the destination."""
    rates, hosts = _matrix(problem), range(problem.n_hosts - 1)
    for inside in chain.from_iterable(combinations(hosts, size) for size in sizes):
        outside = [host for host in range(problem.n_hosts) if host not in inside]
        size = int(problem.backlog_bytes[list(inside)].sum())
        leaving = rates[np.ix_(inside, outside)].sum()
        if size:
            yield size / leaving if leaving else np.inf


def _relays_have_room(problem, within_s):
    """Whether relays take in `within_s` all that direct links leave, by networkx."""
    rates, d = _matrix(problem) * within_s, problem.n_hosts - 1
    rest = problem.backlog_bytes[:d] - rates[:d, d]
    graph = nx.DiGraph()
    graph.add_nodes_from(["all", "D"])
    for i in range(d):
        ends = ("all", i, rest[i]) if rest[i] > 0 else (i, "D", -rest[i])
        graph.add_edge(ends[0], ends[1], capacity=ends[2])
        for j in range(d):
            if rest[i] > 0 > rest[j]:
                graph.add_edge(i, j, capacity=rates[i, j])
    carried = nx.maximum_flow_value(graph, "all", "D")
    return carried >= rest[rest > 0].sum() - 1e-9 * problem.total_bytes


@given(meshes())
def test_it_answers_exactly_where_direct_links_and_one_relay_each_reach_the_bound(problem):
    """The bound: the largest of all cuts' times (max-flow min-cut), by trying all of them.

    Only cuts around one host and around all are tried by the code: where another one is larger,
    even the largest of these leaves no answer.
    """
    bound_s = max(_cuts(problem, range(1, problem.n_hosts)))
    simple_s = max(_cuts(problem, (1, problem.n_hosts - 1)))
    expected = (
        np.isfinite(bound_s)
        and simple_s >= bound_s * (1 - 1e-12)
        and _relays_have_room(problem, bound_s)
    )
    optimum = two_hop_optimum(problem, Budget("ortools"))
    assert (optimum is not None) == expected
    if optimum is not None:
        assert optimum.makespan_s == pytest.approx(bound_s, rel=1e-12)
        _assert_carried_out(problem, optimum)


def _assert_carried_out(problem, optimum):
    """Routes of at most two hops move each backlog, within what links carry."""
    rates, t = _matrix(problem), optimum.makespan_s
    moved: Counter[int] = Counter()
    used: Counter[tuple[int, int]] = Counter()
    for path in optimum.paths:
        assert path.hosts[-1] == problem.destination_index
        assert 2 <= len(path.hosts) <= 3
        assert path.hosts[0] == optimum.pools[path.pool].host
        assert path.pieces == (0,) * (len(path.hosts) - 1)
        moved[path.hosts[0]] += path.amount
        used.update(dict.fromkeys(pairwise(path.hosts), path.amount))
    for pool in optimum.pools:
        assert moved[pool.host] == pytest.approx(pool.n_bytes, rel=1e-9)
    for (a, b), amount in used.items():
        assert amount <= rates[a, b] * t * (1 + 1e-9)


def test_large_full_meshes_need_no_more_than_two_hops():
    """Lognormal meshes of 80 hosts, a quarter of them with like backlogs."""
    n = 80
    for seed in range(3):
        rng = np.random.default_rng(seed)
        backlog = np.where(np.arange(n) < n // 4, rng.integers(10**8, 10**9, n), 0)
        rates = rng.lognormal(0, 1, (n, n)) * 1e6
        problem = Problem.from_matrix([*(f"h{i}" for i in range(n - 1)), "D"], rates, backlog, "D")
        optimum = two_hop_optimum(problem, Budget("ortools"))
        assert optimum.makespan_s == pytest.approx(
            backlog.sum() / np.delete(rates[:, -1], n - 1).sum(), rel=1e-12
        )
        _assert_carried_out(problem, optimum)


@pytest.mark.parametrize("rate", [5e-324, 1e-300])
@pytest.mark.parametrize("method", [dc.direct, dc.best_path, dc.coordinated])
def test_an_end_beyond_all_numbers_is_said_to_be(method, rate):
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 10**9), dc.Host("D")], [dc.Link("S", "D", rate)], "D"
    )
    with pytest.raises(dc.InfeasibleError, match="for a number to say when all data have arrived"):
        method(problem)
