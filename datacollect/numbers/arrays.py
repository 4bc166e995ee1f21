"""Types of arrays, and two things that are done with arrays throughout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
IndexArray: TypeAlias = npt.NDArray[np.int32]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# What becomes an array once its texts with units are numbers. Type checkers know the items of a
# list with texts and numbers side by side as objects.
InUnitsLike: TypeAlias = npt.ArrayLike | Sequence[Any]


def ranges(first: IntArray, counts: IntArray) -> IntArray:
    """Return whole numbers from each `first` on, as many as its `counts`, one range after another.

    Parameters
    ----------
    first, counts : ndarray of int64, shape (n_ranges,)

    Returns
    -------
    ndarray of int64, shape (sum of counts,)

    Examples
    --------
    >>> ranges(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    ends = np.cumsum(counts)
    return np.arange(int(counts.sum())) - np.repeat(ends - counts - first, counts)


def running_totals(
    key: IntArray, time_s: FloatArray, *deltas: npt.NDArray[Any]
) -> tuple[IntArray, FloatArray, list[npt.NDArray[Any]]]:
    """Add up changes over time, for each key apart.

    Parameters
    ----------
    key : ndarray of int64, shape (n_events,)
    time_s : ndarray of float, shape (n_events,)
    *deltas : ndarray of int or float, shape (n_events,)

    Returns
    -------
    key, time_s : ndarray, shape (n_instants,)
        Each pair once, sorted by key, then time.
    totals : list of ndarray, shape (n_instants,)
        For each of `deltas` the total from that instant on, until the key's next one.

    Examples
    --------
    >>> key, time_s, change = np.array([0, 0, 1]), np.array([2.0, 1.0, 5.0]), np.array([-3, 3, 7])
    >>> [part.tolist() for part in running_totals(key, time_s, change)[2]]
    [[3, 0, 7]]
    """
    order = np.lexsort((time_s, key))
    key, time_s = key[order], time_s[order]
    new_key = np.ones(len(key), dtype=bool)
    new_key[1:] = key[1:] != key[:-1]
    last = np.ones(len(key), dtype=bool)
    last[:-1] = new_key[1:] | (time_s[1:] != time_s[:-1])
    first = np.flatnonzero(new_key)
    sizes = np.diff(first, append=len(key))
    totals = []
    for delta in deltas:
        total = np.cumsum(delta[order])
        before = np.zeros(len(first), dtype=total.dtype)
        before[1:] = total[first[1:] - 1]
        totals.append((total - np.repeat(before, sizes))[last])
    return key[last], time_s[last], totals
