"""Chooses the pairs that are worth a test, where all would take too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint
from datacollect.schedule.data.use import bytes_by_link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.measuring.plan.rounds import Pair
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# A link that is busy for so large a part of a plan binds it.
FULL = 0.99


def pairs_that_matter(
    hosts: Sequence[str],
    destination: str,
    known: Problem | None = None,
    plan: Schedule | None = None,
) -> list[Pair]:
    """Return the pairs whose bandwidth may decide when all has arrived, the weightiest first.

    First those into the destination, then those that bind a plan, then those that carry data in
    it, by their bytes. What no plan uses is not measured: in any optimum few pairs are used.

    Parameters
    ----------
    hosts : sequence of str
        The destination among them. Pairs of other hosts are left out.
    destination : str
    known : Problem, optional
        What is known of the bandwidths, from earlier cycles.
    plan : Schedule, optional
        A plan of it, such as ``datacollect.coordinated`` makes.

    Raises
    ------
    ProblemError
        The destination is none of the hosts, or there is a plan without its problem.

    Examples
    --------
    >>> import datacollect as dc
    >>> bandwidth = [[0, 4.0, 1.0], [0, 0, 9.0], [0, 0, 0]]
    >>> problem = dc.Problem.from_matrix(["S", "K", "D"], bandwidth, [10, 0, 0], "D")
    >>> pairs_that_matter(problem.names, "D", problem, dc.coordinated(problem))
    [('S', 'D'), ('K', 'D'), ('S', 'K')]
    """
    if destination not in hosts:
        raise ProblemError(
            f"destination {destination!r} must be one of the hosts"
            + nearest_hint(destination, hosts)
        )
    if plan is not None and known is None:
        raise ProblemError("a plan needs the problem that it is for; give the argument known, too")
    matter = [(host, destination) for host in hosts if host != destination]
    if plan is not None and known is not None:
        n_bytes = bytes_by_link(plan)
        binding = {pair for pair in n_bytes if _binds(known, plan, pair, n_bytes[pair])}
        matter += sorted(n_bytes, key=lambda pair: (pair not in binding, -n_bytes[pair], pair))
    return [pair for pair in dict.fromkeys(matter) if {*pair} <= {*hosts}]


def _binds(known: Problem, plan: Schedule, pair: Pair, n_bytes: int) -> bool:
    """Return whether a link carries nearly all that it can while the plan runs."""
    tail, head = (known.host_index[host] for host in pair)
    bandwidth = known.bandwidth_bytes_per_s[:, int(known.link_indices(tail, head))]
    return bool(n_bytes >= FULL * bandwidth.min() * plan.makespan_s)
