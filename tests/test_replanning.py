"""Planning anew: what remains, how little changes, how soon it ends, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math

import hypothesis.strategies as st
import numpy as np
import oracle
import pytest
from hypothesis import HealthCheck, assume, given, settings
from strategies import FEATURES, problems

import datacollect as dc
from datacollect import earliest_end, other_links, stable_flow
from datacollect.budget import Budget
from datacollect.cli import run
from datacollect.earliest_end import proved_optimum
from datacollect.replanning import old_use

UNIT = 1_000_000

# Each example plans twice.
FEW_EXAMPLES = settings(
    max_examples=50, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def relay_problem(**changes) -> dc.Problem:
    """S sends to D, directly at 1 MB/s and over K at 1 MB/s; J could relay as well."""
    links = [dc.Link(a, b, 1e6) for a, b in (("S", "D"), ("S", "K"), ("K", "D"), ("S", "J"))]
    links.append(dc.Link("J", "D", 1e6))
    hosts = [dc.Host("S", backlog_bytes=8 * UNIT), dc.Host("K"), dc.Host("J"), dc.Host("D")]
    return dc.Problem.from_hosts(hosts, links, "D").replace(**changes)


def plan_over_k(chunk_s: float = 0.0) -> dc.Schedule:
    """The plan for `relay_problem` before J was there: 4 s, half directly, half over K."""
    problem = relay_problem()
    without_j = [i for i in range(problem.n_links) if "J" not in ends(problem, i)]
    return dc.coordinated(problem.with_links(np.array(without_j)), chunk_s=chunk_s)


def ends(problem: dc.Problem, link: int) -> tuple[str, str]:
    return problem.names[problem.link_from[link]], problem.names[problem.link_to[link]]


def bytes_over(schedule: dc.Schedule) -> dict[tuple[str, str], int]:
    table = schedule.transfers.groupby(["from", "to"])["bytes"].sum()
    return {pair: int(n_bytes) for pair, n_bytes in table.items()}


def new_bytes(problem: dc.Problem, plan: dc.Schedule, schedule: dc.Schedule) -> int:
    """Bytes over links that the plan does not use."""
    old = bytes_over(plan)
    return sum(n for pair, n in bytes_over(schedule).items() if pair not in old)


def mesh(n_hosts: int, seed: int, *, limits: bool) -> dc.Problem:
    rng = np.random.default_rng(seed)
    bandwidth = rng.lognormal(0.0, 1.0, (n_hosts, n_hosts)) * UNIT
    backlog = np.where(rng.random(n_hosts) < 0.3, rng.integers(1, 10, n_hosts), 0) * 1000 * UNIT
    backlog[0], backlog[1] = 0, 5000 * UNIT
    limit = n_hosts / 2 * UNIT * rng.uniform(0.5, 1.5, n_hosts) if limits else math.inf
    names = [f"h{i}" for i in range(n_hosts)]
    return dc.Problem.from_matrix(
        names, bandwidth, backlog, "h0", uplink_bytes_per_s=limit, downlink_bytes_per_s=limit
    )


def perturbed(problem: dc.Problem, part: float, seed: int = 7) -> dc.Problem:
    factor = np.random.default_rng(seed).uniform(1 - part, 1 + part, problem.n_links)
    return problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * factor)


# What lies where ----------------------------------------------------------------------------


def test_what_the_plan_says_lies_where():
    """After 3 of 4 s, with chunks of 1 s: K got 3 MB and passed 2 MB on; 3 MB came directly."""
    plan = plan_over_k(chunk_s=1.0)
    held = dc.Progress.from_schedule(relay_problem(), plan, 3.0).held
    at = {name: sum(h.n_bytes for h in held if h.host == name) for name in "DKS"}
    assert at == {"D": 5 * UNIT, "K": 1 * UNIT, "S": 0}


def test_what_never_moves_again_stays_collected():
    problem = relay_problem(held=(dc.Held("D", "S", 0, UNIT), dc.Held("K", "S", UNIT, UNIT)))
    plan = dc.coordinated(problem, chunk_s=0.0)
    held = dc.Progress.from_schedule(problem, plan, 0.0).held
    assert set(held) == set(problem.held)
    done = dc.Progress.from_schedule(problem, plan, plan.makespan_s)
    assert dc.remaining_problem(problem, done).total_bytes == 0


@given(problems(), st.floats(0.0, 1.2), st.sampled_from([None, 0.0, 0.25]))
@FEW_EXAMPLES
def test_bytes_delivered_and_the_rest_are_all(problem, part, chunk_s):
    plan = planned(problem, chunk_s=chunk_s)
    progress = dc.Progress.from_schedule(problem, plan, part * plan.makespan_s)
    remaining = dc.remaining_problem(problem, progress)
    delivered = sum(h.n_bytes for h in progress.held if h.host == "D")
    own = int(problem.backlog_bytes[problem.destination_index])
    assert delivered + remaining.total_bytes + own == int(problem.backlog_bytes.sum())


def planned(problem: dc.Problem, **options) -> dc.Schedule:
    try:
        return dc.coordinated(problem, **options)
    except dc.InfeasibleError:
        assume(False)
        raise


# What remains -------------------------------------------------------------------------------


def test_releases_and_periods_are_counted_from_now():
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 10, release_s=5.0), dc.Host("R", 10, release_s=1.0), dc.Host("D")],
        [dc.Link("S", "D", [1.0, 2.0, 3.0]), dc.Link("R", "D", [4.0, 5.0, 6.0])],
        "D",
        periods_s=[0.0, 3.0, 7.0],
    )
    rest = dc.remaining_problem(problem, dc.Progress(3.5))
    assert rest.release_s.tolist() == [1.5, 0.0, 0.0]
    assert rest.periods_s.tolist() == [0.0, 3.5]
    assert rest.bandwidth_bytes_per_s.tolist() == [[2.0, 5.0], [3.0, 6.0]]


def test_new_estimates_replace_add_and_keep():
    """Of two periods one is over; the new forecast changes after 1 s, the old one after 2 s."""
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 10), dc.Host("K"), dc.Host("D")],
        [dc.Link("S", "D", [1.0, 2.0, 3.0], 5.0), dc.Link("K", "D", [4.0, 5.0, 6.0], 7.0)],
        "D",
        periods_s=[0.0, 3.0, 6.0],
    )
    tree = {
        "format": "datacollect-progress/1",
        "at_s": 4.0,
        "periods_s": [0.0, 1.0],
        "links": [
            {"from": "S", "to": "D", "bandwidth_bytes_per_s": [10.0, 20.0]},
            {"from": "S", "to": "K", "bandwidth_bytes_per_s": 30.0, "price_per_gb": 9.0},
        ],
    }
    rest = dc.remaining_problem(problem, dc.Progress.from_dict(tree, problem))
    assert rest.periods_s.tolist() == [0.0, 1.0, 2.0]
    bandwidth = {ends(rest, i): rest.bandwidth_bytes_per_s[:, i].tolist() for i in range(3)}
    assert bandwidth == {
        ("S", "D"): [10.0, 20.0, 20.0],
        ("K", "D"): [5.0, 5.0, 6.0],
        ("S", "K"): [30.0, 30.0, 30.0],
    }
    prices = {ends(rest, i): float(rest.price_per_gb[i]) for i in range(3)}
    assert prices == {("S", "D"): 5.0, ("K", "D"): 7.0, ("S", "K"): 9.0}


def test_links_of_lost_hosts_vanish_and_what_they_held_starts_again():
    shared = (
        dc.SharedBottleneck("both", 1e6, [("S", "K"), ("S", "J")]),
        dc.SharedBottleneck("one", 1e6, [("S", "K")]),
    )
    problem = relay_problem(shared=shared)
    lost = dc.Held("K", "S", 0, UNIT)
    progress = dc.Progress(1.0, held=(lost, dc.Held("D", "S", UNIT, UNIT)), lost_hosts=("K",))
    rest = dc.remaining_problem(problem, progress)
    assert progress.lost_data == (lost,)
    assert {ends(rest, i) for i in range(rest.n_links)} == {("S", "D"), ("S", "J"), ("J", "D")}
    assert [(s.name, tuple(s.links)) for s in rest.shared] == [("both", (("S", "J"),))]
    assert [(p.host, p.offset_bytes, p.n_bytes) for p in rest.parcels] == [
        (0, 0, UNIT),
        (0, 2 * UNIT, 6 * UNIT),
    ]


def test_a_relay_has_room_for_what_it_holds():
    problem = relay_problem(storage_bytes=np.zeros(4))
    rest = dc.remaining_problem(problem, dc.Progress(1.0, held=(dc.Held("K", "S", 0, UNIT),)))
    assert rest.storage_bytes.tolist() == [0.0, UNIT, 0.0, 0.0]


def test_fewer_links_are_the_problem_with_fewer_links():
    problem = mesh(9, 1, limits=True)
    assert problem.sha256  # what is remembered must not be handed on
    links = np.array([0, 3, 17, 40])
    few = problem.with_links(links)
    same = problem.replace(
        link_from=problem.link_from[links],
        link_to=problem.link_to[links],
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s[:, links],
    )
    assert few.sha256 == same.sha256
    assert few.link_indices([few.link_from[2]], [few.link_to[2]]).tolist() == [2]
    out = problem.links_out_of([2, 5])
    assert out.tolist() == np.flatnonzero(np.isin(problem.link_from, [2, 5])).tolist()


@st.composite
def scattered(draw) -> tuple[dc.Problem, dict[str, list[str]]]:
    """Backlogs in which every byte lies at some host: the problem, and where each byte is."""
    names = ["D", "S", "K", "J"]
    lies_at = {
        source: draw(st.lists(st.sampled_from(names), min_size=1, max_size=12))
        for source in ("D", "S", "K")
    }
    held = [
        dc.Held(host, source, byte, 1)
        for source, hosts in lies_at.items()
        for byte, host in enumerate(hosts)
        if host != source or draw(st.booleans())  # at its source it need not be listed
    ]
    backlog = [len(lies_at.get(name, [])) for name in names]
    hosts = [
        dc.Host(name, n, 5.0 * i) for i, (name, n) in enumerate(zip(names, backlog, strict=True))
    ]
    links = [dc.Link(name, "D", 1.0) for name in names[1:]]
    problem = dc.Problem.from_hosts(hosts, links, "D", held=draw(st.permutations(held)))
    return problem, lies_at


@given(scattered())
def test_parcels_say_of_every_byte_where_it_lies(case):
    problem, lies_at = case
    found = {
        (problem.names[p.source], p.offset_bytes + byte): (problem.names[p.host], p.release_s)
        for p in problem.parcels
        for byte in range(p.n_bytes)
    }
    release = dict(zip(problem.names, problem.release_s.tolist(), strict=True))
    assert found == {
        (source, byte): (host, release[source] if host == source else 0.0)
        for source, hosts in lies_at.items()
        for byte, host in enumerate(hosts)
        if host != "D"
    }
    assert sum(p.n_bytes for p in problem.parcels) == len(found) == problem.total_bytes
    assert list(problem.parcels) == sorted(problem.parcels)
    own = [p for p in problem.parcels if p.host == p.source]
    ends = {(p.source, p.offset_bytes + p.n_bytes) for p in own}
    assert not ends & {(p.source, p.offset_bytes) for p in own}  # as few as can be


def test_where_only_hosts_change_links_are_neither_copied_nor_forgotten():
    problem = mesh(9, 1, limits=True)
    assert problem.sha256
    assert problem.parcels
    half = int(problem.backlog_bytes[1]) // 2
    rest = dc.remaining_problem(problem, dc.Progress(0.0, held=(dc.Held("h0", "h1", 0, half),)))
    assert np.shares_memory(rest.bandwidth_bytes_per_s, problem.bandwidth_bytes_per_s)
    assert rest.total_bytes == problem.total_bytes - half
    in_full = dataclasses.replace(rest)  # checks and computes all of it anew
    assert rest.sha256 == in_full.sha256 != problem.sha256
    assert rest.parcels == in_full.parcels
    with pytest.raises(dc.ProblemError, match="storage_bytes must be >= 0, got -1"):
        rest.replace(storage_bytes=np.full(9, -1.0))


@pytest.mark.parametrize(("offset", "n_bytes"), [(2**70, 1), (0, 2**70), (-(2**70), 1), (1, -1)])
def test_numbers_beyond_64_bits_are_refused_as_ranges(offset, n_bytes):
    progress = dc.Progress(0.0, held=(dc.Held("K", "S", offset, n_bytes),))
    with pytest.raises(dc.ProblemError, match="the range must lie within the backlog of 8000000"):
        dc.remaining_problem(relay_problem(), progress)


# How soon -----------------------------------------------------------------------------------


def test_a_slower_link_moves_what_does_not_fit_to_the_other_relay():
    """K -> D drops to 0.5 MB/s with 4 MB left, none at relays: 2 s without J would need 8/3 s.

    T* = 4 / (1 + 0.5 + 1) = 1.6 s with all three ways; old links alone need 4 / 1.5 s.
    Within 1.6 s exactly, 1.6 MB have to take J.
    """
    plan, problem = plan_over_k(), relay_problem()
    progress = dc.Progress.from_schedule(problem, plan, 2.0)
    slower = problem.replace(bandwidth_bytes_per_s=np.where(into_d_from(problem, "K"), 0.5e6, 1e6))
    rest = dc.replan(slower, plan, progress, stability=0.0)
    assert rest.lower_bound_s == pytest.approx(1.6)
    assert rest.makespan_s == pytest.approx(1.6)
    assert bytes_over(rest)["J", "D"] == pytest.approx(1.6 * UNIT, abs=2)
    # With 10 % more time, 0.16 s, the old ways carry 0.24 MB more.
    later = dc.replan(slower, plan, progress, stability=0.1)
    assert later.makespan_s == pytest.approx(1.76)
    assert bytes_over(later)["J", "D"] == pytest.approx((4 - 1.76 * 1.5) * UNIT, abs=2)
    # With enough time J is not needed; and not more of it is taken than the old ways need.
    without_j = dc.replan(slower, plan, progress, stability=1.0)
    assert without_j.makespan_s == pytest.approx(4 / 1.5)
    assert ("J", "D") not in bytes_over(without_j)


def into_d_from(problem: dc.Problem, name: str) -> np.ndarray:
    pairs = [ends(problem, i) for i in range(problem.n_links)]
    return np.array([[pair == (name, "D") for pair in pairs]])


def test_time_is_not_spent_where_it_spares_no_new_link():
    """K is lost: J has to carry 2 MB of the 4 MB left in 2 s, and no leeway changes that."""
    problem, plan = relay_problem(), plan_over_k()
    progress = dc.Progress.from_schedule(problem, plan, 2.0)
    lost = dc.Progress(2.0, progress.held, lost_hosts=("K",))
    direct = into_d_from(problem, "S")
    # The direct link carries nothing any more: all has to take J, sooner or later.
    without = problem.replace(bandwidth_bytes_per_s=np.where(direct, 0.0, 1e6))
    rest = dc.replan(without, plan, lost, stability=0.5)
    assert rest.makespan_s == pytest.approx(4.0)
    assert set(bytes_over(rest)) == {("S", "J"), ("J", "D")}


@given(problems(), st.floats(0.0, 1.0))
@FEW_EXAMPLES
def test_without_news_the_rest_ends_no_later_than_planned(problem, part):
    problem = in_large_units(problem)
    plan = planned(problem, chunk_s=0.0)
    at_s = part * plan.makespan_s
    progress = dc.Progress.from_schedule(problem, plan, at_s)
    roomy = with_room_for_rounding(problem)
    rest = dc.replan(roomy, plan, progress)
    rest.check(dc.remaining_problem(roomy, progress))
    left_s = plan.makespan_s - at_s + 1e-6 * plan.makespan_s
    assert rest.lower_bound_s <= left_s
    if not problem.shared:
        assert rest.makespan_s <= left_s


def in_large_units(problem: dc.Problem) -> dc.Problem:
    """The same with a million times as many bytes, unless they are many already."""
    if problem.backlog_bytes.max() >= UNIT:
        return problem
    held = [dc.Held(h.host, h.source, h.offset_bytes, h.n_bytes * UNIT) for h in problem.held]
    return times(problem, UNIT).replace(
        backlog_bytes=problem.backlog_bytes * UNIT,
        storage_bytes=problem.storage_bytes * UNIT,
        held=tuple(held),
    )


def with_room_for_rounding(problem: dc.Problem) -> dc.Problem:
    """A little more capacity: what is left of a transfer is rounded up to a whole byte."""
    room = np.ceil(problem.storage_bytes * (1 + 1e-5) + 10)
    return times(problem, 1 + 1e-5).replace(storage_bytes=room)


def times(problem: dc.Problem, factor: float) -> dc.Problem:
    shared = [
        dc.SharedBottleneck(s.name, s.bandwidth_bytes_per_s * factor, s.links)
        for s in problem.shared
    ]
    return problem.replace(
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * factor,
        uplink_bytes_per_s=problem.uplink_bytes_per_s * factor,
        downlink_bytes_per_s=problem.downlink_bytes_per_s * factor,
        shared=tuple(shared),
    )


@given(problems(FEATURES - {"shared", "forecast", "release", "storage"}), st.floats(0.0, 1.0))
@FEW_EXAMPLES
def test_with_chunks_the_rest_ends_a_chunk_per_hop_later_at_most(problem, part):
    problem = in_large_units(problem)
    plan = planned(problem)
    at_s = part * plan.makespan_s
    progress = dc.Progress.from_schedule(problem, plan, at_s)
    rest = dc.replan(with_room_for_rounding(problem), plan, progress)
    hops = max((route.n_hops for route in rest.routes), default=1)
    left_s = plan.makespan_s - at_s + 1e-6 * plan.makespan_s
    assert rest.makespan_s <= left_s + (hops - 1) * rest.chunk_s


@given(
    problems(),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=1, max_size=12),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 0.01, 0.3]),
)
@FEW_EXAMPLES
def test_the_bound_is_that_of_an_independent_program(problem, factors, part, stability):
    """Links become faster, slower or useless; the old plan knows nothing of that."""
    problem = in_large_units(problem)
    plan = planned(problem, chunk_s=0.0)
    progress = dc.Progress.from_schedule(problem, plan, part * plan.makespan_s)
    bandwidth = problem.bandwidth_bytes_per_s
    factor = np.resize(factors, bandwidth.shape)
    changed = problem.replace(bandwidth_bytes_per_s=bandwidth * factor)
    remaining = dc.remaining_problem(changed, progress)
    expected_s = oracle.fluid_makespan_s(remaining)
    # What is left is rounded up to whole bytes, for which exactly enough may be too little: then
    # they never arrive, or only after a pause.
    tight_s, roomy_s = (oracle.fluid_makespan_s(times(remaining, 1 + d)) for d in (-1e-6, 1e-6))
    assume(expected_s is None or (tight_s is not None and tight_s <= roomy_s * 1.001))
    if expected_s is None:
        with pytest.raises(dc.InfeasibleError):
            dc.replan(changed, plan, progress, stability=stability)
        return
    rest = dc.replan(changed, plan, progress, stability=stability)
    rest.check(remaining)
    assert rest.lower_bound_s == pytest.approx(expected_s, rel=1e-6)
    assert rest.makespan_s <= expected_s * (1 + stability) * (1 + 1e-6)


# How little changes -------------------------------------------------------------------------


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


def test_few_links_do_not_hide_that_others_are_needed():
    """The old plan is direct; now only a chain of links leads on, none of which it used."""
    names = [f"h{i}" for i in range(6)]
    bandwidth = np.zeros((6, 6))
    bandwidth[5, 0] = 1e6
    chain = [(5, 4), (4, 3), (3, 2), (2, 1), (1, 0)]
    for a, b in chain:
        bandwidth[a, b] = 1e6
    problem = dc.Problem.from_matrix(names, bandwidth, [0] * 5 + [4 * UNIT], "h0")
    plan = dc.direct(problem)
    rest = dc.replan(problem, plan, dc.Progress(0.0), stability=0.0)
    assert rest.makespan_s == pytest.approx(2.0)
    old = old_use(problem, plan, 0.0).links
    found = proved_optimum(problem, old, 0.0, Budget())
    assert found.found.makespan_s == pytest.approx(2.0)
    assert len(found.links) == 6


def test_the_old_links_alone_are_one_answer_all_links_another():
    """S sends 8 MB: 4 s directly and over K, as the old plan does; 8/3 s with J as well."""
    problem = relay_problem()
    old = old_use(problem, plan_over_k(), 0.0).links
    found = proved_optimum(problem, old, 0.0, Budget())
    assert found.alone is not None
    assert found.alone.makespan_s == pytest.approx(4.0)
    assert found.found.makespan_s == pytest.approx(8 / 3)
    into_d = np.flatnonzero(problem.link_to == problem.destination_index)
    unused = proved_optimum(problem, into_d[1:], 0.0, Budget())
    assert unused.alone is None  # K -> D and J -> D alone take nothing away from S
    assert unused.found.makespan_s == pytest.approx(8 / 3)


def test_a_link_that_saves_others_is_found_among_all():
    """Q needs 100 s, S is in no hurry: over P two links are new, over J only the first.

    Nothing but its price speaks for S -> J: no cut needs it.
    """
    hosts = [dc.Host("S", 4 * UNIT), dc.Host("Q", 100 * UNIT), *map(dc.Host, ("P", "J", "D"))]
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


def test_a_limit_of_a_host_proves_that_no_link_is_missing():
    """S may send 1 MB/s in all, which its direct link carries: other links need no look."""
    problem = relay_problem(uplink_bytes_per_s=np.array([1e6, np.inf, np.inf, np.inf]))
    direct = np.flatnonzero(into_d_from(problem, "S")[0])
    optimum = proved_optimum(problem, direct, 0.0, Budget())
    assert optimum.found.makespan_s == pytest.approx(8.0)
    into_d = np.flatnonzero(problem.link_to == problem.destination_index)
    assert optimum.links.tolist() == into_d.tolist()


@pytest.mark.parametrize(
    ("downlink", "expected_s", "words"),
    [
        (math.inf, 8 / 3, "links into"),
        (9e6, 8 / 3, "links into"),
        (1.5e6, 8 / 1.5, "downlink"),
        (3e6, 8 / 3, "downlink"),
    ],
)
def test_the_destination_binds_by_its_links_or_by_its_limit(downlink, expected_s, words):
    """S, K and J send 1 MB/s each into D; the old plan's link alone needs 8 s."""
    problem = relay_problem(downlink_bytes_per_s=np.array([math.inf] * 3 + [downlink]))
    direct = np.flatnonzero(into_d_from(problem, "S")[0])
    optimum = proved_optimum(problem, direct, 0.0, Budget())
    assert optimum.found.makespan_s == pytest.approx(expected_s)
    assert optimum.found.bottleneck.kind == "destination"
    assert words in optimum.found.bottleneck.text


def test_new_estimates_of_all_links_leave_the_links_as_they_are():
    problem = mesh(9, 1, limits=True)
    kept = np.full(problem.n_links, np.nan)
    faster = 2 * problem.bandwidth_bytes_per_s
    new = dc.NewLinks(problem.link_from, problem.link_to, faster, kept, np.zeros(1))
    rest = dc.remaining_problem(problem, dc.Progress(0.0, links=new))
    assert np.shares_memory(rest.link_from, problem.link_from)
    assert rest.bandwidth_bytes_per_s.tolist() == faster.tolist()
    some = np.array([40, 3, 17])
    new = dc.NewLinks(
        problem.link_from[some], problem.link_to[some], faster[:, some], kept[some], np.zeros(1)
    )
    rest = dc.remaining_problem(problem, dc.Progress(0.0, links=new))
    changed = rest.bandwidth_bytes_per_s[0] / problem.bandwidth_bytes_per_s[0]
    assert np.flatnonzero(changed == 2).tolist() == [3, 17, 40]


# Slots, shared bottlenecks, other wishes ----------------------------------------------------


@given(problems(FEATURES - {"shared", "forecast", "release"}), st.integers(0, 6))
@FEW_EXAMPLES
def test_slots_go_on_where_they_stopped(problem, n_done):
    plan = planned(problem, slot_s=0.5)
    assume(plan.makespan_s <= 20.0)
    at_s = 0.5 * n_done
    progress = dc.Progress.from_schedule(problem, plan, at_s)
    rest = dc.replan(problem, plan, progress, stability=0.0)
    rest.check(dc.remaining_problem(problem, progress))
    assert rest.slot_s == plan.slot_s
    assert rest.makespan_s <= max(plan.makespan_s - at_s, 0.0) + 1e-9


def test_an_end_that_rounding_puts_before_the_bound_is_no_deadline():
    """2.5 TB and 2500 bytes leave S at 1 TB/s: five slots of 0.5 s, as rounding permits."""
    hosts = [dc.Host("S", 4 * 10**12, uplink_bytes_per_s=1e12), dc.Host("K"), dc.Host("D")]
    links = [dc.Link("K", "D", 2e12), dc.Link("S", "D", 1e12), dc.Link("S", "K", 1e12)]
    problem = dc.Problem.from_hosts(hosts, links, "D", held=[dc.Held("K", "S", 0, 10**12)])
    plan = dc.coordinated(problem, slot_s=0.5)
    progress = dc.Progress(0.5, (dc.Held("D", "S", 0, 1_499_999_997_500),))
    rest = dc.replan(problem, plan, progress, stability=0.0)
    rest.check(dc.remaining_problem(problem, progress))
    assert rest.makespan_s <= 3.0


@pytest.mark.parametrize("shape", [{"chunk_s": 0.0}, {"slot_s": 0.1}])
def test_new_links_carry_least_with_shared_bottlenecks_and_in_slots(shape):
    """As above, with K -> D at half its rate by a shared bottleneck: J takes what does not fit."""
    problem, plan = relay_problem(), plan_over_k()
    shared = (dc.SharedBottleneck("wire", 0.5e6, [("K", "D")]),)
    slower = problem.replace(shared=shared if "chunk_s" in shape else ())
    if "slot_s" in shape:
        slower = problem.replace(
            bandwidth_bytes_per_s=np.where(into_d_from(problem, "K"), 0.5e6, 1e6)
        )
    progress = dc.Progress.from_schedule(problem, plan, 2.0)
    free = dc.replan(slower, plan, progress, stability=1.0, **shape)
    assert ("J", "D") not in bytes_over(free)
    tight = dc.replan(slower, plan, progress, stability=0.0, **shape)
    tight.check(dc.remaining_problem(slower, progress))
    assert tight.makespan_s == pytest.approx(1.6, abs=0.11)
    assert ("J", "D") in bytes_over(tight)


def test_a_wish_counts_instead_of_the_old_links():
    problem, plan = relay_problem(), plan_over_k()
    fastest = dc.replan(problem, plan, dc.Progress(0.0), prefer="relay-bytes", chunk_s=0.0)
    assert fastest.makespan_s == pytest.approx(8 / 3)


@pytest.mark.parametrize("method", [dc.direct, dc.best_path])
def test_plans_of_other_methods_are_taken_on(method):
    problem = mesh(8, 3, limits=False)
    plan = method(problem)
    progress = dc.Progress.from_schedule(problem, plan, 0.5 * plan.makespan_s)
    rest = dc.replan(problem, plan, progress)
    rest.check(dc.remaining_problem(problem, progress))
    assert rest.method == "coordinated"


# Hosts lost, nothing left, bad input ------------------------------------------------------------


def test_a_lost_relay_is_avoided():
    problem, plan = relay_problem(), plan_over_k(chunk_s=1.0)
    progress = dc.Progress.from_schedule(problem, plan, 3.0)
    lost = dc.Progress(3.0, progress.held, lost_hosts=("K",))
    rest = dc.replan(problem, plan, lost)
    rest.check(dc.remaining_problem(problem, lost))
    assert all("K" not in route.hosts for route in rest.routes)
    # 1 MB was at K, 2 MB still at S: 3 MB over the two ways that are left.
    assert rest.lower_bound_s == pytest.approx(1.5)


def test_data_at_relays_start_there():
    problem, plan = relay_problem(), plan_over_k(chunk_s=1.0)
    rest = dc.replan(problem, plan, dc.Progress.from_schedule(problem, plan, 3.0))
    starts = {route.hosts[0] for route in rest.routes}
    assert starts == {"S", "K"}


def test_a_lost_source_is_named():
    problem, plan = relay_problem(), plan_over_k()
    progress = dc.Progress.from_schedule(problem, plan, 1.0)
    lost = dc.Progress(1.0, progress.held, lost_hosts=("S",))
    with pytest.raises(dc.InfeasibleError, match=r"6000000 bytes lie at 'S' only.*lost") as caught:
        dc.replan(problem, plan, lost)
    assert caught.value.hosts == ("S",)


def test_a_lost_source_whose_data_lie_elsewhere_is_no_loss():
    problem, plan = relay_problem(), plan_over_k()
    held = (dc.Held("K", "S", 0, 2 * UNIT), dc.Held("D", "S", 2 * UNIT, 6 * UNIT))
    rest = dc.replan(problem, plan, dc.Progress(3.0, held, lost_hosts=("S",)))
    assert bytes_over(rest) == {("K", "D"): 2 * UNIT}


def test_data_cut_off_are_named():
    problem, plan = relay_problem(), plan_over_k()
    cut = problem.replace(bandwidth_bytes_per_s=np.zeros((1, problem.n_links)))
    with pytest.raises(dc.InfeasibleError, match="what lies at 'S' cannot reach"):
        dc.replan(cut, plan, dc.Progress(0.0))


@pytest.mark.parametrize("slot_s", [None, 0.5])
def test_after_the_end_nothing_is_left_to_do(slot_s):
    problem = relay_problem()
    plan = dc.coordinated(problem, slot_s=slot_s)
    progress = dc.Progress.from_schedule(problem, plan, plan.makespan_s + 5.0)
    rest = dc.replan(problem, plan, progress)
    assert (rest.n_transfers, rest.makespan_s) == (0, 0.0)
    rest.check(dc.remaining_problem(problem, progress))


def held(host="K", source="S", offset=0, n_bytes=UNIT) -> dict[str, object]:
    return {"host": host, "source": source, "offset_bytes": offset, "bytes": n_bytes}


BAD_PROGRESS = [
    ({"at_s": -1.0}, r"at_s must be a finite number of seconds >= 0, got -1.*start of the plan"),
    ({}, "key at_s is missing"),
    ({"helt": []}, "helt: unknown key; did you mean 'held'"),
    ({"format": "datacollect-problem/1"}, "format must be .datacollect-progress/1."),
    ({"hosts": {}}, "this is a problem; name the problem first"),
    ({"transfers": []}, "this is a schedule; name the problem first"),
    ({"lost_hosts": ["X"]}, r"lost_hosts\[0\] must be one of the hosts, got 'X'"),
    ({"lost_hosts": ["D"]}, "'D' is the destination"),
    ({"held": [held(host="X")]}, r"held\[0\].host must be one of the hosts, got 'X'"),
    ({"held": [held(), held(source="X")]}, r"held\[1\].source must be one of the hosts"),
    ({"held": [held(offset=8 * UNIT)]}, "must lie within the backlog .* of another problem"),
    ({"held": [held(), held(host="D")]}, "byte 0 lies at 'K' and at 'D'.*one holder per byte"),
    ({"periods_s": [1.0]}, "periods_s must begin with 0"),
    (
        {"links": [{"from": "S", "to": "X", "bandwidth_bytes_per_s": 1.0}]},
        r"links\[0\].to must be one of the hosts",
    ),
    (
        {"links": [{"from": "S", "to": "K", "bandwidth_bytes_per_s": 1.0}] * 2},
        r"links\[1\]: link 'S' -> 'K' given twice",
    ),
]


@pytest.mark.parametrize(("progress", "message"), BAD_PROGRESS)
def test_bad_progress_is_refused_with_place_and_remedy(progress, message):
    tree = {"format": "datacollect-progress/1", "at_s": 1.0, **progress}
    if not progress:
        del tree["at_s"]
    with pytest.raises(dc.ProblemError, match=message):
        dc.replan(relay_problem(), plan_over_k(), tree)


def test_bad_progress_in_python_is_refused():
    problem, plan = relay_problem(), plan_over_k()
    with pytest.raises(dc.ProblemError, match="at_s must be >= 0 and finite, got -1"):
        dc.Progress(-1.0)
    with pytest.raises(dc.ProblemError, match="unknown host 'X'"):
        dc.replan(problem, plan, dc.Progress(0.0, lost_hosts=("X",)))
    with pytest.raises(dc.ProblemError, match=r"unknown host 'X'.*of another problem"):
        dc.replan(problem, plan, dc.Progress(0.0, held=(dc.Held("X", "S", 0, 1),)))
    with pytest.raises(dc.ProblemError, match="stability must be >= 0"):
        dc.replan(problem, plan, dc.Progress(0.0), stability=-0.1)
    twice = dc.NewLinks(
        np.array([0, 0]), np.array([1, 1]), np.ones((1, 2)), np.full(2, np.nan), np.zeros(1)
    )
    with pytest.raises(dc.ProblemError, match="links: 'S' -> 'K' given twice"):
        dc.replan(problem, plan, dc.Progress(0.0, links=twice))


# Files and the command ----------------------------------------------------------------------


def test_progress_survives_a_file(tmp_path):
    problem = relay_problem()
    links = dc.NewLinks(
        np.array([0, 1]),
        np.array([1, 3]),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.array([np.nan, 7.0]),
        np.array([0.0, 5.0]),
    )
    progress = dc.Progress(2.5, (dc.Held("K", "S", 0, UNIT),), links, ("J",))
    path = tmp_path / "progress.json"
    path.write_text(json.dumps(progress.to_dict(problem)))
    read = dc.Progress.from_file(path, problem)
    assert (read.at_s, read.held, read.lost_hosts) == (2.5, progress.held, ("J",))
    for key in ("link_from", "link_to", "bandwidth_bytes_per_s", "price_per_gb", "periods_s"):
        np.testing.assert_array_equal(getattr(read.links, key), getattr(links, key))


def test_a_csv_brings_new_estimates_and_keeps_prices(tmp_path):
    problem = relay_problem(price_per_gb=np.arange(5.0))
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_mbit_per_s\nS,K,4\nK,J,8\n")
    path = tmp_path / "progress.toml"
    path.write_text('format = "datacollect-progress/1"\nat_s = 0\nbandwidth_csv = "grid.csv"\n')
    rest = dc.remaining_problem(problem, dc.Progress.from_file(path, problem))
    i, new = rest.link_indices([0, 1], [1, 2]).tolist()
    assert rest.bandwidth_bytes_per_s[0, [i, new]].tolist() == [5e5, 1e6]
    before = problem.price_per_gb[problem.link_indices([0], [1])[0]]
    assert rest.price_per_gb[[i, new]].tolist() == [before, 0.0]


@pytest.fixture
def collection(tmp_path, monkeypatch):
    """The relay problem, its plan over K, and the progress after 3 s, as files."""
    monkeypatch.chdir(tmp_path)
    problem, plan = relay_problem(), plan_over_k(chunk_s=1.0)
    (tmp_path / "problem.json").write_text(json.dumps(problem.to_dict()))
    plan.to_file(tmp_path / "plan.json")
    progress = dc.Progress.from_schedule(problem, plan, 3.0)
    tree = progress.to_dict(problem) | {"lost_hosts": ["K"]}
    (tmp_path / "progress.json").write_text(json.dumps(tree))
    return tmp_path


FILES = ("problem.json", "plan.json", "progress.json")


def test_the_command_writes_a_schedule_that_check_accepts(collection, capsys):
    written = ("-o", "rest.json", "--problem-output", "rest-problem.json")
    assert run(["replan", *FILES, *written, "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer["at_s"] == 3.0
    assert answer["lower_bound_s"] == pytest.approx(1.5)
    assert "note: 1 MB lost with 'K' start again at 'S'" in err
    assert run(["check", "rest-problem.json", "rest.json"]) == 0
    assert capsys.readouterr().out.startswith("valid")


def test_the_command_tells_people_too(collection, capsys):
    assert run(["replan", *FILES, "--chunk", "0", "--stability", "0"]) == 0
    out, _ = capsys.readouterr()
    assert "lower bound   1.5 s" in out


@pytest.mark.parametrize(
    ("edit", "options", "code", "message"),
    [
        ({"at_s": -1}, (), 2, "progress.json: at_s must be a finite number of seconds >= 0"),
        ({"held": [held(offset=8 * UNIT)]}, (), 2, "progress.json: progress: held data of 'S'"),
        ({"lost_hosts": ["S"]}, (), 1, "lie at 'S' only"),
        ({}, ("--stability", "-1"), 2, "0.01 is 1 %"),
        ({}, ("--problem-output", "rest.toml"), 2, "must name a .json file"),
        ({}, ("--problem-output", "plan.json"), 2, "would overwrite the input"),
        ({}, ("-o", "progress.json"), 2, "would overwrite the input"),
        ({}, ("--slot", "1", "--chunk", "1"), 2, "exclude each other"),
    ],
)
def test_the_command_says_what_is_wrong(edit, options, code, message, collection, capsys):
    tree = json.loads((collection / "progress.json").read_text())
    (collection / "progress.json").write_text(json.dumps(tree | edit))
    assert run(["replan", *FILES, *options]) == code
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_a_collection_far_ahead_of_its_plan_is_planned_anew():
    """All but 6 of 2 MB have arrived at 1 s, when the plan would still send half of them."""
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 1000003.0], [0, 0]], [2000006, 0], "D")
    plan = dc.coordinated(problem)
    progress = dc.Progress(1.0, (dc.Held("D", "S", 0, 2_000_000),))
    rest = dc.replan(problem, plan, progress)
    rest.check(dc.remaining_problem(problem, progress))
    assert rest.makespan_s == pytest.approx(6 / 1000003)
