"""The problem: what each host holds, what bandwidth lies between hosts, and where all must go.

A `Problem` that exists is valid. Hosts and links are numpy arrays inside: a full mesh of 3000
hosts is nine million links, 16 bytes each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datacollect.errors import naming, nearest_hint
from datacollect.problem import calendar
from datacollect.problem.building import contents_of_hosts, contents_of_matrix
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.copies import copied, settle, with_rates
from datacollect.problem.questions import ProblemQuestions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    import networkx as nx
    import pandas as pd

    from datacollect.arrays import IntArray
    from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck


@dataclass(frozen=True, eq=False)
class Problem(ProblemQuestions):
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
        """Build a problem from the tree of a problem file.

        Files that it names are relative to `base_dir`, the working directory if absent.
        """
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
        """Build a problem from a table of links, long or square.

        Parameters
        ----------
        links : DataFrame
            Long: a row per link, with columns ``from``, ``to`` and exactly one of
            ``bandwidth_bytes_per_s``, ``bandwidth_bit_per_s``, ``bandwidth_mbit_per_s``; optionally
            ``price_per_gb`` and, for forecasts, ``period`` (counted from 0; then a row per link and
            period). A pair without a row is no link. What `estimate` returns fits as it is.
            Square: index and columns are hosts' names, row = from, column = to, bytes per second;
            NaN or 0 is no link, the diagonal is ignored.
        backlog_bytes : mapping or Series
            Bytes that each host holds, by name; 0 where not given.
        destination : str
            The host that collects.
        hosts : DataFrame, optional
            Indexed by host's name, with any of the columns ``release_s``, ``storage_bytes``,
            ``uplink_bytes_per_s``, ``downlink_bytes_per_s``; NaN is the default of `Host`. It lists
            all hosts, in their order. Without it hosts are all names in links and backlogs: in the
            order of a square table, sorted otherwise.
        periods_s : array_like, shape (n_periods,), optional
            Starts of the forecast's periods.
        shared, held
            As in `Problem.from_hosts`.

        Raises
        ------
        ProblemError
            A column is unknown, missing or of the wrong kind, or names do not fit together.

        Examples
        --------
        >>> import pandas as pd
        >>> links = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_mbit_per_s": [2.5]})
        >>> Problem.from_dataframe(links, {"S": 10**6}, "D").total_bytes
        1000000
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
    def from_networkx(cls, graph: nx.DiGraph[str], destination: str | None = None) -> Problem:
        """Build a problem from a directed graph.

        Parameters
        ----------
        graph : networkx.DiGraph
            Nodes are hosts' names, with attributes named as in a problem file (``backlog_bytes``,
            ``release_s``, ``storage_bytes``, ``uplink_bytes_per_s``, ``downlink_bytes_per_s``),
            all optional. Edges are links, with ``bandwidth_bytes_per_s`` (a number, or a list with
            one per period) and optionally ``price_per_gb``. Attributes of the graph, all optional:
            ``destination``, ``periods_s``, ``shared`` (of `SharedBottleneck`), ``held`` (of
            `Held`).
        destination : str, optional
            Overrides the graph's attribute.

        Raises
        ------
        ProblemError
            Not a simple directed graph, an edge without bandwidth, or a value of the wrong kind.

        Examples
        --------
        >>> import networkx as nx
        >>> graph = nx.DiGraph(destination="D")
        >>> graph.add_node("S", backlog_bytes=10)
        >>> graph.add_edge("S", "D", bandwidth_bytes_per_s=5.0)
        >>> Problem.from_networkx(graph).total_bytes
        10
        """
        from datacollect.problem.graph import contents_of_graph

        return cls(**vars(contents_of_graph(graph, destination)))

    def to_dict(self) -> dict[str, Any]:
        """Return the tree of a problem file, which `from_dict` reads.

        Keys are those of the file; limits that are infinite, and what is 0, are left out.

        Examples
        --------
        >>> problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> problem.to_dict()["hosts"]["S"]
        {'backlog_bytes': 10}
        """
        from datacollect.problem.file import tree_of

        return tree_of(self)

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return a directed graph with the attributes that `from_networkx` reads.

        Unlimited storage, uplinks and downlinks are left out. A million links take some seconds.

        Examples
        --------
        >>> problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> problem.to_networkx().edges["S", "D"]
        {'bandwidth_bytes_per_s': 5.0}
        """
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
        from datacollect.notebook import html_of_facts
        from datacollect.units import format_bytes

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
        return (
            f"<Problem: {self.n_hosts} hosts, {self.n_links} links, {len(self.sources)} sources, "
            f"{self.total_bytes} bytes to {self.destination!r}>"
        )
