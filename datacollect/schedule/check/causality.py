"""Causality: a relay sends only what it has.

Both transfers of a handover move their bytes at constant rate, so a byte's arrival and departure
are linear in its position, and it suffices to look where straight lines can first meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from datacollect.errors import ScheduleError
from datacollect.schedule.check.case import counted, first_true, seconds
from datacollect.schedule.tolerances import TIME_TOLERANCE

if TYPE_CHECKING:
    from datacollect.arrays import FloatArray, IntArray
    from datacollect.schedule.check.case import Case


def leave_after_arrival(case: Case) -> None:
    """Raise ScheduleError if a byte leaves a relay before it has arrived there.

    At the same instant is allowed: cut-through without a chunk.
    """
    start_s, finish_s = case.times_s
    handovers = case.handovers
    for byte in (handovers.first_byte, handovers.first_byte + handovers.n_bytes):
        arrives_s, leaves_s = (
            start_s[row] + _share_before(case, row, byte) * (finish_s - start_s)[row]
            for row in (handovers.arrives, handovers.leaves)
        )
        early_s = arrives_s - leaves_s
        at = first_true(early_s > case.noise_s)
        if at is not None:
            # The end of a range is the instant of its last byte.
            number = min(byte[at], handovers.first_byte[at] + handovers.n_bytes[at] - 1)
            raise ScheduleError(
                f"{_byte_at_relay(case, int(handovers.leaves[at]), int(number))} leaves at "
                f"{seconds(leaves_s[at])} but arrives at {seconds(arrives_s[at])}: "
                f"{seconds(early_s[at])} too early"
            )


def leave_in_later_slot(case: Case) -> None:
    """Raise ScheduleError if a byte leaves a relay in the slot in which it arrives, or before.

    A transfer of several slots carries each byte in the slot in which its place falls. Where a
    slot ends within a byte, the byte counts as early as possible when it arrives, and as late as
    possible when it leaves.
    """
    rows, last_slot = case.handovers, int(case.slot[1].max(initial=0))
    # Rounding, in slots. It never moves a byte out of the slots that its transfer lasts.
    noise = TIME_TOLERANCE * last_slot + TIME_TOLERANCE
    low, high = rows.first_byte, rows.first_byte + rows.n_bytes - 1

    def arrival(byte: IntArray) -> IntArray:
        slot = np.floor(_slots_at(case, rows.arrives, byte) - noise).astype(np.int64)
        return np.clip(slot, case.slot[0][rows.arrives], case.slot[1][rows.arrives] - 1)

    def departure(byte: IntArray) -> IntArray:
        slot = np.ceil(_slots_at(case, rows.leaves, byte + 1) + noise).astype(np.int64) - 1
        return np.clip(slot, case.slot[0][rows.leaves], case.slot[1][rows.leaves] - 1)

    # Among the bytes that arrive in one slot the first leaves first: look at the range's first,
    # and at the first of each later slot. Over these the delay is linear: the ends suffice.
    candidates = [low]
    candidates += [
        # Twice the noise: past where `arrival` takes the slot before.
        np.clip(_byte_at(case, rows.arrives, slot + 2 * noise), low, high)
        for slot in (arrival(low) + 1, arrival(high))
    ]
    for byte in candidates:
        arrives, leaves = arrival(byte), departure(byte)
        at = first_true(leaves <= arrives)
        if at is not None:
            raise ScheduleError(
                f"{_byte_at_relay(case, int(rows.leaves[at]), int(byte[at]))} arrives in slot "
                f"{arrives[at]} and leaves in slot {leaves[at]}, "
                f"{counted(arrives[at] + 1 - leaves[at], 'slot')} too early"
            )


def _share_before(case: Case, row: IntArray, byte: IntArray) -> FloatArray:
    """Share of transfer `row` that lies before `byte`."""
    columns = case.schedule.columns
    share: FloatArray = (byte - columns.offset_bytes[row]) / columns.n_bytes[row]
    return share


def _slots_at(case: Case, row: IntArray, byte: IntArray) -> FloatArray:
    """Instant at which transfer `row` has moved all before `byte`, in slots from time 0."""
    start, finish = case.slot[0][row], case.slot[1][row]
    return np.asarray(start + _share_before(case, row, byte) * (finish - start), np.float64)


def _byte_at(case: Case, row: IntArray, slots: npt.NDArray[np.floating]) -> IntArray:
    """First byte of transfer `row` that begins at or after an instant, in slots from time 0."""
    columns = case.schedule.columns
    start, finish = case.slot[0][row], case.slot[1][row]
    share = (slots - start) / (finish - start)
    before = np.ceil(share * columns.n_bytes[row]).astype(np.int64)
    first: IntArray = columns.offset_bytes[row] + before
    return first


def _byte_at_relay(case: Case, leaves: int, byte: int) -> str:
    columns, where, names = case.schedule.columns, case.legs, case.problem.names
    source = case.schedule.routes[columns.route[leaves]].source
    return (
        f"byte {byte} of {source!r} at relay {names[where.tail[leaves]]!r}, on its way to "
        f"{names[where.head[leaves]]!r}:"
    )
