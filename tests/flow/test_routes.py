"""Path decomposition of arc flows, and whole bytes from shares."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from instances.arc_flows import flow_on, network_of
from instances.hand_made import links

from datacollect.flow.network.pools import Pool, pools_by_host
from datacollect.flow.routes.routes import cut_parcels, decompose, whole_bytes
from datacollect.problem.hosts import Held, Host, Parcel
from datacollect.problem.problem import Problem


def routes_of(problem, network, flow):
    """Amount by pool's host and route."""
    found: Counter[tuple[str, str]] = Counter()
    for path in decompose(network, network.piece, flow):
        start = problem.names[network.pools[path.pool].host]
        found[start, " ".join(problem.names[host] for host in path.hosts)] += path.amount
    return dict(found)


# Paths -----------------------------------------------------------------------------------------


def test_a_flow_over_two_routes_becomes_two_paths():
    problem, network = network_of("S -> D 1, S -> K 1, K -> D 1")
    flow = flow_on(problem, network, {"S D": 3, "S K": 2, "K D": 2})
    assert routes_of(problem, network, flow) == {("S", "S D"): 3, ("S", "S K D"): 2}


def test_sources_that_meet_at_a_relay_stay_apart():
    """A and B send 3 and 4 through K, which adds 5 of its own: K -> D carries 12."""
    problem, network = network_of("A -> K 1, B -> K 1, K -> D 1", backlogs="ABK")
    flow = flow_on(problem, network, {"A K": 3, "B K": 4, "K D": 12})
    assert routes_of(problem, network, flow) == {
        ("A", "A K D"): 3,
        ("B", "B K D"): 4,
        ("K", "K D"): 5,
    }


def test_a_relay_takes_no_more_than_its_own_data_although_it_comes_first():
    """A is a relay with 5 units of its own, through which B and C send 3 and 4."""
    problem, network = network_of("A -> D 1, B -> A 1, C -> A 1", backlogs="ABC")
    flow = flow_on(problem, network, {"A D": 12, "B A": 3, "C A": 4})
    assert routes_of(problem, network, flow) == {
        ("A", "A D"): 5,
        ("B", "B A D"): 3,
        ("C", "C A D"): 4,
    }


def test_cycles_are_dropped():
    """2 units go round K -> L -> M -> K for nothing; 5 go S -> K -> L -> D."""
    problem, network = network_of("S -> K 1, K -> L 1, L -> M 1, M -> K 1, L -> D 1")
    flow = flow_on(problem, network, {"S K": 5, "K L": 7, "L M": 2, "M K": 2, "L D": 5})
    assert routes_of(problem, network, flow) == {("S", "S K L D"): 5}


def test_a_cycle_through_the_start_is_dropped():
    """3 units come back to S and leave again: S -> K carries 8, 5 of them for D."""
    problem, network = network_of("S -> K 1, K -> S 1, K -> D 1")
    flow = flow_on(problem, network, {"S K": 8, "K S": 3, "K D": 5})
    assert routes_of(problem, network, flow) == {("S", "S K D"): 5}


def test_a_cycle_away_from_all_paths_is_ignored():
    problem, network = network_of("S -> D 1, K -> L 1, L -> K 1, K -> D 1")
    flow = flow_on(problem, network, {"S D": 4, "K L": 9, "L K": 9})
    assert routes_of(problem, network, flow) == {("S", "S D"): 4}


def test_rounding_in_a_linear_programs_flow_leaves_no_path_to_nowhere():
    """K passes on a hair less than it gets: 1.0 arrives, the crumb is dropped."""
    problem, network = network_of("S -> D 1, S -> K 1, K -> D 1")
    flow = flow_on(problem, network, {"S K": 1.0 + 1e-13, "K D": 1.0, "S D": 2.0}, dtype=float)
    found = routes_of(problem, network, flow)
    assert found == {("S", "S K D"): pytest.approx(1.0), ("S", "S D"): pytest.approx(2.0)}


def test_no_flow_has_no_paths():
    problem, network = network_of("S -> D 1")
    assert decompose(network, network.piece, flow_on(problem, network, {})) == []


def test_hops_know_their_piece_and_waiting_is_no_hop():
    """S -> K in the first piece, storage at K, K -> D in the second."""
    problem, network = network_of("S -> K 5 1, K -> D 0 10", n_pieces=2, periods_s=[0.0, 1.0])
    flow = np.zeros(network.n_arcs, dtype=np.int64)
    (pool,) = network.pools
    index = problem.host_index
    s_to_k, k_to_d = problem.link_indices(
        [index["S"], index["K"]], [index["K"], index["D"]]
    ).tolist()
    first_hop = np.flatnonzero((network.link == s_to_k) & (network.piece == 0))[0]
    second_hop = np.flatnonzero((network.link == k_to_d) & (network.piece == 1))[0]
    wait = np.flatnonzero(network.stored & (network.tail == network.head[first_hop]))[0]
    enter = np.flatnonzero((network.tail == pool.node) & (network.head == network.tail[first_hop]))
    flow[[first_hop, second_hop, wait, enter[0]]] = 5
    (path,) = decompose(network, network.piece, flow)
    assert [problem.names[h] for h in path.hosts] == ["S", "K", "D"]
    assert (path.pieces, path.amount) == ((0, 1), 5)


@st.composite
def walks(draw):
    """Amounts by route from S over some of K, L, M to D, and by cycles among them."""
    relays = draw(st.lists(st.permutations("KLM"), min_size=1, max_size=4))
    paths = [("S", *relay[: draw(st.integers(0, 3))], "D") for relay in relays]
    cycles = draw(st.lists(st.sampled_from(["KLK", "KLMK", "MLM", "SKS"]), max_size=3))
    amounts = st.integers(1, 9)
    return [(p, draw(amounts)) for p in paths], [(tuple(c), draw(amounts)) for c in cycles]


@given(walks())
def test_what_starts_arrives_by_simple_paths_within_the_flow(example):
    paths, cycles = example
    hosts = "SKLMD"
    text = ", ".join(f"{a} -> {b} 1" for a in hosts for b in hosts if a != b and a != "D")
    problem, network = network_of(text)
    amounts: Counter[str] = Counter()
    for walk, amount in (*paths, *cycles):
        for tail, head in pairwise(walk):
            amounts[f"{tail} {head}"] += amount
    found = routes_of(problem, network, flow_on(problem, network, amounts))
    assert sum(found.values()) == sum(amount for _, amount in paths)
    used: Counter[str] = Counter()
    for (start, route), amount in found.items():
        names = route.split()
        assert start == names[0] == "S"
        assert names[-1] == "D"
        assert len(set(names)) == len(names)
        for tail, head in pairwise(names):
            used[f"{tail} {head}"] += amount
    assert all(used[ends] <= amounts[ends] for ends in used)


# Whole bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_bytes", "amounts", "expected"),
    [
        (10, [1, 1, 1], [3, 4, 3]),  # ends at 3.3, 6.7 and 10
        (10, [5, 5], [5, 5]),
        (7, [0.5, 0.25, 0.25], [3, 2, 2]),  # ends at 3.5, 5.25 and 7
        (1, [1, 2], [0, 1]),
        (0, [1, 2], [0, 0]),
        (5, [7], [5]),
        (3, [0, 1], [0, 3]),
        (10**18, [1, 2], [333333333333333333, 666666666666666667]),
        (10**18, [0.5, 0.5], [5 * 10**17, 5 * 10**17]),
        (10**18 + 1, [10**18, 1], [10**18, 1]),
    ],
)
def test_shares_are_whole_and_in_proportion(n_bytes, amounts, expected):
    shares = whole_bytes(n_bytes, amounts)
    assert shares == expected
    assert all(type(share) is int for share in shares)


@given(
    st.integers(0, 2**62),
    st.lists(st.floats(1e-300, 1e300) | st.integers(1, 2**62), min_size=1, max_size=8),
    st.data(),
)
def test_neighbours_together_are_off_by_less_than_a_byte_and_the_last_is_there(
    n_bytes, amounts, data
):
    """Whatever the scale: what takes one route in piece after piece never adds up to two bytes."""
    last = data.draw(st.integers(0, len(amounts) - 1))
    shares = whole_bytes(n_bytes, amounts, last)
    exact = [Fraction(amount) for amount in amounts]
    total = sum(exact)
    assert sum(shares) == n_bytes
    assert shares[last] >= min(n_bytes, 1)
    for begin in range(len(amounts)):
        for end in range(begin, len(amounts)):
            off = sum(shares[begin : end + 1]) - n_bytes * sum(exact[begin : end + 1]) / total
            # Floats are summed as floats.
            assert abs(off) < 1 + n_bytes * Fraction(1, 2**48)


@given(st.integers(0, 10**18), st.lists(st.integers(0, 10**18), min_size=1, max_size=8))
def test_integer_shares_are_the_exact_proportion_up_to_a_byte(n_bytes, amounts):
    if sum(amounts) == 0:
        amounts = [*amounts, 1]
    shares = whole_bytes(n_bytes, amounts)
    assert sum(shares) == n_bytes
    for share, amount in zip(shares, amounts, strict=True):
        assert abs(share - Fraction(n_bytes) * amount / sum(amounts)) < 1


@given(
    st.integers(0, 10**18),
    st.lists(st.floats(1e-3, 1e15) | st.integers(1, 10**15), min_size=1, max_size=8),
)
def test_float_shares_lose_nothing_and_keep_fifteen_digits(n_bytes, amounts):
    shares = whole_bytes(n_bytes, amounts)
    assert sum(shares) == n_bytes
    total = sum(map(Fraction, amounts))
    for share, amount in zip(shares, amounts, strict=True):
        exact = Fraction(n_bytes) * Fraction(amount) / total
        assert abs(share - exact) <= 1 + n_bytes * Fraction(1, 10**15)
        assert share >= 0


# Parcels ---------------------------------------------------------------------------------------


def test_sizes_are_laid_end_to_end_over_parcels():
    """Parcels of 3 and 4 bytes; sizes 2, 3, 0, 2: the second one takes the end of the first."""
    one, two = Parcel(1, 0, 10, 3, 0.0), Parcel(1, 1, 0, 4, 0.0)
    pieces = list(cut_parcels(Pool(1, 1, (one, two)), [2, 3, 0, 2]))
    assert pieces == [(0, one, 10, 2), (1, one, 12, 1), (1, two, 0, 2), (3, two, 2, 2)]


def test_one_size_may_cover_many_parcels():
    parcels = tuple(Parcel(1, source, 5, 2, 0.0) for source in range(3))
    pieces = list(cut_parcels(Pool(1, 1, parcels), [6]))
    assert pieces == [(0, parcel, 5, 2) for parcel in parcels]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.data())
def test_every_byte_is_cut_once_and_in_order(sizes_of_parcels, data):
    parcels = tuple(Parcel(1, i, 100 * i, size, 0.0) for i, size in enumerate(sizes_of_parcels))
    total = sum(sizes_of_parcels)
    cuts = sorted(data.draw(st.lists(st.integers(0, total), max_size=5)))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]
    moved = [
        (i, parcel.source, offset + k)
        for i, parcel, offset, n_bytes in cut_parcels(Pool(1, 1, parcels), sizes)
        for k in range(n_bytes)
    ]
    bytes_in_order = [(p.source, p.offset_bytes + k) for p in parcels for k in range(p.n_bytes)]
    assert [(source, offset) for _, source, offset in moved] == bytes_in_order
    assert [i for i, _, _ in moved] == [i for i, size in enumerate(sizes) for _ in range(size)]


def test_pools_of_a_problem_cover_its_parcels():
    problem = Problem.from_hosts(
        [Host("S", 9), Host("K", 4), Host("D")],
        links("S -> K 1, K -> D 1"),
        "D",
        held=[Held("K", "S", 2, 3)],
    )
    parcels = [parcel for pool in pools_by_host(problem) for parcel in pool.parcels]
    assert sorted(parcels, key=lambda p: (p.source, p.offset_bytes)) == [
        Parcel(0, 0, 0, 2, 0.0),
        Parcel(1, 0, 2, 3, 0.0),
        Parcel(0, 0, 5, 4, 0.0),
        Parcel(1, 1, 0, 4, 0.0),
    ]
