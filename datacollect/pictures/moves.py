"""Rates of flows between hosts at every instant, for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.pictures.picture import mean_rates
from datacollect.schedule.data.use import legs

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# A page stays quick with this many; of more, those that carry most are in it.
MOST_HOSTS, MOST_FLOWS = 300, 1500


class Moves(NamedTuple):
    """Flows of data between hosts.

    Attributes
    ----------
    hosts : ndarray of int64, shape (n_shown,)
        Hosts of the drawing, by the problem's indices, in its order.
    n_hosts : int
        How many take part.
    source, tail, head : ndarray of int64, shape (n_flows,)
        Whose data go from where to where: indices of the problem's hosts.
    bytes_per_s : ndarray, shape (n_flows, n_stretches)
    n_flows : int
        How many there are, those left out counted.
    collected_bytes : ndarray, shape (n_stretches + 1,)
        What has reached the destination at each edge.
    """

    hosts: IntArray
    n_hosts: int
    source: IntArray
    tail: IntArray
    head: IntArray
    bytes_per_s: FloatArray
    n_flows: int
    collected_bytes: FloatArray


def moves_of(problem: Problem, schedule: Schedule, edges_s: FloatArray) -> Moves:
    """Add up a schedule's transfers into flows, one for each source and pair of hosts.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Of this problem.
    edges_s : ndarray, shape (n_stretches + 1,)
        Rates are means between these instants.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> moves = moves_of(problem, dc.direct(problem), np.array([0.0, 1.0, 2.0]))
    >>> moves.bytes_per_s.tolist(), moves.collected_bytes.tolist()
    ([[5.0, 5.0]], [0.0, 5.0, 10.0])
    """
    where, columns, n = legs(schedule, problem.names), schedule.columns, problem.n_hosts
    n_bytes = columns.n_bytes
    handled = np.zeros(n)
    for end in (where.tail, where.head):
        handled += np.bincount(end, n_bytes, n)
    handled[problem.destination_index] = np.inf  # it is always shown
    n_hosts = max(int(np.count_nonzero(handled)), 1)
    hosts = np.sort(np.argsort(-handled, kind="stable")[: min(n_hosts, MOST_HOSTS)])
    key, flow = np.unique((where.source * n + where.tail) * n + where.head, return_inverse=True)
    tail, head = key // n % n, key % n
    total = np.bincount(flow, n_bytes, len(key))
    total[~(np.isin(tail, hosts) & np.isin(head, hosts))] = 0.0
    largest = np.argsort(-total, kind="stable")[: min(np.count_nonzero(total), MOST_FLOWS)]
    row = np.full(len(key), -1)
    row[largest] = np.arange(len(largest))
    kept = row[flow] >= 0
    rates = mean_rates(
        n_bytes[kept],
        columns.start_s[kept],
        columns.finish_s[kept],
        row[flow][kept],
        len(largest),
        edges_s,
    )
    last = where.head == problem.destination_index
    arriving = mean_rates(
        n_bytes[last],
        columns.start_s[last],
        columns.finish_s[last],
        np.zeros(int(last.sum()), dtype=np.int64),
        1,
        edges_s,
    )
    collected = np.concatenate([[0.0], np.cumsum(arriving[0] * np.diff(edges_s))])
    return Moves(
        hosts,
        n_hosts,
        key[largest] // (n * n),
        tail[largest],
        head[largest],
        rates,
        len(key),
        collected,
    )
