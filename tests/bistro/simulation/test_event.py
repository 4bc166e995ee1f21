"""Whole events by seed: everybody at once, each kind of liar, and an audit of the outcome.

More of them: `python tests/bistro/simulation/test_event.py FIRST COUNT`.
"""

from __future__ import annotations

import sys

import pytest
from bistro.simulation.bistros import LYING_BISTROS
from bistro.simulation.collector import LYING_COLLECTORS
from bistro.simulation.judged_event import carried_out
from bistro.simulation.many_events import all_carried_out
from bistro.simulation.services import LIARS
from instances.how_many import many

# Who signs something that does not fit together is accused alone.
ACCUSED = ("Inventing", "Forking", "Unchaining", "Skipping", "Contradicting", "Displacing")
ACCUSED += ("Rambling", "Backdating", "Attributing")
# What is lost or not said may be another's fault.
IN_DISPUTE = ("Losing", "Altering", "Stuffing", "Ignoring", "SayingLate")
HAPPENS = {
    *(kind.__name__ for kind in (*LIARS, *LYING_BISTROS, *LYING_COLLECTORS)),
    *("Service", "Bistro", "Collector", "Witness", "LyingWitness", "Postdating", "Claiming"),
    *(f"{kind} accused" for kind in ACCUSED),
    *(f"{kind} in dispute" for kind in IN_DISPUTE),
    *("collected", "superseded", "missing", "acknowledged", "late"),
    *("refused does not open", "refused is late", "refused lacks the ticket's signature"),
    *("sealed anew", "copied"),
    *("crash of Bistro", "crash of Service", "killed Collector", "run again"),
    "stranger refused",
}


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_to_the_honest_and_every_lie_is_named():
    """Of the first 71 of these seeds one has each of what must happen."""
    assert all_carried_out(carried_out, 150, many(700, at_least=71)) >= HAPPENS


if __name__ == "__main__":
    sys.stdout.write(
        f"{sorted(all_carried_out(carried_out, int(sys.argv[1]), int(sys.argv[2])))}\n"
    )
