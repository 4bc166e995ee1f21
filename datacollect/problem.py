"""The problem: what each host holds, what bandwidth lies between hosts, and where all must go.

A `Problem` that exists is valid. Hosts and links are numpy arrays inside: a full mesh of 3000
hosts is nine million links, 16 bytes each.
"""

from __future__ import annotations

import copy
import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError, nearest_hint
from datacollect.hosts import Held, HeldColumns, Host, Link, Parcel, SharedBottleneck
from datacollect.validation import (
    HOST_COLUMNS,
    host_arrays,
    index_of_names,
    link_arrays,
    one_per_host,
    period_starts,
    reject_bad_held,
    reject_bad_shared,
    whole_backlogs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    import networkx as nx
    import pandas as pd

__all__ = [
    "FloatArray",
    "Held",
    "Host",
    "IntArray",
    "Link",
    "Parcel",
    "Problem",
    "SharedBottleneck",
]

# What belongs to hosts and says nothing about links.
CHECKED_APART = frozenset((*HOST_COLUMNS, "held"))

IntArray: TypeAlias = npt.NDArray[np.int64]
IndexArray: TypeAlias = npt.NDArray[np.int32]
FloatArray: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
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

    Examples
    --------
    >>> problem = Problem.from_hosts(
    ...     [Host("S", backlog_bytes=1_000_000), Host("D")],
    ...     [Link("S", "D", bandwidth_bytes_per_s=250_000.0)],
    ...     destination="D",
    ... )
    >>> problem.n_hosts, problem.n_links, problem.total_bytes
    (2, 1, 1000000)
    """

    names: tuple[str, ...]
    destination: str
    backlog_bytes: IntArray
    release_s: FloatArray
    storage_bytes: FloatArray
    uplink_bytes_per_s: FloatArray
    downlink_bytes_per_s: FloatArray
    link_from: IndexArray
    link_to: IndexArray
    bandwidth_bytes_per_s: FloatArray
    periods_s: FloatArray = field(default_factory=lambda: np.zeros(1))
    price_per_gb: FloatArray | None = None
    shared: tuple[SharedBottleneck, ...] = ()
    held: tuple[Held, ...] = ()

    def __post_init__(self) -> None:
        # numpy's text becomes plain text: equal problems are equal however they were built.
        names = tuple(str(name) if isinstance(name, str) else name for name in self.names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "shared", tuple(self.shared))
        object.__setattr__(self, "held", tuple(self.held))
        if self.price_per_gb is not None and not np.any(self.price_per_gb):
            object.__setattr__(self, "price_per_gb", None)  # all free: no prices
        for arrays in (
            host_arrays(self.names, self.destination, {k: getattr(self, k) for k in HOST_COLUMNS}),
            {"periods_s": period_starts(self.periods_s)},
            link_arrays(
                self.names,
                len(self.periods_s),
                self.link_from,
                self.link_to,
                self.bandwidth_bytes_per_s,
                self.price_per_gb,
            ),
        ):
            for key, array in arrays.items():
                _freeze(self, key, array)
        links = set()
        if self.shared:
            ends = zip(self.link_from.tolist(), self.link_to.tolist(), strict=True)
            links = {(self.names[a], self.names[b]) for a, b in ends}
        reject_bad_shared(self.shared, self.host_index, links)
        reject_bad_held(self.held, self)

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
        hosts, links = tuple(hosts), tuple(links)
        names = tuple(host.name for host in hosts)
        index = index_of_names(names)
        starts = np.zeros(1) if periods_s is None else np.asarray(periods_s, dtype=float)
        bandwidth = np.empty((len(starts), len(links)))
        for i, link in enumerate(links):
            bandwidth[:, i] = _forecast(link, len(starts))
        prices = np.array([link.price_per_gb for link in links], dtype=float)
        return cls(
            names=names,
            destination=destination,
            backlog_bytes=whole_backlogs(names, [host.backlog_bytes for host in hosts]),
            release_s=np.array([host.release_s for host in hosts], dtype=float),
            storage_bytes=np.array([host.storage_bytes for host in hosts], dtype=float),
            uplink_bytes_per_s=np.array([host.uplink_bytes_per_s for host in hosts], dtype=float),
            downlink_bytes_per_s=np.array(
                [host.downlink_bytes_per_s for host in hosts], dtype=float
            ),
            link_from=_host_indices(index, [link.from_host for link in links], "a link's from"),
            link_to=_host_indices(index, [link.to_host for link in links], "a link's to"),
            bandwidth_bytes_per_s=bandwidth,
            periods_s=starts,
            price_per_gb=prices,
            shared=tuple(shared),
            held=tuple(held),
        )

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

        Examples
        --------
        >>> Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D").n_links
        1
        """
        names = tuple(names)
        n = len(names)
        matrix = np.asarray(bandwidth_bytes_per_s, dtype=float)
        starts = np.zeros(1) if periods_s is None else np.asarray(periods_s, dtype=float)
        if matrix.ndim == 2:
            matrix = matrix[np.newaxis]
        if matrix.shape != (len(starts), n, n):
            raise ProblemError(
                f"bandwidth_bytes_per_s must have shape ({n}, {n}) for {n} names, or "
                f"({len(starts)}, {n}, {n}) with {len(starts)} period(s), got {matrix.shape}"
            )
        used = _off_diagonal_nonzero(matrix)
        number = np.arange(n, dtype=np.int32)
        per_host = {
            "release_s": release_s,
            "storage_bytes": storage_bytes,
            "uplink_bytes_per_s": uplink_bytes_per_s,
            "downlink_bytes_per_s": downlink_bytes_per_s,
        }
        return cls(
            names=names,
            destination=destination,
            backlog_bytes=whole_backlogs(names, backlog_bytes),
            link_from=_read_only(np.repeat(number, used.sum(axis=1))),
            link_to=_read_only(np.broadcast_to(number, (n, n))[used]),
            bandwidth_bytes_per_s=_read_only(matrix[:, used]),
            periods_s=starts,
            shared=tuple(shared),
            held=tuple(held),
            **{key: one_per_host(key, value, n) for key, value in per_host.items()},
        )

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Problem:
        """Build a problem from the tree of a problem file (see the docs, File formats)."""
        from datacollect.files import problem_from_tree

        return problem_from_tree(tree)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Problem:
        """Read a problem file: TOML or JSON, with the CSV that it names; ``-`` is stdin."""
        from datacollect.files import read_problem

        return read_problem(path)

    @classmethod
    def from_dataframe(
        cls,
        links: pd.DataFrame,
        backlog_bytes: Mapping[str, int] | pd.Series,
        destination: str,
        **options: Any,
    ) -> Problem:
        """Build from a table of links; see `datacollect.frames.problem_from_dataframe`."""
        from datacollect.frames import problem_from_dataframe

        return problem_from_dataframe(links, backlog_bytes, destination, **options)

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph[str], destination: str | None = None) -> Problem:
        """Build a problem from a directed graph; see `datacollect.frames.problem_from_networkx`."""
        from datacollect.frames import problem_from_networkx

        return problem_from_networkx(graph, destination)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree that `from_dict` reads."""
        from datacollect.files import problem_to_tree

        return problem_to_tree(self)

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return a directed graph with the attributes that `from_networkx` reads."""
        from datacollect.frames import problem_to_networkx

        return problem_to_networkx(self)

    def replace(self, **changes: Any) -> Problem:
        """Return a copy with other values for some attributes, validated anew."""
        if changes.keys() <= CHECKED_APART:
            return self._with_hosts(changes)
        return replace(self, **changes)

    def _with_hosts(self, changes: Mapping[str, Any]) -> Problem:
        """Return a copy with the same links, which need no second look: there may be millions."""
        other = copy.copy(self)
        for of_hosts in ("total_bytes", "sources", "parcels", "sha256"):
            other.__dict__.pop(of_hosts, None)
        columns = {key: changes.get(key, getattr(self, key)) for key in HOST_COLUMNS}
        for key, array in host_arrays(self.names, self.destination, columns).items():
            _freeze(other, key, array)
        object.__setattr__(other, "held", tuple(changes.get("held", self.held)))
        reject_bad_held(other.held, other)
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
        return sum(parcel.n_bytes for parcel in self.parcels)

    @cached_property
    def destination_index(self) -> int:
        """Index of the destination."""
        return self.names.index(self.destination)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Names of the hosts whose backlog, or part of it, has yet to reach the destination."""
        return tuple(self.names[i] for i in sorted({p.source for p in self.parcels}))

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
        position = np.minimum(np.searchsorted(self._link_key, key), self.n_links - 1)
        return np.where(self._link_key[position] == key, position, -1)

    def links_out_of(self, hosts: npt.ArrayLike) -> IntArray:
        """Return the indices of all links that leave hosts, given by sorted indices."""
        tails = np.asarray(hosts, dtype=self.link_from.dtype)  # another type would be converted
        first = np.searchsorted(self.link_from, tails, side="left")
        counts = np.searchsorted(self.link_from, tails, side="right") - first
        offsets = np.cumsum(counts) - counts
        return np.repeat(first - offsets, counts) + np.arange(int(counts.sum()))

    def with_links(self, links: IntArray) -> Problem:
        """Return a copy with some links only, free of charge, and nothing that they share.

        Much faster than `replace`: what belongs to a valid problem is not checked again.

        Parameters
        ----------
        links : ndarray of int
            Indices of links, sorted.
        """
        few = copy.copy(self)
        for of_links in ("_link_key", "shared_links", "sha256"):
            few.__dict__.pop(of_links, None)
        object.__setattr__(few, "link_from", self.link_from[links])
        object.__setattr__(few, "link_to", self.link_to[links])
        object.__setattr__(few, "bandwidth_bytes_per_s", self.bandwidth_bytes_per_s[:, links])
        object.__setattr__(few, "price_per_gb", None)
        object.__setattr__(few, "shared", ())
        return few

    @cached_property
    def shared_links(self) -> tuple[IntArray, ...]:
        """For each shared bottleneck the indices of its links."""
        return tuple(
            self.link_indices(
                [self.host_index[a] for a, _ in bottleneck.links],
                [self.host_index[b] for _, b in bottleneck.links],
            )
            for bottleneck in self.shared
        )

    @cached_property
    def parcels(self) -> tuple[Parcel, ...]:
        """What lies where and has yet to move: by host, source and offset."""
        held = HeldColumns.of(self.held, self.host_index)
        elsewhere = np.flatnonzero((held.n_bytes > 0) & (held.host != held.source))
        # Each backlog's ranges in their order; the last is empty, at its end.
        owners = np.flatnonzero(self.backlog_bytes)
        host = np.append(held.host[elsewhere], owners)
        source = np.append(held.source[elsewhere], owners)
        start = np.append(held.offset_bytes[elsewhere], self.backlog_bytes[owners])
        size = np.append(held.n_bytes[elsewhere], np.zeros_like(owners))
        order = np.lexsort((start, source))
        host, source, start, size = host[order], source[order], start[order], size[order]
        # What lies between them is still at the source.
        position = np.zeros_like(start)
        position[1:] = np.where(source[1:] == source[:-1], (start + size)[:-1], 0)
        columns = (
            np.append(source, host),
            np.append(source, source),
            np.append(position, start),
            np.append(start - position, size),
            np.append(self.release_s[source], np.zeros(len(source))),
        )
        to_move = np.flatnonzero((columns[3] > 0) & (columns[0] != self.destination_index))
        order = to_move[np.lexsort([column[to_move] for column in columns[2::-1]])]
        return tuple(map(Parcel, *(column[order].tolist() for column in columns)))

    @cached_property
    def sha256(self) -> str:
        """Hash of the problem's content; equal for equal problems however they were built."""
        digest = hashlib.sha256()
        # One type each: the hash reads 5, 5.0 and np.float64(5) as they are written.
        shared = [
            (
                str(s.name),
                float(s.bandwidth_bytes_per_s),
                sorted((str(a), str(b)) for a, b in s.links),
            )
            for s in self.shared
        ]
        digest.update(repr((self.names, self.destination, shared, [])).encode())
        held = HeldColumns.of(self.held, self.host_index)
        order = np.lexsort(held[::-1])
        for array in (
            *(column[order] for column in held),
            self.backlog_bytes,
            self.release_s,
            self.storage_bytes,
            self.uplink_bytes_per_s,
            self.downlink_bytes_per_s,
            self.link_from,
            self.link_to,
            self.bandwidth_bytes_per_s,
            self.periods_s,
        ):
            digest.update(np.ascontiguousarray(array).data)
        if self.price_per_gb is not None:
            digest.update(np.ascontiguousarray(self.price_per_gb).data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        return (
            f"<Problem: {self.n_hosts} hosts, {self.n_links} links, {len(self.sources)} sources, "
            f"{self.total_bytes} bytes to {self.destination!r}>"
        )


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Mark a fresh array so that it need not be copied."""
    array.flags.writeable = False
    return array


def _freeze(problem: Problem, key: str, array: npt.NDArray[Any]) -> None:
    # Whoever passed a writeable array may still write to it.
    frozen = array.copy() if array.flags.writeable else array.view()
    frozen.flags.writeable = False
    object.__setattr__(problem, key, frozen)


def _host_indices(index: Mapping[str, int], names: Sequence[str], what: str) -> IndexArray:
    try:
        return np.array([index[name] for name in names], dtype=np.int32)
    except KeyError as error:
        unknown = error.args[0]
        raise ProblemError(
            f"{what}: unknown host {unknown!r}{nearest_hint(str(unknown), index)}"
        ) from None


def _forecast(link: Link, n_periods: int) -> FloatArray:
    try:
        values = np.asarray(link.bandwidth_bytes_per_s, dtype=float)
    except (TypeError, ValueError):
        raise ProblemError(
            f"link {link.from_host!r} -> {link.to_host!r}: bandwidth_bytes_per_s must be a number "
            f"or one number per period, got {link.bandwidth_bytes_per_s!r}"
        ) from None
    if values.ndim == 0 or values.shape == (n_periods,):
        return np.broadcast_to(values, (n_periods,))
    raise ProblemError(
        f"link {link.from_host!r} -> {link.to_host!r}: bandwidth_bytes_per_s must be a number or "
        f"one number per period ({n_periods}), got {values.size} numbers"
    )


def _off_diagonal_nonzero(matrix: FloatArray) -> npt.NDArray[np.bool_]:
    """Mark the pairs (row, column) that have capacity in some period; NaN counts, to be found."""
    used: npt.NDArray[np.bool_] = np.any(matrix != 0, axis=0)
    np.fill_diagonal(used, val=False)
    return used
