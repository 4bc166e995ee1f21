"""Plans of rounds: by the links of the file, by what was observed, by last resorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import InfeasibleError
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
    from datacollect.transfer.protocol.source import Reached
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.pull.core.todo import SourceWork

# Where nothing comes for this time by the links of the file, others are tried.
STRANDED_S = 8.0


class Planner:
    """Plans one round after the other, and remembers for whom the file's links are not enough.

    Parameters
    ----------
    collection : Collection
    how : PlanningOptions

    Attributes
    ----------
    last_resorts : set of str
        Sources for which links are used, too, that agents allow and the file does not name.
    """

    def __init__(self, collection: Collection, how: PlanningOptions) -> None:
        self._collection, self._how = collection, how
        self._says_links = says_links(collection)
        self.last_resorts: set[str] = set()

    def plan(
        self,
        work: dict[str, SourceWork],
        reached: Mapping[str, Reached],
        observed: Mapping[tuple[str, ...], tuple[float, float]],
        give_up: Callable[[str, str], None],
    ) -> Execution | None:
        """Plan; None where no source has a route.

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
        """
        links = possible_links(self._collection.destination, reached)
        rates = recent_rates(observed)
        is_known = self._says_links or all(
            any(source == name for source, _ in rates) for name in work
        )
        if is_known and not self._says_links:
            links = [link for link in links if link in rates]
        while work:
            resorts = [link for link in links if link[0] in self.last_resorts]
            problem = problem_of(self._collection, work, links, rates, resorts)
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
                        give_up(host, f"there is no way from it to the destination: {error}")
                        del work[host]
        return None

    def may_strand(self, work: Iterable[str]) -> dict[str, float]:
        """Return the sources that have links which the file does not name, and were not tried.

        With how long nothing may come from them before these are.
        """
        if not self._says_links:
            return {}
        after_s = min(STRANDED_S, self._collection.limits.patience_s / 3)
        return {name: after_s for name in work if name not in self.last_resorts}
