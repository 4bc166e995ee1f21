"""Collections by seed, with each kind of liar, and what audits say of them.

More of them: `python tests/bistro/simulation/test_collection.py FIRST COUNT`.
"""

from __future__ import annotations

import sys

import pytest
from bistro.simulation.collection import Collection
from bistro.simulation.collectors import LYING_BISTROS, LYING_DESTINATIONS
from bistro.simulation.many_events import all_carried_out
from bistro.simulation.world import cheap_signatures
from instances.how_many import many

# Who signs something that does not fit together is accused alone.
ACCUSED = ("Inventing", "Forking", "Unchaining", "Skipping", "HoldingOther", "Contradicting")
ACCUSED += ("Attributing", "Displacing", "Rambling", "service")
# What is lost or not said may be another's fault.
IN_DISPUTE = ("Losing", "Stuffing", "Ignoring", "SayingLate", "service")
HAPPENS = {
    *(kind.__name__ for kind in (*LYING_BISTROS, *LYING_DESTINATIONS)),
    *("None", "service"),
    *(f"{kind} accused" for kind in ACCUSED),
    *(f"{kind} in dispute" for kind in IN_DISPUTE),
    *("collected", "refused", "superseded", "missing", "acknowledged", "late"),
}


def carried_out(seed: int) -> set[str]:
    """Carry a collection out and judge its audit; return what has happened in it."""
    return Collection(seed).check()


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_unnoticed_and_nobody_honest_is_accused():
    """By seed 101 everything has happened once."""
    assert all_carried_out(carried_out, 0, many(1000, at_least=102), cheap_signatures) >= HAPPENS


if __name__ == "__main__":
    found = all_carried_out(carried_out, int(sys.argv[1]), int(sys.argv[2]), cheap_signatures)
    sys.stdout.write(f"{sorted(found)}\n")
