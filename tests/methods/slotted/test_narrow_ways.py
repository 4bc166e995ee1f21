"""Whole bytes in slots over shared wires, where ways seem to lead on and carry nothing."""

from pathlib import Path

import pytest

import datacollect as dc
from datacollect.methods.slotted.plan import _with_fewest

# H4's only way in slots of 0.3 s is by H2, which has room for one byte, and H1: links to H3, which
# has no room, lead nowhere. Found by `make explore`.
PROBLEM = Path(__file__).parents[2] / "instances" / "narrow_ways.json"


@pytest.mark.parametrize("deadline_s", [36.27, 30.0, 27.9])
def test_a_deadline_with_slots_enough_is_met(deadline_s):
    """It searched for ever: ways on were thought to be too dear, and none was tried."""
    problem = dc.Problem.from_file(PROBLEM)
    plan = dc.coordinated(problem, slot_s=0.3, deadline_s=deadline_s)
    plan.check(problem)
    assert plan.makespan_s <= deadline_s
    assert plan.makespan_s >= dc.lower_bound(problem)[0]


def test_where_no_plan_and_no_proof_is_found_the_end_is_as_far_as_is_known():
    problem = dc.Problem.from_file(PROBLEM)
    with pytest.raises(dc.InfeasibleError, match="as far as is known"):
        dc.coordinated(problem, slot_s=0.3, deadline_s=27.0)


def test_a_search_for_slots_ends_where_none_suffice():
    """Few bytes at six hosts: after so many slots more of them help nobody."""
    tried = []
    problem = dc.Problem.from_file(PROBLEM)
    with pytest.raises(dc.InfeasibleError, match="use longer slots"):
        _with_fewest(tried.append, 3, problem, 0.3)
    assert max(tried) < 1000
