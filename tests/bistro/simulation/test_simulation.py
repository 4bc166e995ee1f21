"""Services, witnesses and clients by seed: crashes, losses, partitions, and each kind of liar.

More of them: `python tests/bistro/simulation/test_simulation.py FIRST COUNT`.
"""

from __future__ import annotations

import sys

import pytest
from bistro.simulation.many_events import all_carried_out
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


def carried_out(seed: int) -> set[str]:
    """Carry a schedule out and judge it; return what has happened in it."""
    schedule = Schedule(seed)
    schedule.check()
    return schedule.events


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_and_every_liar_is_named():
    """By seed 44 everything has happened once."""
    assert all_carried_out(carried_out, 0, many(1000, at_least=45), cheap_signatures) >= HAPPENS


if __name__ == "__main__":
    found = all_carried_out(carried_out, int(sys.argv[1]), int(sys.argv[2]), cheap_signatures)
    sys.stdout.write(f"{sorted(found)}\n")
