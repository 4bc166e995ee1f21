"""The earliest end with shared bottlenecks: by hand, and by independent programs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from instances.hand_made import links
from instances.how_many import many
from instances.shared_problems import (
    few_bytes_among_terabytes,
    random_mesh,
    shared_end,
    shared_problems,
    wide_mesh,
)
from instances.small_problems import MB
from judges.bound_judge import bound_agrees
from judges.static_oracle import static_end_s

import datacollect as dc
from datacollect.errors import SolverError
from datacollect.problem.hosts import Host, SharedBottleneck
from datacollect.problem.problem import Problem


def agrees_with_one_commodity_per_source(problem: Problem, solver: str) -> None:
    assert bound_agrees(problem, solver)
    try:
        _, bottleneck = dc.lower_bound(problem, solver=solver)
    except dc.InfeasibleError:
        return
    assert bool(bottleneck.hosts) == bool(problem.parcels)


@given(shared_problems())
def test_any_mix_of_constraints_agrees_with_one_commodity_per_source(problem):
    agrees_with_one_commodity_per_source(problem, "ortools")


@pytest.mark.slow
@given(shared_problems())
def test_cbc_agrees_with_one_commodity_per_source(problem):
    agrees_with_one_commodity_per_source(problem, "pulp")


@pytest.mark.slow
@given(shared_problems(most_hosts=5))
@settings(max_examples=many(800), deadline=None)
def test_many_mixes_of_constraints_agree(problem):
    agrees_with_one_commodity_per_source(problem, "ortools")


@pytest.mark.parametrize("seed", range(6))
def test_thirty_hosts_agree_with_all_links_at_once(seed, linear_solver):
    problem = random_mesh(30, seed, n_shared=1 + 2 * seed % 10)
    expected = static_end_s(problem)
    assert shared_end(problem, linear_solver).makespan_s == pytest.approx(expected, rel=1e-6)
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


@pytest.mark.parametrize("seed", [seed for seed in range(15) if seed not in (4, 7)])
def test_random_meshes_over_nine_orders_of_magnitude(seed):
    """The plan is valid, and what CBC, an independent code, says of the end is the same."""
    problem = wide_mesh(seed)
    plan = dc.coordinated(problem, solver="ortools")
    plan.check(problem)
    assert plan.lower_bound_s == pytest.approx(shared_end(problem, "pulp").makespan_s, rel=1e-6)


def test_unsettled_steps_are_an_error_with_the_numbers(monkeypatch):
    monkeypatch.setattr("datacollect.flow.shared.earliest.MOST_PROGRAMS", 0)
    with pytest.raises(SolverError, match=r"0 linear programs: .* a source holds 9, "):
        dc.lower_bound(few_bytes_among_terabytes(3), solver="ortools")


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_units_scale(scale):
    problem = random_mesh(12, 4, n_shared=3)
    expected = shared_end(problem).makespan_s
    scaled = problem.replace(
        bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * scale,
        uplink_bytes_per_s=problem.uplink_bytes_per_s * scale,
        downlink_bytes_per_s=problem.downlink_bytes_per_s * scale,
        shared=[
            replace(one, bandwidth_bytes_per_s=one.bandwidth_bytes_per_s * scale)
            for one in problem.shared
        ],
    )
    assert shared_end(scaled).makespan_s == pytest.approx(expected / scale, rel=1e-9)


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
    assert shared_end(problem).makespan_s == pytest.approx(12.0, rel=1e-9)
    wider = problem.replace(shared=[SharedBottleneck("wire", 0.9, [("S", "D")])])
    assert shared_end(wider).makespan_s == pytest.approx(12 / 0.9, rel=1e-9)


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


def test_what_just_misses_a_period_waits_for_the_next():
    """1 000 001 bytes at 1 MB/s for 1 s; after a pause of 1 s the last one takes a microsecond."""
    wire = dc.SharedBottleneck("wire", 2e6, [("S", "D")])
    problem = dc.Problem.from_hosts(
        [dc.Host("S", MB + 1), dc.Host("D")],
        [dc.Link("S", "D", [1e6, 0.0, 1e6])],
        "D",
        shared=[wire],
        periods_s=[0.0, 1.0, 2.0],
    )
    assert dc.lower_bound(problem)[0] == pytest.approx(2.000001, abs=2e-6)
