"""Derived properties of a problem: counts, indices, locations of data, its hash."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from datacollect.numbers.arrays import ranges
from datacollect.problem import digest
from datacollect.problem.contents import ProblemContents
from datacollect.problem.hosts import HeldColumns, Parcel, ParcelColumns
from datacollect.problem.with_units import in_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from datacollect.numbers.arrays import IntArray


@dataclass(frozen=True, eq=False)
class ProblemQuestions(ProblemContents):
    """The questions that a `datacollect.problem.problem.Problem` answers."""

    @property
    def n_hosts(self) -> int:
        """Number of hosts, the destination included."""
        return len(self.names)

    @property
    def n_links(self) -> int:
        """Number of links."""
        return len(self.link_from)

    @property
    def n_periods(self) -> int:
        """Number of the forecast's periods; 1 where bandwidth is constant."""
        return len(self.periods_s)

    @cached_property
    def total_bytes(self) -> int:
        """Bytes that have yet to reach the destination."""
        return int(self.parcel_columns.n_bytes.sum())  # backlogs together are below 2**62

    @cached_property
    def destination_index(self) -> int:
        """Index of the destination."""
        return self.names.index(self.destination)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Names of the hosts whose backlog, or part of it, has yet to reach the destination."""
        return tuple(self.names[i] for i in np.unique(self.parcel_columns.source).tolist())

    @cached_property
    def host_index(self) -> Mapping[str, int]:
        """Index of each host by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _link_key(self) -> IntArray:
        return self.link_from.astype(np.int64) * self.n_hosts + self.link_to

    def link_indices(self, link_from: npt.ArrayLike, link_to: npt.ArrayLike) -> IntArray:
        """Return the links' indices for arrays of host indices.

        Parameters
        ----------
        link_from, link_to : array_like of int
            Ends of pairs, as indices into ``names``; of equal shape.

        Returns
        -------
        ndarray of int64
            Of the same shape; -1 where there is no link.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> problem.link_indices([0, 1], [1, 0]).tolist()
        [0, -1]
        """
        tail, head = in_whole(link_from, "link_from"), in_whole(link_to, "link_to")
        key = np.asarray(tail, dtype=np.int64) * self.n_hosts + head
        if self.n_links == 0:
            return np.full(key.shape, -1, dtype=np.int64)
        if key.shape == self._link_key.shape and (key == self._link_key).all():
            return np.arange(self.n_links)  # all links in their order: no need to search
        position = np.minimum(np.searchsorted(self._link_key, key), self.n_links - 1)
        return np.where(self._link_key[position] == key, position, -1)

    def links_out_of(self, hosts: npt.ArrayLike) -> IntArray:
        """Return the indices of all links that leave hosts.

        Parameters
        ----------
        hosts : array_like of int
            Indices into ``names``, sorted.

        Returns
        -------
        ndarray of int64
            Sorted.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [6.0, 0]], [10, 0], "D")
        >>> problem.links_out_of([1]).tolist()
        [1]
        """
        # Another type would be converted.
        tails = np.asarray(in_whole(hosts, "hosts"), dtype=self.link_from.dtype)
        first = np.searchsorted(self.link_from, tails, side="left")
        counts = np.searchsorted(self.link_from, tails, side="right") - first
        return ranges(first, counts)

    def _pairs(self, links: IntArray) -> list[tuple[str, str]]:
        """Names of the hosts that links join."""
        names = self.names
        ends = zip(self.link_from[links].tolist(), self.link_to[links].tolist(), strict=True)
        return [(names[a], names[b]) for a, b in ends]

    @cached_property
    def shared_links(self) -> tuple[IntArray, ...]:
        """For each shared bottleneck the indices of its links."""
        ends = [list(chain.from_iterable(s.links)) for s in self.shared]
        hosts = [np.array([self.host_index[name] for name in names]) for names in ends]
        return tuple(self.link_indices(pairs[::2], pairs[1::2]) for pairs in hosts)

    @cached_property
    def held_columns(self) -> HeldColumns:
        """Held data as arrays."""
        return HeldColumns.of(self.held, self.host_index)

    @cached_property
    def parcels(self) -> tuple[Parcel, ...]:
        """What lies where and has yet to move: by host, source and offset."""
        return self.parcel_columns.parcels

    @cached_property
    def parcel_columns(self) -> ParcelColumns:
        """The parcels as arrays."""
        return ParcelColumns.of(
            self.backlog_bytes, self.release_s, self.held_columns, self.destination_index
        )

    @cached_property
    def sha256(self) -> str:
        """Hash of the problem's content; equal for equal problems however they were built.

        A hash of hashes: what a copy has in common with the original is not hashed again.
        """
        return digest.of_all(
            self,
            self.held_columns,
            self._digest_of_links,
            self._digest_of_bandwidth,
            self._digest_of_shared,
        )

    @cached_property
    def _digest_of_links(self) -> bytes:
        return digest.of_links(self)

    @cached_property
    def _digest_of_bandwidth(self) -> bytes:
        return digest.of_bandwidth(self)

    @cached_property
    def _digest_of_shared(self) -> bytes:
        return digest.of_shared(self, self.shared_links)
