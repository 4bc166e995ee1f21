"""Ways to build a problem: from objects, matrices, tables, graphs, trees and files.

Each brings what it gets into columns (`datacollect.problem.building`, `datacollect.problem.tables`,
`datacollect.problem.graph`, `datacollect.problem.file`); the problem made of them checks them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

from datacollect.problem.building import contents_of_hosts, contents_of_matrix
from datacollect.problem.contents import ProblemContents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from os import PathLike

    import networkx as nx
    import numpy.typing as npt
    import pandas as pd

    from datacollect.files.quantities import Seconds, WholeBytes
    from datacollect.numbers.arrays import InUnitsLike
    from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck


class ProblemConstructors(ProblemContents):
    """The ``from_...`` functions of a `datacollect.problem.problem.Problem`."""

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
            ``uplink_bytes_per_s``, ``downlink_bytes_per_s``, ``most_connections``, ``latitude``,
            ``longitude``; NaN is the default of `Host`. Cells may be texts with units; of uplinks
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
        backlog: str | Mapping[str, WholeBytes] | None = None,
        capacity: str | None = None,
    ) -> Self:
        """Build a problem from a directed graph.

        Parameters
        ----------
        graph : networkx.DiGraph
            Nodes are hosts' names, with attributes named as in a problem file (``backlog_bytes``,
            ``release_s``, ``storage_bytes``, ``uplink_bytes_per_s``, ``downlink_bytes_per_s``,
            ``most_connections``, ``latitude``, ``longitude``), all optional; uplinks and downlinks
            may be lists with one number per period. Edges are links, with
            ``bandwidth_bytes_per_s`` (a number, or a list with one per period) and optionally
            ``price_per_gb``, ``per_connection_bytes_per_s``, ``capacity_bytes_per_s`` and
            ``competitors``. Attributes of the graph, all optional: ``destination``, ``periods_s``,
            ``shared`` (of `SharedBottleneck`), ``held`` (of `Held`). Other attributes are ignored,
            unless they look like one of these that is missing.
        destination : str, optional
            Overrides the graph's attribute.
        backlog : mapping or str, optional
            Bytes that each host holds, by name, 0 where not given; or the attribute of nodes that
            says so, if not ``backlog_bytes``.
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
        """
        from datacollect.problem.graph import contents_of_graph

        contents = contents_of_graph(graph, destination, backlog=backlog, capacity=capacity)
        return cls(**vars(contents))
