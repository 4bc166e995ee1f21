"""Relaxations of a plan: gains derived by hand, and by independent programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances.hand_made import links
from instances.how_many import many
from instances.small_problems import MB, figure_1, relay, two_sources
from instances.strategies import problems
from instances.words import flat
from judges.fair_oracle import direct_plan
from judges.oracle import least_cost, slotted_makespan_slots

import datacollect as dc
from datacollect.examples import example_files
from datacollect.explanation.plan_limits import plan_limits
from datacollect.explanation.plan_relaxations import advise_plan, plan_cost
from datacollect.explanation.relaxations import Advice, advise
from datacollect.explanation.what_if import WhatIf
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.problem.hosts import Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget

RATES = {"uplink": "uplink_bytes_per_s", "downlink": "downlink_bytes_per_s"}


def gains(problem, plan):
    """Names, and seconds saved by a step and without limit."""
    return {
        " with ".join(found.names): (found.saves_s, found.saves_unlimited_s)
        for found in dc.explain(problem, plan).plan.advice.tried
    }


NO_ADVICE = Advice((), (), 0)


def advice_of(problem, plan, general=NO_ADVICE):
    """What to relax first, without all else that `explain` says."""
    return advise_plan(WhatIf(problem, plan, "auto"), plan_limits(problem, plan), general)


def savings(problem, plan):
    """Names, and cost saved by a step and without limit."""
    return {
        found.names[0]: (found.saves_cost, found.saves_cost_unlimited)
        for found in dc.explain(problem, plan).plan.advice.tried
    }


# Direct ---------------------------------------------------------------------------------------


def test_direct_the_last_sources_own_link():
    """A 4 s, B 2 s. A's link a tenth wider: 4/1.1 s; without limit B's 2 s remain."""
    problem = two_sources((4, 1), (4, 2))
    found = gains(problem, dc.direct(problem))
    assert found["link 'A' -> 'D'"] == pytest.approx((4 - 4 / 1.1, 2.0))
    assert found["link 'B' -> 'D'"] == (0.0, 0.0)
    assert next(iter(found)) == "link 'A' -> 'D'"


def test_direct_a_shared_wire():
    """Both over one wire of 1 MB/s: 2 s, or 2/1.1; without it 1 MB/s each: 1 s."""
    found = gains(figure_1(), dc.direct(figure_1()))
    assert found == {"shared bottleneck 'N1-D'": pytest.approx((2 - 2 / 1.1, 1.0), rel=1e-5)}


def test_direct_a_release():
    """B's 4 MB at 2 MB/s from 3 s on: 5 s; from 2.7 s on 4.7; from 0 on A's 4 s remain."""
    problem = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 4 * MB, release_s=3.0), Host("D")],
        links("A -> D 1e6, B -> D 2e6"),
        "D",
    )
    found = gains(problem, dc.direct(problem))
    assert found["release of 'B'"] == pytest.approx((0.3, 1.0))
    assert found["link 'B' -> 'D'"] == pytest.approx((2 - 2 / 1.1, 1.0))


def test_direct_more_for_one_may_end_later():
    """A: 40 MB at 4 of D's 10 MB/s, 10 s; B: 54 MB at 6, 9 s.

    A at 4.4 MB/s: 100/11 s, in which B moves 5.6 MB/s; its rest takes 34/11 MB at 6 MB/s. With no
    limit both have 5 MB/s for 8 s, and B's last 14 MB, at 6 MB/s, end at 31/3 s.
    """
    problem = two_sources((40, 4), (54, 6), downlink=10e6)
    plan = dc.direct(problem)
    found = gains(problem, plan)
    assert found["link 'A' -> 'D'"] == pytest.approx((10 - 100 / 11 - 34 / 66, -1 / 3), rel=1e-5)
    assert "no limit at all ends 0.3333 s later" in flat(dc.explain(problem, plan).text)


def test_direct_what_holds_back_two_last_sources_is_relaxed_together():
    """A 4 MB at 1 MB/s, B 8 MB at 2 MB/s: 4 s each, and no less for one alone."""
    problem = two_sources((4, 1), (8, 2))
    found = gains(problem, dc.direct(problem))
    assert found["link 'A' -> 'D'"] == found["link 'B' -> 'D'"] == (0.0, 0.0)
    assert found["link 'A' -> 'D' with link 'B' -> 'D'"] == pytest.approx(
        (4 - 4 / 1.1, 4.0), rel=1e-5
    )
    text = flat(dc.explain(problem, dc.direct(problem)).text)
    assert "2 of 2 constraints that bind were tried" in text
    assert "10% more of each saves 0.3636 s" in text


def test_direct_turns():
    """One at a time 4 + 2 s; two at a time, or all at once, 4 s."""
    problem = two_sources((4, 1), (4, 2))
    found = gains(problem, dc.direct(problem, at_a_time=1))
    assert found["turns"] == pytest.approx((2.0, 2.0))
    assert found["link 'A' -> 'D'"] == pytest.approx((4 - 4 / 1.1, 4.0), rel=1e-5)
    in_order = dc.direct(problem, order=["B"], at_a_time=1)
    text = flat(dc.explain(problem, in_order).text)
    assert "'A' waits for its turn" in text
    assert "turns (1 at a time): 2 at a time saves 2 s, all at once saves 2 s" in text
    assert "waits 2 s for its turn" in text


def changed(problem, kind, number, factor):
    """The problem with one resource relaxed by a factor, written down once more."""
    if kind == "link":
        bandwidth = np.array(problem.bandwidth_bytes_per_s)
        bandwidth[:, number] *= factor
        return problem.replace(bandwidth_bytes_per_s=bandwidth)
    if kind == "shared":
        rates = [s.bandwidth_bytes_per_s for s in problem.shared]
        rates[number] *= factor
        parts = zip(problem.shared, rates, strict=True)
        return problem.replace(shared=[SharedBottleneck(s.name, r, s.links) for s, r in parts])
    column = {"storage": "storage_bytes", "release": "release_s", **RATES}[kind]
    values = np.array(getattr(problem, column))
    values[..., number] *= max(2 - factor, 0) if kind == "release" else factor
    return problem.replace(**{column: values})


def resources_of(problem):
    """Every constraint that can be relaxed."""
    yield from (("link", i) for i in range(problem.n_links))
    yield from (("shared", i) for i in range(len(problem.shared)))
    for host in range(problem.n_hosts):
        for kind, column in RATES.items():
            if np.isfinite(getattr(problem, column)[0, host]):
                yield kind, host
        if problem.release_s[host] > 0:
            yield "release", host


def judge_gains(problem):
    """Gains are those of an independent program; what was not tried gains nothing."""
    assume(problem.total_bytes)
    found = direct_plan(problem)
    assume(found)
    before_s = max(found[0].values())
    advice = advice_of(problem, dc.direct(problem))
    tried = {
        (one.resources[0].kind, one.resources[0].number): one
        for one in advice.tried
        if len(one.resources) == 1
    }
    assert advice.n_candidates > 5 or len(tried) == advice.n_candidates
    for kind, number in resources_of(problem):
        one = tried.get((kind, number))
        if one is None and advice.n_candidates > 5:
            continue
        claimed = (0.0, 0.0) if one is None else (one.saves_s, one.saves_unlimited_s)
        for claim, factor in zip(claimed, (1.1, 1e6), strict=True):
            after = direct_plan(changed(problem, kind, number, factor))
            if after is None or claim is None:
                continue  # bandwidth ends for good when the last byte arrives: rounding decides
            after_s = max(after[0].values())
            assert claim == pytest.approx(before_s - after_s, abs=3e-6 * before_s), (kind, number)


ONE_HOP = frozenset({"limits", "shared", "forecast", "release"})


@pytest.mark.slow
@settings(max_examples=many(600))
@given(problem=problems(ONE_HOP, 5, large=True))
def test_direct_gains_are_those_of_an_independent_program(problem):
    judge_gains(problem)


def test_of_many_constraints_those_of_the_last_are_tried():
    """Twenty sources on links of their own: the last one's link is all that counts."""
    hosts = [*(Host(f"S{i}", i * MB) for i in range(1, 21)), Host("D")]
    into = ", ".join(f"S{i} -> D 1e6" for i in range(1, 21))
    problem = Problem.from_hosts(hosts, links(into), "D")
    advice = dc.explain(problem, dc.direct(problem)).plan.advice
    assert [one.names for one in advice.tried] == [("link 'S20' -> 'D'",)]
    assert advice.n_candidates == 20
    assert (advice.tried[0].saves_s, advice.tried[0].saves_unlimited_s) == pytest.approx((1.0, 1.0))


# Best-path ------------------------------------------------------------------------------------


def test_best_path_the_narrowest_hop_and_the_link_that_it_compares_with():
    """By K at 2 MB/s 3 s. A tenth more 6/2.2; without limit K's 3 MB/s: 2 s.

    Were S's own link, 1 MB/s, without limit, S would take it.
    """
    plan = dc.best_path(relay(), chunk_s=0.0)
    found = gains(relay(), plan)
    assert found["link 'S' -> 'K'"] == pytest.approx((3 - 6 / 2.2, 1.0))
    assert found["link 'S' -> 'D'"] == pytest.approx((0.0, 3.0), rel=1e-5)
    assert next(iter(found)) == "link 'S' -> 'K'"


def test_best_path_a_relays_link_that_two_share():
    """A and B take K's link of 4 MB/s to D, rather than their own of 1 MB/s: 8 MB in 2 s.

    A tenth more: 8/4.4. Without limit 3 MB/s each into K: 4/3 s.
    """
    problem = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 4 * MB), Host("K"), Host("D")],
        links("A -> K 3e6, B -> K 3e6, K -> D 4e6, A -> D 1e6, B -> D 1e6"),
        "D",
    )
    plan = dc.best_path(problem, chunk_s=0.0)
    found = dc.explain(problem, plan)
    assert gains(problem, plan)["link 'K' -> 'D'"] == pytest.approx((2 - 8 / 4.4, 2 / 3), rel=1e-5)
    by_source = {source.source: source for source in found.sources}
    assert by_source["A"].limited_by == "link"
    assert by_source["A"].shared_with == ("B",)
    assert by_source["A"].text == "limited by the link 'K' -> 'D' (32 Mbit/s), shared with 'B'"


def test_best_path_hysteresis_is_kept():
    """A relay of 1.5 MB/s is not twice the direct 1 MB/s: 6 s, or 6/1.1."""
    problem = Problem.from_hosts(
        [Host("S", 6 * MB), Host("K"), Host("D")],
        links("S -> D 1e6, S -> K 2e6, K -> D 1.5e6"),
        "D",
    )
    plan = dc.best_path(problem, hysteresis=2.0)
    assert gains(problem, plan)["link 'S' -> 'D'"][0] == pytest.approx(6 - 6 / 1.1)
    # What made it is not known: made again it would take the relay.
    assert dc.explain(problem, plan.replace(hysteresis=None)).plan.advice.tried == ()


def test_best_path_in_slots_room_at_a_relay():
    """Room for 2 MB makes S wait every other slot: 8 s. Without limit K is busy from 1 s on: 5 s.

    With a tenth more, 2.2 MB, K has 0.2 MB left after each slot in which S waits.
    """
    problem = Problem.from_hosts(
        [Host("S", 8 * MB), Host("K", storage_bytes=2 * MB), Host("D")],
        links("S -> K 4e6, K -> D 2e6"),
        "D",
    )
    plan = dc.best_path(problem, slot_s=1.0)
    found = gains(problem, plan)
    assert next(iter(found)) == "storage at 'K'"
    assert found["storage at 'K'"][1] == 3.0
    assert found["link 'K' -> 'D'"][0] == 0.0


def test_the_gain_of_coordination_is_that_of_such_a_plan():
    """Direct 6 s, coordinated 2 s and a chunk; in slots of 0.5 s best-path and coordinated."""
    found = dc.explain(relay(), dc.direct(relay())).plan
    assert found.coordinated_s == pytest.approx(2.002)
    slotted = dc.explain(relay(), dc.best_path(relay(), slot_s=0.5)).plan
    assert slotted.coordinated_s == dc.coordinated(relay(), slot_s=0.5).makespan_s
    assert dc.explain(relay(), dc.coordinated(relay())).plan.coordinated_s is None
    alone = two_sources((4, 1), (4, 2))
    assert "that gains nothing" in dc.explain(alone, dc.direct(alone)).text


# Coordinated ----------------------------------------------------------------------------------


def test_in_slots_a_step_may_gain_nothing():
    """5 MB at 2 MB/s are 3 slots of 1 s, at 2.2 MB/s too; without limit one."""
    problem = Problem.from_hosts([Host("S", 5 * MB), Host("D")], links("S -> D 2e6"), "D")
    plan = dc.coordinated(problem, slot_s=1.0)
    assert gains(problem, plan) == {"link 'S' -> 'D'": (0.0, 2.0)}
    assert "10% more saves nothing, no limit at all saves 2 s" in flat(
        dc.explain(problem, plan).text
    )


@pytest.mark.slow
@settings(max_examples=15)
@given(problem=problems(frozenset({"limits", "release", "storage"}), 3, large=True))
def test_gains_in_slots_are_those_of_an_independent_program(problem):
    assume(problem.total_bytes)
    try:
        plan = dc.coordinated(problem, slot_s=1.0)
    except dc.InfeasibleError:
        return
    assume(plan.makespan_s <= 12)
    general = advise(problem, arrival_curve(problem, Budget()), Budget())
    for one in advice_of(problem, plan, general).tried:
        if len(one.resources) > 1:
            continue
        (resource,) = one.resources
        wider = changed(problem, resource.kind, resource.number, 1.1)
        after = slotted_makespan_slots(wider, 1.0, 12)
        assert one.saves_s == pytest.approx(plan.makespan_s - after), one.names


def test_a_pipelined_plan_gains_what_the_earliest_end_gains():
    found = dc.explain(relay(), dc.coordinated(relay()))
    assert found.plan.advice.tried == ()
    assert "what gains for the earliest end gains for it" in found.plan.advice.why_not
    assert "Not computed" not in found.text
    assert found.text.count("What to relax first") == 1


@pytest.fixture
def prices(tmp_path):
    """The shipped example with prices."""
    for name, text in example_files("prices").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return Problem.from_file(tmp_path / "prices.toml")


@pytest.mark.slow
def test_a_plan_is_called_the_least_only_if_no_solver_finds_a_cheaper_one(prices):
    """How long pipelines drain depends on the solver: chunks of 4.7 s, costs apart by 0.06 %."""
    plans = [
        dc.coordinated(prices, deadline_s=7200.0, solver=name)
        for name in ("ortools", "networkx", "pulp", "lemon")
    ]
    least = dc.coordinated(prices, deadline_s=7200.0, chunk_s=0.0)
    saving = [dc.explain(prices, plan).plan.deadline for plan in (*plans, least)]
    cheapest = min(one.cost for one in saving)
    for one in saving:
        assert one.gap is not None
        assert one.proved is (one.gap <= 1e-6)
        assert one.cost == pytest.approx(cheapest * (1 + one.gap), rel=1e-9)
    assert [one.proved for one in saving] == [False] * 4 + [True]


def test_a_deadline_says_what_it_saves_and_what_would_save_more():
    """1 MB/s directly: by 3 s 3 of 6 MB go over K; in 2 s, the soonest, 4. A tenth more: 2.7."""
    plan = dc.coordinated(relay(), deadline_s=3.0, chunk_s=0.0)
    found = dc.explain(relay(), plan)
    saving = found.plan.deadline
    assert (saving.deadline_s, saving.prefer, saving.proved) == (3.0, "relay-bytes", True)
    assert (saving.cost, saving.fastest_s, saving.fastest_cost) == pytest.approx((3e6, 2.0, 4e6))
    saved = savings(relay(), plan)
    assert saved["link 'S' -> 'D'"] == pytest.approx((0.3e6, 3e6), rel=1e-5)
    assert {source.limited_by for source in found.sources} == {"deadline"}
    text = flat(found.text)
    assert "It was planned to end by 3 s, and could end at 2 s." in text
    assert "Bytes through relays: 3 MB, the least of all plans in time; 4 MB in" in text
    assert (
        "1. link 'S' -> 'D' (8 Mbit/s): 10% more saves 300 kB, no limit at all saves 3 MB" in text
    )
    assert "the deadline lets it end later; the link 'S' -> 'D'" in text


def test_by_a_deadline_what_makes_data_take_detours_is_tried_first():
    """Six more sources send 6 MB each at 2 MB/s, just in time: their links carry most.

    S relays 3 of its 6 MB, and all that gains is its own link: a tenth more 0.3 MB.
    """
    others = [f"B{i}" for i in range(6)]
    hosts = [Host("S", 6 * MB), *(Host(name, 6 * MB) for name in others), Host("K"), Host("D")]
    into = ", ".join(f"{name} -> D 2e6" for name in others)
    problem = Problem.from_hosts(hosts, links(f"S -> D 1e6, S -> K 2e6, K -> D 3e6, {into}"), "D")
    plan = dc.coordinated(problem, deadline_s=3.0, chunk_s=0.0)
    advice = dc.explain(problem, plan).plan.advice
    assert len(advice.tried) <= 5 < advice.n_candidates
    best = advice.tried[0]
    assert best.names == ("link 'S' -> 'D'",)
    assert (best.saves_cost, best.saves_cost_unlimited) == pytest.approx((0.3e6, 3e6), rel=1e-5)


def test_where_nothing_tried_helps_it_says_so_once():
    """A and B go directly, both just in time: nothing is relayed, and no link has to be wider."""
    problem = two_sources((6, 2), (6, 2))
    text = flat(dc.explain(problem, dc.coordinated(problem, deadline_s=3.0, chunk_s=0.0)).text)
    assert "2 of 2 constraints that bind were tried" in text
    assert text.count("none of the 2 tried helps.") == 1
    assert "saves 0 B" not in text


def test_what_only_ends_sooner_helps_no_plan_with_a_deadline():
    """The whole of S's data goes directly, at 2 MB/s by 3 s: nothing is relayed, nothing helps."""
    problem = Problem.from_hosts(
        [Host("S", 6 * MB), Host("K"), Host("D")],
        links("S -> D 2e6, S -> K 2e6, K -> D 2e6"),
        "D",
    )
    found = dc.explain(problem, dc.coordinated(problem, deadline_s=3.0, chunk_s=0.0))
    (one,) = found.plan.advice.tried
    assert (one.saves_s > 0, one.saves_cost, one.helps) == (True, 0.0, False)
    text = flat(found.text)
    assert "by planning again (coordinated): it does not help." in text
    assert "saves 0 B" not in text


def test_a_deadline_where_links_have_prices():
    """K's way costs 1 per MB: 2 MB by 4 s, 4 in 2 s; a tenth more than S's 1 MB/s saves 0.4."""
    problem = relay().replace(price_per_gb=np.array([1e3, 0.0, 0.0]))
    plan = dc.coordinated(problem, deadline_s=4.0, chunk_s=0.0)
    found = dc.explain(problem, plan).plan
    assert found.money == pytest.approx(2.0)
    assert (found.deadline.prefer, found.deadline.cost) == ("money", pytest.approx(2.0))
    assert found.deadline.fastest_cost == pytest.approx(4.0)
    assert savings(problem, plan)["link 'S' -> 'D'"] == pytest.approx((0.4, 2.0), rel=1e-5)
    assert "Price of all links: 2, the least" in flat(dc.explain(problem, plan).text)


@settings(max_examples=15)
@given(
    problem=problems(frozenset({"limits", "shared", "release"}), 3, large=True),
    wish=st.sampled_from(["money", "relay-bytes"]),
    slack=st.sampled_from([1.2, 1.7]),
    seed=st.integers(0, 2**16),
)
def test_what_saves_more_by_a_deadline_is_that_of_an_independent_program(
    problem, wish, slack, seed
):
    assume(problem.total_bytes and problem.n_links)
    prices = np.random.default_rng(seed).integers(0, 5, problem.n_links) / 7
    problem = problem.replace(price_per_gb=prices)
    deadline_s = dc.lower_bound(problem)[0] * slack
    plan = dc.coordinated(problem, prefer=wish, deadline_s=deadline_s, chunk_s=0.0)
    before = least_cost(problem, wish, deadline_s)
    noise = 4e-6 * problem.total_bytes * {"money": 1e-9}.get(wish, 1.0)
    for one in advice_of(problem, plan).tried:
        (resource,) = one.resources
        wider = changed(problem, resource.kind, resource.number, 1.1)
        saved = before - least_cost(wider, wish, deadline_s)
        assert one.saves_cost == pytest.approx(saved, abs=noise), one.names


def test_costs_of_preferences():
    """S's 2 MB wait at K from 0.5 s, on average, to 2.5 s, and arrive from 2 to 3 s."""
    problem = Problem.from_hosts(
        [Host("S", 2 * MB), Host("K"), Host("D")],
        [Link("S", "K", [2e6, 0, 0], 3.0), Link("K", "D", [0, 0, 2e6])],
        "D",
        periods_s=[0.0, 1.0, 2.0],
    )
    plan = dc.coordinated(problem, chunk_s=0.0)
    assert plan_cost(problem, plan, "relay-bytes") == 2 * MB
    assert plan_cost(problem, plan, "storage") == pytest.approx(2 * MB * 2.0)
    assert plan_cost(problem, plan, "money") == pytest.approx(3.0 * 2e-3)
    assert plan_cost(problem, plan, "earliest-arrival") == pytest.approx(2.5)
