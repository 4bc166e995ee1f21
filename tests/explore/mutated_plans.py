"""Plans with something changed: the library and a judge from the contract agree on each."""

from __future__ import annotations

from schedule.check.test_two_judges import disagreement


def case(seed: int) -> str | None:
    """Return how the two judge a changed plan differently."""
    return disagreement(seed)
