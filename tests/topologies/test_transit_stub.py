"""The transit-stub generator: structure, what is random and what is not, bad parameters."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.errors import ProblemError
from datacollect.topologies import WireClass, paper_152, transit_stub

SEEDS = range(50)

DIGEST_OF_SEED_7 = "18f1c6994a6c15efd757192b3a4020ee03ddcf6052d5c1e45175bec93efa2a45"

# Labelled connected graphs of n nodes by number of edges (F. Harary, E. M. Palmer, "Graphical
# Enumeration", 1973; OEIS A062734). In all 38 and 26704.
CONNECTED_GRAPHS = {
    4: {3: 16, 4: 15, 5: 6, 6: 1},
    6: {5: 1296, 6: 3660, 7: 5700, 8: 6165, 9: 4945, 10: 2997, 11: 1365, 12: 455, 13: 105}
    | {14: 15, 15: 1},
}


@pytest.fixture(scope="module")
def fifty():
    """The 152-node network with 50 seeds."""
    return [paper_152(seed=seed) for seed in SEEDS]


def test_the_preset_has_the_papers_structure(fifty):
    for topology in fifty:
        assert topology.n_nodes == 152
        assert Counter(topology.kinds) == {"transit": 8, "stub": 144}
        sizes = Counter(topology.domains)
        assert sizes.pop("A") == sizes.pop("B") == 4
        stubs = {f"{x}{i}.{k}" for x in "AB" for i in range(4) for k in range(3)}
        assert sizes == dict.fromkeys(stubs, 6)


def test_the_preset_has_the_papers_wires(fifty):
    for topology in fifty:
        kinds = Counter(topology.wire_kinds)
        assert kinds["peering"] == 2
        assert kinds["transit-stub"] == 24
        assert 2 * 3 <= kinds["transit"] <= 2 * 6
        assert 24 * 5 <= kinds["stub"] <= 24 * 15
        assert kinds.total() == topology.n_wires
        peering = [topology.wire_names[i] for i in topology.wires_of_kind("peering")]
        assert peering == ["B0-A0", "B1-A1"]


def test_rates_delays_and_queues_go_by_class(fifty):
    """2.5, 5 and 10 Mbit/s are 312 500, 625 000 and 1 250 000 bytes per second."""
    classes = {
        "peering": (625_000, 0.020),
        "transit": (1_250_000, 0.010),
        "transit-stub": (312_500, 0.005),
        "stub": (312_500, 0.001),
    }
    for kind, (rate, delay_s) in classes.items():
        wires = fifty[0].wires_of_kind(kind)
        assert np.all(fifty[0].rate_bytes_per_s[wires] == rate)
        assert np.all(fifty[0].delay_s[wires] == delay_s)
    assert np.all(fifty[0].queue_packets == 50)


def test_wires_join_what_their_kind_says(fifty):
    for topology in fifty:
        ends = zip(topology.wire_from, topology.wire_to, topology.wire_kinds, strict=True)
        for a, b, kind in ends:
            kinds = sorted((topology.kinds[a], topology.kinds[b]))
            same = topology.domains[a] == topology.domains[b]
            if kind == "transit-stub":
                assert kinds == ["stub", "transit"]
            else:
                assert kinds == ["stub" if kind == "stub" else "transit"] * 2
            assert same == (kind in ("transit", "stub"))


def test_each_stub_domain_hangs_on_its_transit_node_by_one_wire(fifty):
    topology = fifty[3]
    joined = {}
    for i in topology.wires_of_kind("transit-stub"):
        ends = (int(topology.wire_from[i]), int(topology.wire_to[i]))
        transit, stub = sorted(ends, key=lambda node: topology.kinds[node] == "stub")
        assert topology.domains[stub] not in joined
        joined[topology.domains[stub]] = topology.names[transit]
    assert joined == {f"{x}{i}.{k}": f"{x}{i}" for x in "AB" for i in range(4) for k in range(3)}


def test_all_domains_are_connected_by_themselves(fifty):
    for topology in fifty:
        graph = topology.to_networkx()
        assert nx.is_connected(graph)
        members: dict[str, list[str]] = {}
        for name, domain in zip(topology.names, topology.domains, strict=True):
            members.setdefault(domain, []).append(name)
        for names in members.values():
            assert nx.is_connected(graph.subgraph(names))


@pytest.mark.parametrize(
    ("kind", "n_nodes", "probability", "n_domains"),
    [("transit", 4, 0.6, 2), ("stub", 6, 0.2, 24)],
)
def test_mean_numbers_of_wires_are_those_of_connected_random_graphs(
    fifty, kind, n_nodes, probability, n_domains
):
    """Each graph of m edges has weight p^m (1-p)^(M-m); the mean of m over connected graphs.

    That is 4.08 edges for 4 nodes and p = 0.6 (3.6 if unconnected ones counted), 5.75 for 6 nodes
    and p = 0.2 (3 if they counted). Within 4 standard errors.
    """
    pairs = n_nodes * (n_nodes - 1) // 2
    numbers = np.array(list(CONNECTED_GRAPHS[n_nodes]))
    graphs = np.array(list(CONNECTED_GRAPHS[n_nodes].values()))
    weights = graphs * probability**numbers * (1 - probability) ** (pairs - numbers)
    mean = (weights * numbers).sum() / weights.sum()
    spread = np.sqrt((weights * (numbers - mean) ** 2).sum() / weights.sum())
    found = np.mean([len(topology.wires_of_kind(kind)) / n_domains for topology in fifty])
    assert abs(found - mean) < 4 * spread / np.sqrt(len(fifty) * n_domains)


def test_every_node_of_a_stub_domain_may_be_the_one_that_joins(fifty):
    """Of 1200 stub domains each of the 6 nodes joins 200; 5 standard deviations are 65."""
    joins = Counter()
    for topology in fifty:
        for i in topology.wires_of_kind("transit-stub"):
            node = max(topology.wire_from[i], topology.wire_to[i])  # stub nodes come last
            joins[topology.names[node].rpartition(".")[2]] += 1
    assert set(joins) == set("012345")
    assert all(abs(n - 200) < 65 for n in joins.values())


def test_same_seed_same_network():
    """The digest is fixed: another one means that stored results name other networks."""
    assert paper_152(seed=7).sha256 == paper_152(seed=7).sha256
    assert paper_152(seed=7).sha256 == DIGEST_OF_SEED_7


def test_different_seeds_differ(fifty):
    assert len({topology.sha256 for topology in fifty}) == len(SEEDS)


def test_other_classes_change_nothing_but_their_wires():
    plain = paper_152(seed=4)
    other = paper_152(seed=4, peering=WireClass(1e6, 0.5, 9))
    assert other.wire_names == plain.wire_names
    changed = plain.wires_of_kind("peering")
    assert np.all(other.rate_bytes_per_s[changed] == 1e6)
    assert np.all(other.delay_s[changed] == 0.5)
    assert np.all(other.queue_packets[changed] == 9)
    rest = np.setdiff1d(np.arange(plain.n_wires), changed)
    assert np.array_equal(other.delay_s[rest], plain.delay_s[rest])


def test_transit_domains_stay_when_stub_domains_change():
    one, other = (
        transit_stub(seed=2, nodes_per_transit_domain=6, nodes_per_stub=n) for n in (2, 5)
    )
    assert [one.wire_names[i] for i in one.wires_of_kind("transit")] == [
        other.wire_names[i] for i in other.wires_of_kind("transit")
    ]


def test_numbers_may_be_drawn_between_bounds():
    sizes, stubs = Counter(), Counter()
    for seed in range(20):
        topology = transit_stub(
            seed=seed,
            nodes_per_transit_domain=(3, 5),
            stubs_per_transit_node=(1, 3),
            nodes_per_stub=(2, 4),
            stub_edge_probability=0.5,
        )
        domains = Counter(topology.domains)
        sizes.update(n for domain, n in domains.items() if "." not in domain)
        stubs.update(n for domain, n in domains.items() if "." in domain)
        gates = Counter(domain.partition(".")[0] for domain in domains if "." in domain)
        assert set(gates.values()) <= {1, 2, 3}
    assert set(sizes) == {3, 4, 5}
    assert set(stubs) == {2, 3, 4}


def test_every_two_transit_domains_peer():
    topology = transit_stub(seed=0, n_transit_domains=3, peering_wires=1, nodes_per_stub=1)
    peering = {topology.wire_names[i] for i in topology.wires_of_kind("peering")}
    assert peering == {"B0-A0", "C0-A0", "C0-B0"}


def test_domains_beyond_the_alphabet_have_names():
    topology = transit_stub(
        seed=0,
        n_transit_domains=28,
        nodes_per_transit_domain=1,
        stubs_per_transit_node=0,
        peering_wires=1,
    )
    assert topology.names[0] == "A0"
    assert topology.names[25:] == ("Z0", "AA0", "AB0")


def test_one_transit_domain_needs_no_peering():
    topology = transit_stub(seed=0, n_transit_domains=1, peering_wires=0)
    assert set(topology.wire_kinds) == {"transit", "transit-stub", "stub"}


def test_extra_wires_come_on_top():
    plain = transit_stub(seed=5)
    more = transit_stub(seed=5, extra_transit_stub=7, extra_stub_stub=4)
    extra = set(more.wire_names) - set(plain.wire_names)
    assert set(plain.wire_names) < set(more.wire_names)
    kinds = Counter(more.wire_kinds[more.wire_index(name)] for name in extra)
    assert kinds == {"transit-stub": 7, "stub": 4}
    for name in extra:
        i = more.wire_index(name)
        a, b = int(more.wire_from[i]), int(more.wire_to[i])
        assert more.domains[a] != more.domains[b]
        wanted = {"stub"} if more.wire_kinds[i] == "stub" else {"transit", "stub"}
        assert {more.kinds[a], more.kinds[b]} == wanted


def test_all_extra_wires_there_is_room_for_can_be_had():
    """4 transit nodes, 4 stub nodes of one each: 12 pairs are free, and 6 between stubs."""
    few = {"n_transit_domains": 1, "stubs_per_transit_node": 1, "nodes_per_stub": 1}
    topology = transit_stub(seed=0, **few, extra_transit_stub=12, extra_stub_stub=6)
    assert len(topology.wires_of_kind("transit-stub")) == 16
    assert len(topology.wires_of_kind("stub")) == 6
    with pytest.raises(ProblemError, match="extra_transit_stub must be at most 12 here, got 13"):
        transit_stub(seed=0, **few, extra_transit_stub=13)


def test_extra_wires_between_stub_domains_never_lie_within_one():
    """Two stub domains of 3 nodes have 9 pairs across; each has a pair without wire inside."""
    two = {
        "n_transit_domains": 1,
        "nodes_per_transit_domain": 1,
        "stubs_per_transit_node": 2,
        "nodes_per_stub": 3,
        "stub_edge_probability": 0.05,
    }
    assert len(transit_stub(seed=0, **two).wires_of_kind("stub")) == 2 * 2
    assert len(transit_stub(seed=0, **two, extra_stub_stub=9).wires_of_kind("stub")) == 2 * 2 + 9
    with pytest.raises(ProblemError, match="extra_stub_stub must be at most 9 here, got 10"):
        transit_stub(seed=0, **two, extra_stub_stub=10)


@given(
    st.integers(0, 2**64),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(0, 2),
    st.integers(1, 5),
)
def test_any_parameters_give_a_topology_of_the_right_size(seed, domains, nodes, stubs, size):
    topology = transit_stub(
        seed=seed,
        n_transit_domains=domains,
        nodes_per_transit_domain=nodes,
        stubs_per_transit_node=stubs,
        nodes_per_stub=size,
        peering_wires=1,
    )
    assert topology.n_nodes == domains * nodes * (1 + stubs * size)
    assert len(topology.wires_of_kind("peering")) == domains * (domains - 1) // 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"seed": 1.5}, "seed must be a whole number >= 0, got 1.5"),
        ({"seed": True}, "seed must be a whole number >= 0, got True"),
        ({"n_transit_domains": 0}, "n_transit_domains must be a whole number >= 1, got 0"),
        ({"peering_wires": 0}, "peering_wires must be a whole number >= 1, got 0"),
        ({"peering_wires": 5}, "at most the nodes of each transit domain, got 5 for domains of 4"),
        ({"transit_edge_probability": 0}, "transit_edge_probability must be > 0 and <= 1, got 0"),
        ({"stub_edge_probability": 1.2}, "stub_edge_probability must be > 0 and <= 1, got 1.2"),
        ({"nodes_per_stub": 0}, "nodes_per_stub must be a whole number >= 1, got 0"),
        ({"nodes_per_stub": (4, 2)}, "least must not be above the most"),
        ({"nodes_per_stub": (1, 2, 3)}, "nodes_per_stub must be a number or two"),
        ({"extra_stub_stub": -1}, "extra_stub_stub must be a whole number >= 0, got -1"),
        (
            {"nodes_per_stub": 40, "stub_edge_probability": 0.01},
            "stub domain 'A0.0': 40 nodes .* hardly ever connected; .* 0.092 or more",
        ),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ProblemError, match=message):
        transit_stub(**({"seed": 0} | parameters))
