"""Laws that any fluid optimum keeps, whatever computes it; and numbers of all sizes."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances.hand_made import links
from instances.how_many import many
from instances.strategies import FEATURES, problems

import datacollect as dc
from datacollect.flow.network.layered import breakpoints_s, layered_network
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem

# Hosts are renamed, not reordered in size: the destination stays the destination.
NEW_NAMES = {"D": "zone/destination", "H1": "A", "H2": "ü", "H3": "x y"}


def bound_or_none(problem):
    try:
        return dc.lower_bound(problem)[0]
    except dc.InfeasibleError:
        return None


def known_bound(problem):
    seconds = bound_or_none(problem)
    assume(seconds is not None)
    return seconds


def assert_same(found, expected):
    """Equal to the linear solver's tolerance, or infeasible both."""
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found == pytest.approx(expected, rel=1e-8)


RELAXATIONS = {
    "uplinks": lambda p: p.replace(uplink_bytes_per_s=2 * p.uplink_bytes_per_s),
    "downlinks": lambda p: p.replace(downlink_bytes_per_s=2 * p.downlink_bytes_per_s),
    "links": lambda p: p.replace(bandwidth_bytes_per_s=1.5 * p.bandwidth_bytes_per_s),
    "storage": lambda p: p.replace(storage_bytes=2 * p.storage_bytes + 1),
    "releases": lambda p: p.replace(release_s=p.release_s / 2),
    "shared": lambda p: p.replace(shared=p.shared[1:]),
    "nothing shared": lambda p: p.replace(shared=()),
}


@pytest.mark.parametrize("what", RELAXATIONS)
@given(problem=problems())
@settings(max_examples=15)
def test_to_relax_a_constraint_never_delays(what, problem):
    before = known_bound(problem)
    assert known_bound(RELAXATIONS[what](problem)) <= before * (1 + 1e-9)


@given(problem=problems())
def test_twice_the_rates_in_half_the_time(problem):
    """Doubled capacities, with release and period times halved: the same plan, twice as fast."""
    faster = problem.replace(
        bandwidth_bytes_per_s=2 * problem.bandwidth_bytes_per_s,
        uplink_bytes_per_s=2 * problem.uplink_bytes_per_s,
        downlink_bytes_per_s=2 * problem.downlink_bytes_per_s,
        release_s=problem.release_s / 2,
        periods_s=problem.periods_s / 2,
        shared=tuple(
            dc.SharedBottleneck(s.name, 2 * s.bandwidth_bytes_per_s, s.links)
            for s in problem.shared
        ),
    )
    before, after = bound_or_none(problem), bound_or_none(faster)
    assert_same(after, before and before / 2)


@given(problem=problems(), part=st.floats(0.1, 0.9), data=st.data())
def test_to_split_a_period_in_two_equal_ones_changes_nothing(problem, part, data):
    period = data.draw(st.integers(0, problem.n_periods - 1))
    starts = problem.periods_s.tolist()
    end = [*starts, starts[-1] + 3.0][period + 1]
    split = problem.replace(
        periods_s=np.insert(
            problem.periods_s, period + 1, starts[period] * part + end * (1 - part)
        ),
        **{
            name: np.insert(rates := getattr(problem, name), period, rates[period], axis=0)
            for name in ("bandwidth_bytes_per_s", "uplink_bytes_per_s", "downlink_bytes_per_s")
        },
    )
    assert_same(bound_or_none(split), bound_or_none(problem))


@given(problem=problems())
def test_names_mean_nothing(problem):
    renamed = problem.replace(
        names=tuple(NEW_NAMES[name] for name in problem.names),
        destination=NEW_NAMES[problem.destination],
        shared=tuple(
            dc.SharedBottleneck(
                s.name,
                s.bandwidth_bytes_per_s,
                [(NEW_NAMES[a], NEW_NAMES[b]) for a, b in s.links],
            )
            for s in problem.shared
        ),
        held=tuple(
            dc.Held(NEW_NAMES[h.host], NEW_NAMES[h.source], h.offset_bytes, h.n_bytes)
            for h in problem.held
        ),
    )
    assert bound_or_none(renamed) == bound_or_none(problem)


@given(problem=problems(FEATURES - {"held"}), data=st.data())
def test_storage_at_a_host_that_relays_nothing_does_not_matter(problem, data):
    host = data.draw(st.integers(1, problem.n_hosts - 1))
    into = problem.link_to == host
    bandwidth = np.where(into, 0.0, problem.bandwidth_bytes_per_s)
    storage = problem.storage_bytes.copy()
    storage[host] = 0.0
    plain = problem.replace(bandwidth_bytes_per_s=bandwidth)
    assert_same(bound_or_none(plain.replace(storage_bytes=storage)), bound_or_none(plain))


# Numbers of all sizes ------------------------------------------------------------------------


def exact_makespan_s(problem: Problem) -> Fraction | None:
    """Enumerate all cuts, in fractions: right whatever the sizes of the numbers."""
    starts = breakpoints_s(problem)
    instants = [Fraction(float(start)) for start in starts]
    released = max(parcel.release_s for parcel in problem.parcels)
    for n_pieces in range(1, len(starts) + 1):
        full = [b - a for a, b in pairwise(instants[:n_pieces])]
        if released > starts[n_pieces - 1]:
            continue
        length = _least_length(layered_network(problem, starts[:n_pieces]), full)
        ends = [*instants, None][n_pieces]
        if length is not None and (ends is None or instants[n_pieces - 1] + length <= ends):
            return instants[n_pieces - 1] + length
    return None


def _least_length(network, full) -> Fraction | None:
    columns = (network.tail, network.head, network.rate_bytes_per_s, network.room_bytes)
    arcs = list(zip(*(column.tolist() for column in (*columns, network.piece)), strict=True))
    used = {node for tail, head, *_ in arcs for node in (tail, head)}
    used |= {pool.node for pool in network.pools}
    nodes = sorted(used - {network.sink})
    longest = Fraction(0)
    for sides in product((False, True), repeat=len(nodes)):
        behind = {node for node, side in zip(nodes, sides, strict=True) if side}
        supply = sum(pool.n_bytes for pool in network.pools if pool.node in behind)
        crossing = [arc for arc in arcs if arc[0] in behind and arc[1] not in behind]
        if supply == 0 or any(np.isinf(arc[2]) and np.isinf(arc[3]) for arc in crossing):
            continue
        last = network.n_pieces - 1
        fixed = sum(
            Fraction(room) if np.isinf(rate) else Fraction(rate) * full[piece]
            for _, _, rate, room, piece in crossing
            if np.isinf(rate) or piece < last
        )
        rate = sum(Fraction(r) for _, _, r, _, p in crossing if not np.isinf(r) and p == last)
        if supply > fixed and rate == 0:
            return None
        if supply > fixed:
            longest = max(longest, (supply - fixed) / rate)
    return longest


def wide_ranging(seed: int) -> Problem:
    """Two or three hosts; bytes up to 1e15, rates over up to nine orders of magnitude."""
    rng = np.random.default_rng(seed)

    def size(orders: float) -> float:
        return float(10 ** rng.uniform(0, orders))

    names = ["D", "A", "B"][: rng.integers(2, 4)]
    n_periods = int(rng.integers(1, 3 if len(names) == 3 else 4))
    periods = np.cumsum([0.0, *(size(7) for _ in range(n_periods - 1))])
    orders = rng.choice([2, 5, 9])
    hosts = [
        Host(
            name,
            backlog_bytes=int(size(rng.choice([3, 9, 15]))) * (name != "D"),
            uplink_bytes_per_s=rng.choice([np.inf, size(orders)]),
            storage_bytes=rng.choice([np.inf, float(int(size(15)))]),
        )
        for name in names
    ]
    pairs = [
        (a, b) for a in names[1:] for b in names if a != b and (b == "D" or rng.random() < 0.7)
    ]
    forecasts = [[size(orders) * (rng.random() < 0.9) for _ in periods] for _ in pairs]
    links_ = [Link(a, b, forecast) for (a, b), forecast in zip(pairs, forecasts, strict=True)]
    return Problem.from_hosts(hosts, links_, "D", periods_s=periods.tolist())


def _judge_sizes(seed: int) -> None:
    problem = wide_ranging(seed)
    expected = exact_makespan_s(problem)
    if expected is None:
        with pytest.raises(dc.InfeasibleError):
            dc.coordinated(problem)
        return
    assert dc.lower_bound(problem)[0] == pytest.approx(float(expected), rel=1e-9)
    for options in ({}, {"chunk_s": 0.0}, {"prefer": "storage"}, {"prefer": "earliest-arrival"}):
        dc.coordinated(problem, **options).check(problem)
    dc.coordinated(problem, deadline_s=1.5 * float(expected)).check(problem)


# 76: the arrival curve's bends lie closer together than instants can tell.
@pytest.mark.parametrize("seed", [*range(20), 76])
def test_bytes_and_rates_of_all_sizes_are_exact(seed):
    _judge_sizes(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 20 + many(180)))
def test_bytes_and_rates_of_all_sizes_are_exact_in_many_mixes(seed):
    _judge_sizes(seed)


@pytest.mark.parametrize("left", [1000, 10**6])
def test_what_a_fast_period_leaves_over_waits_for_a_slow_one(left):
    """1e9 bytes/s for 1e6 s, then 1 byte/s: each byte beyond 1e15 takes a second."""
    problem = Problem.from_hosts(
        [Host("S", 10**15 + left), Host("D")], links("S -> D 1e9 1"), "D", periods_s=[0.0, 1e6]
    )
    assert dc.lower_bound(problem)[0] == pytest.approx(1e6 + left, rel=1e-7)
    plan = dc.coordinated(problem)
    plan.check(problem)
    rest = dc.replan(problem, plan, {"format": "datacollect-progress/1", "at_s": 0.0, "held": []})
    rest.check(problem)
    assert plan.makespan_s == rest.makespan_s == pytest.approx(1e6 + left)


def test_few_bytes_among_very_many_are_not_lost():
    """300 hosts hold 1e15 bytes each, one holds 1 behind a link of 1 byte/s."""
    n = 302
    rng = np.random.default_rng(1)
    bandwidth = rng.uniform(0.5, 1.0, (n, n)) * 1e9
    bandwidth[n - 1] = 0.0
    bandwidth[n - 1, 0] = 1.0
    backlog = np.full(n, 10**15, dtype=np.int64)
    backlog[0], backlog[-1] = 0, 1
    problem = Problem.from_matrix([f"h{i}" for i in range(n)], bandwidth, backlog, "h0")
    for changes in ({}, {"uplink_bytes_per_s": np.full(n, 1e12)}):
        plan = dc.coordinated(problem.replace(**changes))
        plan.check(problem)
        assert int(plan.columns.n_bytes[plan.columns.hop == 0].sum()) == problem.total_bytes
