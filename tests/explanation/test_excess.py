"""Causes of ends later than the lower bound: seconds per cause, derived by hand."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from instances.hand_made import links
from instances.small_problems import MB, figure_1
from instances.strategies import problems

import datacollect as dc
from datacollect.explanation.excess import excess_parts
from datacollect.explanation.what_if import WhatIf
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem


def excess_of(problem, plan):
    """What `explain` says of the plan; its parts add up."""
    found = dc.explain(problem, plan).plan
    assert found.makespan_s == plan.makespan_s
    assert sum(part.seconds for part in found.parts) == pytest.approx(
        found.excess_s, abs=2e-6 * plan.lower_bound_s
    )
    return found


def parts(problem, plan):
    """Causes and seconds of what a plan takes beyond the lower bound."""
    return {part.cause: part.seconds for part in excess_of(problem, plan).parts}


def one_link(*rates, periods_s=(0.0,), n_bytes=8 * MB, **host):
    """S sends to D over one link."""
    hosts = [Host("S", n_bytes, **host), Host("D")]
    return Problem.from_hosts(hosts, [Link("S", "D", list(rates))], "D", periods_s=periods_s)


def free_and_priced():
    """S holds 4 MB: 1 MB/s to D for nothing, 1 MB/s over K at a price."""
    return Problem.from_hosts(
        [Host("S", 4 * MB), Host("K"), Host("D")],
        [Link("S", "D", 1e6), Link("S", "K", 1e6, 0.1), Link("K", "D", 1e6)],
        "D",
    )


def test_methods_slots_and_chunks():
    """Figure 1, T* = 1 s: direct takes 2 s; slots of 0.5 s 1.5 s; chunks of 0.01 s 1.01 s."""
    problem = figure_1()
    assert parts(problem, dc.direct(problem)) == {"method": pytest.approx(1.0)}
    assert parts(problem, dc.best_path(problem)) == {"method": pytest.approx(1.0)}
    slotted = dc.coordinated(problem, slot_s=0.5)
    assert parts(problem, slotted) == {"hops": pytest.approx(0.5)}
    assert parts(problem, dc.coordinated(problem, chunk_s=0.01)) == {"chunks": pytest.approx(0.01)}
    assert parts(problem, dc.coordinated(problem, chunk_s=0.0)) == {}


def test_chunks_of_best_path_are_not_the_methods():
    """Through K at 3 MB/s instead of 1 MB/s: 2 s and a chunk; both routes together: 1.5 s."""
    problem = Problem.from_hosts(
        [Host("S", 6 * MB), Host("K"), Host("D")], links("S -> D 1e6, S -> K 3e6, K -> D 3e6"), "D"
    )
    found = parts(problem, dc.best_path(problem, chunk_s=0.25))
    assert found == {"method": pytest.approx(0.5), "chunks": pytest.approx(0.25)}


def test_turns_are_not_the_methods():
    """A 4 s, B 2 s; together 4 s, one after the other 6 s. By relays nothing is faster."""
    problem = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 4 * MB), Host("D")], links("A -> D 1e6, B -> D 2e6"), "D"
    )
    assert parts(problem, dc.direct(problem, at_a_time=1)) == {"turns": pytest.approx(2.0)}
    assert parts(problem, dc.direct(problem)) == {}


def test_turns_that_the_file_does_not_hold_are_not_called_the_methods():
    """A 2 s, B 1 s: all at once 2 s, which nothing betters; one after the other 3 s."""
    problem = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 2 * MB), Host("D")], links("A -> D 2e6, B -> D 2e6"), "D"
    )
    plan = dc.direct(problem, at_a_time=1).replace(turns=None)
    found = excess_of(problem, plan)
    assert [(part.cause, part.seconds) for part in found.parts] == [("other", pytest.approx(1.0))]
    assert "planned again by direct it would end at 2 s" in found.parts[0].text
    assert found.advice.tried == ()


def test_rounding_to_slots_is_told_apart():
    """5 MB at 2 MB/s: 2.5 s; in slots of 1 s, 3 s."""
    problem = one_link(2e6, n_bytes=5 * MB)
    assert parts(problem, dc.coordinated(problem, slot_s=1.0)) == {"slots": pytest.approx(0.5)}


@pytest.mark.parametrize("method", [dc.coordinated, dc.best_path])
def test_data_released_inside_a_slot_wait_for_the_next(method):
    """4 MB at 2 MB/s from 0.5 s on: 2.5 s; from the slot at 1 s on: 3 s."""
    problem = one_link(2e6, n_bytes=4 * MB, release_s=0.5)
    assert parts(problem, method(problem, slot_s=1.0)) == {"grid": pytest.approx(0.5)}


@pytest.mark.parametrize("method", [dc.coordinated, dc.best_path])
def test_slots_that_straddle_periods_are_told_apart(method):
    """4 MB/s until 1.5 s, then 2: 6 + 2 MB in 2.5 s; slots carry 4, 2, 2 MB: 3 s."""
    problem = one_link(4e6, 2e6, periods_s=[0.0, 1.5])
    assert parts(problem, method(problem, slot_s=1.0)) == {"grid": pytest.approx(0.5)}


def test_on_the_grid_nothing_straddles():
    """2 MB/s for 2 s, then 4: 8 MB in 3 s, in 3 slots."""
    problem = one_link(2e6, 4e6, periods_s=[0.0, 2.0], release_s=0.0)
    assert parts(problem, dc.coordinated(problem, slot_s=1.0)) == {}


def test_pipelines_drain_before_bandwidths_change():
    """S -> K -> D 1 MB/s for 2 s, then 2 MB/s: 4 MB in 3 s.

    With chunks of 0.1 s the first piece carries 1.9 MB, the second takes 2.1 MB / 2 MB/s.
    """
    problem = Problem.from_hosts(
        [Host("S", 4 * MB), Host("K"), Host("D")],
        [Link("S", "K", [1e6, 2e6]), Link("K", "D", [1e6, 2e6])],
        "D",
        periods_s=[0.0, 2.0],
    )
    expected = {"chunks": pytest.approx(0.1), "drain": pytest.approx(0.05)}
    assert parts(problem, dc.coordinated(problem, chunk_s=0.1)) == expected
    assert parts(problem, dc.best_path(problem, chunk_s=0.1)) == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"chunk_s": 0.0}, {"deadline": 2.0}),
        ({"chunk_s": 0.01}, {"chunks": 0.01, "deadline": 1.99}),
        ({"slot_s": 0.5}, {"hops": 0.5, "deadline": 1.5}),
    ],
)
def test_a_later_end_that_was_asked_for(shape, expected):
    """4 MB: 2 s, and a chunk or slot of relaying; or 4 s for nothing."""
    problem = free_and_priced()
    plan = dc.coordinated(problem, deadline_s=4.0, **shape)
    assert parts(problem, plan) == pytest.approx(expected)


def test_a_deadline_that_the_file_does_not_hold_is_not_guessed_away():
    """Files of old do not say what was asked for: planned again it would end at 2 s."""
    problem = free_and_priced()
    plan = dc.coordinated(problem, deadline_s=4.0, chunk_s=0.0)
    found = excess_of(problem, plan.replace(prefer=None, deadline_s=None))
    (part,) = found.parts
    assert (part.cause, part.seconds) == ("other", pytest.approx(2.0))
    assert "planned again by coordinated it would end at 2 s" in part.text
    assert found.deadline is None
    assert "with options that the schedule does not hold" in found.advice.why_not


@pytest.mark.slow
@given(problem=problems(large=True))
def test_causes_of_plans_that_were_asked_for_nothing_are_known(problem):
    """Whatever the problem and the shape, nothing is left unexplained."""
    assume(problem.total_bytes)
    try:
        bound_s, _ = dc.lower_bound(problem)
    except dc.InfeasibleError:
        return
    for method, shape in (
        (dc.direct, {}),
        (dc.best_path, {}),
        (dc.best_path, {"slot_s": 0.7}),
        (dc.coordinated, {}),
        (dc.coordinated, {"slot_s": 0.7}),
    ):
        try:
            plan = method(problem, **shape)
        except dc.InfeasibleError:
            continue
        plan.check(problem)
        causes = {part.cause for part in excess_parts(WhatIf(problem, plan, "auto"), bound_s)}
        assert "other" not in causes


@pytest.mark.parametrize("release_s", [0.0, 1.0])
def test_slots_longer_than_any_instant_of_a_problem(release_s):
    """What begins within the first slot would begin at its end, 2e15 s, later than all may."""
    host = dc.Host("S", 10, release_s=release_s)
    link = dc.Link("S", "D", [1.0, 0.5])
    problem = dc.Problem.from_hosts([host, dc.Host("D")], [link], "D", periods_s=[0.0, 3.0])
    plan = dc.coordinated(problem, slot_s=2e15)
    found = dc.explain(problem, plan).plan
    assert sum(part.seconds for part in found.parts) == pytest.approx(found.excess_s)
