"""Sources that do not bind finish early: on the same routes, in the same shares, only faster.

In a fluid plan all that moves in a piece of time takes all of that piece. What binds has to; the
others need not. Within each piece the rates of each pool's data rise together, in proportion to
what each path carries, until a capacity is full: max-min fair, with the pool's data as its weight
(Bertsekas and Gallager, Data Networks, 2nd ed. 1992, section 6.5.2). All begin at the start of the
piece, so each ends when it has moved its bytes.

To give away again what those who end leave behind would hasten nobody. What holds a pool back is
a capacity on which no pool is faster than it, so none that shares it ends before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.methods.timing.tolerances import SAME_LOAD
from datacollect.numbers.tolerances import SAME_RATE

if TYPE_CHECKING:
    from datacollect.methods.timing.hop_uses import FluidHops
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray


def hurried_lengths_s(hops: FluidHops, amount_bytes: FloatArray) -> FloatArray:
    """Return how long each hop takes when rates are raised as far as capacities allow.

    Parameters
    ----------
    hops : FluidHops
    amount_bytes : ndarray of float, shape (n_paths,)

    Returns
    -------
    ndarray of float, shape (n_hops,)
        At most the length of the hop's piece.
    """
    hop, resource, room_bytes = hops.use
    pools, pieces = hops.paths.pool[hops.path], hops.paths.pieces
    carried = amount_bytes[hops.path[hop]]
    may_hurry = _may_hurry(hops)
    hurries = may_hurry[hop] & (carried > 0)
    room_bytes = room_bytes - np.bincount(
        resource[~hurries], carried[~hurries], minlength=len(room_bytes)
    )
    _, unit = np.unique(pools * len(hops.plan.starts_s) + pieces, return_inverse=True)
    unit = unit.ravel()
    n_units = int(unit.max(initial=-1)) + 1
    speed = fair_speeds(
        unit[hop][hurries], resource[hurries], carried[hurries], room_bytes, n_units
    )
    lengths_s = hops.plan.lengths_s[pieces]
    return np.asarray(np.where(may_hurry, lengths_s / speed[unit], lengths_s))


def _may_hurry(hops: FluidHops) -> BoolArray:
    """Mark hops that may be faster than planned.

    What is stored at the end of a piece of time would only lie there longer, and a chunk in flight
    grows with its rate: through relays with little room it stays as planned.
    """
    problem, begins = hops.problem, hops.begins
    run = np.cumsum(begins) - 1
    ends = np.append(begins[1:], True)[: len(begins)]
    through_little = ~begins & np.isfinite(problem.storage_bytes[hops.tail])
    slow = through_little | (ends & (hops.head != problem.destination_index))
    may_hurry: BoolArray = np.bincount(run, slow)[run] == 0
    return may_hurry


def fair_speeds(
    unit: IntArray, resource: IntArray, load: FloatArray, room: FloatArray, n_units: int
) -> FloatArray:
    """Raise the speeds of all units together, from 1, until each crosses something full.

    Parameters
    ----------
    unit, resource : ndarray of int64, shape (n_entries,)
        Entry i says that ``unit[i]`` uses ``resource[i]``.
    load : ndarray of float, shape (n_entries,)
        How much of it at speed 1; at speed 2 twice as much. More than 0.
    room : ndarray of float, shape (n_resources,)
        What all units together may use; at speed 1 it suffices, but for rounding.
    n_units : int

    Returns
    -------
    ndarray of float, shape (n_units,)
        At least 1, and 1 for units without entries.

    Examples
    --------
    Unit 0 fills the first resource. Units 1 and 2 share the second, and end together.

    >>> unit, resource = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1])
    >>> fair_speeds(unit, resource, np.array([5.0, 5.0, 1.0, 2.0]), np.array([5.0, 11.0]), 3)
    array([1., 2., 2.])
    """
    speed = np.ones(n_units)
    room = room.copy()
    while len(unit):
        np.maximum(room, 0.0, out=room)  # rounding, or a linear program's slack
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (room / np.bincount(resource, load, minlength=len(room)))[resource]
        level = np.full(n_units, np.inf)
        np.minimum.at(level, unit, share)
        # A resource does not bind yet as long as one of its units is bound more tightly elsewhere.
        elsewhere = share * (1 - SAME_RATE) > level[unit]
        waits = np.bincount(resource, elsewhere, len(room)) > 0
        bound = np.zeros(n_units, dtype=bool)
        bound[unit[~waits[resource]]] = True
        speed[bound] = np.maximum(level[bound], 1.0)
        done = bound[unit]
        room -= np.bincount(resource[done], (load * speed[unit])[done], len(room))
        unit, resource, load = unit[~done], resource[~done], load[~done]
    speed[speed < 1 + SAME_LOAD] = 1.0  # what binds keeps its end to the last digit
    return speed
