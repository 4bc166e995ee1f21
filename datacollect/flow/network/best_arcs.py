"""The best arcs out of each node: those that a round of some search adds to the ones it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datacollect.numbers.arrays import BoolArray, FloatArray, IndexArray, IntArray


def best_per_tail(
    tail: IntArray | IndexArray, score: FloatArray | IntArray, most: int, n_nodes: int
) -> IntArray:
    """Return the positions of each node's arcs with the highest scores.

    Parameters
    ----------
    tail : ndarray of int, shape (n_arcs,)
        The node that each arc leaves.
    score : ndarray of float or int, shape (n_arcs,)
        May be infinite.
    most : int
        So many arcs of each node; of equally good ones those that come first.
    n_nodes : int
        Nodes are 0 ... n_nodes - 1.

    Returns
    -------
    ndarray of int
        Positions in `tail`, in order.

    Examples
    --------
    >>> tail, score = np.array([1, 0, 1, 1]), np.array([2.0, 9.0, 5.0, 5.0])
    >>> best_per_tail(tail, score, most=2, n_nodes=2)
    array([1, 2, 3])
    """
    counts = np.bincount(tail, minlength=n_nodes)
    many = np.flatnonzero(counts > most)
    by_tail = np.argsort(tail, kind="stable")  # fast where arcs come node by node, as most do
    sorted_score = score[by_tail]
    best = np.ones(len(tail), dtype=bool)
    ends = np.cumsum(counts)
    for end, count in zip(ends[many].tolist(), counts[many].tolist(), strict=True):
        own = slice(end - count, end)
        best[own] = _best(sorted_score[own], most)
    return np.sort(by_tail[best])


def _best(score: FloatArray | IntArray, most: int) -> BoolArray:
    """Mark the `most` highest scores; of equal ones the first. Faster than to sort them."""
    least = np.partition(score, len(score) - most)[len(score) - most]
    best: BoolArray = score > least
    best[np.flatnonzero(score == least)[: most - np.count_nonzero(best)]] = True
    return best
