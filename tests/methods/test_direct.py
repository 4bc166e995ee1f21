"""The direct method against makespans derived by hand."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from instances.hand_made import links
from instances.small_problems import MB, relay

import datacollect as dc
from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem


def three(**options) -> Problem:
    """A needs 2 s, B 1 s and C 4 s, each on its own link."""
    return Problem.from_hosts(
        [Host("A", 2 * MB), Host("B", 3 * MB), Host("C", 4 * MB), Host("D")],
        links("A -> D 1e6, B -> D 3e6, C -> D 1e6"),
        "D",
        **options,
    )


def two(a=None, b=None, d=None, **options) -> Problem:
    """A and B with links of 9 MB/s to D."""
    return Problem.from_hosts(
        [Host("A", **(a or {})), Host("B", **(b or {})), Host("D", **(d or {}))],
        links("A -> D 9e6, B -> D 9e6"),
        "D",
        **options,
    )


def wire(bandwidth_bytes_per_s) -> list[SharedBottleneck]:
    return [SharedBottleneck("wire", bandwidth_bytes_per_s, [("A", "D"), ("B", "D")])]


def checked(problem, **options) -> dc.Schedule:
    plan = dc.direct(problem, **options)
    plan.check(problem)
    assert all(route.n_hops == 1 for route in plan.routes)
    return plan


def spans(plan) -> dict[str, list[tuple[float, float]]]:
    """When each host sends, to the nanosecond."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in plan.transfers.sort_values("start_s").itertuples():
        found.setdefault(row.route[0], []).append((round(row.start_s, 9), round(row.finish_s, 9)))
    return found


# All at once -----------------------------------------------------------------------------------


def test_independent_links_take_bytes_over_bandwidth_each():
    plan = checked(three())
    assert plan.makespan_s == 4.0
    assert plan.source_completion_s() == {"A": 2.0, "B": 1.0, "C": 4.0}
    assert (plan.method, plan.status, plan.slot_s) == ("direct", "heuristic", None)


def test_the_destinations_downlink_is_shared_max_min():
    """D takes 3 MB/s; A's link carries 1, so B gets 2. B's 4 MB take 2 s, A's 4 MB 4 s."""
    problem = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 4 * MB), Host("D", downlink_bytes_per_s=3e6)],
        links("A -> D 1e6, B -> D 5e6"),
        "D",
    )
    assert checked(problem).source_completion_s() == pytest.approx({"A": 4.0, "B": 2.0})


def test_a_shared_bottleneck_is_shared_equally_until_one_ends():
    """3 MB/s for A's 3 MB and B's 6: both at 1.5 until 2 s, then B's last 3 MB at 3: 3 s."""
    problem = two({"backlog_bytes": 3 * MB}, {"backlog_bytes": 6 * MB}, shared=wire(3e6))
    plan = checked(problem)
    assert plan.source_completion_s() == pytest.approx({"A": 2.0, "B": 3.0})
    assert spans(plan)["B"] == [(0.0, 2.0), (2.0, 3.0)]


def test_a_hosts_uplink_limits_its_own_link():
    problem = two({"backlog_bytes": 6 * MB, "uplink_bytes_per_s": 2e6})
    assert checked(problem).makespan_s == pytest.approx(3.0)


def test_late_data_take_their_share_from_their_release_on():
    """2 MB/s: B alone until 1 s; then A's 2 MB and B's other 2 MB at 1 MB/s each: 3 s."""
    problem = two(
        {"backlog_bytes": 2 * MB, "release_s": 1.0}, {"backlog_bytes": 4 * MB}, shared=wire(2e6)
    )
    plan = checked(problem)
    assert plan.source_completion_s() == pytest.approx({"A": 3.0, "B": 3.0})
    assert spans(plan)["A"] == [(1.0, 3.0)]


def test_a_forecast_is_followed():
    """1 byte/s for 2 s, then 4: 10 bytes take 2 + 8 / 4 s. B waits for capacity until 2 s."""
    problem = Problem.from_hosts(
        [Host("A", 10), Host("B", 10), Host("D")],
        links("A -> D 1 4, B -> D 0 5"),
        "D",
        periods_s=[0.0, 2.0],
    )
    plan = checked(problem)
    assert plan.source_completion_s() == pytest.approx({"A": 4.0, "B": 4.0})
    assert spans(plan)["B"] == [(2.0, 4.0)]


def test_held_data_leave_from_where_they_lie():
    """8 of S's 10 bytes lie at K (4 bytes/s), 1 at D, the last at S (1 byte/s): 2 s."""
    problem = Problem.from_hosts(
        [Host("S", 10), Host("K"), Host("D")],
        links("S -> D 1, K -> D 4"),
        "D",
        held=[Held("K", "S", 2, 8), Held("D", "S", 0, 1)],
    )
    plan = checked(problem)
    assert plan.makespan_s == pytest.approx(2.0)
    assert {(route.source, route.hosts) for route in plan.routes} == {
        ("S", ("S", "D")),
        ("S", ("K", "D")),
    }


def test_own_and_held_data_share_their_hosts_link():
    """K sends 4 bytes of its own and 8 of S over 4 bytes/s: own until 2 s, S's until 3 s."""
    problem = Problem.from_hosts(
        [Host("S", 8), Host("K", 4), Host("D")],
        links("S -> D 1, K -> D 4"),
        "D",
        held=[Held("K", "S", 0, 8)],
    )
    assert checked(problem).source_completion_s() == pytest.approx({"K": 2.0, "S": 3.0})


def test_relays_are_not_used():
    """The direct link of `relay` carries 1 MB/s: 6 s, although 2 s are possible."""
    plan = checked(relay())
    assert plan.makespan_s == pytest.approx(6.0)
    assert plan.lower_bound_s == pytest.approx(2.0)
    assert plan.bottleneck.kind == "source"


def test_nothing_to_send_takes_no_time():
    for problem in (
        Problem.from_hosts([Host("D", 5)], [], "D"),
        Problem.from_hosts([Host("S"), Host("D")], [], "D"),
    ):
        for options in ({}, {"at_a_time": 2}, {"order": []}):
            assert checked(problem, **options).makespan_s == 0.0


def test_a_petabyte_is_moved_to_the_byte():
    problem = Problem.from_hosts(
        [Host("A", 10**15 + 1), Host("B", 10**15 - 7), Host("D", downlink_bytes_per_s=1e9)],
        [Link("A", "D", 3e8), Link("B", "D", 2.0**31)],
        "D",
    )
    plan = checked(problem)
    assert int(plan.columns.n_bytes.sum()) == 2 * 10**15 - 6
    # B has 7e8 bytes/s, A 3e8 throughout: B 1e15 / 7e8 s, A 1e15 / 3e8 s
    assert plan.makespan_s == pytest.approx(1e15 / 3e8, rel=1e-9)


# In turns --------------------------------------------------------------------------------------


def test_in_order_one_host_sends_after_the_other():
    """C 0 to 4 s; then those not named, in the problem's order: A until 6, B until 7."""
    plan = checked(three(), order=["C"])
    assert spans(plan) == {"C": [(0.0, 4.0)], "A": [(4.0, 6.0)], "B": [(6.0, 7.0)]}
    assert spans(checked(three(), order=["B", "C", "A"]))["A"] == [(5.0, 7.0)]


def test_one_at_a_time_is_the_problems_order():
    assert spans(checked(three(), at_a_time=1)) == {
        "A": [(0.0, 2.0)],
        "B": [(2.0, 3.0)],
        "C": [(3.0, 7.0)],
    }


def test_k_at_a_time_begins_the_next_when_one_ends():
    """A and B begin; B ends at 1 s, C begins: 5 s. C and B begin; A follows B: 4 s."""
    plan = checked(three(), at_a_time=2)
    assert spans(plan) == {"A": [(0.0, 2.0)], "B": [(0.0, 1.0)], "C": [(1.0, 5.0)]}
    plan = checked(three(), at_a_time=2, order=["C", "B"])
    assert spans(plan) == {"C": [(0.0, 4.0)], "B": [(0.0, 1.0)], "A": [(1.0, 3.0)]}


def test_turns_help_nobody_on_a_shared_bottleneck():
    """3 MB/s for 3 and 6 MB: 3 s in any order, but the first ends earlier than in parallel."""
    problem = two({"backlog_bytes": 3 * MB}, {"backlog_bytes": 6 * MB}, shared=wire(3e6))
    assert checked(problem, order=["A"]).source_completion_s() == pytest.approx({"A": 1, "B": 3})
    assert checked(problem, order=["B"]).source_completion_s() == pytest.approx({"A": 3, "B": 2})


def test_a_host_whose_data_are_not_released_does_not_hold_up_others():
    """A is first in order but released at 1.5 s, after B's second: A 1.5 to 3.5 s."""
    problem = Problem.from_hosts(
        [Host("A", 2 * MB, release_s=1.5), Host("B", 3 * MB), Host("D")],
        links("A -> D 1e6, B -> D 3e6"),
        "D",
    )
    assert spans(checked(problem, order=["A", "B"])) == {"A": [(1.5, 3.5)], "B": [(0.0, 1.0)]}


def test_in_time_slots_hosts_take_turns():
    """Slots of 1 s, one host each: A B C A C C C. B needs all of its slot, A two, C four."""
    plan = checked(three(), at_a_time=1, time_slot_s=1.0)
    assert plan.makespan_s == pytest.approx(7.0)
    assert plan.source_completion_s() == pytest.approx({"A": 4.0, "B": 2.0, "C": 7.0})
    assert spans(plan)["A"] == [(0.0, 1.0), (3.0, 4.0)]
    # The next slot's hosts wait for its start: B leaves half of its slot empty.
    less = three().replace(backlog_bytes=np.array([2 * MB, 1_500_000, 4 * MB, 0]))
    plan = checked(less, at_a_time=1, time_slot_s=1.0)
    assert plan.source_completion_s() == pytest.approx({"A": 4.0, "B": 1.5, "C": 7.0})


def test_in_time_slots_two_at_a_time_and_in_a_given_order():
    """Slot 0: C, A. Slot 1: B, then round again C: both; slot 2 on: A's and C's rest.

    A: 0 to 1 and 2 to 3. B: 1 to 2. C: 0 to 4 without a pause.
    """
    plan = checked(three(), at_a_time=2, time_slot_s=1.0, order=["C", "A", "B"])
    assert plan.source_completion_s() == pytest.approx({"A": 3.0, "B": 2.0, "C": 4.0})
    assert [start for start, _ in spans(plan)["A"]] == pytest.approx([0.0, 2.0])


@pytest.mark.parametrize("time_slot_s", [0.1, 0.01, 0.001])
def test_many_time_slots_leave_no_crumbs(time_slot_s):
    """A needs 2 s, B 1 s: in turn until B ends at 2 s, then A alone until 3 s.

    Parts of a thousand slots do not add up exactly in floating point.
    """
    problem = Problem.from_hosts(
        [Host("A", 2 * MB), Host("B", 3 * MB), Host("D")],
        links("A -> D 1e6, B -> D 3e6"),
        "D",
    )
    plan = checked(problem, at_a_time=1, time_slot_s=time_slot_s)
    assert plan.source_completion_s() == pytest.approx({"A": 3.0, "B": 2.0}, rel=1e-9)


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9)), min_size=1, max_size=5), st.data()
)
def test_on_independent_links_turns_add_up(sources, data):
    """One at a time: the sum of all times, in any order. All at once: the longest of them."""
    names = [f"H{i}" for i in range(len(sources))]
    problem = Problem.from_hosts(
        [*(Host(n, size) for n, (size, _) in zip(names, sources, strict=True)), Host("D")],
        [Link(n, "D", float(rate)) for n, (_, rate) in zip(names, sources, strict=True)],
        "D",
    )
    times = [size / rate for size, rate in sources]
    order = data.draw(st.permutations(names))
    assert checked(problem, order=order).makespan_s == pytest.approx(sum(times))
    assert checked(problem).makespan_s == pytest.approx(max(times))
    everybody = checked(problem, order=order, at_a_time=len(names))
    assert everybody.makespan_s == pytest.approx(max(times))


# What is refused -------------------------------------------------------------------------------


def test_all_hosts_without_a_usable_link_are_named():
    problem = Problem.from_hosts(
        [Host("A", 1), Host("B", 1), Host("C", 1), Host("E"), Host("D")],
        links("A -> C 1, B -> D 0, C -> D 1"),
        "D",
    )
    with pytest.raises(dc.InfeasibleError, match="'A', 'B' to the destination 'D'") as caught:
        dc.direct(problem)
    assert caught.value.hosts == ("A", "B")


def test_capacity_that_ends_too_soon_names_the_host():
    """3 bytes/s for 2 s carry 6 of A's 7 bytes."""
    problem = Problem.from_hosts(
        [Host("A", 7), Host("B", 1), Host("K"), Host("D")],
        links("A -> D 3 0, A -> K 1 1, K -> D 1 1, B -> D 1 1"),
        "D",
        periods_s=[0.0, 2.0],
    )
    with pytest.raises(dc.InfeasibleError, match=r"'A'.*add bandwidth in the last") as caught:
        dc.direct(problem)
    assert caught.value.hosts == ("A",)


@pytest.mark.parametrize(
    "no_capacity",
    [
        {"a": {"uplink_bytes_per_s": 0.0}},
        {"d": {"downlink_bytes_per_s": 0.0}},
        {"shared": wire(0.0)},
    ],
)
def test_a_limit_of_zero_is_infeasible(no_capacity):
    a = {"backlog_bytes": 5} | no_capacity.pop("a", {})
    with pytest.raises(dc.InfeasibleError, match="'A'"):
        dc.direct(two(a, **no_capacity))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": ["A", "Lyon"]}, "'Lyon' is not a host with data"),
        ({"order": ["D"]}, "'D' is not a host with data"),
        ({"order": ["A", "A"]}, "named twice"),
        ({"at_a_time": 0}, "at_a_time must be >= 1, got 0"),
        ({"time_slot_s": 1.0}, "time_slot_s needs at_a_time"),
        ({"time_slot_s": 0.0, "at_a_time": 1}, "time_slot_s must be > 0 and finite, got 0"),
        ({"time_slot_s": math.nan, "at_a_time": 1}, "time_slot_s must be > 0"),
        ({"time_slot_s": 1e-6, "at_a_time": 1}, "time_slot_s is too short: .* use a longer slot"),
        ({"solver": "lemmon"}, "did you mean 'lemon'"),
    ],
)
def test_bad_options_are_refused_with_the_remedy(options, message):
    with pytest.raises(dc.ProblemError, match=message):
        dc.direct(three(), **options)


def test_a_misspelt_host_in_the_order_brings_the_nearest_name():
    problem = Problem.from_hosts([Host("lyon", 1), Host("D")], links("lyon -> D 1"), "D")
    with pytest.raises(dc.ProblemError, match="did you mean 'lyon'"):
        dc.direct(problem, order=["lion"])


def test_a_host_that_has_begun_is_not_preempted():
    """One after another, A before B, but A's data appear at 0.5 s: B runs 0-1 s, then A 1-3 s."""
    problem = Problem.from_hosts(
        [Host("A", 2 * MB, release_s=0.5), Host("B", 1 * MB), Host("D")],
        links("A -> D 1e6, B -> D 1e6"),
        "D",
    )
    plan = checked(problem, at_a_time=1, order=["A", "B"])
    assert spans(plan) == {"A": [(1.0, 3.0)], "B": [(0.0, 1.0)]}
