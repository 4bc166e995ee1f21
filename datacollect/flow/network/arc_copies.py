"""Arcs that a network has twice: the first bytes on an arc cost less than all others."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from datacollect.numbers.arrays import FloatArray, IntArray

Flow = TypeVar("Flow", IntArray, FloatArray)


def with_copies(flow: Flow, n_arcs: int, copies: IntArray) -> Flow:
    """Add what flows through second copies of arcs, the last ones, to what flows through the arcs.

    >>> with_copies(np.array([1.0, 2.0, 0.5]), 2, np.array([1]))
    array([1. , 2.5])
    """
    together: Flow = flow[:n_arcs].copy()
    np.add.at(together, copies, flow[n_arcs:])
    return together
