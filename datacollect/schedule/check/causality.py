"""Causality: a relay sends only what it has.

Both transfers of a handover move their bytes at constant rate, so a byte's arrival and departure
are linear in its position, and it suffices to look where these lines can first meet.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import ScheduleError
from datacollect.schedule.check.case import counted, first_true, seconds
from datacollect.schedule.data.tolerances import LOST_IN_COMPARING, WRITTEN

if TYPE_CHECKING:
    from datacollect.numbers.arrays import IntArray
    from datacollect.schedule.check.case import Case

# Shares of transfers need more digits than bytes and instants have; not all machines have more.
Wide: TypeAlias = npt.NDArray[np.longdouble]
ROUNDING = 16.0 * float(np.finfo(np.longdouble).eps)


def leave_after_arrival(case: Case) -> None:
    """Raise ScheduleError if a byte leaves a relay before it has arrived there.

    At the same instant is allowed: cut-through without a chunk. Instants that the schedule gives
    are compared exactly, those amid a transfer, which follow from two of them, to their last place.
    """
    rows = case.handovers
    columns, end = case.schedule.columns, rows.first_byte + rows.n_bytes
    finish_s = np.maximum(columns.finish_s[rows.arrives], columns.finish_s[rows.leaves])
    for byte, before in ((rows.first_byte, columns.offset_bytes), (end, _ends(case))):
        given = before[rows.arrives] == before[rows.leaves]
        arrives_s, leaves_s = (_instant(case, row, byte) for row in (rows.arrives, rows.leaves))
        early_s = arrives_s - leaves_s
        allowed_s = np.where(given, 0.0, finish_s * WRITTEN)
        is_early = early_s > allowed_s
        close = ~given & (np.abs(early_s - allowed_s) <= finish_s * LOST_IN_COMPARING)
        for row in np.flatnonzero(close):
            arrives, leaves = (
                _exact_instant(case, int(each[row]), int(byte[row]))
                for each in (rows.arrives, rows.leaves)
            )
            is_early[row] = arrives - leaves > Fraction(finish_s[row]) * Fraction(WRITTEN)
        at = first_true(is_early)
        if at is not None:
            # The end of a range is the instant of its last byte.
            number = min(byte[at], end[at] - 1)
            raise ScheduleError(
                f"{_byte_at_relay(case, int(rows.leaves[at]), int(number))} leaves at "
                f"{seconds(leaves_s[at])} but arrives at {seconds(arrives_s[at])}: "
                f"{seconds(early_s[at])} too early"
            )


def leave_in_later_slot(case: Case) -> None:
    """Raise ScheduleError if any part of a byte leaves a relay in the slot in which it arrives.

    A transfer of several slots carries each byte in the slots in which its place falls. What
    arrives in a slot must not leave before the next begins. Of what arrives in one slot the first
    leaves first: look at where a range begins, and at where the later slots begin to arrive. Over
    these the delay is linear, so that the first and the last suffice.
    """
    rows = case.handovers
    slot, n_slots = case.slot[0], case.slot[1] - case.slot[0]
    first, end = (
        _slots_at(case, rows.arrives, byte)
        for byte in (rows.first_byte, rows.first_byte + rows.n_bytes)
    )
    noise = ROUNDING * float(case.slot[1].max(initial=0))
    begins = np.floor(first + noise)
    last = np.maximum(np.ceil(end - noise) - 1, begins)
    per_slot = case.schedule.columns.n_bytes / np.asarray(n_slots, np.longdouble)
    for arrives in (begins, np.minimum(begins + 1, last), last):
        since = np.where(arrives > first, arrives, first) - slot[rows.arrives]
        byte = np.asarray(case.schedule.columns.offset_bytes[rows.arrives], np.longdouble)
        byte = byte + since * per_slot[rows.arrives]
        leaves = _slots_at(case, rows.leaves, byte)
        at = first_true(leaves < arrives + 1 - noise)
        if at is not None:
            number = min(int(byte[at]), int(rows.first_byte[at] + rows.n_bytes[at] - 1))
            late = int(arrives[at]) + 1 - int(np.floor(leaves[at] + noise))
            raise ScheduleError(
                f"{_byte_at_relay(case, int(rows.leaves[at]), number)} arrives in slot "
                f"{int(arrives[at])} and leaves in slot {int(np.floor(leaves[at] + noise))}, "
                f"{counted(late, 'slot')} too early"
            )


def _ends(case: Case) -> IntArray:
    columns = case.schedule.columns
    return columns.offset_bytes + columns.n_bytes


def _instant(case: Case, row: IntArray, byte: IntArray) -> Wide:
    """Instant at which transfer `row` has moved all before `byte`; exact where that is its end."""
    columns = case.schedule.columns
    start_s, finish_s = (
        np.asarray(times[row], np.longdouble) for times in (columns.start_s, columns.finish_s)
    )
    inside = start_s + _share_before(case, row, byte) * (finish_s - start_s)
    return np.where(byte == _ends(case)[row], finish_s, inside)


def _exact_instant(case: Case, row: int, byte: int) -> Fraction:
    """As `_instant`, of one transfer, without rounding."""
    columns = case.schedule.columns
    start_s, finish_s = Fraction(columns.start_s[row]), Fraction(columns.finish_s[row])
    n_before = byte - int(columns.offset_bytes[row])
    return start_s + (finish_s - start_s) * n_before / int(columns.n_bytes[row])


def _share_before(case: Case, row: IntArray, byte: npt.NDArray[Any]) -> Wide:
    """Share of transfer `row` that lies before `byte`."""
    columns = case.schedule.columns
    before = np.asarray(byte - columns.offset_bytes[row], np.longdouble)
    return np.asarray(before / columns.n_bytes[row])


def _slots_at(case: Case, row: IntArray, byte: npt.NDArray[Any]) -> Wide:
    """Instant at which transfer `row` has moved all before `byte`, in slots from time 0."""
    start, finish = case.slot[0][row], case.slot[1][row]
    return np.asarray(start + _share_before(case, row, byte) * (finish - start), np.longdouble)


def _byte_at_relay(case: Case, leaves: int, byte: int) -> str:
    columns, where, names = case.schedule.columns, case.legs, case.problem.names
    source = case.schedule.routes[columns.route[leaves]].source
    return (
        f"byte {byte} of {source!r} at relay {names[where.tail[leaves]]!r}, on its way to "
        f"{names[where.head[leaves]]!r}:"
    )
