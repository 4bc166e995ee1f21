"""`explain`, `front` and `replan` at hostile scales, judged by linear programs of their own."""

from __future__ import annotations

import pytest
from explore import explain_hostile, front_hostile, replan_hostile
from instances.how_many import many

FAMILIES = {
    "explain": explain_hostile.case,
    "front": front_hostile.case,
    "replan": replan_hostile.case,
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_many_of_each_are_right(family):
    faults = {seed: FAMILIES[family](seed) for seed in range(2000, 2000 + many(200))}
    assert {seed: fault for seed, fault in faults.items() if fault} == {}
