"""The problem: what each host holds, what bandwidth lies between hosts, and where all must go.

A `Problem` that exists is valid. Hosts and links are numpy arrays inside: a full mesh of 3000
hosts is nine million links, 16 bytes each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from datacollect.errors import nearest_hint
from datacollect.numbers.containers import texts_of
from datacollect.problem import calendar
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.constructors import ProblemConstructors
from datacollect.problem.copies import copied, counted, settle, with_rates
from datacollect.problem.extreme_rates import require_possible_rates
from datacollect.problem.host_limits import LIMITS, varies
from datacollect.problem.questions import ProblemQuestions
from datacollect.problem.with_units import INSTANT, in_units, in_whole

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from datacollect.files.quantities import Seconds
    from datacollect.numbers.arrays import IntArray
    from datacollect.problem.contents import ProblemChanges


@dataclass(frozen=True, eq=False)
class Problem(ProblemConstructors, ProblemQuestions):
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
        require_possible_rates(self)

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
