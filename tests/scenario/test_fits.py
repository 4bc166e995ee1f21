"""Schedules that are not for a scenario."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.scenario.fits import require_room, require_schedule_fits


def problem_of(n_bytes=30, source="S", destination="D", bandwidth=5.0):
    """A source, a relay K and a destination in a row."""
    grid = [[0, bandwidth, 0], [0, 0, bandwidth], [0, 0, 0]]
    return dc.Problem.from_matrix([source, "K", destination], grid, [n_bytes, 0, 0], destination)


PLAN = dc.coordinated(problem_of())


def test_the_same_data_at_other_bandwidths_fit():
    """What a plan takes where other bandwidths hold is what simulations are for."""
    require_schedule_fits(PLAN, problem_of(bandwidth=1.0))


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (problem_of(destination="E"), "its destination is 'D', the scenario's is 'E'; plan again"),
        (problem_of(source="T"), "host 'S' takes no part in the scenario; plan again"),
        (problem_of(40), "it collects 30 bytes of 'S', which holds 40; plan again, with the same"),
        (problem_of(0), "it collects 30 bytes of 'S', which holds 0; plan again"),
    ],
)
def test_a_schedule_for_other_data_is_refused(problem, message):
    with pytest.raises(
        dc.ProblemError, match=f"the schedule was made for another problem: {message}"
    ):
        require_schedule_fits(PLAN, problem)


def test_a_source_that_the_schedule_forgets_is_named():
    """K has data too, which the schedule leaves there."""
    grid = [[0, 5.0, 0], [0, 0, 5.0], [0, 0, 0]]
    problem = dc.Problem.from_matrix(["S", "K", "D"], grid, [30, 7, 0], "D")
    with pytest.raises(dc.ProblemError, match="it collects 0 bytes of 'K', which holds 7"):
        require_schedule_fits(PLAN, problem)


def test_data_held_elsewhere_count_for_their_source():
    """10 of 30 bytes lie at K: all 30 are S's."""
    held = [dc.Held("K", "S", 0, 10)]
    problem = problem_of().replace(held=held)
    require_schedule_fits(dc.coordinated(problem), problem)


def test_a_plan_in_slots_needs_room_for_what_lies_there_between_two():
    """30 bytes over two hops of 5 bytes/s in slots of 1 s: 5 bytes lie at K after every slot."""
    slotted = dc.coordinated(problem_of(), slot_s=1.0)
    require_room(slotted, None)
    require_room(slotted, 5)
    with pytest.raises(
        dc.ProblemError, match=r"must be >= 5, which .* stores at 'K', got 4; raise"
    ):
        require_room(slotted, 4)


def test_a_pipelined_plan_needs_none():
    require_room(PLAN, 1)
