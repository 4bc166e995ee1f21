"""What plans lean on: hosts that are to do more at once than was shown of them."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError, asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from instances.hand_made import links
from instances.small_problems import MB
from instances.strategies import FEATURES, problems

import datacollect as dc
from datacollect.methods.execution import PULLS, execution_of
from datacollect.methods.warnings import plan_warnings
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_fluid
from datacollect.simulation.fluid.problem_network import ProblemNetwork

METHODS = {"best-path": dc.best_path, "coordinated": dc.coordinated}


def two_ways(**of_source: Any) -> Problem:
    """S reaches D at 1 MB/s, and at 1 MB/s over K; it holds 4 MB.

    Both ways at once take 2 s, one 4 s: S is to send 2 MB/s, where each link shows 1.
    """
    hosts = [Host("S", 4 * MB, **of_source), Host("K"), Host("D", downlink_bytes_per_s="none")]
    return Problem.from_hosts(hosts, links("S -> D 1e6, S -> K 1e6, K -> D 1e6"), "D")


def two_sources(**of_relay: Any) -> Problem:
    """S and T, 4 MB each, reach D at 1 MB/s each, and K at as much, which has 2 MB/s to D."""
    hosts = [
        Host("S", 4 * MB, uplink_bytes_per_s="none"),
        Host("T", 4 * MB, uplink_bytes_per_s="none"),
        Host("K", **of_relay),
        Host("D", downlink_bytes_per_s="none"),
    ]
    each = "S -> D 1e6, T -> D 1e6, S -> K 1e6, T -> K 1e6, K -> D 2e6"
    return Problem.from_hosts(hosts, links(each), "D")


def measured() -> Problem:
    """Three hosts of a test bed, each pair measured alone; S1 has one wire of 40 Mbit/s."""
    hosts = [Host("D"), Host("S1", 6_000_000_000), Host("S2", 10_000_000_000)]
    rates = (
        "D -> S1 23925261.5, D -> S2 23770348.2, S1 -> D 4785798.6, S1 -> S2 4787366.7, "
        "S2 -> D 11939379.3, S2 -> S1 11942420.3"
    )
    return Problem.from_hosts(hosts, links(rates), "D")


def test_a_source_on_two_ways_leans_on_its_uplink():
    """1 MB/s is what was shown: then 4 MB take 4 s, as they do directly."""
    found = dc.coordinated(two_ways(), chunk_s=0.0).assumptions
    assert [asdict(load) for load in found.leans_on] == [
        {
            "host": "S",
            "direction": "out",
            "planned_bytes_per_s": pytest.approx(2e6),
            "shown_bytes_per_s": 1e6,
            "direct_bytes_per_s": pytest.approx(1e6),
        }
    ]
    assert found.makespan_s == pytest.approx(2.0)
    assert found.direct_makespan_s == pytest.approx(4.0)
    assert found.cautious_makespan_s == pytest.approx(4.0)
    assert (found.gain, found.cautious_gain) == (pytest.approx(2.0), pytest.approx(1.0))
    assert found.matter
    assert found.lines == (
        "S is to send 16 Mbit/s at once; no test has shown more than 8 Mbit/s.",
        "Coordinated takes 2 s, 2.00 × over direct; 4 s, 1.00 × over direct, if S has one line.",
    )


@pytest.mark.parametrize(
    ("shown", "cautious_s", "is_told"),
    [
        ("1.5 MB/s", 4 / 1.5, True),  # half of the gain of 1 goes
        ("1.7 MB/s", 4 / 1.7, True),  # 0.3 of it
        ("1.8 MB/s", 4 / 1.8, False),  # 0.2 of it
        ("2 MB/s", None, False),
        ("5 MB/s", None, False),
    ],
)
def test_more_than_a_quarter_of_the_gain_has_to_go(shown, cautious_s, is_told):
    problem = two_ways(shown_uplink_bytes_per_s=shown)
    found = dc.coordinated(problem, chunk_s=0.0).assumptions
    if cautious_s is None:
        assert (found.leans_on, found.cautious_makespan_s) == ((), None)
    else:
        assert found.leans_on[0].shown_bytes_per_s == problem.shown_uplink_bytes_per_s[0]
        assert found.cautious_makespan_s == pytest.approx(cautious_s)
    assert found.matter is is_told
    assert bool(found.lines) is is_told


def test_who_is_known_to_have_no_limit_is_not_doubted():
    plan = dc.coordinated(two_ways(uplink_bytes_per_s="none"), chunk_s=0.0)
    assert plan.makespan_s == pytest.approx(2.0)
    assert (plan.assumptions.leans_on, plan.assumptions.alike) == ((), ())
    cautious = dc.coordinated(two_ways(uplink_bytes_per_s="none"), chunk_s=0.0, cautious=True)
    assert cautious.makespan_s == pytest.approx(2.0)


def test_a_limit_that_is_stated_counts():
    """1.25 MB/s: 3.2 s, and nothing to lean on."""
    problem = two_ways(uplink_bytes_per_s="10 Mbit/s", shown_uplink_bytes_per_s="8 Mbit/s")
    plan = dc.coordinated(problem, chunk_s=0.0)
    assert plan.makespan_s == pytest.approx(3.2)
    assert plan.assumptions.leans_on == ()
    assert plan_warnings(problem, plan) == []


def test_a_limit_below_what_was_shown_is_told_with_both():
    problem = two_ways(uplink_bytes_per_s="10 Mbit/s", shown_uplink_bytes_per_s="12 Mbit/s")
    (said,) = plan_warnings(problem, dc.coordinated(problem))
    assert "'S' is limited to uplink_bytes_per_s = 10 Mbit/s, though" in said
    assert "shown_uplink_bytes_per_s is 12 Mbit/s; the limit counts" in said


def test_a_relay_that_receives_from_two_leans_on_its_downlink():
    """All links together: 4 MB/s, 2 s. K alone gets 1 MB/s: 3 MB/s, 8/3 s. Directly 4 s."""
    found = dc.coordinated(two_sources(), chunk_s=0.0).assumptions
    assert [(load.host, load.direction) for load in found.leans_on] == [("K", "in")]
    assert found.leans_on[0].planned_bytes_per_s == pytest.approx(2e6)
    assert found.leans_on[0].shown_bytes_per_s == 1e6
    assert found.cautious_makespan_s == pytest.approx(8 / 3)
    assert (found.gain, found.cautious_gain) == (pytest.approx(2.0), pytest.approx(1.5))
    assert found.lines[-1].endswith("2.667 s, 1.50 × over direct, if K has one line.")
    shown = dc.coordinated(two_sources(shown_downlink_bytes_per_s="2 MB/s"), chunk_s=0.0)
    assert shown.assumptions.leans_on == ()


def test_a_destination_that_is_to_take_in_more_than_directly_is_doubted():
    """Directly 2 MB/s come in at once, over K 4: with 2 all take 4 s."""
    problem = two_sources(downlink_bytes_per_s="none").replace(shown_downlink_bytes_per_s=None)
    problem = problem.replace(shown_downlink_bytes_per_s=[0, 0, math.inf, 0])
    found = dc.coordinated(problem, chunk_s=0.0).assumptions
    assert [(load.host, load.direction) for load in found.leans_on] == [("D", "in")]
    assert found.leans_on[0].direct_bytes_per_s == pytest.approx(2e6)
    assert found.cautious_makespan_s == pytest.approx(4.0)


def _star(n: int) -> Problem:
    hosts = [*(Host(f"S{i}", 12 * MB) for i in range(n)), Host("D")]
    return Problem.from_hosts(hosts, links(", ".join(f"S{i} -> D 1e6" for i in range(n))), "D")


@pytest.mark.parametrize("method", [dc.direct, *METHODS.values()])
def test_a_fat_destination_is_no_alarm(method):
    """Twelve sources send 12 MB/s by any method: one line, and no second makespan."""
    plan = method(_star(12))
    found = plan.assumptions
    (load,) = found.alike
    assert (load.host, load.direction, load.shown_bytes_per_s) == ("D", "in", 1e6)
    assert load.planned_bytes_per_s == pytest.approx(12e6)
    assert (found.leans_on, found.cautious_makespan_s, found.lines) == ((), None, ())
    (said,) = plan_warnings(_star(12), plan)
    assert said.startswith("no downlink is given for 'D': its links together, 96 Mbit/s")
    shown = _star(12).replace(shown_downlink_bytes_per_s=[0.0] * 12 + [12e6])
    assert plan_warnings(shown, method(shown)) == []
    assert method(shown).assumptions.alike == ()


def test_little_more_into_a_fat_destination_is_no_alarm():
    """S0 has 24 MB, and K's link: 13 MB/s for 12 s; with direct's 12 MB/s 13 s, of 24 directly."""
    pairs = [*(f"S{i} -> D 1e6" for i in range(12)), "S0 -> K 1e6", "K -> D 1e6"]
    hosts = [
        Host("S0", 24 * MB, uplink_bytes_per_s="none"),
        *(Host(f"S{i}", 12 * MB) for i in range(1, 12)),
        *(Host("K"), Host("D")),
    ]
    found = dc.coordinated(Problem.from_hosts(hosts, links(", ".join(pairs)), "D")).assumptions
    assert [load.host for load in found.leans_on] == ["D"]
    assert found.cautious_makespan_s == pytest.approx(13.0, rel=0.01)
    assert not found.matter


def test_a_wire_that_is_stated_is_what_was_shown():
    """A wire of S's links alone carries 2 MB/s: its line. One that others share says less."""
    own = dc.SharedBottleneck("line", 2e6, [("S", "D"), ("S", "K")])
    assert dc.coordinated(two_ways().replace(shared=[own])).assumptions.leans_on == ()
    others = dc.SharedBottleneck("middle", 9e6, [("S", "D"), ("S", "K"), ("K", "D")])
    found = dc.coordinated(two_ways().replace(shared=[others])).assumptions
    assert [load.host for load in found.leans_on] == ["S"]


def test_two_lines_measured_alone_that_are_one():
    """6 GB over 4.787 MB/s, the better of S1's links: 1253 s, as direct takes 1254 s.

    Both links: 16 GB into D at 16.725 MB/s, 957 s. S1 sends all its data meanwhile, 6.27 MB/s.
    """
    found = dc.coordinated(measured()).assumptions
    assert [(load.host, load.direction) for load in found.leans_on] == [("S1", "out")]
    assert found.leans_on[0].planned_bytes_per_s == pytest.approx(6e9 / 957, rel=0.01)
    assert found.leans_on[0].shown_bytes_per_s == 4787366.7
    assert found.makespan_s == pytest.approx(957, rel=0.002)
    assert found.gain == pytest.approx(1.31, abs=0.005)
    assert found.cautious_makespan_s == pytest.approx(1253.3, rel=0.002)
    assert found.cautious_gain == pytest.approx(1.0, abs=0.005)
    assert found.matter
    assert dc.coordinated(measured(), cautious=True).makespan_s == found.cautious_makespan_s
    assert [load.host for load in found.alike] == ["D"]


def test_best_path_over_a_relay_is_doubted_like_any_method():
    """S and T take K, 3 MB/s each against 1 directly; K is to receive 6 MB/s, shown 3."""
    hosts = [Host("S", 6 * MB), Host("T", 6 * MB), Host("K"), Host("D")]
    each = "S -> D 1e6, T -> D 1e6, S -> K 3e6, T -> K 3e6, K -> D 6e6"
    found = dc.best_path(Problem.from_hosts(hosts, links(each), "D"), chunk_s=0.0).assumptions
    assert [(load.host, load.direction) for load in found.leans_on] == [("K", "in")]
    assert (found.makespan_s, found.cautious_makespan_s) == (pytest.approx(2), pytest.approx(4))
    assert found.lines[-1].startswith("Best-path takes 2 s, 3.00 × over direct; 4 s, 1.50 ×")


def test_without_a_direct_plan_a_quarter_more_time_is_told():
    """Only K and L lead to D: 2 MB/s from S, shown 1."""
    hosts = [Host("S", 4 * MB), Host("K"), Host("L"), Host("D", downlink_bytes_per_s="none")]
    each = "S -> K 1e6, K -> D 1e6, S -> L 1e6, L -> D 1e6"
    found = dc.coordinated(Problem.from_hosts(hosts, links(each), "D"), chunk_s=0.0).assumptions
    assert (found.gain, found.cautious_gain, found.direct_makespan_s) == (None, None, None)
    assert found.cautious_makespan_s == pytest.approx(4.0)
    assert found.lines[-1] == "Coordinated takes 2 s; 4 s, if S has one line."


def test_a_deadline_that_leans_on_a_host_may_not_be_met():
    """By 3 s both ways are needed; with 1 MB/s there is no plan in time."""
    found = dc.coordinated(two_ways(), deadline_s=3.0).assumptions
    assert found.cautious_makespan_s is None
    assert "deadline" in found.why_none
    assert found.matter
    assert "if S has one line there is no such plan" in found.lines[-1]
    with pytest.raises(dc.InfeasibleError, match=r"planned by what was shown of hosts"):
        dc.coordinated(two_ways(), deadline_s=3.0, cautious=True)


def test_all_that_differs_by_time_counts_with_its_most():
    """0.5 MB/s for 2 s, then 1: shown is 1 MB/s, and 2 s of it are not leant on."""
    problem = Problem.from_hosts(
        [Host("S", 4 * MB), Host("K"), Host("D", downlink_bytes_per_s="none")],
        [
            dc.Link("S", "D", [0.5e6, 1e6]),
            dc.Link("S", "K", [0.5e6, 1e6]),
            dc.Link("K", "D", [1e6, 1e6]),
        ],
        "D",
        periods_s=[0.0, 2.0],
    )
    found = dc.coordinated(problem, chunk_s=0.0).assumptions
    # 2 MB in 2 s, 2 MB in 1 s. With 1 MB/s all the time: 4 s.
    assert found.makespan_s == pytest.approx(3.0)
    assert found.cautious_makespan_s == pytest.approx(4.0)


def test_in_slots_and_derated_the_second_plan_is_made_alike():
    found = dc.coordinated(two_ways(), slot_s=0.5).assumptions
    assert found.cautious_makespan_s == pytest.approx(4.0)
    half = dc.coordinated(two_ways(), derate=0.5, chunk_s=0.0).assumptions
    # Both ways at half: 4 s, S sends 1 MB/s, as its links show.
    assert (half.makespan_s, half.leans_on) == (pytest.approx(4.0), ())


def test_schedules_of_others_and_from_files_know_no_assumptions(tmp_path):
    plan = dc.coordinated(two_ways())
    again = dc.Schedule.from_dict(plan.to_dict())
    assert again == plan
    assert again.assumptions is None
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert "_finds_assumptions" not in vars(pickle.loads(pickle.dumps(plan)))
    cautious = dc.coordinated(two_ways(), cautious=True)
    assert dc.Schedule.from_dict(cautious.to_dict()).cautious is True
    with pytest.raises(FrozenInstanceError):
        plan.assumptions.makespan_s = 1.0


def test_explanations_find_them_again_and_name_unknown_wires_once():
    problem = two_ways()
    plan = dc.Schedule.from_dict(dc.coordinated(problem).to_dict())
    found = dc.explain(problem, plan)
    text = " ".join(found.text.split())
    assert "S is to send 16 Mbit/s at once; no test has shown more than 8 Mbit/s." in text
    assert text.count("no [[shared]] is given") == 1
    tree = found.to_dict()["plan"]
    assert tree["assumptions"]["cautious_gain"] == pytest.approx(1.0, rel=0.01)
    assert tree["wires_known"] is False
    assert max(map(len, found.text.splitlines())) <= 80
    wire = dc.SharedBottleneck("line", 2e6, [("S", "D"), ("S", "K")])
    stated = problem.replace(shared=[wire])
    assert "[[shared]]" not in dc.explain(stated, dc.coordinated(stated)).text
    assert "[[shared]]" not in dc.explain(problem, dc.direct(problem)).text


def test_explanations_without_a_plan_say_what_the_bound_is_without():
    """2 s, or 4 s with 1 MB/s out of S; nothing of hosts that were seen to do it."""
    found = dc.explain(two_ways())
    assert (found.lower_bound_s, found.cautious_lower_bound_s) == (2.0, pytest.approx(4.0))
    assert "more at once than a test has shown: 4 s;" in " ".join(found.text.split())
    seen = dc.explain(two_ways(shown_uplink_bytes_per_s="1.8 MB/s"))
    assert seen.cautious_lower_bound_s is None
    assert "shown" not in seen.text
    assert dc.explain(_star(12)).cautious_lower_bound_s is None


def test_comparisons_hold_both_numbers():
    methods = dc.compare(measured()).to_dict()["methods"]
    assert methods["coordinated"]["assumptions"]["matter"] is True
    assert methods["direct"]["assumptions"]["matter"] is False
    cautious = dc.compare(measured(), cautious=True).to_dict()["methods"]
    assert cautious["coordinated"]["assumptions"]["leans_on"] == []


# Whatever the problem ---------------------------------------------------------------------------


def _peaks(problem: Problem, plan: dc.Schedule, end: int) -> np.ndarray:
    """The most that each host sends (0), or receives (1), at instants throughout the plan."""
    columns, most = plan.columns, np.zeros(problem.n_hosts)
    if not len(columns):
        return most
    hops = zip(columns.route.tolist(), columns.hop.tolist(), strict=True)
    host = np.array([problem.host_index[plan.routes[r].hosts[hop + end]] for r, hop in hops])
    rate = columns.n_bytes / (columns.finish_s - columns.start_s)
    for at_s in (np.arange(200) + 0.5) * plan.makespan_s / 200:
        now = (columns.start_s <= at_s) & (at_s < columns.finish_s)
        most = np.maximum(most, np.bincount(host[now], rate[now], minlength=problem.n_hosts))
    return most


def _shown(problem: Problem, ends: np.ndarray) -> np.ndarray:
    most = np.zeros(problem.n_hosts)
    for host, rate in zip(ends.tolist(), problem.bandwidth_bytes_per_s.max(axis=0), strict=True):
        most[host] = max(most[host], rate)
    return most


PLAIN = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@given(problem=problems(FEATURES - {"shared", "held"}, large=True))
@PLAIN
def test_the_second_number_is_no_smaller_and_cautious_plans_keep_to_what_was_shown(problem):
    try:
        plan = dc.coordinated(problem)
        direct = dc.direct(problem)
    except dc.InfeasibleError:
        return
    found = plan.assumptions
    if found.cautious_makespan_s is not None:
        assert found.cautious_makespan_s >= plan.makespan_s * (1 - 0.003)
    cautious = dc.coordinated(problem, cautious=True)
    cautious.check(problem)
    assert cautious.makespan_s >= plan.makespan_s * (1 - 0.003)
    assert cautious.lower_bound_s == pytest.approx(plan.lower_bound_s)
    assert cautious.assumptions.leans_on == ()
    for limit, ends, column in (
        ("uplink_bytes_per_s", problem.link_from, 0),
        ("downlink_bytes_per_s", problem.link_to, 1),
    ):
        most = np.maximum(_shown(problem, ends), _peaks(problem, direct, column))
        is_unstated = np.isinf(getattr(problem, limit)[0])
        assert (_peaks(problem, cautious, column) <= most * 1.001)[is_unstated].all()


@given(problem=problems({"limits"}, large=True), factor=st.sampled_from([2, 1000]))
@PLAIN
def test_units_change_nothing(problem, factor):
    """So many times the bytes at so many times the rates: the same gains."""
    larger = Problem.from_hosts(
        [
            Host(
                name,
                int(problem.backlog_bytes[i]) * factor,
                uplink_bytes_per_s=problem.uplink_bytes_per_s[0, i] * factor,
                downlink_bytes_per_s=problem.downlink_bytes_per_s[0, i] * factor,
            )
            for i, name in enumerate(problem.names)
        ],
        [
            dc.Link(problem.names[a], problem.names[b], rate * factor)
            for a, b, rate in zip(
                problem.link_from, problem.link_to, problem.bandwidth_bytes_per_s[0], strict=True
            )
        ],
        problem.destination,
    )
    one, other = (dc.coordinated(each).assumptions for each in (problem, larger))
    assert [load.host for load in one.leans_on] == [load.host for load in other.leans_on]
    assert one.gain == pytest.approx(other.gain, rel=1e-3)
    assert one.matter == other.matter


@given(problem=problems({"limits", "forecast", "release"}, large=True))
@PLAIN
def test_nothing_is_leant_on_where_all_hosts_are_known_to_have_no_limit(problem):
    inf = np.full(problem.n_hosts, math.inf)
    problem = problem.replace(shown_uplink_bytes_per_s=inf, shown_downlink_bytes_per_s=inf)
    try:
        found = dc.coordinated(problem).assumptions
    except dc.InfeasibleError:
        return
    assert (found.leans_on, found.alike, found.lines) == ((), (), ())


# Carried out ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["adaptive", "coordinated"])
@pytest.mark.parametrize("connections", [4, 16])
def test_a_pull_that_starts_by_a_plan_that_leans_corrects_itself(method, connections):
    """S1 really sends 4.79 MB/s in all: no later than 1.02 times direct, which takes 1254 s."""
    problem = measured()
    truth = problem.replace(uplink_bytes_per_s=[math.inf, 4.79e6, math.inf])
    how = replace(PULLS, name=method, connections=connections, piece_bytes=8_000_000)
    found = execution_of(problem, how, in_packets=False)
    run = simulate_fluid(
        ProblemNetwork(truth),
        {"S1": 6_000_000_000, "S2": 10_000_000_000},
        "D",
        found.controller,
        plan_remaining=found.plan_remaining,
        time_limit_s=5000.0,
    )
    assert run.complete
    assert run.makespan_s <= 1.02 * dc.direct(truth).makespan_s
    assert found.schedule.assumptions.matter
    assert found.schedule.assumptions.method == method
