"""Links that turn out so slow that no number says when the rest has arrived."""

from __future__ import annotations

import pytest

import datacollect as dc


@pytest.mark.parametrize("slot_s", [None, 1.0])
def test_an_end_beyond_all_numbers_is_told_as_such(slot_s):
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 1e3], [0, 0]], [1_000_000, 0], "D")
    links = [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 5e-324}]
    progress = {"format": "datacollect-progress/1", "at_s": 1.0, "links": links}
    plan = dc.coordinated(problem, slot_s=slot_s)
    with pytest.raises(dc.InfeasibleError, match="too slow for a number to say when"):
        dc.replan(problem, plan, progress)
