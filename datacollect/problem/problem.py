"""The problem: what each host holds, what bandwidth lies between hosts, and where all must go.

A `Problem` that exists is valid. Hosts and links are numpy arrays inside: a full mesh of 3000
hosts is nine million links, 16 bytes each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from datacollect.errors import nearest_hint
from datacollect.files.with_units import INSTANT, in_units, in_whole
from datacollect.numbers.arrays import ranges
from datacollect.numbers.containers import texts_of
from datacollect.problem import calendar, digest
from datacollect.problem.building import contents_of_hosts, contents_of_matrix
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.contents import ProblemContents
from datacollect.problem.copies import copied, counted, settle, with_rates
from datacollect.problem.extreme_rates import require_possible_rates
from datacollect.problem.host_limits import LIMITS, varies
from datacollect.problem.hosts import HeldColumns, Parcel, ParcelColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from os import PathLike

    import networkx as nx
    import numpy.typing as npt
    import pandas as pd

    from datacollect.files.quantities import Seconds, WholeBytes
    from datacollect.numbers.arrays import IntArray, InUnitsLike
    from datacollect.problem.contents import ProblemChanges
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
    release_s, storage_bytes : ndarray of float, shape (n_hosts,)
        As in `Host`; infinite means unlimited.
    uplink_bytes_per_s, downlink_bytes_per_s : ndarray of float, shape (n_periods, n_hosts)
        One row per period, as bandwidths have; in all periods finite, or in all infinite, which
        means unlimited.
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
    measured_s : float or None
        When the oldest of the bandwidths was measured, in seconds since 1970; None where that is
        not known.
    bandwidth_intervals : mapping of (str, str) to mapping, or None
        By (from, to) what measurements say of links' bandwidths, as problem files have it. Plans do
        not depend on it; it vanishes with the bandwidths.
    limit_causes : mapping of (str, str) to str, or None
        By limit and host, which part of a machine it is, as the profile of the machine says:
        ``{("downlink_bytes_per_s", "D"): "processor"}``. Plans do not depend on it; it vanishes
        with the limits.
    shown_uplink_bytes_per_s, shown_downlink_bytes_per_s : ndarray, shape (n_hosts,), or None
        As in `Host`, 0 where nothing was seen, infinite where it is known that there is no limit;
        None where nothing is known of any host. Plans do not depend on them.
    most_connections : ndarray of float, shape (n_hosts,), or None
        As in `Host`; None where no host limits them.
    produces_bytes_per_s : ndarray of float, shape (n_hosts,), or None
        As in `Host`, infinite where all is there at the release; None where it is everywhere.
    made_bytes : ndarray of int64, shape (n_hosts,), or None
        As in `Host`; None where no host produces.
    latitude, longitude : ndarray of float, shape (n_hosts,), or None
        Degrees, NaN where not known; None where no host's place is. Plans do not depend on them.
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
        require_possible_rates(self)

    # Made from: each brings what it gets into columns, and `__post_init__` checks them ---------

    @classmethod
    def from_hosts(
        cls,
        hosts: Iterable[Host],
        links: Iterable[Link],
        destination: str,
        *,
        shared: Iterable[SharedBottleneck] = (),
        held: Iterable[Held] = (),
        periods_s: Sequence[Seconds] | None = None,
        start: str | datetime | None = None,
        timezone: str | None = None,
    ) -> Self:
        """Build a problem from Python objects.

        Parameters
        ----------
        hosts : iterable of Host
            All that take part, in the order of the problem's hosts; names are unique.
        links : iterable of Link
            Ordered pairs of these hosts, no pair twice.
        destination : str
            Name of the host that collects.
        shared : iterable of SharedBottleneck, optional
            Capacities that several of the links use together.
        held : iterable of Held, optional
            What lies elsewhere already, of sources' backlogs.
        periods_s : sequence of float or str, optional
            Starts of the forecast's periods in seconds, or with units, the first 0; links then
            have a bandwidth for each, or one for all.
        start, timezone : str, optional
            Clock time of 0 s, and the IANA name of its zone, as in files: what windows (``open``)
            need.

        Returns
        -------
        Problem

        Raises
        ------
        ProblemError
            A rule is broken; the message names host or link, rule, value and remedy.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_hosts(
        ...     [dc.Host("S", backlog_bytes=10), dc.Host("D")],
        ...     [dc.Link("S", "D", bandwidth_bytes_per_s=5.0)],
        ...     destination="D",
        ... )
        >>> dc.direct(problem).makespan_s
        2.0
        """
        contents = contents_of_hosts(
            hosts,
            links,
            destination,
            shared=shared,
            held=held,
            periods_s=periods_s,
            start=start,
            timezone=timezone,
        )
        return cls(**vars(contents))

    @classmethod
    def from_matrix(
        cls,
        names: Sequence[str],
        bandwidth_bytes_per_s: InUnitsLike,
        backlog_bytes: InUnitsLike,
        destination: str,
        *,
        release_s: InUnitsLike = 0.0,
        storage_bytes: InUnitsLike = math.inf,
        uplink_bytes_per_s: InUnitsLike = math.inf,
        downlink_bytes_per_s: InUnitsLike = math.inf,
        periods_s: InUnitsLike | None = None,
        shared: Iterable[SharedBottleneck] = (),
        held: Iterable[Held] = (),
        most_connections: npt.ArrayLike | None = None,
        produces_bytes_per_s: InUnitsLike | None = None,
        made_bytes: InUnitsLike | None = None,
        per_connection_bytes_per_s: InUnitsLike | None = None,
        capacity_bytes_per_s: InUnitsLike | None = None,
        competitors: npt.ArrayLike | None = None,
    ) -> Self:
        """Build a problem from a bandwidth matrix.

        Parameters
        ----------
        names : sequence of str, length n
            Hosts' names, in the order of rows and columns.
        bandwidth_bytes_per_s : array_like, shape (n, n) or (n_periods, n, n)
            Row = from, column = to. The diagonal is ignored; a pair that is 0 in every period
            is no link. Here and below a number may be a text with its unit: ``"10 Mbit/s"``.
        backlog_bytes : array_like of int, shape (n,)
            Bytes that each host holds.
        destination : str
            The host that collects.
        release_s, storage_bytes, uplink_bytes_per_s, downlink_bytes_per_s : array_like
            Seconds, bytes, bytes per second: a number for all hosts or shape (n,), of the latter
            two also (n_periods, n); infinite is unlimited.
        periods_s : array_like, shape (n_periods,), optional
            Starts of the forecast's periods in seconds, the first 0.
        shared : iterable of SharedBottleneck, optional
            Capacities that several of the links use together.
        held : iterable of Held, optional
            What lies elsewhere already, of sources' backlogs.
        most_connections : array_like, optional
            A number for all hosts or shape (n,).
        produces_bytes_per_s, made_bytes : array_like, optional
            Of sources that make their backlogs at a rate, as in `Host`: a number for all hosts or
            shape (n,); infinite where all is there at the release.
        per_connection_bytes_per_s, capacity_bytes_per_s, competitors : array_like, optional
            How rates grow with connections, as in `Link`: a number for all links or shape (n, n),
            NaN where a link has none.

        Returns
        -------
        Problem

        Raises
        ------
        ProblemError
            A shape does not fit, or a rule is broken; the message names host or link, rule, value
            and remedy.

        Examples
        --------
        >>> import datacollect as dc
        >>> dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D").n_links
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
            production={
                "produces_bytes_per_s": produces_bytes_per_s,
                "made_bytes": made_bytes,
            },
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
    ) -> Self:
        """Build a problem from the tree of a problem file.

        Parameters
        ----------
        tree : mapping
            What TOML or JSON say: keys and units are those of problem files.
        base_dir : path-like, optional
            What files that it names are relative to; by default the working directory.

        Returns
        -------
        Problem

        Raises
        ------
        ProblemError
            The message names place, rule, value and remedy.

        Examples
        --------
        >>> tree = {
        ...     "destination": "D",
        ...     "hosts": {"S": {"backlog_bytes": "6 TB"}, "D": {}},
        ...     "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": "10 Gbit/s"}],
        ... }
        >>> import datacollect as dc
        >>> dc.direct(dc.Problem.from_dict(tree)).makespan_s
        4800.0
        """
        from datacollect.problem.file import contents_of

        return cls(**vars(contents_of(tree, base_dir)))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        r"""Read a problem file: TOML or JSON, with the CSV that it names.

        Parameters
        ----------
        path : path-like
            TOML or JSON, whichever the text is; ``-`` is standard input. What
            ``bandwidth_csv`` names is relative to the file.

        Returns
        -------
        Problem

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.

        Examples
        --------
        >>> import datacollect as dc
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "collect.toml")
        ...     _ = path.write_text('destination = "D"\n[hosts.D]\n')
        ...     dc.Problem.from_file(path)
        <Problem: 1 host, 0 links, 0 sources, 0 bytes to 'D'>
        """
        from datacollect.problem.fields import PROBLEM

        return PROBLEM.from_file(path, cls.from_dict)

    @classmethod
    def from_dataframe(
        cls,
        links: pd.DataFrame,
        backlog_bytes: Mapping[str, WholeBytes] | pd.Series[Any],
        destination: str,
        *,
        hosts: pd.DataFrame | None = None,
        periods_s: InUnitsLike | None = None,
        shared: Iterable[SharedBottleneck] = (),
        held: Iterable[Held] = (),
    ) -> Self:
        """Build a problem from a table of links, long or square.

        Parameters
        ----------
        links : DataFrame
            Long: a row per link, with columns ``from``, ``to`` and exactly one of
            ``bandwidth_bytes_per_s``, ``bandwidth_bit_per_s``, ``bandwidth_mbit_per_s``,
            ``bandwidth_gbit_per_s``; optionally ``price_per_gb``, ``per_connection_bytes_per_s``,
            ``capacity_bytes_per_s``, ``competitors`` and ``newest_s``, when it was measured, in
            seconds since 1970 (NaN where not known), and, for forecasts, ``period`` (counted from
            0; then a row per link and period). A pair without a row is no link. What `estimate`
            returns fits as it is. Square: index and columns are hosts' names,
            row = from, column = to, bytes per second; NaN or 0 is no link, the diagonal is ignored.
            Where columns are named as keys of files, and in square tables, cells may be texts with
            units: ``"10 Mbit/s"``.
        backlog_bytes : mapping of str to int or str, or Series
            Bytes that each host holds, by name, numbers or texts as ``"1 TB"``; 0 where not given.
        destination : str
            The host that collects.
        hosts : DataFrame, optional
            Indexed by host's name, with any of the columns ``release_s``, ``storage_bytes``,
            ``uplink_bytes_per_s``, ``downlink_bytes_per_s``, ``shown_uplink_bytes_per_s``,
            ``shown_downlink_bytes_per_s``, ``most_connections``, ``produces_bytes_per_s``,
            ``made_bytes``, ``latitude``, ``longitude``; NaN
            is the default of `Host`. Cells may be texts with units; of uplinks
            and downlinks lists with one number per period. It lists all hosts, in their order.
            Without it hosts are all names in links and backlogs: in the order of a square table,
            sorted otherwise.
        periods_s : array_like, shape (n_periods,), optional
            Starts of the forecast's periods in seconds, or texts with units, the first 0.
        shared : iterable of SharedBottleneck, optional
            Capacities that several of the links use together.
        held : iterable of Held, optional
            What lies elsewhere already, of sources' backlogs.

        Returns
        -------
        Problem

        Raises
        ------
        ProblemError
            A column is unknown, missing or of the wrong kind, or names do not fit together.

        Examples
        --------
        >>> import datacollect as dc
        >>> import pandas as pd
        >>> links = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_mbit_per_s": [2.5]})
        >>> dc.Problem.from_dataframe(links, {"S": 10**6}, "D").total_bytes
        1000000
        >>> links = pd.DataFrame(
        ...     {"from": ["S"], "to": ["D"], "bandwidth_bytes_per_s": ["10 Mbit/s"]}
        ... )
        >>> dc.Problem.from_dataframe(links, {"S": "1 GB"}, "D").bandwidth_bytes_per_s.tolist()
        [[1250000.0]]
        """
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
    def from_networkx(
        cls,
        graph: nx.DiGraph[str],
        destination: str | None = None,
        *,
        backlog: WholeBytes | float | Mapping[str, WholeBytes] | None = None,
        capacity: str | None = None,
    ) -> Self:
        """Build a problem from a directed graph.

        Parameters
        ----------
        graph : networkx.DiGraph
            Nodes are hosts' names, with attributes named as in a problem file (``backlog_bytes``,
            ``release_s``, ``storage_bytes``, ``uplink_bytes_per_s``, ``downlink_bytes_per_s``,
            ``shown_uplink_bytes_per_s``, ``shown_downlink_bytes_per_s``, ``most_connections``,
            ``produces_bytes_per_s``, ``made_bytes``,
            ``latitude``, ``longitude``), all optional; uplinks and downlinks may be lists
            with one number per period. Edges are links, with ``bandwidth_bytes_per_s`` (a number,
            or a list with one per period) and optionally ``price_per_gb``,
            ``per_connection_bytes_per_s``, ``capacity_bytes_per_s`` and ``competitors``.
            Attributes of the graph, all optional: ``destination``, ``periods_s``, ``shared`` (of
            `SharedBottleneck`), ``held`` (of `Held`). Other attributes are ignored, unless they
            look like one of these that is missing.
        destination : str, optional
            Overrides the graph's attribute.
        backlog : mapping, str or number, optional
            Bytes that each host holds, by name, 0 where not given; or the attribute of nodes that
            says so, if not ``backlog_bytes``; or one amount, such as ``6e9`` or ``"6 GB"``, that
            every host but the destination holds.
        capacity : str, optional
            The attribute of edges that says their bandwidth, if not ``bandwidth_bytes_per_s``; in
            bytes per second, or texts with units.

        Returns
        -------
        Problem

        Raises
        ------
        ProblemError
            Not a simple directed graph, an edge without bandwidth, or a value of the wrong kind.

        Examples
        --------
        >>> import datacollect as dc
        >>> import networkx as nx
        >>> graph = nx.DiGraph(destination="D")
        >>> graph.add_node("S", backlog_bytes=10)
        >>> graph.add_edge("S", "D", bandwidth_bytes_per_s=5.0)
        >>> dc.Problem.from_networkx(graph).total_bytes
        10
        >>> graph = nx.DiGraph()
        >>> graph.add_edge("S", "D", capacity="10 Mbit/s")
        >>> dc.Problem.from_networkx(
        ...     graph, "D", backlog={"S": "1 TB"}, capacity="capacity"
        ... ).to_dict()["links"]
        [{'from': 'S', 'to': 'D', 'bandwidth_bytes_per_s': 1250000.0}]
        >>> dc.Problem.from_networkx(
        ...     graph, "D", backlog=6e9, capacity="capacity"
        ... ).backlog_bytes.tolist()
        [6000000000, 0]
        """
        from datacollect.problem.graph import contents_of_graph

        contents = contents_of_graph(graph, destination, backlog=backlog, capacity=capacity)
        return cls(**vars(contents))

    # What it says ----------------------------------------------------------------------------

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
    def makers(self) -> IntArray:
        """The hosts that make their backlogs at a rate, as indices.

        Examples
        --------
        >>> problem = Problem.from_matrix(
        ...     ["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D", produces_bytes_per_s=2.0
        ... )
        >>> problem.makers.tolist()
        [0]
        """
        if self.produces_bytes_per_s is None:
            return np.zeros(0, dtype=np.int64)
        makes = np.isfinite(self.produces_bytes_per_s)
        makes[self.destination_index] = False
        return np.flatnonzero(makes)

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
        """Return what lies where and has yet to move: by host, source and offset."""
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

    # Other forms, and changes -----------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the tree of a problem file, which `from_dict` reads.

        Keys are those of the file; limits that are infinite, and what is 0, are left out.

        Returns
        -------
        dict
            What TOML or JSON can say.

        Examples
        --------
        >>> problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> problem.to_dict()["hosts"]["S"]
        {'backlog_bytes': 10}
        """
        from datacollect.problem.file import tree_of

        return tree_of(self)

    def to_dataframe(self) -> pd.DataFrame:
        """Return the links as a long table that `from_dataframe` reads.

        Returns
        -------
        DataFrame
            Columns ``from``, ``to``, ``period`` (where there are several),
            ``bandwidth_bytes_per_s`` and, where some link has them, ``price_per_gb`` and how rates
            grow with connections.

        Examples
        --------
        >>> problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> problem.to_dataframe().to_dict("records")
        [{'from': 'S', 'to': 'D', 'bandwidth_bytes_per_s': 5.0}]
        """
        from datacollect.problem.tables import links_frame

        return links_frame(self)

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return a directed graph with the attributes that `from_networkx` reads.

        Unlimited storage, uplinks and downlinks are left out.

        Returns
        -------
        networkx.DiGraph
            Nodes are hosts' names; numbers are in bytes, seconds and bytes per second.

        Examples
        --------
        >>> problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> problem.to_networkx().edges["S", "D"]
        {'bandwidth_bytes_per_s': 5.0}
        """
        from datacollect.problem.graph import graph_of

        return graph_of(self)

    def replace(self, **changes: Unpack[ProblemChanges]) -> Problem:
        """Return a copy with other values for some attributes; what depends on them is validated.

        Where bandwidths change, rates by connections change in proportion unless they are given,
        too; where links change, they are forgotten.

        Parameters
        ----------
        **changes
            New values by the attributes' names, with the attributes' units; or texts with
            their own, as in files. Labels of arrays are names of hosts, or (from, to) of links.

        Returns
        -------
        Problem

        Raises
        ------
        ProblemError
            A value breaks a rule.
        TypeError
            There is no such attribute; the message suggests the nearest.

        Examples
        --------
        >>> problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> problem.replace(backlog_bytes=[20, 0]).total_bytes
        20
        >>> problem.replace(backlog_bytes=["6 TB", 0], storage_bytes="1 GiB").total_bytes
        6000000000000
        """
        known = {attribute.name for attribute in fields(self)}
        for name in changes.keys() - known:
            raise TypeError(f"a Problem has no attribute {name!r}{nearest_hint(name, known)}")
        if "names" in changes:
            changes["names"] = texts_of(changes["names"], "names")
        values = counted(self, changes)
        given = {"periods_s", "bandwidth_bytes_per_s"}
        # A limit that is constant is so on all days that are yet to be listed.
        given |= {key for key in LIMITS if key in values and varies(values[key])}
        if values.keys() & given and "daily" not in values:
            values["daily"] = None
        values = with_rates(self, values)
        other = copied(self, values)
        settle(other, values.keys())
        return other

    def until(self, at_s: Seconds) -> Problem:
        """Return the problem with daily periods listed at least until an instant.

        Where bandwidths recur every day (``daily_periods`` in a file), or links have windows
        (``open``), a problem lists the periods of some days. After the last nothing is open where
        there are windows; plans that take longer list more by themselves. Where there are only
        daily periods the last one lasts for ever: list as many days as plans take.

        Parameters
        ----------
        at_s : float or str
            Seconds from the problem's start, or a text with its unit.

        Returns
        -------
        Problem
            The same object where enough is listed, or nothing recurs.

        Examples
        --------
        >>> problem = Problem.from_dict(
        ...     {
        ...         "destination": "D",
        ...         "start": "2026-11-22T20:00+01:00",
        ...         "daily_periods": ["08:00", "18:00"],
        ...         "hosts": {"S": {"backlog_bytes": 10}, "D": {}},
        ...         "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": [1.0, 2.0]}],
        ...     }
        ... )
        >>> problem.n_periods, problem.until(10 * 86_400.0).n_periods
        (5, 33)
        >>> problem.until("10 days").n_periods
        33
        """
        until_s = in_units(at_s, INSTANT, "at_s", (), self.clock)
        changes = calendar.listed_until(self, until_s)
        return self.replace(**changes) if changes else self

    def with_links(self, links: IntArray) -> Problem:
        """Return a copy with some links only, free of charge.

        Much faster than `replace`: what belongs to a valid problem is not checked again. Shared
        bottlenecks keep those of their links that are left, and vanish with the last.

        Parameters
        ----------
        links : ndarray of int
            Indices of links, sorted.

        Returns
        -------
        Problem

        Examples
        --------
        >>> problem = Problem.from_matrix(
        ...     ["S", "K", "D"], [[0, 5.0, 6.0], [0, 0, 7.0], [0, 0, 0]], [10, 0, 0], "D"
        ... )
        >>> problem.with_links(np.array([1])).bandwidth_bytes_per_s.tolist()
        [[6.0]]
        """
        links = in_whole(links, "links")
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

    def __eq__(self, other: object) -> bool:
        """Tell whether another problem says the same, however it was built.

        >>> ask = lambda: Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> ask() == ask(), ask() == ask().replace(backlog_bytes=[20, 0]), len({ask(), ask()})
        (True, False, 1)
        """
        return self.sha256 == other.sha256 if isinstance(other, Problem) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    def _repr_html_(self) -> str:
        """Show the problem in a notebook."""
        from datacollect.files.notebook import html_of_facts
        from datacollect.files.units import format_bytes

        shown = ", ".join(self.sources[:5]) + (", …" if len(self.sources) > 5 else "")
        return html_of_facts(
            "Problem",
            [
                ("destination", self.destination),
                ("to be collected", f"{format_bytes(self.total_bytes)}"),
                ("sources", f"{len(self.sources)}: {shown}" if self.sources else "none"),
                ("hosts", str(self.n_hosts)),
                ("links", str(self.n_links)),
                ("periods", str(self.n_periods)),
            ],
        )

    def __repr__(self) -> str:
        from datacollect.files.units import counted

        n_sources, n_bytes = len(self.sources), self.total_bytes
        return (
            f"<Problem: {counted(self.n_hosts, 'host')}, {counted(self.n_links, 'link')}, "
            f"{counted(n_sources, 'source')}, {counted(n_bytes, 'byte')} to {self.destination!r}>"
        )
