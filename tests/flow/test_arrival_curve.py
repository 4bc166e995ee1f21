"""The arrival curve against hand-derived answers and an independent linear program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from instances.hand_made import links
from instances.strategies import FEATURES, problems
from judges.oracle import most_arrived_bytes

import datacollect as dc
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def curve_of(problem, solver="auto"):
    return arrival_curve(problem, Budget(solver))


def test_one_link_is_one_line(solver):
    """10 bytes at 4 bytes/s."""
    problem = Problem.from_hosts([Host("S", 10), Host("D")], links("S -> D 4"), "D")
    curve = curve_of(problem, solver)
    assert curve.time_s == pytest.approx([0, 2.5])
    assert curve.arrived_bytes == pytest.approx([0, 10])
    assert [b.kind for b in curve.bottlenecks] == ["destination"]


def test_whoever_is_done_early_leaves_the_rest_alone(solver):
    """A at 5 and B at 1 bytes/s, 10 bytes each: A is done at 2 s, then only B's link counts."""
    problem = Problem.from_hosts(
        [Host("A", 10), Host("B", 10), Host("D")], links("A -> D 5, B -> D 1"), "D"
    )
    curve = curve_of(problem, solver)
    assert curve.time_s == pytest.approx([0, 2, 10])
    assert curve.arrived_bytes == pytest.approx([0, 12, 20])
    assert curve.rates_bytes_per_s == pytest.approx([6, 1])
    assert [b.hosts for b in curve.bottlenecks] == [("A", "B"), ("B",)]
    assert "8 bit/s" in curve.bottlenecks[1].text


def test_an_envelope_of_many_lines(solver):
    """Sources at 1 byte/s with 1, 2, ..., 6 bytes: one is done at each second."""
    hosts = [Host(f"S{i}", i) for i in range(1, 7)]
    problem = Problem.from_hosts(
        [*hosts, Host("D")], links(", ".join(f"S{i} -> D 1" for i in range(1, 7))), "D"
    )
    curve = curve_of(problem, solver)
    assert curve.time_s == pytest.approx(range(7))
    assert curve.rates_bytes_per_s == pytest.approx([6, 5, 4, 3, 2, 1])


def test_nothing_arrives_between_releases(solver):
    """4 bytes at 2 bytes/s from 0; 6 more are released at 5 s: a pause from 2 s to 5 s."""
    problem = Problem.from_hosts(
        [Host("A", 4), Host("B", 6, release_s=5.0), Host("D")], links("A -> D 2, B -> D 3"), "D"
    )
    curve = curve_of(problem, solver)
    assert curve.time_s == pytest.approx([0, 2, 5, 7])
    assert curve.arrived_bytes == pytest.approx([0, 4, 4, 10])
    assert [b.kind for b in curve.bottlenecks] == ["destination", "release", "source"]
    assert curve.bottlenecks[1].hosts == ("B",)
    assert "'B' are released later" in curve.bottlenecks[1].text


def test_no_bandwidth_for_a_while(solver):
    """2 bytes/s, nothing from 1 s to 4 s: 2 bytes before, 4 after."""
    problem = Problem.from_hosts(
        [Host("S", 6), Host("D")], [Link("S", "D", [2, 0, 2])], "D", periods_s=[0, 1, 4]
    )
    curve = curve_of(problem, solver)
    assert curve.time_s == pytest.approx([0, 1, 4, 6])
    assert curve.arrived_bytes == pytest.approx([0, 2, 2, 6])
    assert curve.bottlenecks[1].hosts == ("S",)
    assert "no bandwidth" in curve.bottlenecks[1].text


def test_storage_lets_data_wait_where_the_way_opens_later(solver):
    """S -> K only in the first second (8 bytes), K -> D only from then on; K stores 5.

    5 bytes wait at K and go on at 2 bytes/s from 1 s; S's own link brings 1 byte/s all the time.
    12 bytes: 1 by 1 s, then 3 a second until K is empty at 3.5 s (8.5), then 1 a second: 7 s.
    """
    problem = Problem.from_hosts(
        [Host("S", 12), Host("K", storage_bytes=5), Host("D")],
        [Link("S", "K", [8, 0]), Link("K", "D", [0, 2]), Link("S", "D", [1, 1])],
        "D",
        periods_s=[0, 1],
    )
    curve = curve_of(problem, solver)
    assert curve.time_s == pytest.approx([0, 1, 3.5, 7])
    assert curve.arrived_bytes == pytest.approx([0, 1, 8.5, 12])


def test_a_period_that_changes_nothing_is_no_breakpoint(solver):
    """The forecast changes an idle link only."""
    problem = Problem.from_hosts(
        [Host("S", 6), Host("K"), Host("D")],
        [Link("S", "D", [2, 2]), Link("K", "D", [1, 9])],
        "D",
        periods_s=[0, 1],
    )
    assert curve_of(problem, solver).time_s == pytest.approx([0, 3])


def test_held_data_take_up_room_until_they_leave(solver):
    """K holds 2 of T's bytes and has room for 3; its way to D opens at 1 s with 1 byte/s.

    Only 1 byte of S fits beside them until then: by 4 s K sends 3 bytes, by 5 s no fourth.
    S's own link opens at 10 s.
    """
    problem = Problem.from_hosts(
        [Host("S", 4), Host("T", 2), Host("K", storage_bytes=3), Host("D")],
        [Link("S", "K", [9, 0, 0]), Link("K", "D", [0, 1, 1]), Link("S", "D", [0, 0, 1])],
        "D",
        periods_s=[0, 1, 10],
        held=[Held("K", "T", 0, 2)],
    )
    curve = curve_of(problem, solver)
    assert curve.time_s == pytest.approx([0, 1, 4, 10, 13])
    assert curve.arrived_bytes == pytest.approx([0, 0, 3, 3, 6])


def test_a_shared_bottleneck_binds_until_one_is_done(linear_solver):
    """A and B at 3 bytes/s each, together 4. A has 10 bytes, B 4: nobody can be done before
    4 of B's and 5 of A's have arrived, at most 4 a second; A needs 10/3 s by itself, all 14/4.

    By t, at most 3t + min(4, 3t), and 4t: the wire binds to the end at 3.5 s.
    With B's link cut to 0.5: A 3t + B 0.5t, until A is done at 10/3 s; then B alone.
    """
    wire = SharedBottleneck("wire", 4.0, [("A", "D"), ("B", "D")])
    hosts = [Host("A", 10), Host("B", 4), Host("D")]
    problem = Problem.from_hosts(hosts, links("A -> D 3, B -> D 3"), "D", shared=[wire])
    curve = curve_of(problem, linear_solver)
    assert curve.time_s == pytest.approx([0, 3.5])
    assert [b.kind for b in curve.bottlenecks] == ["shared"]
    assert "'wire'" in curve.bottlenecks[0].text
    problem = Problem.from_hosts(hosts, links("A -> D 3, B -> D 0.5"), "D", shared=[wire])
    curve = curve_of(problem, linear_solver)
    assert curve.time_s == pytest.approx([0, 10 / 3, 8])
    assert curve.rates_bytes_per_s == pytest.approx([3.5, 0.5])
    assert curve.bottlenecks[1].hosts == ("B",)


def test_nothing_to_move_has_no_curve():
    problem = Problem.from_hosts([Host("S"), Host("D")], links("S -> D 4"), "D")
    curve = curve_of(problem)
    assert curve.time_s.tolist() == [0.0]
    assert curve.bottlenecks == ()


def test_what_never_arrives_is_refused():
    problem = Problem.from_hosts([Host("S", 1), Host("T", 1), Host("D")], links("S -> D 4"), "D")
    with pytest.raises(dc.InfeasibleError, match="'T'"):
        curve_of(problem)


def agrees_with_the_oracle(problem, part):
    try:
        curve = curve_of(problem)
    except dc.InfeasibleError:
        assume(False)
    if problem.total_bytes == 0:
        return
    bound_s, _ = dc.lower_bound(problem)
    assert curve.time_s[0] == 0
    assert curve.time_s[-1] == bound_s
    assert curve.arrived_bytes[-1] == pytest.approx(problem.total_bytes, rel=1e-8)
    assert (np.diff(curve.time_s) > 0).all()
    assert len(curve.bottlenecks) == len(curve.bounds) == len(curve.time_s) - 1
    middles = (curve.time_s[1:] + curve.time_s[:-1]) / 2
    for time_s in [part * bound_s, *curve.time_s[1:].tolist(), *middles.tolist()]:
        found = np.interp(time_s, curve.time_s, curve.arrived_bytes)
        expected = most_arrived_bytes(problem, time_s)
        assert found == pytest.approx(expected, abs=1e-6 * problem.total_bytes)


@given(problem=problems(FEATURES - {"shared"}), part=st.floats(0.01, 0.99))
def test_it_is_the_most_that_can_have_arrived(problem, part):
    agrees_with_the_oracle(problem, part)


@given(problem=problems(most_hosts=3), part=st.floats(0.01, 0.99))
def test_shared_bottlenecks_too(problem, part):
    agrees_with_the_oracle(problem, part)


def test_what_arrives_within_the_instant_of_its_release_has_a_curve():
    """A byte at 10 TB/s, released after 1e9 s: 1e-13 s more are no other float."""
    hosts = [dc.Host("A", 10**6), dc.Host("B", 1, release_s=1e9), dc.Host("D")]
    ways = [dc.Link("A", "D", 1e3), dc.Link("B", "D", 1e13)]
    found = dc.explain(dc.Problem.from_hosts(hosts, ways, "D"))
    assert found.lower_bound_s == 1e9
    assert found.binds[-1].to_s == 1e9
