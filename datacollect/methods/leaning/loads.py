"""Loads of hosts: what they send and receive at once, in plans and as shown by tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.methods.fair.directly import direct_transfers
from datacollect.methods.finishing.derating import NOT_DERATED, derated
from datacollect.numbers.arrays import running_totals
from datacollect.problem.host_limits import LIMITS, SHOWN
from datacollect.problem.listing import listed_far_enough
from datacollect.schedule.data.use import legs

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Route, Transfers

# What a plan counts on for less than this part of its makespan costs it no more than that.
LASTING = 0.01

# Direct's plan is taken by the instant, but for rounding.
INSTANT = 1e-6


def shown_bytes_per_s(problem: Problem) -> dict[str, FloatArray]:
    """Return what was shown of each host, by the limit that it is compared with.

    That is the most of what the problem says was seen, of the bandwidths of single links, and of
    what wires carry that only links of this host share.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 3.0, 5.0], [0, 0, 4.0], [0, 0, 0]], [9, 0, 0], "D"
    ... )
    >>> {key: rates.tolist() for key, rates in shown_bytes_per_s(problem).items()}
    {'uplink_bytes_per_s': [5.0, 4.0, 0.0], 'downlink_bytes_per_s': [0.0, 3.0, 5.0]}
    """
    rate = problem.bandwidth_bytes_per_s.max(axis=0)
    if problem.capacity_bytes_per_s is not None:
        # What several connections get was found by a test of several.
        rate = np.fmax(rate, problem.capacity_bytes_per_s)
    found = {}
    for limit, ends in zip(LIMITS, (problem.link_from, problem.link_to), strict=True):
        rates = np.zeros(problem.n_hosts)
        np.maximum.at(rates, ends, rate)
        for wire, members in zip(problem.shared, problem.shared_links, strict=True):
            hosts = np.unique(ends[members])
            if len(hosts) == 1:
                carries = max(wire.bandwidth_bytes_per_s, wire.capacity_bytes_per_s or 0.0)
                together = min(carries, float(rate[members].sum()))
                rates[hosts] = np.maximum(rates[hosts], together)
        stated = getattr(problem, SHOWN[limit])
        found[limit] = rates if stated is None else np.maximum(rates, stated)
    return found


def sent_directly(problem: Problem, derate: float) -> tuple[tuple[Route, ...], Transfers] | None:
    """Return what direct sends; None where some source has no link to the destination."""
    if derate != NOT_DERATED:
        problem = derated(problem, derate)
    try:
        _, found = listed_far_enough(
            problem, direct_transfers, lambda sent: float(sent[1].finish_s.max(initial=0.0))
        )
    except InfeasibleError:
        return None
    return found


def no_loads(problem: Problem) -> dict[str, FloatArray]:
    """Return the loads of hosts that do nothing."""
    return {key: np.zeros(problem.n_hosts) for key in LIMITS}


class _Sent:
    """Routes and transfers, as `legs` looks at them."""

    def __init__(self, routes: tuple[Route, ...], columns: Transfers) -> None:
        self.routes, self.columns = routes, columns


def host_loads(
    problem: Problem, routes: tuple[Route, ...], columns: Transfers, lasting: float
) -> dict[str, FloatArray]:
    """Return what each host sends and receives, at most, for more than a part of the makespan."""
    if not len(columns):
        return no_loads(problem)
    where = legs(_Sent(routes, columns), problem.names)  # type: ignore[arg-type]
    least_s = lasting * float(columns.finish_s.max())
    return {
        key: _most_at_once(problem.n_hosts, ends, columns, least_s)
        for key, ends in zip(LIMITS, (where.tail, where.head), strict=True)
    }


def _most_at_once(n_hosts: int, host: IntArray, columns: Transfers, least_s: float) -> FloatArray:
    """Return the rate that each host's transfers reach together for longer than a time."""
    rate = columns.n_bytes / (columns.finish_s - columns.start_s)
    at, instant_s, (total,) = running_totals(
        np.concatenate([host, host]),
        np.concatenate([columns.start_s, columns.finish_s]),
        np.concatenate([rate, -rate]),
    )
    lasts_s = np.zeros(len(at))
    lasts_s[:-1] = np.where(at[1:] == at[:-1], np.diff(instant_s), 0.0)
    # The highest first: the rate at which the time adds up to enough.
    order = np.lexsort((-total, at))
    at, total, lasts_s = at[order], total[order], lasts_s[order]
    spent_s = np.cumsum(lasts_s)
    first = np.flatnonzero(np.diff(at, prepend=-1))
    before = np.repeat(spent_s[first] - lasts_s[first], np.diff(first, append=len(at)))
    enough = spent_s - before > least_s
    most = np.zeros(n_hosts)
    np.maximum.at(most, at[enough], total[enough])
    return most
