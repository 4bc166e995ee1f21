"""Finds links that share a wire, from tests of two links, together and alone.

A wire's links are found by comparing each with one link of every wire so far: links that share with
the same one share with each other.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, product
from statistics import median
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.measurement.routes import read_route
from datacollect.measurement.sample_store import DONE, settings_of
from datacollect.measuring.plan.routers import wires_of_routes
from datacollect.measuring.probes.shared_wires import decide_shared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    import pandas as pd

    from datacollect.measurement.routes import Hop
    from datacollect.measuring.plan.rounds import Pair
    from datacollect.measuring.probes.shared_wires import SharedWire

SHARED = "shared"
# Of each comparison.
RUNS = 3


@dataclass(frozen=True)
class FoundWire:
    """A wire that several links share.

    Attributes
    ----------
    links : tuple of (str, str)
    bandwidth_bytes_per_s : float
        What two of them got together.
    held, n_tests : int
        In so many of the tests of two of them less came than of each alone.
    """

    links: tuple[Pair, ...]
    bandwidth_bytes_per_s: float
    held: int
    n_tests: int

    def row(self, name: str) -> dict[str, Any]:
        """Return the row of ``[[shared]]`` of a problem file."""
        return {
            "name": name,
            "bandwidth_bytes_per_s": self.bandwidth_bytes_per_s,
            "links": [[*link] for link in self.links],
        }


@dataclass(frozen=True)
class Compared:
    """Findings of a table's tests on pairs of links.

    Attributes
    ----------
    decided : mapping from sets of two pairs to SharedWire
        By the newest `RUNS` complete tests; where there are fewer, nothing is decided.
    """

    decided: Mapping[frozenset[Pair], SharedWire]

    @property
    def groups(self) -> list[set[Pair]]:
        """All links that were compared, by wire."""
        return grouped(self._links, self._shared)

    def wires(self) -> list[FoundWire]:
        """Return the wires of several links."""
        found = []
        for links in self.groups:
            tests = [self.decided[both] for both in self._shared if both <= links]
            if tests:
                bandwidth = median(test.bandwidth_bytes_per_s for test in tests)
                held, n_tests = (
                    sum(getattr(test, of) for test in tests) for of in ("held", "n_tests")
                )
                found.append(FoundWire(tuple(sorted(links)), bandwidth, held, n_tests))
        return sorted(found, key=lambda wire: wire.links)

    def possible_wires(self, candidates: Iterable[Set[Pair]]) -> list[frozenset[Pair]]:
        """Return of sets that may share a wire those parts of which no test says otherwise."""
        found = []
        for candidate in candidates:
            groups = self._within(candidate)
            untold = [
                frozenset(both)
                for both in combinations(range(len(groups)), 2)
                if not self._is_told(*(groups[i] for i in both))
            ]
            for numbers in grouped(range(len(groups)), untold):
                links = frozenset().union(*(groups[i] for i in numbers))
                if len(links) > 1:
                    found.append(links)
        return found

    def next_comparison(
        self, candidates: Iterable[Set[Pair]], tried: Set[frozenset[Pair]] = frozenset()
    ) -> tuple[Pair, Pair] | None:
        """Return two links without a host in common that may share a wire, None where all is told.

        Each is compared with one link of every wire so far; a comparison that was tried without
        result tells nothing, and others are compared instead.
        """
        for links in self.possible_wires(candidates):
            for one, other in combinations(self._within(links), 2):
                if not self._is_told(one, other):
                    for first, second in product(sorted(one), sorted(other)):
                        if not {*first} & {*second} and frozenset((first, second)) not in tried:
                            return first, second
        return None

    def _within(self, links: Set[Pair]) -> list[set[Pair]]:
        """Return some links by wire, as far as it is known."""
        groups = (group & links for group in grouped([*links, *self._links], self._shared))
        return sorted(filter(None, groups), key=sorted)

    def _is_told(self, one: Set[Pair], other: Set[Pair]) -> bool:
        """Return whether a test tells two groups of links apart: what shares is one group."""
        return any(frozenset(both) in self.decided for both in product(one, other))

    @property
    def _links(self) -> set[Pair]:
        return {link for both in self.decided for link in both}

    @property
    def _shared(self) -> list[frozenset[Pair]]:
        return [both for both, wire in self.decided.items() if wire.is_shared]


def compared(table: pd.DataFrame) -> Compared:
    """Return what a table of measurements says of links that were tested together and alone.

    Examples
    --------
    >>> import json
    >>> import pandas as pd
    >>> links, rows = [("a", "b"), ("c", "d")], []
    >>> for run in range(3):
    ...     for link in links:
    ...         for at_once, rate in ((False, 4.0), (True, 2.0)):
    ...             said = json.dumps({"links": links, "run": str(run), "together": at_once})
    ...             rows += [("shared", "done", link[0], link[1], float(run), said, rate)]
    >>> columns = ["tool", "ended", "from", "to", "time_s", "settings", "bandwidth_bytes_per_s"]
    >>> compared(pd.DataFrame(rows, columns=columns)).wires()
    [FoundWire(links=(('a', 'b'), ('c', 'd')), bandwidth_bytes_per_s=4.0, held=3, n_tests=3)]
    """
    is_one = (table["tool"] == SHARED) & (table["ended"] == DONE)
    rows = table[is_one & (table["bandwidth_bytes_per_s"] > 0)].sort_values("time_s", kind="stable")
    runs: dict[tuple[frozenset[Pair], str], dict[tuple[Pair, bool], float]] = {}
    for row in rows.to_dict("records"):
        settings, link = settings_of(row["settings"]), (row["from"], row["to"])
        both = _links_of(settings)
        if link in both and isinstance(settings.get("run"), str):
            run = runs.setdefault((both, settings["run"]), {})
            run[link, settings.get("together") is True] = row["bandwidth_bytes_per_s"]
    tests: dict[frozenset[Pair], list[dict[tuple[Pair, bool], float]]] = {}
    for (both, _), run in runs.items():
        if len(run) == 4:
            tests.setdefault(both, []).append(run)
    return Compared(
        {both: _decided(both, of[-RUNS:]) for both, of in tests.items() if len(of) >= RUNS}
    )


def routers_in_common(table: pd.DataFrame) -> list[frozenset[Pair]]:
    """Return the sets of pairs whose newest routes have a router in common."""
    return wires_of_routes(newest_routes(table))


def newest_routes(table: pd.DataFrame) -> dict[Pair, list[Hop]]:
    """Return the newest route of each pair, where one is known."""
    traces = table[table["routers"].notna()].sort_values("time_s", kind="stable")
    routes = {}
    for row in traces.to_dict("records"):
        with suppress(ProblemError):
            routes[row["from"], row["to"]] = read_route(row["routers"])
    return routes


def possible_wires(table: pd.DataFrame) -> list[frozenset[Pair]]:
    """Return the pairs that have a router in common, but for what comparisons say otherwise."""
    return compared(table).possible_wires(routers_in_common(table))


def _decided(
    both: frozenset[Pair], runs: Sequence[Mapping[tuple[Pair, bool], float]]
) -> SharedWire:
    one, other = sorted(both)
    alone, together = (
        [(run[one, at_once], run[other, at_once]) for run in runs] for at_once in (False, True)
    )
    return decide_shared(alone, together)


def _links_of(settings: Mapping[str, Any]) -> frozenset[Pair]:
    """Return the two links of a test; none where it does not say two."""
    links = settings.get("links")
    if not isinstance(links, list) or not all(
        isinstance(link, list) and len(link) == 2 and all(isinstance(end, str) for end in link)
        for link in links
    ):
        return frozenset()
    found = frozenset((tail, head) for tail, head in links)
    return found if len(found) == 2 else frozenset()


def grouped(members: Iterable[Any], joined: Iterable[frozenset[Any]]) -> list[set[Any]]:
    """Return the members, those together that are joined over others.

    >>> sorted(map(sorted, grouped("d", [frozenset("ab"), frozenset("bc")])))
    [['a', 'b', 'c'], ['d']]
    """
    group_of = {member: {member} for member in members}
    for both in joined:
        group = set().union(*(group_of.setdefault(one, {one}) for one in both))
        group_of |= dict.fromkeys(group, group)
    return list({id(group): group for group in group_of.values()}.values())
