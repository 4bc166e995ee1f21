"""Sums, largest and smallest of columns that belong together, for one row or for many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray


class Groups:
    """Groups of columns.

    Parameters
    ----------
    keys : ndarray of int, shape (n_columns,)
        The group of each column.
    n_groups : int
        Some may have no column.

    Examples
    --------
    >>> groups = Groups(np.array([1, 0, 1]), 3)
    >>> groups.sums(np.array([[1.0, 2.0, 4.0]]))
    array([[2., 5., 0.]])
    >>> groups.most(np.array([1.0, 2.0, 4.0]))
    array([  2.,   4., -inf])
    """

    def __init__(self, keys: IntArray, n_groups: int) -> None:
        order = np.argsort(keys, kind="stable")
        self._order = None if (order == np.arange(len(keys))).all() else order
        self._present, self._starts = np.unique(keys[order], return_index=True)
        self._n_groups = n_groups

    def sums(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sum of each group's columns; 0 without any."""
        return self._reduced(np.add, values, 0)

    def most(self, values: FloatArray) -> FloatArray:
        """Return the largest of each group's columns; -inf without any."""
        return self._reduced(np.maximum, values, -np.inf)

    def least(self, values: FloatArray) -> FloatArray:
        """Return the smallest of each group's columns; inf without any."""
        return self._reduced(np.minimum, values, np.inf)

    def _reduced(
        self, function: np.ufunc, values: npt.NDArray[Any], nothing: float
    ) -> npt.NDArray[Any]:
        if len(self._present) == 0:
            return np.full((*values.shape[:-1], self._n_groups), nothing, dtype=values.dtype)
        ordered = values if self._order is None else values[..., self._order]
        parts: npt.NDArray[Any] = function.reduceat(ordered, self._starts, axis=-1)
        if len(self._present) == self._n_groups:
            return parts
        found = np.full((*values.shape[:-1], self._n_groups), nothing, dtype=values.dtype)
        found[..., self._present] = parts
        return found
