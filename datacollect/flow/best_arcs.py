"""The best arcs out of each node: those that a round of some search adds to the ones it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datacollect.arrays import FloatArray, IndexArray, IntArray


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
        Positions in `tail`, node by node, the best of each first.

    Examples
    --------
    >>> tail, score = np.array([1, 0, 1, 1]), np.array([2.0, 9.0, 5.0, 5.0])
    >>> best_per_tail(tail, score, most=2, n_nodes=2)
    array([1, 2, 3])
    """
    some = _promising(tail, score, most, n_nodes)
    order = some[np.lexsort((-score[some], tail[some]))]
    sorted_tail = tail[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_tail, sorted_tail)
    return order[rank < most]


def _promising(
    tail: IntArray | IndexArray, score: FloatArray | IntArray, most: int, n_nodes: int
) -> IntArray:
    """Return positions among which are the best of each node: there is less to sort.

    Dealt to `most` groups, a node's arcs have `most` group winners. What scores less than the
    worst of them is not among the best `most`.
    """
    every = np.arange(len(tail))
    if n_nodes * most > len(tail):
        return every
    winner = np.full(n_nodes * most, score.min(), dtype=score.dtype)
    np.maximum.at(winner, tail.astype(np.int64) * most + every % most, score)
    return np.flatnonzero(score >= winner.reshape(-1, most).min(axis=1)[tail])
