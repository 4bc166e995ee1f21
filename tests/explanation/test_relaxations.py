"""Relaxations of a problem: by hand, and against an independent program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from instances.hand_made import links
from instances.small_problems import MB, relay
from instances.strategies import problems
from instances.words import flat
from judges.oracle import fluid_makespan_s

import datacollect as dc
from datacollect.explanation.relaxations import advise
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.problem.hosts import Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget

STEP = 125_000.0  # 1 Mbit/s in bytes per second


def gains(found, kind):
    """Names, seconds saved by a step, and without limit, of one kind of resource."""
    return {
        relaxation.names[0]: (relaxation.saves_s, relaxation.saves_unlimited_s)
        for relaxation in found.advice.alone
        if relaxation.resources[0].kind == kind
    }


def in_series(first, second):
    """S holds 4 MB and reaches D through K only."""
    return Problem.from_hosts(
        [Host("S", 4 * MB), Host("K"), Host("D")], links(f"S -> K {first}, K -> D {second}"), "D"
    )


# What to relax --------------------------------------------------------------------------------


def test_the_narrow_one_of_two_cuts(solver):
    """2 MB/s, then 1 MB/s: only the second counts. 4 s; 1.125 MB/s: 32/9 s; 2 MB/s: 2 s."""
    found = dc.explain(in_series(2e6, 1e6), solver=solver)
    assert gains(found, "link") == {"link 'K' -> 'D'": pytest.approx((4 / 9, 2.0))}
    assert found.advice.pairs == ()


def test_where_two_cuts_are_as_tight_nothing_helps_alone(solver):
    """1 MB/s and 1 MB/s in series: 4 s whichever is wider; both at 1.125 MB/s: 32/9 s."""
    found = dc.explain(in_series(1e6, 1e6), solver=solver)
    assert [r.saves_unlimited_s for r in found.advice.alone] == [0.0]
    (pair,) = found.advice.pairs
    assert set(pair.names) == {"link 'S' -> 'K'", "link 'K' -> 'D'"}
    assert pair.saves_s == pytest.approx(4 / 9)
    assert pair.saves_unlimited_s == pytest.approx(4.0, rel=1e-5)
    assert "Nothing alone helps" in found.text
    assert "1 Mbit/s more each saves 0.4444 s" in flat(found.text)


def test_where_three_cuts_are_as_tight_it_claims_nothing():
    """Three links of 1 MB/s in series: no two of them help either."""
    problem = Problem.from_hosts(
        [Host("S", 4 * MB), Host("K"), Host("L"), Host("D")],
        links("S -> K 1e6, K -> L 1e6, L -> D 1e6"),
        "D",
    )
    found = dc.explain(problem)
    assert found.advice.pairs
    assert found.advice.helps == ()
    assert "Nothing alone helps" in found.text
    assert "nor does any of" in flat(found.text)


def test_a_hosts_limit(solver):
    """S's uplink of 1.5 MB/s: 6 MB in 4 s; 1.625: 48/13 s; without it the links' 3 MB/s: 2 s."""
    found = dc.explain(relay(S={"uplink_bytes_per_s": 1.5e6}), solver=solver)
    assert gains(found, "uplink") == {"uplink of 'S'": pytest.approx((4 - 48 / 13, 2.0))}
    found = dc.explain(relay(D={"downlink_bytes_per_s": 1e6}), solver=solver)
    assert gains(found, "downlink") == {"downlink of 'D'": pytest.approx((6 - 6 / 1.125, 4.0))}


def test_forecasts(solver):
    """1 MB/s for a second, then 2: 5 MB in 3 s. 1 Mbit/s more: 1.125, then 3.875 at 2.125."""
    problem = Problem.from_hosts(
        [Host("S", 5 * MB), Host("D")], [Link("S", "D", [1e6, 2e6])], "D", periods_s=[0, 1]
    )
    found = dc.explain(problem, solver=solver)
    assert [i.rate_bytes_per_s for i in found.binds] == pytest.approx([1e6, 2e6])
    saved, unlimited = gains(found, "link")["link 'S' -> 'D'"]
    assert saved == pytest.approx(3 - (1 + 3.875 / 2.125))
    assert unlimited == pytest.approx(3, rel=1e-5)


@pytest.mark.parametrize(("storage_bytes", "now_s"), [(5 * MB, 7.0), (0, 12.0)])
def test_storage(storage_bytes, now_s, solver):
    """S -> K 8 MB/s for a second only, K -> D 2 MB/s from then on, S -> D 1 MB/s all the time.

    12 MB. Of what waits at K for 1 s, x MB, the last arrives at 1 + x/2 s, S's rest at 12 - x:
    with room for 5 MB at 7 s, for none at 12 s, for all at 14/3 s.
    """
    problem = Problem.from_hosts(
        [Host("S", 12 * MB), Host("K", storage_bytes=storage_bytes), Host("D")],
        [Link("S", "K", [8e6, 0]), Link("K", "D", [0, 2e6]), Link("S", "D", [1e6, 1e6])],
        "D",
        periods_s=[0, 1],
    )
    found = dc.explain(problem, solver=solver)
    assert found.lower_bound_s == pytest.approx(now_s)
    expected = pytest.approx((now_s - 14 / 3, now_s - 14 / 3))  # 1 GB is more than all
    assert gains(found, "storage") == {"storage at 'K'": expected}


def test_a_late_release(solver):
    """B's 6 MB at 3 MB/s, released at 5 s: 7 s. Released at 4 s: 6 s; at once: 2 s, as A's 4 MB."""
    problem = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 6 * MB, release_s=5.0), Host("D")],
        links("A -> D 2e6, B -> D 3e6"),
        "D",
    )
    found = dc.explain(problem, solver=solver)
    assert gains(found, "release") == {"release of 'B'": pytest.approx((1.0, 5.0))}
    assert "released later" in found.text
    by_source = {source.source: source for source in found.sources}
    assert by_source["B"].limited_by == "itself"
    assert by_source["A"].limited_by == "others"
    assert by_source["A"].alone_s == pytest.approx(2.0)


def test_of_many_the_largest_are_tried():
    """Thirty links of 1 to 30 MB/s into D bind together."""
    hosts = [Host(f"H{i}", i * 10 * MB) for i in range(1, 31)]
    into = ", ".join(f"H{i} -> D {i}e6" for i in range(1, 31))
    found = dc.explain(Problem.from_hosts([*hosts, Host("D")], links(into), "D"))
    assert found.advice.n_candidates == 30
    assert {r.relaxed[0].now for r in found.advice.alone} == {i * 1e6 for i in range(21, 31)}
    assert "10 of 30" in found.text


def test_what_was_not_tried_is_not_said_to_be_useless():
    """Thirty links into D carry 1 MB/s each, S's uplink 30: no link alone helps, ten are tried.

    One link and the uplink, 1 Mbit/s more each: 60 MB at 30.125 MB/s instead of 2 s.
    """
    relays = [Host(f"K{i}") for i in range(30)]
    ways = ", ".join(f"S -> K{i} 2e6, K{i} -> D 1e6" for i in range(30))
    source = Host("S", 60 * MB, uplink_bytes_per_s=30e6)
    found = dc.explain(Problem.from_hosts([source, *relays, Host("D")], links(ways), "D"))
    assert found.advice.n_candidates == 30
    assert "Nothing tried helps alone (10 of 30" in flat(found.text)
    best = found.advice.pairs[0]
    assert best.names[1] == "uplink of 'S'"
    assert best.saves_s == pytest.approx(2 - 60 / 30.125)


RATES = {"uplink": "uplink_bytes_per_s", "downlink": "downlink_bytes_per_s"}


def changed(problem, kind, number):
    """The problem with one resource relaxed by its step, written down once more."""
    if kind == "link":
        bandwidth = np.array(problem.bandwidth_bytes_per_s)
        bandwidth[:, number] += np.where(bandwidth[:, number] > 0, STEP, 0.0)
        return problem.replace(bandwidth_bytes_per_s=bandwidth)
    if kind == "shared":
        shared = [
            SharedBottleneck(s.name, s.bandwidth_bytes_per_s + STEP * (i == number), s.links)
            for i, s in enumerate(problem.shared)
        ]
        return problem.replace(shared=tuple(shared))
    column = {"storage": "storage_bytes", "release": "release_s", **RATES}[kind]
    values = np.array(getattr(problem, column))
    more = {"storage": 1e9, "release": -1.0}.get(kind, STEP)
    if kind in RATES and len(set(values[:, number])) > 1:  # what varies keeps its outages
        more = np.where(values[:, number] > 0, STEP, 0.0)
    values[..., number] += more
    return problem.replace(**{column: values})


def resources_of(problem):
    """Every constraint that can be relaxed."""
    yield from (("link", i) for i in range(problem.n_links))
    yield from (("shared", i) for i in range(len(problem.shared)))
    for host in range(problem.n_hosts):
        for kind, column in RATES.items():
            if np.isfinite(getattr(problem, column)[0, host]):
                yield kind, host
        if np.isfinite(problem.storage_bytes[host]):
            yield "storage", host
        if problem.release_s[host] >= 1:
            yield "release", host


@given(problem=problems(most_hosts=3))
def test_gains_are_those_of_an_independent_program(problem):
    """Of what is tried exactly, and nothing of what is not, unless there are too many."""
    before_s = fluid_makespan_s(problem)
    assume(before_s)
    advice = advise(problem, arrival_curve(problem, Budget()), Budget())
    claimed = {(r.resources[0].kind, r.resources[0].number): r.saves_s for r in advice.alone}
    assert len(claimed) == min(advice.n_candidates, 10)
    for resource in resources_of(problem):
        if resource not in claimed and advice.n_candidates > 10:
            continue
        after_s = fluid_makespan_s(changed(problem, *resource))
        saved_s = claimed.get(resource, 0.0)
        assert saved_s == pytest.approx(before_s - after_s, abs=1e-5 * before_s), resource


def test_what_binds_first_need_not_bind_at_the_end():
    """2 MB. From 1 to 2 s link and downlink both take 1 MB/s; then the link takes twice as much."""
    problem = dc.Problem.from_dict(
        {
            "destination": "D",
            "hosts": {"D": {"downlink_bytes_per_s": 1e6}, "H": {"backlog_bytes": 2_000_000}},
            "periods_s": [0, 1, 2],
            "links": [{"from": "H", "to": "D", "bandwidth_bytes_per_s": [0, 1e6, 2e6]}],
        }
    )
    found = dc.explain(problem)
    assert [(b.from_s, b.to_s) for b in found.binds] == [(0, 1), (1, 3)]
    assert "from 2 s on (the downlink of 'D')" in found.binds[-1].bottleneck.text
    gains = {r.names[0]: r.saves_unlimited_s for r in found.advice.alone}
    assert gains["downlink of 'D'"] == pytest.approx(0.5)
