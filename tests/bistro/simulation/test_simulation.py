"""Services, witnesses and clients by seed: crashes, losses, partitions, and each kind of liar.

More of them: `python tests/bistro/simulation/test_simulation.py FIRST COUNT`.
"""

from __future__ import annotations

import sys

import pytest
from bistro.simulation.schedule import Schedule
from bistro.simulation.world import cheap_signatures
from instances.how_many import many

HAPPENS = {
    *("Service", "Dropper", "Silent", "Forker", "Restored", "Thief"),
    *("Witness", "LyingWitness", "Backdating", "Postdating", "Claiming", "Dead"),
    *("crash of Service", "restarted witness", "named Dropper", "named Forker"),
    "refused Thief",
    *("in time", "late", "extended", "not extended"),
}


def carried_out(first: int, count: int) -> set[str]:
    """Carry schedules out and judge them; return what has happened in some of them."""
    happened: set[str] = set()
    with cheap_signatures():
        for seed in range(first, first + count):
            try:
                schedule = Schedule(seed)
                schedule.check()
                happened |= schedule.events
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise
    return happened


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_and_every_liar_is_named():
    """By seed 44 everything has happened once."""
    assert carried_out(0, many(1000)) >= HAPPENS


if __name__ == "__main__":
    sys.stdout.write(f"{sorted(carried_out(int(sys.argv[1]), int(sys.argv[2])))}\n")
