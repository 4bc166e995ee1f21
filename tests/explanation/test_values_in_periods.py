"""Values that vary in time: shown by the periods in which they bind; gains count all hours.

Problems have periods of which the fast ones hold few bytes and the slow ones most, or the other way
round. What binds, and what widening gains, is found once more by narrowing and widening one period,
or all, for real, and by linear programs of another model.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from instances.small_problems import MB
from instances.words import flat
from judges.fair_oracle import direct_plan
from judges.oracle import fluid_makespan_s

import datacollect as dc
from datacollect.explanation.relaxations import advise
from datacollect.explanation.resources import Resource
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget

STEP = 125_000.0  # 1 Mbit/s in bytes per second
PART = 0.1


def one_link(*rates, periods_s, n_bytes):
    hosts, link = [Host("S", n_bytes), Host("D")], Link("S", "D", list(rates))
    return Problem.from_hosts(hosts, [link], "D", periods_s=list(periods_s))


def test_what_binds_is_not_told_by_a_period_that_comes_after_it():
    """50 GB at 800 Mbit/s are there after 500 s; from 3600 s on there would be 8 Mbit/s."""
    problem = one_link(1e8, 1e6, periods_s=(0, 3600), n_bytes=50_000 * MB)
    found = dc.explain(problem, dc.direct(problem))
    (bound,) = found.advice.alone
    (planned,) = found.plan.advice.tried
    for one, step in ((bound.relaxed[0], STEP), (planned.relaxed[0], 1e7)):
        tree = one.to_dict()
        assert (tree["now"], tree["step"]) == (1e8, step)
        assert tree["binds"] == [{"from_s": 0.0, "to_s": 500.0, "now": 1e8, "step": step}]
        assert one.text == "link 'S' -> 'D' (800 Mbit/s)"
    assert planned.saves_s == pytest.approx(500 - 500 / 1.1)
    assert "8 Mbit/s" not in flat(found.text)


def test_each_period_that_binds_is_told_with_its_hours():
    """1 MB/s for a second, none for one, then 2 MB/s: 3 MB until 3 s."""
    problem = one_link(1e6, 0, 2e6, periods_s=(0, 1, 2), n_bytes=3 * MB)
    found = dc.explain(problem, dc.direct(problem))
    (limit,) = found.plan.binds
    assert [t.value for t in limit.values] == [1e6, 0, 2e6]
    assert [(t.from_s, t.to_s) for t in limit.values] == [(0, 1), (1, 2), (2, pytest.approx(3))]
    assert limit.to_dict()["values"][1] == {"from_s": 1.0, "to_s": 2.0, "value": 0.0}
    (bound,) = found.advice.alone
    assert bound.relaxed[0].text == (
        "link 'S' -> 'D' (8 Mbit/s from 0 s to 1 s, 16 Mbit/s from 2 s to 3 s)"
    )
    assert (bound.relaxed[0].now, bound.relaxed[0].step) == (2e6, STEP)
    assert found.bottleneck.text == (
        "Host 'S' can send at most 8 Mbit/s until 1 s, nothing until 2 s and 16 Mbit/s from 2 s on "
        "(the link 'S' -> 'D')."
    )


def test_of_many_periods_the_range_is_told_and_what_lasts_longest():
    """1, 2, 1, 2 … MB/s for a second each, and 3 MB/s from 10 s on: 15 MB by then, 30 at 15 s."""
    problem = one_link(*[1e6, 2e6] * 5, 3e6, periods_s=range(11), n_bytes=30 * MB)
    found = dc.explain(problem)
    assert found.advice.alone[0].relaxed[0].text == (
        "link 'S' -> 'D' (8 Mbit/s to 24 Mbit/s from 0 s to 15 s in 11 stretches, 8 Mbit/s for 5 s)"
    )
    assert found.bottleneck.text == (
        "Host 'S' can send at most 24 Mbit/s from 10 s on (the link 'S' -> 'D'), and at most 15 MB "
        "before (8 Mbit/s to 16 Mbit/s)."
    )


def test_what_binds_in_a_part_of_the_time_only_is_told_so():
    """K's link carries 2 MB/s, then 1; S's to K always 1.5: each binds in its own second."""
    problem = Problem.from_hosts(
        [Host("S", 3 * MB), Host("K", storage_bytes=0), Host("D")],
        [Link("S", "K", [1.5e6, 1.5e6]), Link("K", "D", [2e6, 1e6])],
        "D",
        periods_s=[0, 1],
    )
    found = dc.explain(problem)
    texts = {one.relaxed[0].text for one in found.advice.alone}
    assert "link 'K' -> 'D' (8 Mbit/s from 1 s to 2.5 s)" in texts
    assert "link 'S' -> 'K' (12 Mbit/s)" in texts
    assert "12 Mbit/s until 1 s (the link 'S' -> 'K') and 8 Mbit/s from 1 s on (the link 'K'" in (
        found.bottleneck.text
    )


@st.composite
def uneven_problems(draw, most_hosts=3):
    """Few bytes pass while links are fast, most while they are slow, or the other way round."""
    n_periods = draw(st.integers(2, 5))
    lengths = draw(
        st.lists(st.sampled_from([0.5, 1.0, 7.0]), min_size=n_periods, max_size=n_periods)
    )
    names = [*(f"S{i}" for i in range(draw(st.integers(1, most_hosts - 1)))), "D"]
    rate = st.sampled_from([0.0, 1e4, 1e6, 3e6, 1e8])
    hosts = {
        name: {
            "backlog_bytes": draw(st.sampled_from([0, 10**6, 3 * 10**7, 2 * 10**8])),
            "storage_bytes": draw(st.sampled_from([0, 10**6, 10**9])),
        }
        for name in names[:-1]
    }
    hosts["D"] = draw(st.sampled_from([{}, {"downlink_bytes_per_s": 2e6}]))
    pairs = [(a, b) for a in names[:-1] for b in names if a != b]
    links = [
        {"from": a, "to": b, "bandwidth_bytes_per_s": [draw(rate) for _ in range(n_periods)]}
        for a, b in pairs
    ]
    starts = [0.0, *np.cumsum(lengths[:-1]).tolist()]
    tree = {"destination": "D", "hosts": hosts, "links": links, "periods_s": starts}
    return Problem.from_dict(tree)


def with_link(problem, link, period, factor=1.0, step=0.0):
    """One link of one period, or of all (`None`), changed wherever it has bandwidth."""
    bandwidth = np.array(problem.bandwidth_bytes_per_s)
    rows = slice(None) if period is None else slice(period, period + 1)
    is_open = bandwidth[rows, link] > 0
    bandwidth[rows, link] = np.where(is_open, bandwidth[rows, link] * factor + step, 0.0)
    return problem.replace(bandwidth_bytes_per_s=bandwidth)


def named_periods(problem, relaxed):
    """Periods of a link that are said to bind, and that their values are those of the problem."""
    found = set()
    for then in relaxed.values:
        middles = [*problem.periods_s, np.inf]
        for period in range(problem.n_periods):
            begin, end = max(middles[period], then.from_s), min(middles[period + 1], then.to_s)
            if end - begin > 1e-9 * then.to_s:
                value = problem.bandwidth_bytes_per_s[period, relaxed.resource.number]
                assert value == then.value, (relaxed, period)
                found.add(period)
    return found


@given(problem=uneven_problems())
def test_periods_of_the_bound_bind_and_a_step_gains_in_all_hours(problem):
    """Narrower in a period that is named, all ends later; wider in another, none ends sooner."""
    before_s = fluid_makespan_s(problem)
    assume(before_s)
    advice = advise(problem, arrival_curve(problem, Budget()), Budget())
    for one in advice.alone:
        (relaxed,) = one.relaxed
        if relaxed.resource.kind != "link":
            continue
        link = relaxed.resource.number
        named = named_periods(problem, relaxed)
        assert named
        for period in range(problem.n_periods):
            if period in named:
                after_s = fluid_makespan_s(with_link(problem, link, period, 1 - PART))
                assert after_s is None or after_s > before_s * (1 + 1e-8)
            else:
                after_s = fluid_makespan_s(with_link(problem, link, period, 1 + PART))
                assert after_s == pytest.approx(before_s, rel=1e-7)
        after_s = fluid_makespan_s(with_link(problem, link, None, step=STEP))
        assert one.saves_s == pytest.approx(before_s - after_s, abs=1e-5 * before_s)


@given(problem=uneven_problems())
def test_a_direct_plans_gains_are_those_of_links_that_are_wider_in_all_hours(problem):
    """Planned again by an independent program, with the link a tenth wider in every period."""
    found = direct_plan(problem)
    assume(problem.total_bytes and found)
    before_s = max(found[0].values())
    explained = dc.explain(problem, dc.direct(problem)).plan
    for limit in explained.binds:
        assert limit.values[0].from_s == limit.from_s
        assert limit.values[-1].to_s == limit.to_s
    for one in explained.advice.tried:
        for relaxed in one.relaxed:
            tenth = [then.value / 10 for then in relaxed.values]
            assert relaxed.steps == pytest.approx(tenth)
            if relaxed.resource.kind == "link":
                named_periods(problem, relaxed)
        if one.resources[0].kind != "link" or len(one.resources) > 1 or one.saves_s is None:
            continue
        after = direct_plan(with_link(problem, one.resources[0].number, None, 1.1))
        if after is not None:
            saved_s = before_s - max(after[0].values())
            assert one.saves_s == pytest.approx(saved_s, abs=3e-6 * before_s), one.names


def test_of_many_those_through_which_most_passes_are_tried():
    """Twenty links into D; those that are fast while it lasts are slow in a period never met."""
    hosts = [*(Host(f"H{i}", i * MB) for i in range(1, 21)), Host("D")]
    ways = [Link(f"H{i}", "D", [i * 1e6, (21 - i) * 1e6]) for i in range(1, 21)]
    found = dc.explain(Problem.from_hosts(hosts, ways, "D", periods_s=[0, 100]))
    assert {one.relaxed[0].now for one in found.advice.alone} == {i * 1e6 for i in range(11, 21)}
    assert Resource("link", 0) not in {one.resources[0] for one in found.advice.alone}
