"""Shared bottlenecks in the fluid model: hand-derived ends, independent programs, differences."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from bound_judge import bound_agrees
from hand_made import links
from hypothesis import assume, given, settings
from oracle import fluid_makespan_s, least_cost
from scipy.optimize import linprog
from scipy.sparse import coo_array
from small_problems import MB, figure_1
from strategies import FEATURES, problems

import datacollect as dc
from datacollect.budget import Budget
from datacollect.errors import SolverError
from datacollect.fluid import fluid_optimum
from datacollect.layered import breakpoints_s, without_owners_limits
from datacollect.problem import Host, Problem, SharedBottleneck
from datacollect.shared_flow import SharedQuickest, quickest_shared


def end_of(problem: Problem, solver: str = "auto"):
    end = fluid_optimum(problem, Budget(solver)).shared_end
    assert end is not None
    return end


def flow_by(problem: Problem, prefer: str, end_s: float | None = None) -> SharedQuickest:
    budget = Budget()
    optimum = fluid_optimum(problem, budget)
    assert optimum.quickest is not None
    starts = breakpoints_s(problem)
    return quickest_shared(problem, starts, 0.0, optimum.quickest, budget, prefer, end_s)


@st.composite
def shared_problems(draw, most_hosts: int = 4) -> Problem:
    """Any mix of constraints with one to ten shared bottlenecks."""
    problem = draw(problems(FEATURES - {"shared"}, most_hosts))
    assume(problem.n_links > 0 and problem.total_bytes > 0)
    names = problem.names
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    pairs = [(names[a], names[b]) for a, b in ends]
    unit = float(max(problem.bandwidth_bytes_per_s.max() / 6, 1.0))
    shared = [
        SharedBottleneck(
            f"wire{i}",
            draw(st.integers(1, 12)) * unit / 4,
            sorted(draw(st.sets(st.sampled_from(pairs), min_size=1))),
        )
        for i in range(draw(st.integers(1, 10)))
    ]
    return problem.replace(shared=shared)


# Ends ---------------------------------------------------------------------------------------


def agrees_with_one_commodity_per_source(problem: Problem, solver: str) -> None:
    assert bound_agrees(problem, solver)
    try:
        _, bottleneck = dc.lower_bound(problem, solver=solver)
    except dc.InfeasibleError:
        return
    assert bool(bottleneck.hosts) == bool(problem.parcels)


@given(shared_problems())
@settings(max_examples=150, deadline=None)
def test_any_mix_of_constraints_agrees_with_one_commodity_per_source(problem):
    agrees_with_one_commodity_per_source(problem, "ortools")


@given(shared_problems())
@settings(max_examples=25, deadline=None)
def test_cbc_agrees_with_one_commodity_per_source(problem):
    agrees_with_one_commodity_per_source(problem, "pulp")


@pytest.mark.slow
@given(shared_problems(most_hosts=5))
@settings(max_examples=800, deadline=None)
def test_many_mixes_of_constraints_agree(problem):
    agrees_with_one_commodity_per_source(problem, "ortools")


def random_mesh(n: int, seed: int, n_shared: int) -> Problem:
    """A full mesh with host limits; shared bottlenecks of random links, many into D."""
    rng = np.random.default_rng(seed)
    bandwidth = rng.lognormal(0.0, 1.0, (n, n)) * 1e6
    backlog = np.where(rng.random(n) < 0.4, rng.integers(1e8, 1e9, n), 0)
    backlog[:2] = 0, 10**9
    problem = Problem.from_matrix([f"h{i}" for i in range(n)], bandwidth, backlog, "h0")
    pairs = [*zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)]
    shared = []
    for i in range(n_shared):
        chosen = [(a, b) for a, b in pairs if rng.random() < (0.4 if b == 0 else 0.05)]
        chosen = chosen or pairs[-1:]
        rate = sum(bandwidth[a, b] for a, b in chosen) * rng.uniform(0.05, 0.3)
        shared.append(SharedBottleneck(f"w{i}", rate, [(f"h{a}", f"h{b}") for a, b in chosen]))
    typical = bandwidth.mean() * n / 2
    return problem.replace(
        shared=shared,
        uplink_bytes_per_s=typical * rng.uniform(0.2, 1.5, n),
        downlink_bytes_per_s=typical * rng.uniform(0.2, 1.5, n),
    )


def static_end_s(problem: Problem) -> float:
    """The earliest end by HiGHS, with a column per link: data at a rate in proportion to supply.

    Rates r are of all data per 1000 s; most s with r out - r in = s * part held, limits on sums.
    """
    unit = float(problem.total_bytes) / 1000.0
    n, m = problem.n_hosts, problem.n_links
    tail, head, link = problem.link_from, problem.link_to, np.arange(m)
    held = problem.backlog_bytes / problem.total_bytes
    kept = np.arange(n) != problem.destination_index
    balance = coo_array(
        (
            np.concatenate([np.ones(m), -np.ones(m), -held]),
            (
                np.concatenate([tail, head, np.arange(n)]),
                np.concatenate([link, link, np.full(n, m)]),
            ),
        ),
        shape=(n, m + 1),
    ).tocsr()
    members = problem.shared_links
    rows = [tail, head + n] + [np.full(len(one), 2 * n + i) for i, one in enumerate(members)]
    columns = np.concatenate([link, link, *members])
    limits = coo_array(
        (np.ones(len(columns)), (np.concatenate(rows), columns)),
        shape=(2 * n + len(members), m + 1),
    )
    room = np.concatenate(
        [
            problem.uplink_bytes_per_s,
            problem.downlink_bytes_per_s,
            [shared.bandwidth_bytes_per_s for shared in problem.shared],
        ]
    )
    upper = np.append(problem.bandwidth_bytes_per_s[0] / unit, np.inf)
    found = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=limits,
        b_ub=room / unit,
        A_eq=balance[kept],
        b_eq=np.zeros(n - 1),
        bounds=np.column_stack([np.zeros(m + 1), upper]),
        method="highs",
    )
    assert found.status == 0, found.message
    return 1000.0 / -found.fun


@pytest.mark.parametrize("seed", range(6))
def test_thirty_hosts_agree_with_all_links_at_once(seed, linear_solver):
    problem = random_mesh(30, seed, n_shared=1 + 2 * seed % 10)
    expected = static_end_s(problem)
    assert end_of(problem, linear_solver).makespan_s == pytest.approx(expected, rel=1e-6)
    plan = dc.coordinated(problem, solver=linear_solver)
    plan.check(problem)
    assert plan.lower_bound_s == pytest.approx(expected, rel=1e-6)


def test_nine_orders_of_magnitude_and_a_petabyte(linear_solver):
    """Eight sources, the largest with 10**15 bytes, the smallest with 10**7, all behind wires.

    Source i holds 10**(7 + 8 i / 7) bytes and reaches D directly and over K, both on a wire of
    its own that carries what it holds in 10**6 s; the fourth source's wire is 3 % narrower.
    """
    held = [round(10 ** (7 + 8 * i / 7)) for i in range(8)]
    wires = [n_bytes / 1e6 * (0.97 if i == 3 else 1.0) for i, n_bytes in enumerate(held)]
    text = ", ".join(f"S{i} -> D {2 * r!r}, S{i} -> K {2 * r!r}" for i, r in enumerate(wires))
    problem = Problem.from_hosts(
        [*(Host(f"S{i}", n) for i, n in enumerate(held)), Host("K"), Host("D")],
        links(f"{text}, K -> D 1e12"),
        "D",
        shared=[
            SharedBottleneck(f"wire{i}", rate, [(f"S{i}", "D"), (f"S{i}", "K")])
            for i, rate in enumerate(wires)
        ],
    )
    seconds, bottleneck = dc.lower_bound(problem, solver=linear_solver)
    assert seconds == pytest.approx(1e6 / 0.97, rel=1e-6)
    assert (bottleneck.kind, bottleneck.hosts) == ("shared", ("S3",))
    dc.coordinated(problem, solver=linear_solver).check(problem)


def wide_mesh(seed: int) -> Problem:
    """Bandwidths over nine orders of magnitude, backlogs from a megabyte to a petabyte."""
    rng = np.random.default_rng(seed)
    problem = random_mesh(int(rng.integers(5, 12)), seed, n_shared=4)
    n = problem.n_hosts
    bandwidth = 10.0 ** rng.uniform(0, 9, problem.n_links)
    shared = [
        replace(one, bandwidth_bytes_per_s=bandwidth[members].sum() * 10.0 ** rng.uniform(-3, 0))
        for one, members in zip(problem.shared, problem.shared_links, strict=True)
    ]
    held = (10.0 ** rng.uniform(6, 15, n)).astype(np.int64)
    return problem.replace(
        bandwidth_bytes_per_s=bandwidth[None, :],
        backlog_bytes=np.where(problem.backlog_bytes > 0, held, 0),
        shared=shared,
        uplink_bytes_per_s=10.0 ** rng.uniform(3, 9, n),
        downlink_bytes_per_s=10.0 ** rng.uniform(3, 9, n),
    )


@pytest.mark.parametrize("seed", [seed for seed in range(15) if seed not in (4, 7)])
def test_random_meshes_over_nine_orders_of_magnitude(seed):
    """The plan is valid, and what CBC, an independent code, says of the end is the same."""
    problem = wide_mesh(seed)
    plan = dc.coordinated(problem, solver="ortools")
    plan.check(problem)
    assert plan.lower_bound_s == pytest.approx(end_of(problem, "pulp").makespan_s, rel=1e-6)


def test_what_drowns_in_a_solvers_tolerance_is_sent_all_the_same():
    """CBC loses a few MB of one host among 10**15 bytes of others; GLOP does not."""
    problem = wide_mesh(4)
    for solver in ("ortools", "pulp"):
        dc.coordinated(problem, solver=solver).check(problem)


def test_what_violates_a_solvers_own_constraints_is_an_error():
    """What CBC returns here does not even keep to its own tolerances; GLOP's answer does."""
    problem = wide_mesh(7)
    dc.coordinated(problem, solver="ortools").check(problem)
    with pytest.raises(SolverError, match=r"cbc: .* choose 'ortools'"):
        dc.coordinated(problem, solver="pulp")


def few_bytes_among_terabytes(seed: int) -> Problem:
    """Bandwidths over nine and backlogs over twelve orders of magnitude, in two periods."""
    n, rng = 12, np.random.default_rng(seed)
    bandwidth = 10 ** rng.uniform(0, 9, (2, n, n))
    held = [int(10 ** rng.uniform(0, 15)) if i else 0 for i in range(n)]
    pairs = [(i, j) for i in range(1, n) for j in range(n) if i != j]
    return Problem.from_hosts(
        [Host(f"h{i}", n_bytes) for i, n_bytes in enumerate(held)],
        [dc.Link(f"h{i}", f"h{j}", bandwidth[:, i, j].tolist()) for i, j in pairs],
        "h0",
        periods_s=[0.0, 3600.0],
        shared=[SharedBottleneck("w", 1e8, [(f"h{i}", "h0") for i in range(1, n)])],
    )


@pytest.mark.parametrize("seed", [3, 35, 54])
def test_few_bytes_arrive_among_terabytes(seed):
    """A source holds 10**-12 of all data or less, and GLOP's tolerance is 10**-9 of it."""
    problem = few_bytes_among_terabytes(seed)
    assert problem.backlog_bytes[problem.backlog_bytes > 0].min() < 1e-12 * problem.total_bytes
    plan = dc.coordinated(problem, solver="ortools")
    plan.check(problem)
    # All data pass the wire of 1e8 bytes/s.
    assert plan.makespan_s >= problem.total_bytes / 1e8 * (1 - 1e-6)


def test_unsettled_steps_are_an_error_with_the_numbers(monkeypatch):
    monkeypatch.setattr("datacollect.shared_flow.MOST_STEPS", 0)
    with pytest.raises(SolverError, match=r"0 linear programs: .* a source holds 9, "):
        dc.lower_bound(few_bytes_among_terabytes(3), solver="ortools")


def test_what_no_repair_finds_is_an_error_with_the_numbers(monkeypatch):
    """The remedy names sources and links, not a solver that may be the one in use."""
    monkeypatch.setattr("datacollect.shared_flow.MOST_REPAIRS", 0)
    problem = few_bytes_among_terabytes(3)
    slowest = f"{problem.bandwidth_bytes_per_s.min():.3g} bytes/s"
    with pytest.raises(SolverError, match=r"a source holds 9, .* leave out sources") as report:
        dc.coordinated(problem, solver="ortools")
    assert f"is {slowest}" in str(report.value)
    assert "choose" not in str(report.value)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_units_scale(scale):
    problem = random_mesh(12, 4, n_shared=3)
    expected = end_of(problem).makespan_s
    scaled = problem.replace(
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * scale,
        uplink_bytes_per_s=problem.uplink_bytes_per_s * scale,
        downlink_bytes_per_s=problem.downlink_bytes_per_s * scale,
        shared=[
            replace(one, bandwidth_bytes_per_s=one.bandwidth_bytes_per_s * scale)
            for one in problem.shared
        ],
    )
    assert end_of(scaled).makespan_s == pytest.approx(expected / scale, rel=1e-9)


def test_a_wire_so_narrow_that_the_end_lies_many_periods_later():
    """12 bytes at 6 bytes/s would end at 2 s; the wire of 1 byte/s ends at 12 s, in piece 12."""
    periods = [float(i) for i in range(41)]
    bandwidth = " ".join("6" for _ in periods)
    problem = Problem.from_hosts(
        [Host("S", 12), Host("D")],
        links(f"S -> D {bandwidth}"),
        "D",
        shared=[SharedBottleneck("wire", 1.0, [("S", "D")])],
        periods_s=periods,
    )
    assert end_of(problem).makespan_s == pytest.approx(12.0, rel=1e-9)
    wider = problem.replace(shared=[SharedBottleneck("wire", 0.9, [("S", "D")])])
    assert end_of(wider).makespan_s == pytest.approx(12 / 0.9, rel=1e-9)


def test_nothing_more_arrives_after_the_last_forecast():
    """4 bytes at 1 byte/s on the wire, but the link ends after 3 s."""
    problem = Problem.from_hosts(
        [Host("S", 4), Host("D")],
        links("S -> D 6 0"),
        "D",
        shared=[SharedBottleneck("wire", 1.0, [("S", "D")])],
        periods_s=[0.0, 3.0],
    )
    with pytest.raises(dc.InfeasibleError, match="let some data never arrive at 'D'"):
        dc.lower_bound(problem)


# Preferences and deadlines ------------------------------------------------------------------


@given(shared_problems(), st.sampled_from([1.0, 1.1, 2.0]), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_cheapest_flow_agrees_with_an_independent_program(problem, later, priced):
    earliest = fluid_makespan_s(problem)
    assume(problem.parcels and earliest is not None)
    prefer = "relay-bytes"
    if priced:
        prefer = "money"
        prices = [float(1 + 7 * i % 5) for i in range(problem.n_links)]
        problem = problem.replace(price_per_gb=np.array(prices))
    # What the program may exceed capacities by, it may save by.
    end_s = earliest * later * (1 + 1e-7)
    found = flow_by(problem, prefer, end_s)
    used = found.network.link >= 0
    per_byte = np.ones(problem.n_links) if not priced else problem.price_per_gb / 1e9
    cost = per_byte[found.network.link[used]] @ found.flow_bytes[used]
    assert cost == pytest.approx(least_cost(problem, prefer, end_s), rel=1e-5)
    assert found.makespan_s <= end_s * (1 + 1e-12)
    assert found.gap <= 1e-6


@given(shared_problems())
@settings(max_examples=40, deadline=None)
def test_too_early_an_end_is_infeasible(problem):
    earliest = fluid_makespan_s(problem)
    assume(problem.parcels and earliest is not None)
    # Data that return to an owner with a limit have tests, and a message, of their own.
    assume(without_owners_limits(problem) is None)
    with pytest.raises(dc.InfeasibleError, match="not everything can arrive at 'D' within"):
        flow_by(problem, "relay-bytes", earliest * (1 - 1e-5))


# What more bandwidth would save -------------------------------------------------------------


def test_savings_of_figure_1():
    """2 bytes over two wires of 1 byte/s each: 2 / (2 + x) s, so 1/2 s less per byte/s on each."""
    savings = end_of(figure_1(MB)).savings
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
    savings = end_of(problem).savings
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
    assert end_of(problem).savings.link == pytest.approx([2.0])


def capacities(problem: Problem) -> dict[tuple[str, int], float]:
    """Every capacity that is finite, by kind and number."""
    found = {("link", i): float(r) for i, r in enumerate(problem.bandwidth_bytes_per_s.min(0))}
    for kind in ("uplink", "downlink"):
        rates = getattr(problem, f"{kind}_bytes_per_s")
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


def assert_savings_by_differences(problem: Problem) -> None:
    """The end is convex in a capacity: a saving lies between the differences on its two sides."""
    end = end_of(problem)
    for (kind, number), rate in capacities(problem).items():
        step = rate * 1e-4
        saving = float(getattr(end.savings, kind)[number])
        noise = 1e-7 * end.makespan_s / step
        wider = end_of(with_more(problem, kind, number, step)).makespan_s
        narrower = end_of(with_more(problem, kind, number, -step)).makespan_s
        assert (end.makespan_s - wider) / step <= saving * (1 + 1e-3) + noise, (kind, number)
        assert (narrower - end.makespan_s) / step >= saving * (1 - 1e-3) - noise, (kind, number)


@pytest.mark.parametrize("seed", range(6))
def test_savings_agree_with_differences(seed):
    problem = random_mesh(7, seed, n_shared=3)
    assert_savings_by_differences(problem)


@pytest.mark.parametrize("seed", range(4))
def test_savings_agree_with_differences_under_forecasts(seed):
    """Two more periods, the second half as fast, that begin while data move."""
    problem = random_mesh(6, seed, n_shared=3)
    end_s = end_of(problem).makespan_s
    bandwidth = problem.bandwidth_bytes_per_s[0] * np.array([[1.0], [0.5], [1.2]])
    problem = problem.replace(
        bandwidth_bytes_per_s=bandwidth, periods_s=np.array([0.0, 0.3, 0.6]) * end_s
    )
    assert_savings_by_differences(problem)
