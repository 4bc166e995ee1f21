"""The problem: what each host holds, what bandwidth lies between hosts, and where all must go.

A `Problem` that exists is valid. Hosts and links are numpy arrays inside: a full mesh of 3000
hosts is nine million links, 16 bytes each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datacollect.arrays import IntArray, ranges
from datacollect.errors import naming, nearest_hint
from datacollect.problem import calendar, digest
from datacollect.problem.building import contents_of_hosts, contents_of_matrix
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.contents import ProblemContents
from datacollect.problem.copies import copied, settle, with_rates
from datacollect.problem.hosts import HeldColumns, Parcel, ParcelColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    import networkx as nx
    import pandas as pd

    from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck


@dataclass(frozen=True, eq=False)
class Problem(ProblemContents):
    """A collection problem, as arrays. Build one with the ``from_...`` functions.

    Attributes
    ----------
    names : tuple of str, length n_hosts
        Hosts' names; everywhere else a host is its index here.
    destination : str
        The host that collects everything.
    backlog_bytes : ndarray of int64, shape (n_hosts,)
    release_s, storage_bytes, uplink_bytes_per_s, downlink_bytes_per_s : ndarray, shape (n_hosts,)
        As in `Host`; infinite means unlimited.
    link_from, link_to : ndarray of int32, shape (n_links,)
        Ends of the links, sorted by (from, to), no pair twice.
    bandwidth_bytes_per_s : ndarray of float, shape (n_periods, n_links)
        One row per period; one row where bandwidth is constant.
    periods_s : ndarray of float, shape (n_periods,)
        Starts of the periods, the first 0; the last lasts for ever.
    price_per_gb : ndarray of float, shape (n_links,), or None
        Price per 10^9 bytes; None where no link has one.
    shared : tuple of SharedBottleneck
    held : tuple of Held
    clock : Clock or None
    daily : DailyPeriods or None
    manifest : mapping of str to Files, or None
    file_tolerance : float
        As in problem files: clock times, hours that recur, files of each source.
    most_connections : ndarray of float, shape (n_hosts,), or None
        As in `Host`; None where no host limits them.
    per_connection_bytes_per_s, capacity_bytes_per_s, competitors : ndarray, shape (n_links,)
        How rates grow with connections (`datacollect.problem.connection_rates`), complete; NaN at
        links with a constant bandwidth, or None where all are constant.

    Examples
    --------
    >>> from datacollect.problem.hosts import Host, Link
    >>> problem = Problem.from_hosts(
    ...     [Host("S", backlog_bytes=1_000_000), Host("D")],
    ...     [Link("S", "D", bandwidth_bytes_per_s=250_000.0)],
    ...     destination="D",
    ... )
    >>> problem.n_hosts, problem.n_links, problem.total_bytes
    (2, 1, 1000000)
    """

    def __post_init__(self) -> None:
        settle(self, {attribute.name for attribute in fields(self)})

    # Construction ---------------------------------------------------------------------------

    @classmethod
    def from_hosts(
        cls,
        hosts: Iterable[Host],
        links: Iterable[Link],
        destination: str,
        *,
        shared: Iterable[SharedBottleneck] = (),
        held: Iterable[Held] = (),
        periods_s: Sequence[float] | None = None,
    ) -> Problem:
        """Build a problem from Python objects.

        Raises
        ------
        ProblemError
            A rule is broken; the message names host or link, rule, value and remedy.
        """
        contents = contents_of_hosts(
            hosts, links, destination, shared=shared, held=held, periods_s=periods_s
        )
        return cls(**vars(contents))

    @classmethod
    def from_matrix(
        cls,
        names: Sequence[str],
        bandwidth_bytes_per_s: npt.ArrayLike,
        backlog_bytes: npt.ArrayLike,
        destination: str,
        *,
        release_s: npt.ArrayLike = 0.0,
        storage_bytes: npt.ArrayLike = math.inf,
        uplink_bytes_per_s: npt.ArrayLike = math.inf,
        downlink_bytes_per_s: npt.ArrayLike = math.inf,
        periods_s: npt.ArrayLike | None = None,
        shared: Iterable[SharedBottleneck] = (),
        held: Iterable[Held] = (),
        most_connections: npt.ArrayLike | None = None,
        per_connection_bytes_per_s: npt.ArrayLike | None = None,
        capacity_bytes_per_s: npt.ArrayLike | None = None,
        competitors: npt.ArrayLike | None = None,
    ) -> Problem:
        """Build a problem from a bandwidth matrix.

        Parameters
        ----------
        names : sequence of str, length n
            Hosts' names, in the order of rows and columns.
        bandwidth_bytes_per_s : array_like, shape (n, n) or (n_periods, n, n)
            Row = from, column = to. The diagonal is ignored; a pair that is 0 in every period
            is no link.
        backlog_bytes : array_like of int, shape (n,)
            Bytes that each host holds.
        destination : str
            The host that collects.
        release_s, storage_bytes, uplink_bytes_per_s, downlink_bytes_per_s : array_like
            A number for all hosts or shape (n,).
        periods_s : array_like, shape (n_periods,), optional
            Starts of the forecast's periods.
        shared, held
            As in `from_hosts`.
        most_connections : array_like, optional
            A number for all hosts or shape (n,).
        per_connection_bytes_per_s, capacity_bytes_per_s, competitors : array_like, optional
            As in `Link`, a number for all links or shape (n, n), NaN where a link has none.

        Examples
        --------
        >>> Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D").n_links
        1
        """
        contents = contents_of_matrix(
            names,
            bandwidth_bytes_per_s,
            backlog_bytes,
            destination,
            limits={
                "release_s": release_s,
                "storage_bytes": storage_bytes,
                "uplink_bytes_per_s": uplink_bytes_per_s,
                "downlink_bytes_per_s": downlink_bytes_per_s,
            },
            periods_s=periods_s,
            shared=shared,
            held=held,
            most_connections=most_connections,
            rates={
                "per_connection_bytes_per_s": per_connection_bytes_per_s,
                "capacity_bytes_per_s": capacity_bytes_per_s,
                "competitors": competitors,
            },
        )
        return cls(**vars(contents))

    @classmethod
    def from_dict(
        cls, tree: Mapping[str, Any], base_dir: str | PathLike[str] | None = None
    ) -> Problem:
        """Build from the tree of a problem file; other files are relative to `base_dir`."""
        from datacollect.problem.file import contents_of

        return cls(**vars(contents_of(tree, base_dir)))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Problem:
        r"""Read a problem file: TOML or JSON, with the CSV that it names.

        Parameters
        ----------
        path : path-like
            TOML or JSON by the suffix; ``-`` reads either from standard input. What
            ``bandwidth_csv`` names is relative to the file.

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "collect.toml")
        ...     _ = path.write_text('destination = "D"\n[hosts.D]\n')
        ...     Problem.from_file(path)
        <Problem: 1 hosts, 0 links, 0 sources, 0 bytes to 'D'>
        """
        from datacollect.documents import document_name, folder_of, read_tree
        from datacollect.problem.file import contents_of

        tree = read_tree(path)
        with naming(document_name(path)):
            return cls(**vars(contents_of(tree, folder_of(path))))

    @classmethod
    def from_dataframe(
        cls,
        links: pd.DataFrame,
        backlog_bytes: Mapping[str, int] | pd.Series[Any],
        destination: str,
        *,
        hosts: pd.DataFrame | None = None,
        periods_s: npt.ArrayLike | None = None,
        shared: Iterable[SharedBottleneck] = (),
        held: Iterable[Held] = (),
    ) -> Problem:
        """Build from a table of links; see `datacollect.problem.tables.contents_of_table`."""
        from datacollect.problem.tables import contents_of_table

        contents = contents_of_table(
            links,
            backlog_bytes,
            destination,
            hosts=hosts,
            periods_s=periods_s,
            shared=shared,
            held=held,
        )
        return cls(**vars(contents))

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph[str], destination: str | None = None) -> Problem:
        """Build from a directed graph; see `datacollect.problem.graph.contents_of_graph`."""
        from datacollect.problem.graph import contents_of_graph

        return cls(**vars(contents_of_graph(graph, destination)))

    def to_dict(self) -> dict[str, Any]:
        """Return the tree that `from_dict` reads."""
        from datacollect.problem.file import tree_of

        return tree_of(self)

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return a directed graph with the attributes that `from_networkx` reads."""
        from datacollect.problem.graph import graph_of

        return graph_of(self)

    def replace(self, **changes: Any) -> Problem:
        """Return a copy with other values for some attributes; what depends on them is validated.

        Where bandwidths change, rates by connections change in proportion unless they are given,
        too; where links change, they are forgotten.

        Examples
        --------
        >>> problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> problem.replace(backlog_bytes=[20, 0]).total_bytes
        20
        """
        known = {attribute.name for attribute in fields(self)}
        for name in changes.keys() - known:
            raise TypeError(f"a Problem has no attribute {name!r}{nearest_hint(name, known)}")
        if changes.keys() & {"periods_s", "bandwidth_bytes_per_s"} and "daily" not in changes:
            changes["daily"] = None
        changes = with_rates(self, changes)
        other = copied(self, changes)
        settle(other, changes.keys())
        return other

    # Questions ------------------------------------------------------------------------------

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
        """Return the links' indices for arrays of host indices; -1 where there is no link."""
        key = np.asarray(link_from, dtype=np.int64) * self.n_hosts + np.asarray(link_to)
        if self.n_links == 0:
            return np.full(key.shape, -1, dtype=np.int64)
        if key.shape == self._link_key.shape and (key == self._link_key).all():
            return np.arange(self.n_links)  # all links in their order: no need to search
        position = np.minimum(np.searchsorted(self._link_key, key), self.n_links - 1)
        return np.where(self._link_key[position] == key, position, -1)

    def links_out_of(self, hosts: npt.ArrayLike) -> IntArray:
        """Return the indices of all links that leave hosts, given by sorted indices."""
        tails = np.asarray(hosts, dtype=self.link_from.dtype)  # another type would be converted
        first = np.searchsorted(self.link_from, tails, side="left")
        counts = np.searchsorted(self.link_from, tails, side="right") - first
        return ranges(first, counts)

    def until(self, at_s: float) -> Problem:
        """Return the problem with daily periods listed at least until an instant."""
        changes = calendar.listed_until(self, at_s)
        return self.replace(**changes) if changes else self

    def with_links(self, links: IntArray) -> Problem:
        """Return a copy with some links only, free of charge.

        Much faster than `replace`: what belongs to a valid problem is not checked again. Shared
        bottlenecks keep those of their links that are left, and vanish with the last.

        Parameters
        ----------
        links : ndarray of int
            Indices of links, sorted.
        """
        tail, head = self.link_from[links], self.link_to[links]
        bandwidth = self.bandwidth_bytes_per_s[:, links]
        columns = {"link_from": tail, "link_to": head, "bandwidth_bytes_per_s": bandwidth}
        rates = {
            key: None if (column := getattr(self, key)) is None else column[links]
            for key in RATE_COLUMNS
        }
        few = copied(self, columns | rates | {"price_per_gb": None})
        few.__dict__["parcels"] = self.parcels  # asked for in every copy, found once
        if self.shared:
            is_left = np.zeros(self.n_links, dtype=bool)
            is_left[links] = True
            left = [members[is_left[members]] for members in self.shared_links]
            shared = [
                replace(s, links=self._pairs(members))
                for s, members in zip(self.shared, left, strict=True)
                if len(members)
            ]
            object.__setattr__(few, "shared", tuple(shared))
            few.__dict__["shared_links"] = tuple(
                np.searchsorted(links, members) for members in left if len(members)
            )
        return few

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

    def __repr__(self) -> str:
        return (
            f"<Problem: {self.n_hosts} hosts, {self.n_links} links, {len(self.sources)} sources, "
            f"{self.total_bytes} bytes to {self.destination!r}>"
        )
