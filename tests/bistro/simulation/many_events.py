"""Events, collections, schedules carried out one after the other, each by its seed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from bistro.simulation.world import remembered_signatures


def all_carried_out(
    carried_out: Callable[[int], set[str]],
    first: int,
    count: int,
    signatures: Callable[[], AbstractContextManager[None]] = remembered_signatures,
) -> set[str]:
    """Carry them out and judge them; return what has happened in some of them."""
    happened: set[str] = set()
    with signatures():
        for seed in range(first, first + count):
            try:
                happened |= carried_out(seed)
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise
    return happened
