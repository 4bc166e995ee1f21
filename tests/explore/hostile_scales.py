"""Plans of a byte to 2**62, at 1e-3 to 1e13 B/s, in up to a thousand periods, judged twice."""

from __future__ import annotations

from test_hostile_scales import plan_and_judge


def case(seed: int) -> str | None:
    """Plan and judge; what is wrong is raised."""
    plan_and_judge(seed)
    return None
