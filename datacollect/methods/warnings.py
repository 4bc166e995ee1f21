"""Warnings of what a problem leaves out, and that may make its plans promise too much."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from datacollect.files.units import format_rate
from datacollect.flow.network.pools import pools_by_owner
from datacollect.methods.fair.directly import without_link
from datacollect.problem.host_limits import SHOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# Sums of few links are what each was measured to carry; of this many, hardly.
FEW_LINKS = 2

# How many hosts of a longer list are named.
SHOWN_HOSTS = 3

# A plan with this multiple of direct's connections, and more than a few, opens many.
MANY_TIMES, MANY_CONNECTIONS = 3, 12

# Estimates that are older are old.
DAY_S = 86_400.0
OLD_S = 7 * DAY_S


def missing_limits(problem: Problem, *, with_uplinks: bool = True) -> list[str]:
    """Say which limits a problem does not give where plans rely on links together.

    Each link's bandwidth was measured alone; all at once may be more than a host can take. Hosts
    that were seen to do as much are not named.

    Parameters
    ----------
    problem : Problem
    with_uplinks : bool
        Not where a plan says what it leans on.

    Examples
    --------
    >>> import datacollect as dc
    >>> names = ["S", "T", "U", "D"]
    >>> rates = [[0, 0, 0, 1e6], [0, 0, 0, 1e6], [0, 0, 0, 2e6], [0, 0, 0, 0]]
    >>> problem = dc.Problem.from_matrix(names, rates, [9, 9, 9, 0], "D")
    >>> missing_limits(problem)[0]
    "no downlink is given for 'D': its links together, 32 Mbit/s, may be more than it can take"
    """
    rate = problem.bandwidth_bytes_per_s.max(axis=0)
    is_shared = np.zeros(problem.n_links, dtype=bool)
    for members in problem.shared_links:
        is_shared[members] = True
    found = []
    into = problem.link_to == problem.destination_index
    n_into, total = _together(rate, into & ~is_shared)
    if n_into > FEW_LINKS and _is_doubtful(
        problem, "downlink_bytes_per_s", problem.destination_index, total
    ):
        found.append(
            f"no downlink is given for {problem.destination!r}: its links together, "
            f"{format_rate(total)}, may be more than it can take"
        )
    without = []
    for source in problem.sources if with_uplinks else ():
        i = problem.host_index[source]
        n_out, total = _together(rate, (problem.link_from == i) & ~is_shared)
        if (
            source != problem.destination
            and n_out > FEW_LINKS
            and _is_doubtful(problem, "uplink_bytes_per_s", i, total)
        ):
            without.append((total, source))
    if without:
        most = max(without)
        found.append(
            f"no uplink is given for {_listed(source for _, source in without)}: links out of "
            f"{most[1]!r} together, {format_rate(most[0])}, may be more than it can send"
        )
    return found


def _is_doubtful(problem: Problem, key: str, host: int, total: float) -> bool:
    """Say whether nobody knows that a host can do so much: no limit is given, and less was seen."""
    seen = getattr(problem, SHOWN[key])
    is_seen = seen is not None and seen[host] >= total
    return not is_seen and not np.isfinite(getattr(problem, key)[0, host])


def contradictions(problem: Problem) -> list[str]:
    """Name limits of hosts that are less than what was seen of them.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "D"], [[0, 5e6], [0, 0]], [10, 0], "D", uplink_bytes_per_s=1e6
    ... ).replace(shown_uplink_bytes_per_s=[2e6, 0])
    >>> contradictions(problem)[0][:61]
    "'S' is limited to uplink_bytes_per_s = 8 Mbit/s, though shown"
    """
    found = []
    for key, shown in SHOWN.items():
        seen = getattr(problem, shown)
        if seen is None:
            continue
        limit = getattr(problem, key).max(axis=0)
        # Infinite: that there is none was said before the limit was.
        found += [
            f"{problem.names[host]!r} is limited to {key} = {format_rate(limit[host])}, though "
            f"{shown} is {format_rate(seen[host])}; the limit counts: measure again, or correct it"
            for host in np.flatnonzero(np.isfinite(seen) & (seen > limit)).tolist()
        ]
    return found


def plan_warnings(
    problem: Problem, plan: Schedule | None = None, *, now_s: float | None = None
) -> list[str]:
    """Say what an answer relies on: limits that nobody gave, old estimates, many connections.

    Parameters
    ----------
    problem : Problem
    plan : Schedule, optional
        By any method; what it opens is compared with direct, where that is possible.
    now_s : float, optional
        Seconds since 1970; by default the system's clock.
    """
    said = [old_estimates(problem, time.time() if now_s is None else now_s)]
    if plan is not None and not without_link(
        problem, [pool.host for pool in pools_by_owner(problem)]
    ):
        said.append(many_connections(plan, len(problem.sources)))
    found = None if plan is None else plan.assumptions
    missing = missing_limits(problem, with_uplinks=found is None)
    return [*missing, *contradictions(problem), *(text for text in said if text is not None)]


def old_estimates(problem: Problem, now_s: float) -> str | None:
    """Say so where a bandwidth was measured longer ago than `OLD_S`, or ahead; None otherwise.

    The numbers are those of the notes to `datacollect.measurement.estimates.estimate`.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> old_estimates(problem.replace(measured_s=1.7e9), 1.7e9 + 30 * 86_400)[:50]
    'bandwidths were measured 30 days ago, which is lon'
    """
    if problem.measured_s is None:
        return None
    if problem.measured_s - now_s > DAY_S:
        days = int((problem.measured_s - now_s) / DAY_S)
        return (
            f"bandwidths were measured {days} days ahead of this host's clock; check that clocks "
            "are right, here and where they were measured"
        )
    if now_s - problem.measured_s <= OLD_S:
        return None
    days = int((now_s - problem.measured_s) / DAY_S)
    most = f"{OLD_S / DAY_S:g}"
    when = f"more than {most} days ago"
    if days > OLD_S / DAY_S:
        when = f"{days} days ago, which is longer than {most}"
    return (
        f"bandwidths were measured {when}: of "
        "3080 pairs of cloud regions, measured ten months apart, 31 % had moved by more than 20 %; "
        "measure again"
    )


def many_connections(plan: Schedule, n_direct: int) -> str | None:
    """Say where a plan opens many connections and direct few; None otherwise.

    Where TCP limits what one connection gets, more of them bring more, whatever their routes: of
    the time that relays save against direct with one connection per source, much may be saved by
    opening more alone. By how much depends on the network, so no number is given; the study has
    those of its own (docs/study_results.md#connections).

    Parameters
    ----------
    plan : Schedule
    n_direct : int
        How many direct opens: one for each source.
    """
    opened = _connections(plan)
    if opened < MANY_CONNECTIONS or opened < MANY_TIMES * n_direct:
        return None
    return (
        f"{plan.method} opens {opened} connections and direct {n_direct}: where TCP limits what "
        "one connection gets, direct with as many may be as fast; try more connections first"
    )


def _connections(schedule: Schedule) -> int:
    """Hops of routes, each with its most connections."""
    columns = schedule.columns
    if not len(columns):
        return 0
    key = columns.route * (int(columns.hop.max()) + 1) + columns.hop
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    return int(np.maximum.reduceat(columns.streams[order], first).sum())


def _together(rate: FloatArray, links: BoolArray) -> tuple[int, float]:
    return int((rate[links] > 0).sum()), float(rate[links].sum())


def _listed(hosts: Iterable[str]) -> str:
    names = sorted(hosts)
    shown = ", ".join(repr(name) for name in names[:SHOWN_HOSTS])
    return shown + (f" and {len(names) - SHOWN_HOSTS} more" if len(names) > SHOWN_HOSTS else "")
