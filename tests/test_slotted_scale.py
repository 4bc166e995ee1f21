"""Slotted plans on few arcs of the time-expanded graph: as good as on all of them.

`few_arcs` makes the planner choose its arcs on small problems too, where it would take all.
"""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hand_made import links
from hypothesis import HealthCheck, assume, given, settings
from oracle import slotted_makespan_slots
from small_problems import MB, figure_1, relay, shared_relay
from strategies import problems

import datacollect as dc
from datacollect import timegraph
from datacollect.budget import Budget
from datacollect.flow import FlowNetwork, load_flow_solver
from datacollect.fluid import fluid_optimum
from datacollect.methods import slotted_search
from datacollect.methods.slot_pricing import attractive, cheapest, node_prices
from datacollect.methods.slotted import slotted_schedule
from datacollect.methods.slotted_paths import slotted_pieces
from datacollect.methods.slotted_search import (
    first_links,
    may_suffice,
    partial_graph,
    saturating,
)
from datacollect.preference import PREFERENCES, path_costs
from datacollect.problem import Held, Host, Problem
from datacollect.slots import slots_within
from datacollect.timegraph import TimeExpansion, slot_costs, time_expanded_graph

WITHOUT_SHARED = frozenset({"limits", "forecast", "release", "storage", "held"})


@pytest.fixture
def few_arcs(monkeypatch):
    """No problem is small enough to take all arcs."""
    monkeypatch.setattr(slotted_search, "ALL_ARCS", 0)
    monkeypatch.setattr(slotted_search, "ALL_ARCS_SHARED", 0)


def overlay(n_hosts, degree, seed, **options):
    """Hosts on a square, links among the nearest and around; some hold data, links have prices."""
    rng = np.random.default_rng(seed)
    place = rng.random((n_hosts, 2))
    distance = np.linalg.norm(place[:, None] - place[None], axis=2)
    near = np.argsort(distance, axis=1)[:, 1 : degree + 1]
    bandwidth = np.zeros((n_hosts, n_hosts))
    np.put_along_axis(bandwidth, near, 1.0, axis=1)
    bandwidth[np.arange(1, n_hosts), np.arange(n_hosts - 1)] = 1.0
    bandwidth = np.maximum(bandwidth, bandwidth.T) * rng.integers(1, 60, (n_hosts, n_hosts))
    backlog = np.where(rng.random(n_hosts) < 0.4, rng.integers(20, 200, n_hosts), 0)
    backlog[0] = 0
    problem = Problem.from_matrix([f"h{i}" for i in range(n_hosts)], bandwidth, backlog, "h0")
    price = rng.integers(1, 9, problem.n_links).astype(float)
    return problem.replace(price_per_gb=price, **options)


def paid(problem, plan, prefer, n_slots):
    """What a plan costs, summed over its transfers.

    Bytes pay for each link; at a relay for each slot between coming and going; for their arrival.
    Held data have lain at their holder since slot 0.
    """
    costs = path_costs(
        problem, prefer, np.full(n_slots, plan.slot_s), nodes(problem, plan, n_slots)
    )
    assert len(set(costs.stored.tolist())) == 1
    stored = int(costs.stored[0])
    index = {name: i for i, name in enumerate(problem.names)}
    total = Fraction(0)
    columns = plan.columns
    for route, hop, n_bytes, start, finish in zip(
        columns.route.tolist(),
        columns.hop.tolist(),
        columns.n_bytes.tolist(),
        np.rint(columns.start_s / plan.slot_s).astype(int).tolist(),
        np.rint(columns.finish_s / plan.slot_s).astype(int).tolist(),
        strict=True,
    ):
        path = plan.routes[route]
        ends = [index[path.hosts[hop]], index[path.hosts[hop + 1]]]
        link = int(problem.link_indices(np.array(ends[:1]), np.array(ends[1:]))[0])
        per_slot = Fraction(n_bytes, finish - start)
        for slot in range(start, finish):
            total += per_slot * int(costs.link[link])
            if hop > 0 or path.hosts[0] != path.source:
                total += per_slot * stored * slot
            if hop + 2 < len(path.hosts):
                total -= per_slot * stored * slot
            else:
                total += per_slot * int(costs.arrival[slot])
    return total


def nodes(problem, plan, n_slots):
    return TimeExpansion(problem, plan.slot_s, n_slots).n_nodes


def least_cost(problem, slot_s, prefer, n_slots):
    """What networkx pays on the full time-expanded graph."""
    graph = time_expanded_graph(problem, slot_s, n_slots)
    costs = path_costs(problem, prefer, np.full(n_slots, slot_s), graph.n_nodes)
    network = graph.to_networkx(problem)
    labels = list(network.nodes)
    for tail, head, cost in zip(
        graph.tail.tolist(), graph.head.tolist(), slot_costs(costs, graph).tolist(), strict=True
    ):
        network.edges[labels[tail], labels[head]]["weight"] = cost
    return nx.network_simplex(network)[0]


def plan_slots(problem, prefer="relay-bytes", slot_s=1.0, n_slots=None):
    """Plan in slots; all of `n_slots` may be used where it is given."""
    budget = Budget()
    deadline_s = None if n_slots is None else n_slots * slot_s
    optimum = fluid_optimum(problem, budget)
    plan = slotted_schedule(problem, optimum, slot_s, budget, prefer, deadline_s)
    plan.check(problem)
    return plan


def slots_of(plan):
    return round(plan.makespan_s / plan.slot_s)


# The fewest slots ------------------------------------------------------------------------------


@given(problems(features=WITHOUT_SHARED, most_hosts=4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_few_arcs_need_no_more_slots_than_all(few_arcs, problem):
    _compare_slots(problem)


@given(problems(most_hosts=3))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_few_arcs_need_no_more_slots_with_shared_bottlenecks(few_arcs, problem):
    _compare_slots(problem)


@pytest.mark.slow
@given(problems())
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_few_arcs_need_no_more_slots_on_many_problems(few_arcs, problem):
    _compare_slots(problem)


def _compare_slots(problem):
    try:
        dc.lower_bound(problem)
    except dc.InfeasibleError:
        assume(False)
    try:
        plan = plan_slots(problem)
    except dc.InfeasibleError:
        assume(not owners_with_limits(problem))
        assert slotted_makespan_slots(problem, 1.0, 12) is None
        return
    if slots_of(plan) <= 20:
        expected = slotted_makespan_slots(problem, 1.0, 20) if problem.total_bytes else 0
        if plan.status == "optimal":
            assert slots_of(plan) == expected
        else:
            assert owners_with_limits(problem)
            assert slots_of(plan) >= expected


def owners_with_limits(problem):
    """Owners of held data with a storage limit: such data may return there without needing room."""
    room = problem.storage_bytes
    return [p for p in problem.parcels if p.host != p.source and np.isfinite(room[p.source])]


def test_data_that_return_to_their_owner_need_room_and_the_status_says_so():
    """H holds K's byte and one of its own; both need K, which has room for one byte of others.

    Both could cross to K in slot 0, as K's own byte needs no room: 2 slots. The graph takes it for
    another's: 3 slots, and no claim to be fastest. With room for two the claim holds.
    """

    def plan_with_room(storage_bytes):
        return plan_slots(
            Problem.from_hosts(
                [Host("K", 1, storage_bytes=storage_bytes), Host("H", 1), Host("D")],
                links("H -> K 2, K -> D 2"),
                "D",
                held=[Held("H", "K", 0, 1)],
            )
        )

    found = [(slots_of(plan), plan.status) for plan in map(plan_with_room, (1, 2))]
    assert found == [(3, "heuristic"), (2, "optimal")]


def test_links_across_a_cut_are_added_until_everything_arrives():
    """S -> K -> D carries 6 a slot, S -> D 1: the plan's links alone are not enough for 6 + 1.

    Begin with S -> D only: in 3 slots it brings 3 of 15 bytes; S -> K and K -> D are missing.
    """
    problem = Problem.from_hosts(
        [Host("S", 15), Host("K"), Host("D")], links("S -> D 1, S -> K 6, K -> D 6"), "D"
    )
    direct = problem.link_indices(np.array([0]), np.array([2]))
    begun = partial_graph(problem, 1.0, 3, direct)
    assert (begun.graph.link >= 0).sum() == 3
    part, flow = saturating(begun, Budget())
    arriving = flow[part.graph.head == part.graph.sink].sum()
    assert arriving == 15
    assert set(part.graph.link[part.graph.link >= 0].tolist()) == {0, 1, 2}
    assert saturating(partial_graph(problem, 1.0, 2, direct), Budget()) is None


def test_nothing_comes_from_a_relay_before_data_have_got_there():
    """S's 5 bytes leave from slot 2 on; S -> D and K -> D carry 1 a slot, S -> K 9.

    Slots 2, 3 and 4 bring 1 + 0, 1 + 1 and 1 + 1: 5 slots, not 4.
    """
    problem = Problem.from_hosts(
        [Host("S", 5, release_s=2.0), Host("K"), Host("D")],
        links("S -> D 1, S -> K 9, K -> D 1"),
        "D",
    )
    found = [may_suffice(TimeExpansion(problem, 1.0, n_slots)) for n_slots in (2, 3, 4, 5, 6)]
    assert found == [False, False, False, True, True]
    assert slots_of(plan_slots(problem)) == 5


@given(problems(features=WITHOUT_SHARED, most_hosts=4))
@settings(max_examples=60)
def test_the_fewest_slots_in_which_a_flow_empties_all_pools_may_suffice(problem):
    for n_slots in range(1, 12):
        part = partial_graph(problem, 1.0, n_slots, np.arange(problem.n_links))
        if saturating(part, Budget()) is not None:
            assert may_suffice(part.expansion)
            return


@pytest.mark.parametrize("seed", range(6))
def test_the_fewest_slots_of_a_chain_of_relays_may_suffice(seed):
    """All that leaves the source crosses every relay: each adds a slot."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    bandwidth = np.diag(rng.integers(5, 9, n - 1), 1).astype(float)
    names = [f"h{i}" for i in range(n)]
    problem = Problem.from_matrix(names, bandwidth, [5, *[0] * (n - 1)], names[-1])
    found = [may_suffice(TimeExpansion(problem, 1.0, n_slots)) for n_slots in range(1, n + 1)]
    assert found == [False] * (n - 2) + [True] * 2
    assert slots_of(plan_slots(problem)) == n - 1


@pytest.mark.parametrize("looked_up", [0, 20, 10**9])
def test_links_between_hosts_however_they_are_found(monkeypatch, looked_up):
    """Looked up by their ends, or all passed by: those that carry a byte, in order."""
    monkeypatch.setattr(timegraph, "LOOKED_UP", looked_up)
    rng = np.random.default_rng(7)
    problem = overlay(12, 3, 7)
    expansion = TimeExpansion(problem, 0.02, 1)
    for _ in range(20):
        senders, receivers = rng.random((2, 12)) < rng.random((2, 1))
        expected = [
            link
            for link in range(problem.n_links)
            if senders[problem.link_from[link]]
            and receivers[problem.link_to[link]]
            and problem.link_from[link] != problem.destination_index
            and problem.bandwidth_bytes_per_s[0, link] * 0.02 >= 1
        ]
        assert expansion.links_between(0, senders, receivers).tolist() == expected


@pytest.mark.parametrize("arcs_per_node", [3, 20])
def test_sparse_and_dense_networks_cost_what_networkx_pays(arcs_per_node):
    """LEMON looks for entering arcs in another way in each of the two."""
    rng = np.random.default_rng(arcs_per_node)
    n, m = 30, 30 * arcs_per_node
    tail = np.append(np.arange(n), rng.integers(0, n, m - n))
    step = np.append(np.ones(n, dtype=np.int64), rng.integers(1, n, m - n))
    network = FlowNetwork(
        n,
        tail,
        (tail + step) % n,
        np.append(np.full(n, 10_000), rng.integers(0, 50, m - n)),
        rng.integers(0, 100, m),
    )
    supply = rng.integers(0, 100, n)
    supply[0] = -supply[1:].sum()
    flow = load_flow_solver("auto").min_cost_flow(network, supply)
    other = load_flow_solver("networkx").min_cost_flow(network, supply)
    assert network.cost @ flow == network.cost @ other
    balance = np.bincount(network.tail, flow, n) - np.bincount(network.head, flow, n)
    assert (balance == supply).all()
    assert ((flow >= 0) & (flow <= network.capacity)).all()


@pytest.mark.parametrize("seed", range(4))
def test_few_arcs_suffice_on_an_overlay(few_arcs, seed):
    """Far fewer are built than there are."""
    problem = overlay(40, 4, seed)
    budget = Budget()
    optimum = fluid_optimum(problem, budget)
    slot_s = optimum.makespan_s / 12
    plan = plan_slots(problem, slot_s=slot_s)
    n_slots = slots_of(plan)
    part, flow = saturating(
        partial_graph(problem, slot_s, n_slots, first_links(problem, optimum, n_slots, budget)),
        budget,
    )
    costs = path_costs(problem, "relay-bytes", np.full(n_slots, slot_s), part.graph.n_nodes)
    part, flow = cheapest(part, costs, budget)
    assert len(part.keys) < 0.8 * problem.n_links * n_slots
    everything = time_expanded_graph(problem, slot_s, n_slots)
    assert everything.n_nodes == part.graph.n_nodes
    assert int(slot_costs(costs, part.graph) @ flow) == least_cost(
        problem, slot_s, "relay-bytes", n_slots
    )
    assert (
        saturating(partial_graph(problem, slot_s, n_slots - 1, np.arange(problem.n_links)), budget)
        is None
    )


# The cheapest of them --------------------------------------------------------------------------


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize("seed", range(5))
def test_few_arcs_cost_no_more_than_all(few_arcs, prefer, seed):
    rng = np.random.default_rng(100 + seed)
    problem = overlay(12, 3, seed)
    if seed % 2:
        limit = np.where(rng.random(12) < 0.5, rng.integers(20, 200, 12), np.inf)
        room = np.where(rng.random(12) < 0.5, rng.integers(5, 80, 12), np.inf)
        problem = problem.replace(uplink_bytes_per_s=limit, storage_bytes=room)
    plan = plan_slots(problem, prefer)
    n_slots = slots_of(plan)
    assert paid(problem, plan, prefer, n_slots) == least_cost(problem, 1.0, prefer, n_slots)
    longer = plan_slots(problem, prefer, n_slots=n_slots + 3)
    cost = paid(problem, longer, prefer, n_slots + 3)
    assert cost == least_cost(problem, 1.0, prefer, n_slots + 3)


@given(problems(features=WITHOUT_SHARED, most_hosts=3))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_plans_cost_what_networkx_pays(few_arcs, problem):
    _compare_costs(problem)


@pytest.mark.slow
@given(problems(features=WITHOUT_SHARED))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_many_random_plans_cost_what_networkx_pays(few_arcs, problem):
    _compare_costs(problem)


def _compare_costs(problem):
    try:
        n_slots = slots_of(plan_slots(problem))
    except dc.InfeasibleError:
        assume(False)
    assume(0 < n_slots <= 20)
    for prefer in PREFERENCES:
        plan = plan_slots(problem, prefer)
        assert slots_of(plan) == n_slots
        assert paid(problem, plan, prefer, n_slots) == least_cost(problem, 1.0, prefer, n_slots)


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_a_wide_shared_bottleneck_changes_no_cost(few_arcs, prefer):
    """The linear program and the flow find plans that cost the same, where nothing is shared."""
    problem = overlay(10, 3, 3)
    names = [(problem.names[a], problem.names[b]) for a, b in
             zip(problem.link_from, problem.link_to, strict=True)]  # fmt: skip
    wide = problem.replace(shared=(dc.SharedBottleneck("wide", 1e6, names),))
    flow, program = plan_slots(problem, prefer), plan_slots(wide, prefer)
    assert slots_of(flow) == slots_of(program)
    cost = [float(paid(problem, plan, prefer, slots_of(plan))) for plan in (flow, program)]
    assert cost[0] == pytest.approx(cost[1], rel=1e-6)


def test_a_shared_bottleneck_is_priced_by_hand(few_arcs):
    """Two sources, 4 bytes each, direct links of 4 but 4 together; each has a relay of its own.

    In 3 slots the wire brings 8 in two: nobody needs a relay. In 2 slots it brings 8 as well.
    With the wire at 3: 2 slots bring 6 directly and 2 over relays, which arrive in slot 1.
    """
    problem = Problem.from_hosts(
        [Host("S", 4), Host("T", 4), Host("K"), Host("D")],
        links("S -> D 4, T -> D 4, S -> K 4, T -> K 4, K -> D 4"),
        "D",
    )
    for wire, relayed in ((4.0, 0), (3.0, 2)):
        shared = (dc.SharedBottleneck("wire", wire, [("S", "D"), ("T", "D")]),)
        plan = plan_slots(problem.replace(shared=shared))
        assert slots_of(plan) == 2
        assert plan.columns.n_bytes[plan.columns.hop > 0].sum() == relayed


def test_no_absent_arc_is_attractive_in_the_end():
    """Prices by hand: S -> D 1 is full, so a byte at S costs a way over K: 2 hops."""
    problem = Problem.from_hosts(
        [Host("S", 3), Host("K"), Host("D")], links("S -> D 1, S -> K 6, K -> D 6"), "D"
    )
    all_links = np.arange(3)
    part = partial_graph(problem, 1.0, 2, all_links)
    costs = path_costs(problem, "relay-bytes", np.ones(2), part.graph.n_nodes)
    part, flow = cheapest(part, costs, Budget())
    price = node_prices(part.graph, slot_costs(costs, part.graph), flow)
    source = part.graph.pools[0].node
    assert price[source] == 2 * costs.link[0] + costs.stored[0] + costs.arrival[1]
    assert len(attractive(part, costs, price)[0]) == 0
    fewer = partial_graph(problem, 1.0, 2, all_links[:2])
    assert len(attractive(fewer, costs, price)[0]) == 0


# Preferences and deadlines ---------------------------------------------------------------------


def test_more_time_saves_relay_bytes(few_arcs):
    """relay() in slots of 0.5 s: 6 MB, 0.5 a slot directly. 5 slots need 3.5 MB over K, 8 two."""
    fastest = plan_slots(relay(), slot_s=0.5)
    assert slots_of(fastest) == 5
    assert fastest.columns.n_bytes[fastest.columns.hop == 1].sum() == 3.5 * MB
    relaxed = plan_slots(relay(), slot_s=0.5, n_slots=8)
    assert relaxed.columns.n_bytes[relaxed.columns.hop == 1].sum() == 2 * MB
    direct = plan_slots(relay(), slot_s=0.5, n_slots=12)
    assert {route.hosts for route in direct.routes} == {("S", "D")}
    assert direct.makespan_s == 6.0


def test_earliest_arrival_uses_relays_although_there_is_time(few_arcs):
    plan = plan_slots(relay(), "earliest-arrival", slot_s=0.5, n_slots=12)
    assert plan.makespan_s == 2.5


def test_money_prefers_the_cheap_way_when_there_is_time(few_arcs):
    """S -> D costs 5, S -> K -> D 1 + 1 and carries 2 a slot: 6 bytes over K take 4 slots."""
    problem = Problem.from_hosts(
        [Host("S", 6), Host("K"), Host("D")], links("S -> D 6, S -> K 2, K -> D 2"), "D"
    ).replace(price_per_gb=np.array([1.0, 5.0, 1.0]))
    assert [problem.names[i] for i in problem.link_to[:2]] == ["K", "D"]
    plan = plan_slots(problem, "money", n_slots=4)
    assert {route.hosts for route in plan.routes} == {("S", "K", "D")}
    assert {r.hosts for r in plan_slots(problem, "money").routes} == {("S", "D")}
    assert plan_slots(problem, "money", n_slots=3).columns.n_bytes.sum() == 2 + 4 * 2


def test_a_deadline_between_two_slots_counts_whole_slots():
    assert [slots_within(time_s, 0.1) for time_s in (0.3, 0.1 + 0.2, 0.39, 0.05)] == [3, 3, 3, 0]


@pytest.mark.parametrize("deadline_s", [0.1, 2.0, 2.49])
def test_a_deadline_that_is_too_early_says_by_how_much_and_why(deadline_s):
    budget = Budget()
    optimum = fluid_optimum(relay(), budget)
    with pytest.raises(dc.InfeasibleError) as caught:
        slotted_schedule(relay(), optimum, 0.5, budget, deadline_s=deadline_s)
    text = str(caught.value)
    assert f"deadline_s = {deadline_s:g} is too early" in text
    assert "after 5 slots, 2.5 s" in text
    assert optimum.bottleneck.text in text


def test_a_deadline_at_the_fewest_slots_is_met_with_shared_bottlenecks(few_arcs):
    problem = figure_1()
    budget = Budget()
    optimum = fluid_optimum(problem, budget)
    plan = slotted_schedule(problem, optimum, 0.5, budget, deadline_s=1.5)
    plan.check(problem)
    assert plan.makespan_s == 1.5
    with pytest.raises(dc.InfeasibleError, match=r"after 3 slots, 1\.5 s"):
        slotted_schedule(problem, optimum, 0.5, budget, deadline_s=1.4)


@pytest.mark.parametrize("deadline_s", [1e9, float("inf")])
def test_a_deadline_of_too_many_slots_is_refused(deadline_s):
    budget = Budget()
    optimum = fluid_optimum(relay(), budget)
    with pytest.raises(dc.ProblemError, match=r"allows .* slots of 0\.5 s.*an earlier deadline"):
        slotted_schedule(relay(), optimum, 0.5, budget, deadline_s=deadline_s)


def test_nothing_to_move_meets_every_deadline():
    problem = Problem.from_hosts([Host("D", 7)], [], "D")
    budget = Budget()
    plan = slotted_schedule(problem, fluid_optimum(problem, budget), 1.0, budget, deadline_s=0.5)
    assert (plan.makespan_s, plan.n_transfers) == (0.0, 0)


# Large numbers ---------------------------------------------------------------------------------


def test_a_petabyte_in_few_slots(few_arcs):
    """relay() with 1e15 bytes: slots of 2.5e8 s carry a quarter of a petabyte directly."""
    problem = relay().replace(backlog_bytes=np.array([10**15, 0, 0]))
    plan = plan_slots(problem, slot_s=5e7)
    assert slots_of(plan) == 8  # 0.5 n + (n - 1) >= 10 in tenths of a petabyte
    large = shared_relay().replace(backlog_bytes=np.array([10**15, 10**15, 0, 0]))
    plan_slots(large, slot_s=1e8)


def test_units_scale(few_arcs):
    """A thousand billion times as many bytes and bandwidth: the same slots, the same routes."""
    small = overlay(14, 3, 8)
    large = small.replace(
        backlog_bytes=small.backlog_bytes * 10**12,
        bandwidth_bytes_per_s=small.bandwidth_bytes_per_s * 1e12,
    )
    one, other = plan_slots(small), plan_slots(large)
    assert slots_of(one) == slots_of(other)
    relayed = [int(plan.columns.n_bytes.sum()) for plan in (one, other)]
    # A slot may carry 1e-9 more than its bandwidth allows, for rounding.
    assert relayed[1] == pytest.approx(relayed[0] * 1e12, rel=1e-8)


# From a flow to pieces -------------------------------------------------------------------------


def test_first_in_first_out_at_a_relay_that_has_data_of_its_own():
    """K -> D carries 3 a slot: slot 0 takes K's own 2 bytes, slots 1 and 2 S's 4 bytes as 3 + 1.

    S sends each byte in the slot before, so that none waits at K.
    """
    problem = Problem.from_hosts(
        [Host("S", 4), Host("K", 2), Host("D")], links("S -> K 4, K -> D 3"), "D"
    )
    plan = plan_slots(problem, "earliest-arrival")
    moved = {}
    for row in plan.transfers.itertuples():
        moved.setdefault((row.source, row.hop), []).append((row.start_s, row.bytes))
    assert moved == {
        ("K", 0): [(0.0, 2)],
        ("S", 0): [(0.0, 3), (1.0, 1)],
        ("S", 1): [(1.0, 3), (2.0, 1)],
    }


def test_pieces_of_a_job_move_the_same_bytes_on_every_hop():
    problem = overlay(14, 3, 5, held=())
    budget = Budget()
    part = partial_graph(problem, 1.0, 30, np.arange(problem.n_links))
    part, flow = saturating(part, budget)
    jobs, pieces = slotted_pieces(part.graph, flow)
    moved = {}
    for job, hop, slot, n_bytes in pieces.tolist():
        assert n_bytes > 0
        moved.setdefault(job, {}).setdefault(hop, []).append((slot, n_bytes))
    assert sum(sum(n for _, n in hops[0]) for hops in moved.values()) == problem.total_bytes
    for job, hops in moved.items():
        assert len(hops) == len(jobs[job][1]) - 1
        assert len({sum(n for _, n in rows) for rows in hops.values()}) == 1


def test_held_data_leave_from_their_holder_and_own_data_from_their_source():
    """K holds 3 of S's 5 bytes; everything goes over K -> D at 4 a slot."""
    problem = Problem.from_hosts(
        [Host("S", 5), Host("K", storage_bytes=3), Host("D")],
        links("S -> K 2, K -> D 4"),
        "D",
        held=[Held("K", "S", 2, 3)],
    )
    plan = plan_slots(problem)
    assert slots_of(plan) == 2
    begun = {
        (plan.routes[route].hosts, offset, n_bytes)
        for route, hop, offset, n_bytes in zip(
            *(getattr(plan.columns, name).tolist() for name in ("route", "hop", "offset_bytes")),
            plan.columns.n_bytes.tolist(),
            strict=True,
        )
        if hop == 0
    }
    assert begun == {(("S", "K", "D"), 0, 2), (("K", "D"), 2, 3)}


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_no_route_visits_a_host_twice_without_storage_limits(few_arcs, prefer):
    plan = plan_slots(overlay(16, 3, 2), prefer)
    assert all(len(set(route.hosts)) == len(route.hosts) for route in plan.routes)


# What is refused -------------------------------------------------------------------------------


def test_more_slots_than_fit_in_memory_are_refused():
    n = 300
    problem = Problem.from_matrix([f"h{i}" for i in range(n)], np.ones((n, n)), [1] * n, "h0")
    with pytest.raises(dc.ProblemError, match=r"300 hosts, 89700 links and 90000 slots"):
        TimeExpansion(problem, 1.0, 90_000)


# Amounts far apart --------------------------------------------------------------------------


def a_byte_beside(n_bytes: int, *, over_a_relay: bool) -> Problem:
    """S sends at 1e9 bytes/s and B a byte at 1 byte/s; both share the 1e9 bytes/s of a wire."""
    last = "K" if over_a_relay else "B"
    relays = [Host("K")] if over_a_relay else []
    bandwidths = [("S", "D", 1e9), (last, "D", 1.0)] + ([("B", "K", 1.0)] if over_a_relay else [])
    return Problem.from_hosts(
        [Host("S", n_bytes), Host("B", 1), *relays, Host("D")],
        [dc.Link(*link) for link in bandwidths],
        "D",
        shared=[dc.SharedBottleneck("wire", 1e9, [("S", "D"), (last, "D")])],
    )


@pytest.mark.parametrize("slot_s", [1e3, 1e4])
@pytest.mark.parametrize(("n_bytes", "over_a_relay"), [(10**13, False), (10**15, True)])
def test_a_byte_beside_many_terabytes_is_planned(n_bytes, over_a_relay, slot_s):
    """The wire takes n_bytes / 1e9 seconds, a whole number of slots, and 1 ns for the byte.

    A shared bottleneck may be exceeded by less than a byte per arc, so the byte need not cost a
    slot of its own, but may.
    """
    problem = a_byte_beside(n_bytes, over_a_relay=over_a_relay)
    plan = dc.coordinated(problem, slot_s=slot_s, solver="ortools")
    plan.check(problem)
    assert n_bytes / 1e9 <= plan.makespan_s <= n_bytes / 1e9 + slot_s


@pytest.mark.parametrize("fails", ["cheapest", "least_cost_flow"])
def test_what_is_known_to_be_possible_is_never_called_infeasible(monkeypatch, fails):
    """The number of slots was proved enough: a solver that says otherwise has failed."""

    def impossible(*_arguments):
        raise dc.InfeasibleError("no point satisfies the rows")

    monkeypatch.setattr(f"datacollect.methods.slotted_shared.{fails}", impossible)
    with pytest.raises(dc.SolverError, match="a source holds 1; use a slot longer than 1000 s"):
        dc.coordinated(a_byte_beside(10**13, over_a_relay=False), slot_s=1e3)
