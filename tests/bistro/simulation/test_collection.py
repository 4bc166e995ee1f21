"""Collections by seed, with each kind of liar, and what audits say of them.

More of them: `python tests/bistro/simulation/test_collection.py FIRST COUNT`.
"""

from __future__ import annotations

import sys

import pytest
from bistro.simulation.collection import Collection
from bistro.simulation.collectors import LYING_BISTROS, LYING_DESTINATIONS
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


def carried_out(first: int, count: int) -> set[str]:
    """Carry collections out and judge their audits; return what has happened in some of them."""
    happened: set[str] = set()
    with cheap_signatures():
        for seed in range(first, first + count):
            try:
                happened |= Collection(seed).check()
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise
    return happened


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_unnoticed_and_nobody_honest_is_accused():
    """By seed 101 everything has happened once."""
    assert carried_out(0, many(1000)) >= HAPPENS


if __name__ == "__main__":
    sys.stdout.write(f"{sorted(carried_out(int(sys.argv[1]), int(sys.argv[2])))}\n")
