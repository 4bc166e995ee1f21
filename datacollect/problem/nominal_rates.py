"""Nominal rates: what links carry while they are open, beside the hours in which they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IndexArray, IntArray
    from datacollect.problem.open_links import Links


@dataclass(frozen=True, eq=False)
class NominalRates:
    """Rates of links while they are open; a row for each hour at which rates change.

    Attributes
    ----------
    names : tuple of str
    link_from, link_to : ndarray of int, shape (n_links,)
        Indices of names: problems that are made of this one may have links in another order, or
        only some of them.
    bandwidth_bytes_per_s : ndarray of float, shape (n_hours, n_links)
        One row where rates do not change with the hour.
    """

    names: tuple[str, ...]
    link_from: IndexArray
    link_to: IndexArray
    bandwidth_bytes_per_s: FloatArray

    @classmethod
    def of(cls, links: Links, bandwidth_bytes_per_s: FloatArray) -> NominalRates:
        """Return the rates of a problem's links, in its order."""
        return cls(links.names, links.link_from, links.link_to, bandwidth_bytes_per_s)

    def of_links(self, links: Links) -> FloatArray:
        """Return the rates in the order of a problem's links; 0 for links that are not known."""
        index = {name: i for i, name in enumerate(links.names)}
        host = np.array([index.get(name, -1) for name in self.names], dtype=np.int64)
        known = _keys(host[self.link_from], host[self.link_to], len(index))
        wanted = _keys(links.link_from, links.link_to, len(index))
        if np.array_equal(known, wanted):
            return self.bandwidth_bytes_per_s
        order = np.argsort(known, kind="stable")
        at = np.minimum(np.searchsorted(known, wanted, sorter=order), max(len(known) - 1, 0))
        if not len(known):
            return np.zeros((len(self.bandwidth_bytes_per_s), len(wanted)))
        found = order[at]
        rates: FloatArray = self.bandwidth_bytes_per_s[:, found]
        return np.where(known[found] == wanted, rates, 0.0)


def _keys(tail: IndexArray | IntArray, head: IndexArray | IntArray, n_hosts: int) -> IntArray:
    keys: IntArray = tail.astype(np.int64) * n_hosts + head
    return np.where((tail < 0) | (head < 0), -1, keys)
