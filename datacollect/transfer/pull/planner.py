"""Plans of rounds: by the links of the file, by what was observed, by last resorts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import InfeasibleError
from datacollect.problem.within_intervals import NINTH, within_intervals
from datacollect.transfer.pull.open_hours import OpenHours, hosts_with_a_way
from datacollect.transfer.pull.planning import (
    largest_piece,
    planned,
    possible_links,
    problem_of,
    recent_rates,
    says_links,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacollect.methods.execution import Execution
    from datacollect.methods.planning_options import PlanningOptions
    from datacollect.problem.problem import Problem
    from datacollect.transfer.protocol.source import Reached
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.pull.core.todo import SourceWork

# Where nothing comes for this time by the links of the file, others are tried.
STRANDED_S = 8.0


class ByHours(NamedTuple):
    """Work to be fetched, by the hours of the links that it may come by.

    Attributes
    ----------
    now : dict of str to SourceWork
    later : dict of str to float
        Sources that are closed, and when each opens, in seconds since 1970.
    never : dict of str to str
        Sources whose ways are never open all along, and why.
    """

    now: dict[str, SourceWork]
    later: dict[str, float]
    never: dict[str, str]


class Planner:
    """Plans one round after the other, and remembers for whom the file's links are not enough.

    Parameters
    ----------
    collection : Collection
    how : PlanningOptions

    Attributes
    ----------
    hours : OpenHours
        When links are open.
    last_resorts : set of str
        Sources for which links are used, too, that agents allow and the file does not name.
    """

    def __init__(self, collection: Collection, how: PlanningOptions) -> None:
        self._collection, self._how = collection, how
        self._says_links = says_links(collection)
        self.hours = OpenHours(collection)
        self.last_resorts: set[str] = set()
        self._problem: Problem | None = None
        self._n_piece_bytes = 1

    def by_hours(self, work: dict[str, SourceWork], reached: Mapping[str, Reached]) -> ByHours:
        """Part what is to be fetched: what can come now, later, never."""
        found = ByHours(work, {}, {})
        if not self.hours:
            return found
        links = self._named_or_possible(reached)
        is_open = self.hours.open_sources(links)
        # Whether others have a way at all is not for the hours to say.
        closed = hosts_with_a_way(links, self._collection.destination) & work.keys() - is_open
        for name in sorted(closed):
            opens_s = self.hours.opening_s(name, links)
            if opens_s is None:
                found.never[name] = self.hours.why_never(name, links)
            else:
                found.later[name] = opens_s
        return found._replace(now={name: work[name] for name in work.keys() - closed})

    def never(self, names: Iterable[str]) -> dict[str, str]:
        """Return which hosts' ways, of those that the file names, are never open, and why."""
        if not (self.hours and self._says_links):
            return {}
        links = self._named_links()
        with_a_way = hosts_with_a_way(links, self._collection.destination)
        return {
            name: self.hours.why_never(name, links)
            for name in names
            if name in with_a_way and self.hours.opening_s(name, links) is None
            if name not in self.hours.open_sources(links)
        }

    def is_closed(self, name: str) -> bool:
        """Return whether nothing can come from a host now, whatever way others might be to it."""
        if not self.hours:
            return False
        links = {(tail, head) for tail, head in self._named_links() if tail == name}
        direct = {(name, self._collection.destination)}
        return not any(self.hours.is_open(link) for link in links or direct)

    def _named_links(self) -> list[tuple[str, str]]:
        return [(link["from"], link["to"]) for link in self.hours.file_links(closed_too=True)]

    def _named_or_possible(self, reached: Mapping[str, Reached]) -> list[tuple[str, str]]:
        destination = self._collection.destination
        possible = possible_links(destination, reached)
        if not self._says_links:
            return possible
        named = self._named_links()
        has_way = hosts_with_a_way(named, destination) - self.last_resorts
        return [*named, *(link for link in possible if link[0] not in has_way)]

    def plan(
        self,
        work: dict[str, SourceWork],
        reached: Mapping[str, Reached],
        observed: Mapping[tuple[str, ...], tuple[float, float]],
        give_up: Callable[[str, str], None],
        *,
        closed_too: bool = False,
    ) -> Execution | None:
        """Plan with links that are open; None where no source has a route.

        Parameters
        ----------
        work : dict of str to SourceWork
            What is to be fetched; sources without a route are taken out.
        reached : mapping of str to Reached
            What hosts have said.
        observed : mapping of tuple of str to (float, float)
            Rates of links, and how many seconds ago they were learned.
        give_up : callable
            Takes each source without a route, and why.
        closed_too : bool
            Plan as if all links were open.
        """
        links = possible_links(self._collection.destination, reached)
        file_links = None
        if self.hours:
            links = [link for link in links if closed_too or self.hours.is_open(link)]
            file_links = self.hours.file_links(closed_too=closed_too)
        rates = recent_rates(observed)
        is_known = self._says_links or all(
            any(source == name for source, _ in rates) for name in work
        )
        if is_known and not self._says_links:
            links = [link for link in links if link in rates]
        while work:
            resorts = [link for link in links if link[0] in self.last_resorts]
            problem = problem_of(
                self._collection, work, links, rates, resorts, file_links=file_links
            )
            self._problem, self._n_piece_bytes = problem, largest_piece(work)
            try:
                return planned(
                    problem,
                    self._how,
                    connections=self._collection.limits.connections,
                    piece_bytes=largest_piece(work),
                    is_known=is_known,
                )
            except InfeasibleError as error:
                hosts = [host for host in error.hosts if host in work]
                if not hosts:
                    raise
                for host in hosts:
                    if host not in self.last_resorts and self._says_links:
                        self.last_resorts.add(host)
                    else:
                        give_up(host, f"no route leads from it to the destination: {error}")
                        del work[host]
        return None

    def promised_s(self) -> tuple[float, float] | None:
        """Return p10 and p90 of the last plan, by the intervals of its links; None without any.

        All links are as fast as in one of ten cases, or as slow: those of one evening are slow
        together. A pull corrects itself, so that it is planned anew for each.
        """
        problem = self._problem
        if problem is None or not problem.bandwidth_intervals:
            return None
        found = []
        for z in (NINTH, -NINTH):
            changed = within_intervals(problem, z)
            try:
                one = planned(
                    changed,
                    self._how,
                    connections=self._collection.limits.connections,
                    piece_bytes=self._n_piece_bytes,
                    is_known=True,
                )
            except InfeasibleError:
                return None
            if one.predicted_s is None:
                return None
            found.append(one.predicted_s)
        return min(found), max(found)

    def may_strand(self, work: Iterable[str]) -> dict[str, float]:
        """Return the sources that have links which the file does not name, and were not tried.

        With how long nothing may come from them before these are.
        """
        if not self._says_links:
            return {}
        after_s = min(STRANDED_S, self._collection.limits.patience_s / 3)
        return {name: after_s for name in work if name not in self.last_resorts}
