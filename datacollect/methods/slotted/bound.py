"""A lower bound on the number of slots: the fluid optimum of what slots can carry.

Slots carry whole bytes, and what comes to a relay in one slot is there at the slot's end. So per
slot a link carries its bandwidth rounded down, and a relay with room for R bytes takes in at most R
bytes, however fast its links are. A fluid at these rates takes no longer than any plan in slots.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.optimum import fluid_optimum
from datacollect.methods.timing.slots import fewest_slots, whole_slot_bytes
from datacollect.problem.other_rates import with_host_limits, with_link_rates

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


def slots_at_least(problem: Problem, slot_s: float, budget: Budget) -> int:
    """Return a number of slots with fewer than which the time-expanded graph has no complete flow.

    Raises
    ------
    InfeasibleError
        Not everything arrives at these rates.

    Examples
    --------
    The relay has room for 2 bytes: 10 bytes take 5 slots to get there, and one more to leave.

    >>> import datacollect as dc
    >>> from datacollect.solvers.budget import Budget
    >>> bandwidth = [[0, 9.0, 0], [0, 0, 9.0], [0, 0, 0]]
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], bandwidth, [10, 0, 0], "D", storage_bytes=[9, 2, 9]
    ... )
    >>> slots_at_least(problem, 1.0, Budget())
    5
    """
    return fewest_slots(fluid_optimum(_in_slots(problem, slot_s), budget).makespan_s, slot_s)


def _in_slots(problem: Problem, slot_s: float) -> Problem:
    """Return the problem at the rates at which slots carry data."""
    most = max(problem.total_bytes, 1)

    def rate(bytes_per_s: FloatArray) -> FloatArray:
        whole = whole_slot_bytes(bytes_per_s, slot_s, most) / slot_s
        # All there is in one slot is as good as no limit.
        return np.where(bytes_per_s * slot_s >= most, bytes_per_s, whole)

    taken_in = problem.storage_bytes / slot_s
    taken_in[problem.destination_index] = np.inf
    downlink = np.minimum(problem.downlink_bytes_per_s, taken_in)
    wires = np.array([wire.bandwidth_bytes_per_s for wire in problem.shared], dtype=float)
    shared = tuple(
        # No bottleneck may carry nothing; with its own rate the bound is lower, and right.
        replace(wire, bandwidth_bytes_per_s=float(whole)) if whole > 0 else wire
        for wire, whole in zip(problem.shared, rate(wires), strict=True)
    )
    return with_host_limits(
        with_link_rates(problem, rate),
        uplink_bytes_per_s=rate(problem.uplink_bytes_per_s),
        downlink_bytes_per_s=rate(downlink),
    ).replace(shared=shared)
