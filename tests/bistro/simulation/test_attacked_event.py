"""Events in which somebody wants to stop others: whoever is honest beside him ends as he should.

All 10 000: `make attacked-events`, which goes on where it was interrupted, and keeps what it has
found in `build/attacked-events.json`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from bistro.simulation.attacked_event import CHEATS, carried_out
from bistro.simulation.many_events import all_carried_out
from instances.how_many import many

N_EVENTS = 10_000
# After so many what was found is kept.
KEPT_EVERY = 100
HAPPENS = {
    *(f"beside: {each}" for each in CHEATS),
    *("collected", "stranger refused", "repeated in vain", "Spending", "Repeating"),
    *("superseded", "refused never came", "chosen in vain"),
}


def test_honest_people_beside_each_cheat_are_collected():
    assert all_carried_out(carried_out, 0, 7) >= {f"beside: {each}" for each in CHEATS}


@pytest.mark.slow
def test_the_same_of_many_events():
    assert all_carried_out(carried_out, 7, many(600, at_least=90)) >= HAPPENS


def go_on(file: Path) -> None:
    """Carry out what is left of all events; what was found lies in a file."""
    found = {"n": 0, "seconds": 0.0, "happened": []}
    if file.exists():
        found = json.loads(file.read_text())
    file.parent.mkdir(parents=True, exist_ok=True)
    while found["n"] < N_EVENTS:
        began_s = time.monotonic()
        happened = all_carried_out(carried_out, found["n"], min(KEPT_EVERY, N_EVENTS - found["n"]))
        found["n"] = min(found["n"] + KEPT_EVERY, N_EVENTS)
        found["seconds"] += time.monotonic() - began_s
        found["happened"] = sorted({*found["happened"], *happened})
        beside = file.with_suffix(".new")
        beside.write_text(json.dumps(found, indent=1) + "\n")
        beside.replace(file)
        sys.stdout.write(f"{found['n']} events in {found['seconds']:.0f} s\n")
        sys.stdout.flush()
    absent = HAPPENS - {*found["happened"]}
    if absent:
        sys.exit(f"in no event: {sorted(absent)}")


if __name__ == "__main__":
    go_on(Path(sys.argv[1]))
