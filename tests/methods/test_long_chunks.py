"""Chunks of more than a hundredth of the makespan count as stored: plans know it."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.errors import InfeasibleError


def relayed(**relay):
    """S has 1000 bytes, and 100 bytes/s by K: 10 s, of which 0.1 s are a hundredth."""
    return dc.Problem.from_hosts(
        [dc.Host("S", 1000), dc.Host("K", **relay), dc.Host("D")],
        [dc.Link("S", "K", 100.0), dc.Link("K", "D", 100.0), dc.Link("S", "D", 1.0)],
        "D",
    )


@pytest.mark.parametrize("method", [dc.best_path, dc.coordinated])
def test_a_long_chunk_needs_room(method):
    """A chunk of 1 s is 100 bytes."""
    for room in (float("inf"), 100):
        plan = method(relayed(storage_bytes=room), chunk_s=1.0)
        plan.check(relayed(storage_bytes=room))
        assert plan.chunk_s == 1.0
    with pytest.raises(InfeasibleError, match=r"100 bytes at host 'K', .* allow 98; use a short"):
        method(relayed(storage_bytes=98), chunk_s=1.0)
    method(relayed(storage_bytes=0), chunk_s=0.1).check(relayed(storage_bytes=0))


def test_the_rest_of_a_plan_does_not_inherit_a_chunk_that_is_too_long_for_it():
    """Of 10 s half a percent is left: 0.05 s, of which the old chunk of 0.01 s is a fifth."""
    problem = relayed(storage_bytes=0)
    plan = dc.coordinated(problem)
    assert plan.chunk_s == pytest.approx(0.01, rel=0.02)
    progress = {
        "format": "datacollect-progress/1",
        "at_s": 9.9,
        "held": [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": 995}],
    }
    remaining = dc.remaining_problem(problem, dc.Progress.from_dict(progress, problem))
    for prefer in (None, "storage"):
        rest = dc.replan(problem, plan, progress, prefer=prefer)
        assert 0 < rest.chunk_s <= rest.makespan_s / 100
        rest.check(remaining)
    with pytest.raises(InfeasibleError, match="use a shorter chunk"):
        dc.replan(problem, plan, progress, chunk_s=0.04)
