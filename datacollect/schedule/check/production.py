"""Production: nothing leaves a source before it is made there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ScheduleError
from datacollect.problem.production import made_by
from datacollect.schedule.check.case import first_true, seconds
from datacollect.schedule.data.tolerances import LIMIT_TOLERANCE

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.schedule.check.case import Case


def leave_after_being_made(case: Case) -> None:
    """Raise ScheduleError if a byte leaves its source before the source has made it.

    A source makes its backlog in the order of offsets, and a transfer sends bytes in that order at
    constant rate: both are straight lines, so that it suffices to look where a transfer begins and
    where it ends. With slots what leaves in one is made before it begins; there the first and the
    last slot suffice. By rounding one byte for each of the source's routes may be early, and 1e-6
    of what is made.
    """
    for host in case.problem.makers.tolist():
        where = case.legs
        own = (where.hop == 0) & (where.tail == host) & (where.source == host)
        rows = np.flatnonzero(own & (case.schedule.columns.n_bytes > 0))
        n_routes = len(np.unique(where.route[rows]))
        for byte, at_s in _needed(case, rows):
            made = made_by(case.problem, host, at_s)
            early = byte - made - (n_routes + LIMIT_TOLERANCE * made)
            at = first_true(early > 0)
            if at is not None:
                raise ScheduleError(
                    f"{case.describe(int(rows[at]))}: byte {int(np.ceil(byte[at])) - 1} has left "
                    f"by {seconds(at_s[at])}, when {case.problem.names[host]!r} has made "
                    f"{made[at]:.15g} bytes: {byte[at] - made[at]:.10g} bytes too early"
                )


def _needed(case: Case, rows: IntArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return how many bytes must have been made by which instants, of each transfer in two ways."""
    columns = case.schedule.columns
    first: FloatArray = columns.offset_bytes[rows].astype(float)
    size: FloatArray = columns.n_bytes[rows].astype(float)
    slot_s = case.schedule.slot_s
    if slot_s is None:
        return [(first, columns.start_s[rows]), (first + size, columns.finish_s[rows])]
    begin, end = (slot[rows].astype(float) for slot in case.slot)
    first_slot: FloatArray = first + size / (end - begin)
    begins_s: FloatArray = begin * slot_s
    last_s: FloatArray = (end - 1) * slot_s
    return [(first_slot, begins_s), (first + size, last_s)]
