"""Events carried out one after the other, each by its seed."""

from __future__ import annotations

from collections.abc import Callable

from bistro.simulation.world import remembered_signatures


def all_carried_out(carried_out: Callable[[int], set[str]], first: int, count: int) -> set[str]:
    """Carry events out and judge them; return what has happened in some of them."""
    happened: set[str] = set()
    with remembered_signatures():
        for seed in range(first, first + count):
            try:
                happened |= carried_out(seed)
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise
    return happened
