"""Binding constraints of a plan, and when: by hand, and against naive programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from instances.hand_made import links
from instances.how_many import many
from instances.small_problems import MB, figure_1, relay
from instances.strategies import problems
from judges.fair_oracle import direct_plan

import datacollect as dc
from datacollect.explanation import full_capacities
from datacollect.explanation.plan_limits import plan_limits
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem


def limits_of(problem, plan, source):
    """Names and times of what holds a source back."""
    found = plan_limits(problem, plan).of_source[source].limits
    return [(limit.name, pytest.approx((limit.from_s, limit.to_s))) for limit in found]


def at_end(problem, plan, source):
    """Names of what holds a source back at its end, and with whom it shares that."""
    found = plan_limits(problem, plan).of_source[source]
    return {limit.name for limit in found.at_end}, set(found.rivals)


def down_shared(downlink=3e6, **of_b):
    """A holds 5 MB, B 3 MB; links of 2 MB/s into D, which receives 3 MB/s."""
    hosts = [
        Host("A", 5 * MB),
        Host("B", 3 * MB, **of_b),
        Host("D", downlink_bytes_per_s=downlink),
    ]
    return Problem.from_hosts(hosts, links("A -> D 2e6, B -> D 2e6"), "D")


# By hand --------------------------------------------------------------------------------------


def test_two_share_a_downlink_until_one_has_ended():
    """1.5 MB/s each until B has sent 3 MB at 2 s; then A's link, 2 MB at 2 MB/s: 3 s."""
    problem = down_shared()
    plan = dc.direct(problem)
    assert limits_of(problem, plan, "A") == [
        ("downlink of 'D'", (0.0, 2.0)),
        ("link 'A' -> 'D'", (2.0, 3.0)),
    ]
    assert limits_of(problem, plan, "B") == [("downlink of 'D'", (0.0, 2.0))]
    assert at_end(problem, plan, "A") == ({"link 'A' -> 'D'"}, set())
    assert at_end(problem, plan, "B") == ({"downlink of 'D'"}, {"A"})


def test_who_is_slower_than_others_at_a_full_downlink_is_not_held_back_by_it():
    """A's link carries 1 MB/s: B gets 2 of the downlink's 3 MB/s, and is held back by both."""
    hosts = [Host("A", 2 * MB), Host("B", 4 * MB), Host("D", downlink_bytes_per_s=3e6)]
    problem = Problem.from_hosts(hosts, links("A -> D 1e6, B -> D 2e6"), "D")
    plan = dc.direct(problem)
    assert at_end(problem, plan, "A") == ({"link 'A' -> 'D'"}, set())
    assert at_end(problem, plan, "B") == ({"link 'B' -> 'D'", "downlink of 'D'"}, {"A"})


def test_a_release_and_what_comes_after():
    """B's data come at 1 s, when A has sent 2 MB: its last 3 MB take 2 s beside B's."""
    problem = down_shared(release_s=1.0)
    plan = dc.direct(problem)
    assert limits_of(problem, plan, "B") == [
        ("release of 'B'", (0.0, 1.0)),
        ("downlink of 'D'", (1.0, 3.0)),
    ]
    assert limits_of(problem, plan, "A") == [
        ("link 'A' -> 'D'", (0.0, 1.0)),
        ("downlink of 'D'", (1.0, 3.0)),
    ]
    binds = {limit.name: set(limit.sources) for limit in plan_limits(problem, plan).binds}
    assert binds == {
        "release of 'B'": {"B"},
        "link 'A' -> 'D'": {"A"},
        "downlink of 'D'": {"A", "B"},
    }


def test_turns_hold_back_who_waits():
    """A's 5 MB take 2.5 s, then B's 3 MB 1.5 s."""
    problem = down_shared()
    plan = dc.direct(problem, at_a_time=1)
    assert limits_of(problem, plan, "B") == [("turns", (0.0, 2.5)), ("link 'B' -> 'D'", (2.5, 4.0))]
    assert at_end(problem, plan, "B") == ({"link 'B' -> 'D'"}, set())
    in_slots = dc.direct(problem, at_a_time=1, time_slot_s=1.0)
    assert limits_of(problem, in_slots, "A") == [
        ("link 'A' -> 'D'", (0.0, 1.0)),
        ("turns", (1.0, 2.0)),
        ("link 'A' -> 'D'", (2.0, 3.0)),
        ("turns", (3.0, 4.0)),
        ("link 'A' -> 'D'", (4.0, 4.5)),
    ]


def test_an_outage_holds_back():
    """1 MB/s for a second, nothing for one, then 2 MB/s: 3 MB in 3 s, the link to blame always."""
    problem = Problem.from_hosts(
        [Host("S", 3 * MB), Host("D")], [Link("S", "D", [1e6, 0, 2e6])], "D", periods_s=[0, 1, 2]
    )
    (limit,) = plan_limits(problem, dc.direct(problem)).of_source["S"].limits
    assert (limit.from_s, limit.to_s) == pytest.approx((0.0, 3.0))
    assert (limit.least, limit.most) == (0.0, 2e6)
    assert limit.text == (
        "link 'S' -> 'D' (8 Mbit/s from 0 s to 1 s, no bandwidth from 1 s to 2 s, 16 Mbit/s from "
        "2 s to 3 s)"
    )


def test_the_narrowest_hop_of_a_route():
    """By K: 2 MB/s into it, 3 MB/s out of it."""
    assert at_end(relay(), dc.best_path(relay(), chunk_s=0.1), "S") == ({"link 'S' -> 'K'"}, set())


def test_a_relays_link_that_two_share():
    """A and B have 2 MB/s into K, and 1 MB/s each out of it."""
    problem = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 2 * MB), Host("K"), Host("D")],
        links("A -> K 2e6, B -> K 2e6, K -> D 2e6"),
        "D",
    )
    plan = dc.best_path(problem, chunk_s=0.01)
    assert at_end(problem, plan, "B") == ({"link 'K' -> 'D'"}, {"A"})
    # Alone, A has 2 MB/s on both hops: either holds it back.
    assert at_end(problem, plan, "A")[0] == {"link 'A' -> 'K'", "link 'K' -> 'D'"}


def test_a_wire_that_two_share():
    plan = dc.direct(figure_1())
    assert at_end(figure_1(), plan, "S1") == ({"shared bottleneck 'N1-D'"}, {"S2"})


def test_room_at_a_relay():
    """K has room for 2 MB: S sends 2 MB in every other slot, K passes them on in the next."""
    problem = Problem.from_hosts(
        [Host("S", 8 * MB), Host("K", storage_bytes=2 * MB), Host("D")],
        links("S -> K 4e6, K -> D 2e6"),
        "D",
    )
    plan = dc.best_path(problem, slot_s=1.0)
    assert plan.makespan_s == 8.0
    found = plan_limits(problem, plan).of_source["S"].limits
    stored = [(limit.from_s, limit.to_s) for limit in found if limit.name == "storage at 'K'"]
    assert stored == [(0.0, 1.0), (2.0, 3.0), (4.0, 5.0), (6.0, 7.0)]
    assert at_end(problem, plan, "S")[0] == {"link 'K' -> 'D'"}


def test_pauses_in_which_pipelines_drain_are_none_of_a_capacitys():
    """1 MB/s for 2 s, then 2 MB/s, over K."""
    problem = Problem.from_hosts(
        [Host("S", 4 * MB), Host("K"), Host("D")],
        [Link("S", "K", [1e6, 2e6]), Link("K", "D", [5e6, 5e6])],
        "D",
        periods_s=[0.0, 2.0],
    )
    (limit,) = plan_limits(problem, dc.best_path(problem, chunk_s=0.1)).of_source["S"].limits
    assert limit.name == "link 'S' -> 'K'"
    assert limit.from_s == 0.0


def test_all_that_is_closed_at_once_holds_back():
    """For a second neither the host may send nor the link carry; then 1 MB/s for a second."""
    problem = Problem.from_hosts(
        [Host("S", MB, uplink_bytes_per_s=[0.0, 3e6]), Host("D")],
        [Link("S", "D", [0.0, 1e6])],
        "D",
        periods_s=[0.0, 1.0],
    )
    limits = plan_limits(problem, dc.direct(problem)).of_source["S"].limits
    closed = {limit.name for limit in limits if limit.from_s < 0.5 < limit.to_s}
    assert closed == {"link 'S' -> 'D'", "uplink of 'S'"}


def test_nothing_to_move_is_held_back_by_nothing():
    problem = Problem.from_hosts([Host("S"), Host("D")], links("S -> D 1"), "D")
    found = plan_limits(problem, dc.direct(problem))
    assert (found.binds, found.of_source) == ((), {})


# Against naive programs -----------------------------------------------------------------------


def judge_direct(problem):
    """What holds whom back at each instant is what stops its rate in progressive filling."""
    assume(problem.total_bytes)
    found = direct_plan(problem)
    try:
        plan = dc.direct(problem)
    except dc.InfeasibleError:
        assert found is None
        return
    finish_s, stretches = found
    ends = {problem.host_index[name]: end for name, end in plan.source_completion_s().items()}
    assert ends == pytest.approx(finish_s, rel=1e-6)
    limits = plan_limits(problem, plan).of_source
    for stretch in stretches:
        if stretch.to_s - stretch.from_s < 1e-6 * plan.makespan_s:
            continue
        middle_s = (stretch.from_s + stretch.to_s) / 2
        for source, holds in stretch.holds.items():
            at_middle = {
                (limit.resource.kind, limit.resource.number)
                for limit in limits[problem.names[source]].limits
                if limit.from_s <= middle_s <= limit.to_s
            }
            assert at_middle == holds


ONE_HOP = frozenset({"limits", "shared", "forecast", "release"})


@given(problem=problems(ONE_HOP, large=True))
def test_direct_plans_are_held_back_by_what_stops_progressive_filling(problem):
    judge_direct(problem)


@pytest.mark.slow
@settings(max_examples=many(2000))
@given(problem=problems(ONE_HOP, 5, large=True))
def test_many_direct_plans_are_held_back_by_what_stops_progressive_filling(problem):
    judge_direct(problem)


def naive_limits(problem, plan, time_s):
    """Sources and what is full on their routes at an instant, from the table of transfers."""
    table = plan.transfers
    table = table[(table["start_s"] < time_s) & (table["finish_s"] > time_s)]
    rows = []
    period = int(np.searchsorted(problem.periods_s, time_s, side="right")) - 1
    for _, row in table.iterrows():
        tail, head = problem.host_index[row["from"]], problem.host_index[row["to"]]
        (link,) = problem.link_indices([tail], [head]).tolist()
        uses = {
            ("link", link): problem.bandwidth_bytes_per_s[period, link],
            ("uplink", tail): problem.uplink_bytes_per_s[period, tail],
            ("downlink", head): problem.downlink_bytes_per_s[period, head],
        }
        for i, members in enumerate(problem.shared_links):
            if link in members.tolist():
                uses["shared", i] = problem.shared[i].bandwidth_bytes_per_s
        width_s = row["finish_s"] - row["start_s"]
        # Whole bytes: a transfer may fall short by one, in slots by one in each.
        byte_rate = 1 / (width_s if plan.slot_s is None else plan.slot_s)
        rows.append((row["source"], row["bytes"] / width_s, uses, byte_rate))
    found = set()
    for source, rate, uses, _ in rows:
        for resource, capacity in uses.items():
            through = [other for _, other, ways, _ in rows if resource in ways]
            short = sum(byte_rate for _, _, ways, byte_rate in rows if resource in ways)
            full = sum(through) >= capacity * (1 - 1e-6) - short
            if full and (plan.method == "coordinated" or rate >= max(through) * (1 - 1e-5)):
                found.add((source, resource))
    return found


@given(problem=problems(ONE_HOP, large=True))
def test_capacities_that_hold_back_are_those_that_are_full(problem):
    """At instants between all events, in plans with relays, slots or without."""
    assume(problem.total_bytes)
    for method, shape in (
        (dc.best_path, {"chunk_s": 0.0}),
        (dc.best_path, {"slot_s": 0.5}),
        (dc.coordinated, {"chunk_s": 0.0}),
        (dc.coordinated, {"slot_s": 0.5}),
    ):
        try:
            plan = method(problem, **shape)
        except dc.InfeasibleError:
            continue
        events = np.unique(
            np.concatenate([plan.columns.start_s, plan.columns.finish_s, problem.periods_s])
        )
        wide = np.diff(events) > 1e-3 * plan.makespan_s
        middles = ((events[:-1] + events[1:]) / 2)[wide]
        binds = plan_limits(problem, plan).of_source
        for time_s in middles[middles < plan.makespan_s][:6].tolist():
            said = {
                (source, (limit.resource.kind, limit.resource.number))
                for source, found in binds.items()
                for limit in found.limits
                if limit.from_s < time_s < limit.to_s
                and limit.resource.kind in ("link", "uplink", "downlink", "shared")
            }
            naive = naive_limits(problem, plan, time_s)
            assert {entry for entry in said if not _outage(problem, entry, time_s)} == naive


def _outage(problem, entry, time_s):
    """Whether nothing moves, since a link has no bandwidth then."""
    kind, number = entry[1]
    period = int(np.searchsorted(problem.periods_s, time_s, side="right")) - 1
    return kind == "link" and problem.bandwidth_bytes_per_s[period, number] == 0


def test_blocks_of_time_are_looked_at_one_after_the_other(monkeypatch):
    """However few pairs fit at once."""
    problem = down_shared(release_s=1.0)
    plan = dc.direct(problem, at_a_time=1, time_slot_s=0.25)
    whole = plan_limits(problem, plan)
    monkeypatch.setattr(full_capacities, "MOST_PAIRS", 1)
    assert plan_limits(problem, plan) == whole
