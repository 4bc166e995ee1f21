"""Planning anew with shared bottlenecks: the bound, and what new links carry, by other programs."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import oracle
import pytest
from hypothesis import HealthCheck, assume, given, settings
from strategies import problems
from test_fluid import returning
from test_replanning import UNIT, bytes_over, mesh, new_bytes, old_use

import datacollect as dc
from datacollect import earliest_end, link_prices, other_links
from datacollect.arc_pricing import SharedNetwork, cheapest
from datacollect.budget import Budget
from datacollect.earliest_end import lower_bound_of, proved_optimum
from datacollect.errors import InfeasibleError
from datacollect.quickest import NeverArrives


def shared_mesh(n_hosts: int, seed: int, *, limits: bool, changes: bool = False) -> dc.Problem:
    """Up to three wires, each with many links into the destination and a few others."""
    rng = np.random.default_rng(seed + 1000)
    problem = mesh(n_hosts, seed, limits=limits)
    last = problem.link_to == problem.destination_index
    shared = []
    for number in range(int(rng.integers(1, 4))):
        members = np.flatnonzero(rng.random(problem.n_links) < np.where(last, 0.4, 0.05))
        rate = problem.bandwidth_bytes_per_s[0, members[last[members]]].sum() * rng.uniform(
            0.2, 0.8
        )
        if rate > 0:
            shared.append(dc.SharedBottleneck(f"w{number}", rate, ends_of(problem, members)))
    problem = problem.replace(shared=tuple(shared))
    if not changes:
        return problem
    return problem.replace(
        periods_s=np.array([0.0, 200.0, 500.0]),
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s
        * rng.uniform(0.3, 2, (3, problem.n_links)),
        release_s=np.where(rng.random(n_hosts) < 0.3, 150.0, 0.0),
        storage_bytes=np.where(rng.random(n_hosts) < 0.3, 1e9, np.inf),
    )


def ends_of(problem: dc.Problem, links: np.ndarray) -> list[tuple[str, str]]:
    pairs = zip(problem.link_from[links].tolist(), problem.link_to[links].tolist(), strict=True)
    return [(problem.names[a], problem.names[b]) for a, b in pairs]


# How soon -----------------------------------------------------------------------------------


def two_sources_on_a_wire(**changes) -> dc.Problem:
    """S and T hold 4 MB each; their links to D, 1 MB/s each, share 1 MB/s. K is apart, 1 MB/s."""
    hosts = [dc.Host("S", 4 * UNIT), dc.Host("T", 4 * UNIT), dc.Host("K"), dc.Host("D")]
    pairs = [("S", "D"), ("T", "D"), ("S", "K"), ("T", "K"), ("K", "D")]
    wire = dc.SharedBottleneck("wire", 1e6, pairs[:2])
    links = [dc.Link(a, b, 1e6) for a, b in pairs]
    return dc.Problem.from_hosts(hosts, links, "D", shared=[wire]).replace(**changes)


def direct_links(problem: dc.Problem, *names: str) -> np.ndarray:
    hosts = [problem.host_index[name] for name in names]
    links = problem.link_indices(hosts, [problem.destination_index] * len(hosts))
    return np.sort(links)


def test_a_way_around_the_wire_is_found_by_its_price():
    """8 MB over the wire take 8 s; K carries as much beside it: 4 s. S and T have room for more."""
    problem = two_sources_on_a_wire()
    optimum = proved_optimum(problem, direct_links(problem, "S", "T"), 0.0, Budget())
    assert optimum.alone is not None
    assert optimum.alone.makespan_s == pytest.approx(8.0)
    assert optimum.found.makespan_s == pytest.approx(4.0)
    assert optimum.found.bottleneck.kind == "shared"


def test_a_chain_of_hosts_that_nothing_passed_yet_is_found():
    """The only way around the wire leads over K and J, of which the old links know nothing."""
    hosts = [dc.Host("S", 8 * UNIT), dc.Host("K"), dc.Host("J"), dc.Host("D")]
    pairs = [("S", "D"), ("S", "K"), ("K", "J"), ("J", "D")]
    wire = dc.SharedBottleneck("wire", 1e6, pairs[:1])
    links = [dc.Link(a, b, 2e6) for a, b in pairs]
    problem = dc.Problem.from_hosts(hosts, links, "D", shared=[wire])
    optimum = proved_optimum(problem, direct_links(problem, "S"), 0.0, Budget())
    assert optimum.found.makespan_s == pytest.approx(8 / 3)


def test_where_only_the_wire_binds_no_other_link_is_looked_at(monkeypatch):
    """K's link is on the wire, too: all hosts together send 1 MB/s, whatever lies between them."""
    problem = two_sources_on_a_wire()
    wire = dc.SharedBottleneck("wire", 1e6, [("S", "D"), ("T", "D"), ("K", "D")])
    problem = problem.replace(shared=(wire,))
    old = direct_links(problem, "S", "T", "K")
    monkeypatch.setattr(link_prices, "best_of_each", None)  # nothing to choose from
    optimum = proved_optimum(problem, old, 0.0, Budget())
    assert optimum.found.makespan_s == pytest.approx(8.0)
    assert optimum.links.tolist() == old.tolist()


@given(problems(), st.lists(st.booleans(), min_size=1, max_size=12))
@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])
def test_whichever_links_come_first_the_end_is_that_of_an_independent_program(problem, chosen):
    assume(problem.total_bytes > 0)
    old = np.flatnonzero(np.resize(chosen, problem.n_links))
    expected_s = oracle.fluid_makespan_s(problem)
    if expected_s is None:
        with pytest.raises((NeverArrives, InfeasibleError)):
            proved_optimum(problem, old, 0.0, Budget())
        return
    optimum = proved_optimum(problem, old, 0.0, Budget())
    assert optimum.found.makespan_s >= expected_s * (1 - 1e-6)
    bound = lower_bound_of(problem, optimum, Budget())
    assert bound.makespan_s == pytest.approx(expected_s, rel=1e-6)
    assert not bound.exact or optimum.found.makespan_s == pytest.approx(expected_s, rel=1e-6)


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
@pytest.mark.parametrize("seed", range(6, 60))
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
    assert rest.lower_bound_s == pytest.approx((8 * UNIT - collected) / 1e6)


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


# Programs -----------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.lists(st.booleans(), min_size=8, max_size=8))
@settings(max_examples=40)
def test_arcs_that_begin_full_change_the_way_not_the_answer(seed, full):
    """Two ways of two arcs each, and one straight, of random cost; two of them share room."""
    rng = np.random.default_rng(seed)
    network = SharedNetwork(
        n_nodes=5,
        sink=4,
        tail=np.array([0, 1, 0, 2, 0, 3, 0, 0]),
        head=np.array([1, 4, 2, 4, 3, 4, 4, 4]),
        capacity_bytes=rng.uniform(2, 9, 8),
        supply_bytes=np.array([6.0, 0, 0, 0, 0]),
        member_row=np.array([0, 0]),
        member_arc=np.array([1, 3]),
        room_bytes=np.array([3.0]),
    )
    cost = rng.integers(1, 9, 8).astype(float)
    every = np.arange(8)
    plain = cheapest(network, cost, Budget(), every)
    begun = cheapest(network, cost, Budget(), every, np.flatnonzero(full))
    assert float(cost @ begun.flow_bytes) == pytest.approx(float(cost @ plain.flow_bytes))
    assert begun.gap <= 1e-8
    surplus = np.bincount(network.tail, begun.flow_bytes, 5)
    surplus -= np.bincount(network.head, begun.flow_bytes, 5)
    np.testing.assert_allclose(surplus, [6, 0, 0, 0, -6], atol=1e-6)


def test_fewer_links_keep_what_they_share():
    problem = two_sources_on_a_wire()
    assert [links.tolist() for links in problem.shared_links]
    few = problem.with_links(np.sort(problem.link_indices([1, 0, 2], [3, 2, 3])))
    assert [(s.name, list(s.links)) for s in few.shared] == [("wire", [("T", "D")])]
    assert ends_of(few, few.shared_links[0]) == [("T", "D")]
    assert few.sha256 == few.replace(shared=few.shared).sha256
    assert problem.with_links(direct_links(problem, "K")).shared == ()


def test_what_just_misses_a_period_waits_for_the_next():
    """1 000 001 bytes at 1 MB/s for 1 s; after a pause of 1 s the last one takes a microsecond."""
    wire = dc.SharedBottleneck("wire", 2e6, [("S", "D")])
    problem = dc.Problem.from_hosts(
        [dc.Host("S", UNIT + 1), dc.Host("D")],
        [dc.Link("S", "D", [1e6, 0.0, 1e6])],
        "D",
        shared=[wire],
        periods_s=[0.0, 1.0, 2.0],
    )
    assert dc.lower_bound(problem)[0] == pytest.approx(2.000001, abs=2e-6)
