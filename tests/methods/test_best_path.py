"""The best-path method: what each host chooses, and what its data then get; by hand."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from instances.hand_made import links
from instances.small_problems import MB, relay

import datacollect as dc
from datacollect.methods.best_path import route_bandwidths
from datacollect.problem.hosts import Held, Host, SharedBottleneck
from datacollect.problem.problem import Problem


def one(text, *, relays="K", backlog_bytes=4 * MB, shared=(), periods_s=None, **hosts) -> Problem:
    """S with a backlog, the destination D, and relays, one letter each."""
    known = {"S": {"backlog_bytes": backlog_bytes}}
    return Problem.from_hosts(
        [Host(name, **(known.get(name, {}) | hosts.get(name, {}))) for name in f"S{relays}D"],
        links(text),
        "D",
        shared=shared,
        periods_s=periods_s,
    )


def checked(problem, **options) -> dc.Schedule:
    plan = dc.best_path(problem, **({"chunk_s": 0.0} if "slot_s" not in options else {}) | options)
    plan.check(problem)
    return plan


def chosen(problem, source="S", **options) -> str:
    """The route of the one pool that starts at `source`."""
    (route,) = {r.hosts for r in checked(problem, **options).routes if r.hosts[0] == source}
    return " ".join(route)


# What a host chooses ---------------------------------------------------------------------------


def test_the_faster_of_direct_link_and_relay_is_chosen():
    """Through K min(3, 2) MB/s against 1 MB/s: 4 MB take 2 s, plus one chunk."""
    problem = one("S -> D 1e6, S -> K 3e6, K -> D 2e6")
    plan = checked(problem, chunk_s=0.1)
    assert [route.hosts for route in plan.routes] == [("S", "K", "D")]
    assert plan.makespan_s == pytest.approx(2.1)
    assert (plan.method, plan.status, plan.chunk_s) == ("best-path", "heuristic", 0.1)
    assert plan.lower_bound_s == pytest.approx(4 / 3)


def test_the_default_chunk_is_a_thousandth_of_the_lower_bound():
    problem = one("S -> D 1e6, S -> K 3e6, K -> D 2e6")
    plan = dc.best_path(problem)
    plan.check(problem)
    assert plan.chunk_s == pytest.approx(4 / 3 / 1000)
    assert plan.makespan_s == pytest.approx(2.0 + plan.chunk_s)


@pytest.mark.parametrize(
    ("through_k", "hysteresis", "expected"),
    [
        (105.0, 1.05, "S D"),  # not more than 105 % of the direct link's 100
        (105.1, 1.05, "S K D"),
        (100.0, 1.0, "S D"),
        (100.1, 1.0, "S K D"),
        (199.9, 2.0, "S D"),
    ],
)
def test_a_relay_must_beat_the_direct_link_by_more_than_the_hysteresis(
    through_k, hysteresis, expected
):
    problem = one(f"S -> D 100, S -> K 500, K -> D {through_k}")
    assert chosen(problem, hysteresis=hysteresis) == expected


@pytest.mark.parametrize(
    ("relays", "via_k", "via_l", "expected"),
    [
        ("KL", 106, 111, "S K D"),  # 111 is less than 105 % of 106: the first one stays
        ("KL", 106, 112, "S L D"),
        ("LK", 106, 111, "S L D"),  # in the problem's order, L comes first
        ("LK", 112, 106, "S K D"),
        ("KL", 104, 106, "S L D"),  # what does not replace the direct link sets no mark
    ],
)
def test_candidates_are_tried_in_the_problems_order(relays, via_k, via_l, expected):
    text = f"S -> D 100, S -> K 999, S -> L 999, K -> D {via_k}, L -> D {via_l}"
    assert chosen(one(text, relays=relays)) == expected


@pytest.mark.parametrize(
    ("direct", "via_k", "via_l", "expected"),
    [
        (100, 90, 99, "S L D"),  # the better relay first; 100 is not more than 105 % of 99
        (104, 90, 99, "S D"),  # 104 is more than 103.95
        (100, 100, 100, "S K D"),  # of equal relays the first in the problem's order
        (5, 0, 0, "S D"),  # no relay is usable
    ],
)
def test_with_a_relay_first_the_direct_link_must_beat_it_by_more_than_the_hysteresis(
    direct, via_k, via_l, expected
):
    text = f"S -> D {direct}, S -> K 999, S -> L 999, K -> D {via_k}, L -> D {via_l}"
    problem = one(text, relays="KL")
    plan = checked(problem, first="relay")
    assert chosen(problem, first="relay") == expected
    assert plan.first == "relay"


def test_with_a_relay_first_what_has_none_goes_directly():
    assert chosen(one("S -> D 5", relays=""), first="relay") == "S D"


def test_at_most_one_intermediate_host_is_used():
    """S -> K -> L -> D would carry 9, but best-path sees S -> D with 1 and S -> K -> D with 2."""
    text = "S -> D 1, S -> K 9, K -> L 9, L -> D 9, K -> D 2"
    assert chosen(one(text, relays="KL")) == "S K D"


def test_without_a_direct_link_any_relay_is_better():
    assert chosen(one("S -> K 0.001, K -> D 5")) == "S K D"


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, "S K D"),
        ({"K": {"uplink_bytes_per_s": 0.9e6}}, "S D"),
        ({"K": {"downlink_bytes_per_s": 0.9e6}}, "S D"),
        ({"K": {"uplink_bytes_per_s": 1.2e6, "downlink_bytes_per_s": 1.1e6}}, "S K D"),
        # The same for both routes: the direct one is as good.
        ({"S": {"uplink_bytes_per_s": 0.5e6}}, "S D"),
        ({"D": {"downlink_bytes_per_s": 0.5e6}}, "S D"),
    ],
)
def test_host_limits_count_in_a_routes_bandwidth(limits, expected):
    assert chosen(one("S -> D 1e6, S -> K 3e6, K -> D 2e6", **limits)) == expected


@pytest.mark.parametrize(
    ("direct_rate", "expected", "makespan_s"), [(1.95e6, "S D", 4 / 1.95), (1.5e6, "S K D", 2.0)]
)
def test_a_shared_bottleneck_that_both_hops_cross_counts_half(direct_rate, expected, makespan_s):
    """A wire of 4 MB/s under S -> K and K -> D: 2 MB/s through K, against 1.95 or 1.5 directly."""
    wire = SharedBottleneck("wire", 4e6, [("S", "K"), ("K", "D")])
    problem = one(f"S -> D {direct_rate}, S -> K 9e6, K -> D 9e6", shared=[wire])
    assert chosen(problem) == expected
    assert checked(problem).makespan_s == pytest.approx(makespan_s)


def test_a_shared_bottleneck_under_one_hop_counts_whole():
    """A wire of 2 MB/s under S -> K, another of 1 MB/s under S -> D: 2 MB/s through K."""
    problem = one(
        "S -> D 9e6, S -> K 9e6, K -> D 9e6",
        shared=[
            SharedBottleneck("far", 2e6, [("S", "K")]),
            SharedBottleneck("near", 1e6, [("S", "D")]),
        ],
    )
    assert chosen(problem) == "S K D"
    assert route_bandwidths(problem, 0, 0).tolist() == [1e6, 2e6, 0.0]


@pytest.mark.parametrize(("release_s", "expected"), [(0.0, "S D"), (9.9, "S D"), (10.0, "S K D")])
def test_bandwidths_are_those_of_the_release(release_s, expected):
    """Through K 0.5 MB/s until 10 s, then 5; directly always 1 MB/s."""
    problem = one(
        "S -> D 1e6 1e6, S -> K 5e5 5e6, K -> D 9e6 9e6",
        periods_s=[0.0, 10.0],
        S={"release_s": release_s},
    )
    assert chosen(problem) == expected


def test_without_a_route_at_its_release_a_host_waits_for_the_first_later_one():
    """K opens at 10 s, the better direct link at 20 s: 4 MB at 1 MB/s from 10 to 14 s."""
    problem = one(
        "S -> D 0 0 9e6, S -> K 0 1e6 1e6, K -> D 1e6 1e6 1e6", periods_s=[0.0, 10.0, 20.0]
    )
    assert chosen(problem) == "S K D"
    assert checked(problem).makespan_s == pytest.approx(14.0)


def test_held_data_choose_for_themselves():
    """S's data at K have K -> D; those at S prefer the way over L."""
    problem = Problem.from_hosts(
        [Host("S", 10), Host("K"), Host("L"), Host("D")],
        links("S -> D 1, S -> L 4, L -> D 4, K -> D 2, K -> S 9"),
        "D",
        held=[Held("K", "S", 0, 6)],
    )
    plan = checked(problem)
    assert {(route.source, *route.hosts) for route in plan.routes} == {
        ("S", "S", "L", "D"),
        ("S", "K", "D"),
    }
    assert plan.makespan_s == pytest.approx(3.0)  # K: 6 bytes at 2; S: 4 at 4


@st.composite
def meshes(draw):
    """A matrix of whole rates from 0 to 30, host 0 with data, the last host the destination."""
    n = draw(st.integers(2, 6))
    rates = draw(st.lists(st.integers(0, 30), min_size=n * n, max_size=n * n))
    return np.array(rates, dtype=float).reshape(n, n)


@given(meshes(), st.sampled_from([1.0, 1.05, 1.5]))
def test_the_choice_is_that_of_going_through_the_candidates_one_by_one(rates, hysteresis):
    n = len(rates)
    names = [f"H{i}" for i in range(n)]
    problem = Problem.from_matrix(names, rates, [100] + [0] * (n - 1), names[-1])
    best, best_rate = ("H0", names[-1]), rates[0, -1]
    for k in range(1, n - 1):
        rate = min(rates[0, k], rates[k, -1])
        if rate > hysteresis * best_rate:
            best, best_rate = ("H0", names[k], names[-1]), rate
    if best_rate == 0:
        with pytest.raises(dc.InfeasibleError) as caught:
            dc.best_path(problem)
        assert caught.value.hosts == ("H0",)
        return
    plan = checked(problem, hysteresis=hysteresis)
    assert [route.hosts for route in plan.routes] == [best]
    assert plan.makespan_s == pytest.approx(100 / best_rate)


# What its data then get ------------------------------------------------------------------------


def crowd(sizes_mb, first_hop=None, relay_options=None, k_to_d=3e6) -> Problem:
    """A, B, C: 0.1 MB/s to D, `first_hop` MB/s (9 each by default) to K; K -> D 3 MB/s."""
    first_hop = first_hop or dict.fromkeys(sizes_mb, 9)
    text = ", ".join(f"{n} -> D 1e5, {n} -> K {first_hop[n]}e6" for n in sizes_mb)
    return Problem.from_hosts(
        [
            *(Host(name, int(size * MB)) for name, size in sizes_mb.items()),
            Host("K", **(relay_options or {})),
            Host("D"),
        ],
        links(f"{text}, K -> D {k_to_d}"),
        "D",
    )


def test_all_choose_the_same_relay_and_share_its_link():
    """K -> D carries 3 MB/s for A, B and C: 1 MB/s each until A's 1 MB is through at 1 s.

    Then 1.5 each: B's other 1 MB until 5/3 s. Then 3 for C, which has sent 1 + 1 of 3 MB: 2 s.
    Alone each would have 3 MB/s: nobody knows of the others.
    """
    plan = checked(crowd({"A": 1, "B": 2, "C": 3}))
    assert {route.hosts for route in plan.routes} == {(n, "K", "D") for n in "ABC"}
    assert plan.source_completion_s() == pytest.approx({"A": 1.0, "B": 5 / 3, "C": 2.0})


def test_what_a_slow_first_hop_leaves_goes_to_the_others():
    """A -> K carries 0.5 MB/s, B gets the other 2.5: A's 1 MB and B's 5 MB take 2 s each."""
    plan = checked(crowd({"A": 1, "B": 5}, first_hop={"A": 0.5, "B": 9}))
    assert plan.source_completion_s() == pytest.approx({"A": 2.0, "B": 2.0})


def test_a_relays_own_data_share_its_link_too():
    """A's 3 MB through K and K's own 3 MB at 1.5 MB/s each: 2 s."""
    plan = checked(crowd({"A": 3}, relay_options={"backlog_bytes": 3 * MB}))
    assert plan.source_completion_s() == pytest.approx({"A": 2.0, "K": 2.0})


def test_a_relays_uplink_is_shared():
    """K's uplink of 2 MB/s instead of its link's 3: 1 MB/s each for 2 MB of A and 2 MB of B."""
    plan = checked(crowd({"A": 2, "B": 2}, relay_options={"uplink_bytes_per_s": 2e6}))
    assert plan.makespan_s == pytest.approx(2.0)


def test_pipelines_of_many_sources_end_a_chunk_later():
    plan = checked(crowd({"A": 1, "B": 2, "C": 3}), chunk_s=0.01)
    assert plan.makespan_s == pytest.approx(2.01)
    # One chunk of each route lies at K: 0.01 s of 3 MB/s together.
    assert plan.peak_storage_bytes == {"K": pytest.approx(30_000, abs=3)}


def test_late_data_join_at_their_release():
    """K -> D 2 MB/s: A alone until 1 s, B's 1 MB from 1 to 2 s at 1 MB/s, A's 4 MB until 2.5 s."""
    problem = crowd({"A": 4, "B": 1}, k_to_d=2e6).replace(release_s=np.array([0.0, 1, 0, 0]))
    assert checked(problem).source_completion_s() == pytest.approx({"A": 2.5, "B": 2.0})


def test_bandwidth_that_changes_on_the_way_is_followed():
    """2 MB/s through K until 1 s, then 1 MB/s: 4 MB take 1 + 2 s."""
    problem = one("S -> D 1e5 1e5, S -> K 9e6 9e6, K -> D 2e6 1e6", periods_s=[0.0, 1.0])
    assert checked(problem).makespan_s == pytest.approx(3.0)


# In slots --------------------------------------------------------------------------------------


def test_in_slots_a_relay_forwards_a_slot_later():
    """Slots of 1 s: S -> K 3 MB, then 1 MB while K sends 2; K's other 2 MB: 3 s."""
    problem = one("S -> D 1e6, S -> K 3e6, K -> D 2e6")
    plan = checked(problem, slot_s=1.0)
    assert plan.makespan_s == 3.0
    assert (plan.slot_s, plan.chunk_s) == (1.0, None)
    assert plan.peak_storage_bytes == {"K": 3 * MB}


def test_in_slots_storage_limits_what_a_relay_takes():
    """Room for 2 MB at K, judged at the slot's start: in, out, in, out: 4 s."""
    problem = one("S -> D 1e6, S -> K 3e6, K -> D 2e6", K={"storage_bytes": 2 * MB})
    plan = checked(problem, slot_s=1.0)
    assert plan.makespan_s == 4.0
    assert plan.peak_storage_bytes == {"K": 2 * MB}


def test_in_slots_limited_storage_is_shared():
    """Room for 2 MB at K, which A and B fill by 1 MB each: 2 MB each need four slots."""
    problem = crowd({"A": 2, "B": 2}, relay_options={"storage_bytes": 2 * MB})
    plan = checked(problem, slot_s=1.0)
    assert plan.source_completion_s() == {"A": 4.0, "B": 4.0}


def test_a_host_without_storage_is_no_relay_in_slots_but_one_in_a_pipeline():
    problem = one("S -> D 1e6, S -> K 3e6, K -> D 2e6", K={"storage_bytes": 0})
    assert chosen(problem, slot_s=1.0) == "S D"
    assert checked(problem, slot_s=1.0).makespan_s == 4.0
    assert chosen(problem) == "S K D"


def test_in_slots_data_released_inside_a_slot_leave_in_the_next():
    problem = one("S -> D 4e6", S={"release_s": 1.5})
    plan = checked(problem, slot_s=1.0)
    assert plan.columns.start_s.tolist() == [2.0]
    assert plan.makespan_s == 3.0


def test_in_slots_the_lower_of_two_bandwidths_counts():
    """4 MB/s until 1.5 s, then 1: 6 MB in slots of 1 s: 4, 1, 1."""
    problem = one("S -> D 4e6 1e6", backlog_bytes=6 * MB, periods_s=[0.0, 1.5])
    assert checked(problem, slot_s=1.0).makespan_s == 3.0


def test_in_slots_sharing_is_max_min_too():
    """A's first hop carries 0.5 MB a slot, B's the other 2.5 MB of K -> D, a slot later: 3 s."""
    problem = crowd({"A": 1, "B": 5}, first_hop={"A": 0.5, "B": 9})
    plan = checked(problem, slot_s=1.0)
    assert plan.makespan_s == 3.0


def test_in_slots_what_moves_less_than_a_byte_is_explained():
    problem = one("S -> D 0.5", backlog_bytes=4)
    with pytest.raises(
        dc.InfeasibleError, match=r"'S' move less than a byte.*longer slots"
    ) as caught:
        dc.best_path(problem, slot_s=1.0)
    assert caught.value.hosts == ("S",)
    assert checked(problem, slot_s=2.0).makespan_s == 8.0


# What is refused -------------------------------------------------------------------------------


def test_a_host_more_than_two_hops_away_is_named():
    problem = one("S -> K 1, K -> L 1, L -> D 1, K -> D 0", relays="KL")
    with pytest.raises(dc.InfeasibleError, match="at most two hops from 'S'") as caught:
        dc.best_path(problem)
    assert caught.value.hosts == ("S",)
    assert dc.coordinated(problem).n_routes == 1


def test_a_slot_far_too_short_is_refused_at_once():
    """6 MB at 1 byte per slot are six million slots: refused before the first is planned."""
    with pytest.raises(dc.ProblemError, match="slot_s is too short"):
        dc.best_path(relay(), slot_s=1e-6)


def test_zero_bandwidth_is_no_route():
    problem = one("S -> D 0, S -> K 1, K -> D 0, K -> S 1")
    with pytest.raises(dc.InfeasibleError, match="'S'"):
        dc.best_path(problem)


def test_nothing_to_send_takes_no_time():
    problem = Problem.from_hosts([Host("D", 5)], [], "D")
    for options in ({}, {"slot_s": 1.0}):
        assert checked(problem, **options).makespan_s == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first": "k"}, "first must be one of direct, relay, got 'k'"),
        ({"hysteresis": 0.99}, "hysteresis must be >= 1, got 0.99"),
        ({"hysteresis": math.nan}, "hysteresis must be >= 1, got nan"),
        ({"slot_s": 0.0}, "slot_s must be > 0"),
        ({"chunk_s": -0.1}, "chunk_s must be >= 0 and finite, got -0.1"),
        ({"chunk_s": math.inf}, "chunk_s must be >= 0"),
        ({"slot_s": 1.0, "chunk_s": 0.1}, "cannot be combined"),
        ({"slot_s": 1e-9}, "slot_s is too short"),
        ({"solver": "network"}, "did you mean 'networkx'"),
    ],
)
def test_bad_options_are_refused_with_the_remedy(options, message):
    with pytest.raises(dc.ProblemError, match=message):
        dc.best_path(relay(), **options)


def test_a_full_relay_gets_not_a_byte_too_many_by_rounding():
    """Room for 4e9 bytes, where a billionth more is 4 of them; 6e9 go through it in slots."""
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 6 * 10**9), dc.Host("K", storage_bytes=4 * 10**9), dc.Host("D")],
        [dc.Link("S", "K", 7e9), dc.Link("K", "D", 6e9), dc.Link("S", "D", 1e9)],
        "D",
    )
    plan = dc.best_path(problem, slot_s=1.0)
    assert plan.peak_storage_bytes == {"K": 4 * 10**9}
    plan.check(problem)
