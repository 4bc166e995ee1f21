"""The problem: what each host holds, what bandwidth lies between hosts, and where all must go.

A `Problem` that exists is valid. Hosts and links are numpy arrays inside: a full mesh of 3000
hosts is nine million links, 16 bytes each.
"""

from __future__ import annotations

import copy
import hashlib
import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError, nearest_hint
from datacollect.hosts import (
    Held,
    HeldColumns,
    Host,
    Link,
    Parcel,
    ParcelColumns,
    SharedBottleneck,
)
from datacollect.validation import (
    HOST_COLUMNS,
    host_arrays,
    index_of_names,
    link_arrays,
    one_per_host,
    period_starts,
    reject_bad_held,
    reject_bad_shared,
    require_hosts,
    whole_backlogs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set
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

# What is computed once, when first asked for, and the attributes that it follows from.
_LINKS = frozenset(("names", "link_from", "link_to"))
_HELD = frozenset(("names", "held"))
_PARCELS = _HELD | {"destination", "backlog_bytes", "release_s"}
_REMEMBERED = {
    "destination_index": frozenset(("names", "destination")),
    "host_index": frozenset(("names",)),
    "held_columns": _HELD,
    "parcel_columns": _PARCELS,
    "parcels": _PARCELS,
    "total_bytes": _PARCELS,
    "sources": _PARCELS,
    "_link_key": _LINKS,
    "shared_links": _LINKS | {"shared"},
    "_digest_of_links": _LINKS,
    "_digest_of_bandwidth": _LINKS | {"bandwidth_bytes_per_s", "periods_s"},
    "_digest_of_shared": _LINKS | {"shared"},
}

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
        _settle(self, {attribute.name for attribute in fields(self)})

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
        """Return a copy with other values for some attributes; what depends on them is validated.

        Examples
        --------
        >>> problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> problem.replace(backlog_bytes=[20, 0]).total_bytes
        20
        """
        known = {attribute.name for attribute in fields(self)}
        for name in changes.keys() - known:
            raise TypeError(f"a Problem has no attribute {name!r}{nearest_hint(name, known)}")
        other = self._copy(changes)
        _settle(other, changes.keys())
        return other

    def _copy(self, changes: Mapping[str, Any]) -> Problem:
        """Return a copy with other values, not yet validated; what they touch is forgotten."""
        other = copy.copy(self)
        other.__dict__.pop("sha256", None)
        for name, sources in _REMEMBERED.items():
            if not sources.isdisjoint(changes):
                other.__dict__.pop(name, None)
        for key, value in changes.items():
            object.__setattr__(other, key, value)
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
        offsets = np.cumsum(counts) - counts
        return np.repeat(first - offsets, counts) + np.arange(int(counts.sum()))

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
        few = self._copy(
            {
                "link_from": tail,
                "link_to": head,
                "bandwidth_bytes_per_s": self.bandwidth_bytes_per_s[:, links],
                "price_per_gb": None,
            }
        )
        few.__dict__["parcels"] = self.parcels  # asked for in every copy, found once
        if self.shared:
            is_left = np.zeros(self.n_links, dtype=bool)
            is_left[links] = True
            left = [members[is_left[members]] for members in self.shared_links]
            shared = [
                SharedBottleneck(s.name, s.bandwidth_bytes_per_s, self._pairs(members))
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
        held = self.held_columns
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
        every = ParcelColumns(
            host=np.append(source, host),
            source=np.append(source, source),
            offset_bytes=np.append(position, start),
            n_bytes=np.append(start - position, size),
            release_s=np.append(self.release_s[source], np.zeros(len(source))),
        )
        to_move = every.at((every.n_bytes > 0) & (every.host != self.destination_index))
        return to_move.at(np.lexsort((to_move.offset_bytes, to_move.source, to_move.host)))

    @cached_property
    def sha256(self) -> str:
        """Hash of the problem's content; equal for equal problems however they were built.

        A hash of hashes: what a copy has in common with the original is not hashed again.
        """
        held = self.held_columns
        order = np.lexsort(held[::-1])
        return _sha256(
            repr((self.names, self.destination)).encode(),
            *(column[order] for column in held),
            *(getattr(self, key) for key in HOST_COLUMNS),
            self._digest_of_links,
            self._digest_of_bandwidth,
            b"" if self.price_per_gb is None else self.price_per_gb,
            self._digest_of_shared,
        ).hex()

    @cached_property
    def _digest_of_links(self) -> bytes:
        return _sha256(self.link_from, self.link_to)

    @cached_property
    def _digest_of_bandwidth(self) -> bytes:
        return _sha256(self.periods_s, self.bandwidth_bytes_per_s)

    @cached_property
    def _digest_of_shared(self) -> bytes:
        # One type each: the hash reads 5, 5.0 and np.float64(5) as they are written.
        rates = [(str(s.name), float(s.bandwidth_bytes_per_s)) for s in self.shared]
        return _sha256(repr(rates).encode(), *(np.sort(members) for members in self.shared_links))

    def __repr__(self) -> str:
        return (
            f"<Problem: {self.n_hosts} hosts, {self.n_links} links, {len(self.sources)} sources, "
            f"{self.total_bytes} bytes to {self.destination!r}>"
        )


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Mark a fresh array so that it need not be copied."""
    array.flags.writeable = False
    return array


def _settle(problem: Problem, changed: Set[str]) -> None:
    """Check what has changed, and what refers to it; freeze arrays.

    What has not changed needs no second look: there may be millions of links.
    """
    if "names" in changed:
        # numpy's text becomes plain text: equal problems are equal however they were built.
        names = tuple(str(name) if isinstance(name, str) else name for name in problem.names)
        object.__setattr__(problem, "names", names)
    for key in changed & {"shared", "held"}:
        object.__setattr__(problem, key, tuple(getattr(problem, key)))
    if "price_per_gb" in changed and not np.any(problem.price_per_gb):
        object.__setattr__(problem, "price_per_gb", None)  # all free: no prices
    if changed & {"names", "destination"}:
        require_hosts(problem.names, problem.destination)
    of_hosts = [key for key in HOST_COLUMNS if key in changed or "names" in changed]
    _freeze(problem, host_arrays(problem.names, {key: getattr(problem, key) for key in of_hosts}))
    if "periods_s" in changed:
        _freeze(problem, {"periods_s": period_starts(problem.periods_s)})
    if changed & (_LINKS | {"bandwidth_bytes_per_s", "periods_s", "price_per_gb"}):
        _freeze(
            problem,
            link_arrays(
                problem.names,
                len(problem.periods_s),
                problem.link_from,
                problem.link_to,
                problem.bandwidth_bytes_per_s,
                problem.price_per_gb,
            ),
        )
    if changed & (_LINKS | {"shared"}):
        reject_bad_shared(problem.shared, problem)
    if changed & {"names", "destination", "backlog_bytes", "storage_bytes", "held"}:
        reject_bad_held(problem.held, problem)


def _freeze(problem: Problem, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    for key, array in arrays.items():
        # Whoever passed a writeable array may still write to it.
        frozen = array.copy() if array.flags.writeable else array.view()
        frozen.flags.writeable = False
        object.__setattr__(problem, key, frozen)


def _sha256(*parts: bytes | npt.NDArray[Any]) -> bytes:
    """Hash parts, each with its length: no two sequences of parts look alike."""
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else np.ascontiguousarray(part).data
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(content)
    return digest.digest()


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
