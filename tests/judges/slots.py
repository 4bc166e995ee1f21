"""What a pull in slots says has happened, judged by the rules of plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import datacollect as dc
from datacollect.transfer.pull.slots.happened import PROBLEM, SCHEDULE

if TYPE_CHECKING:
    from pathlib import Path


def judged(into: Path, piece_bytes: int = 65_536) -> dc.Schedule:
    """Judge what happened, within a piece and 5 % of a slot; return it."""
    folder = into / ".datacollect"
    schedule = dc.Schedule.from_file(folder / SCHEDULE)
    tree = dc.Problem.from_file(folder / PROBLEM).to_dict()
    for each in tree["links"]:
        rates = each["bandwidth_bytes_per_s"]
        several = rates if isinstance(rates, list) else [rates]
        more = [rate and rate * 1.05 + piece_bytes / schedule.slot_s for rate in several]
        each["bandwidth_bytes_per_s"] = more if isinstance(rates, list) else more[0]
    schedule.check(dc.Problem.from_dict(tree))
    return schedule
