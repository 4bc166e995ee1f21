"""Direct transfers of all sources over their own links to the destination, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.flow.network.pools import pools_by_owner
from datacollect.methods.fair.transfers import AllAtOnce, RouteJob, fair_transfers
from datacollect.problem.listing import not_listed_yet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.network.pools import Pool
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Route, Transfers


def direct_transfers(problem: Problem) -> tuple[tuple[Route, ...], Transfers]:
    """Return what is sent directly by all sources at once: what `direct` plans, and nothing else.

    Raises
    ------
    InfeasibleError
        A host with data has no usable link to the destination.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> direct_transfers(problem)[1].finish_s.tolist()
    [2.0]
    """
    return fair_transfers(problem, direct_jobs(problem, pools_by_owner(problem)), 0.0, AllAtOnce())


def direct_jobs(problem: Problem, pools: Sequence[Pool]) -> list[RouteJob]:
    """Return what each source has to send directly."""
    jobs = [RouteJob(pool, (pool.host, problem.destination_index)) for pool in pools]
    _require_links(problem, jobs)
    return jobs


def without_link(problem: Problem, hosts: Sequence[int]) -> list[str]:
    """Return the names of the hosts from which no link with any capacity leads to the destination.

    Parameters
    ----------
    problem : Problem
    hosts : sequence of int

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> without_link(problem, [0]), without_link(problem, [1])
    ([], ['D'])
    """
    tails = np.array(hosts, dtype=np.int64)
    links = problem.link_indices(tails, np.full(len(tails), problem.destination_index))
    closed = links < 0
    closed[~closed] = problem.bandwidth_bytes_per_s[:, links[~closed]].max(axis=0) == 0
    return sorted({problem.names[host] for host in tails[closed]})


def _require_links(problem: Problem, jobs: Sequence[RouteJob]) -> None:
    missing = without_link(problem, [job.pool.host for job in jobs])
    if missing:
        never = InfeasibleError(
            f"direct: no usable link from {', '.join(map(repr, missing))} to the destination "
            f"{problem.destination!r}; add one, or use another method",
            missing,
        )
        raise not_listed_yet(problem, missing, never)
