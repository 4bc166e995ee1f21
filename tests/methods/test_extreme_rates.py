"""Rates at the ends of what floats hold are planned without a word of numpy."""

from __future__ import annotations

from typing import Any

import pytest

import datacollect as dc


@pytest.mark.parametrize("options", [{}, {"slot_s": 10.0}, {"deadline_s": 1e6}])
@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e300, 1.7e308])
def test_a_rate_beside_usual_ones(rate: float, options: dict[str, Any]) -> None:
    """1000 bytes over K at 5 B/s take 200 s, and no time where the straight link is that fast."""
    links = [("S", "D", rate), ("S", "K", 5.0), ("K", "D", 5.0)]
    problem = dc.Problem.from_dict(
        {
            "destination": "D",
            "hosts": {"S": {"backlog_bytes": 1000}, "K": {}, "D": {}},
            "links": [{"from": a, "to": b, "bandwidth_bytes_per_s": r} for a, b, r in links],
        }
    )
    plan = dc.coordinated(problem, **options)
    plan.check(problem)
    longest_s = options.get("deadline_s", 210.0) if rate < 1 else options.get("slot_s", 1e-200)
    assert plan.makespan_s <= longest_s
