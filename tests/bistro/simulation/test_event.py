"""Whole events by seed: everybody at once, each kind of liar, and an audit of the outcome.

More of them: `python tests/bistro/simulation/test_event.py FIRST COUNT`.
"""

from __future__ import annotations

import sys

from bistro.simulation.event import carried_out
from bistro.simulation.world import remembered_signatures


def all_carried_out(first: int, count: int) -> set[str]:
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


if __name__ == "__main__":
    sys.stdout.write(f"{sorted(all_carried_out(int(sys.argv[1]), int(sys.argv[2])))}\n")
