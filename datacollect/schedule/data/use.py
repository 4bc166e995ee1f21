"""Use of hosts and links by a schedule: data stored, rates, completion times.

Everything here follows from the transfers. The functions take a well-formed schedule for granted;
`datacollect.schedule.check.judge` is the one that doubts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datacollect.files.units import BYTES_PER_GB
from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray, running_totals
from datacollect.schedule.data.belonging import require_belonging
from datacollect.schedule.data.tolerances import FLOAT_ROUNDING, NO_BYTES, RATE_ROUNDING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents
    from datacollect.schedule.data.transfers import Transfers


@dataclass(frozen=True, eq=False)
class Legs:
    """Ends of each transfer, hosts as indices into ``names``; arrays of shape (n_transfers,).

    Attributes
    ----------
    names : tuple of str
    route : ndarray of int64
        As in the schedule, but a route that is listed twice has one number.
    hop, n_hops : ndarray of int64
        Hop of the transfer, and number of hops of its route.
    source, tail, head : ndarray of int64
        Owner of the data, sender, receiver.
    """

    names: tuple[str, ...]
    route: IntArray
    hop: IntArray
    n_hops: IntArray
    source: IntArray
    tail: IntArray
    head: IntArray

    @property
    def is_last(self) -> BoolArray:
        """True for transfers into the destination."""
        last: BoolArray = self.hop == self.n_hops - 1
        return last


def arrived_bytes(schedule: ScheduleContents, by_s: float) -> int:
    """Return how much a plan moves to the destination by an instant, without what is there before.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> arrived_bytes(dc.direct(problem), 1.0)
    5
    """
    columns = schedule.columns
    last = legs(schedule).is_last
    lasts_s = np.maximum(columns.finish_s - columns.start_s, 1e-300)
    part = np.clip((by_s - columns.start_s) / lasts_s, 0.0, 1.0)
    return int(np.floor(part * columns.n_bytes)[last].sum())


def legs(schedule: ScheduleContents, names: Sequence[str] | None = None) -> Legs:
    """Look up each transfer's hosts.

    Parameters
    ----------
    schedule : Schedule
    names : sequence of str, optional
        Hosts to number by; by default those on the schedule's routes, in order of appearance.
    """
    routes, columns = schedule.routes, schedule.columns
    if names is None:
        names = tuple(dict.fromkeys(name for r in routes for name in (r.source, *r.hosts)))
    index = {name: i for i, name in enumerate(names)}
    first: dict[Any, int] = {}
    same = np.array([first.setdefault(r, i) for i, r in enumerate(routes)], dtype=np.int64)
    n_hops = np.array([r.n_hops for r in routes], dtype=np.int64)
    source = np.array([index[r.source] for r in routes], dtype=np.int64)
    hosts, at = hosts_of_routes(schedule, index)
    return Legs(
        names=tuple(names),
        route=same[columns.route],
        hop=columns.hop,
        n_hops=n_hops[columns.route],
        source=source[columns.route],
        tail=hosts[at],
        head=hosts[at + 1],
    )


def hosts_of_routes(
    schedule: ScheduleContents, index: Mapping[str, int]
) -> tuple[IntArray, IntArray]:
    """Return the hosts of all routes, one route after the other, and where each transfer begins.

    Parameters
    ----------
    schedule : Schedule
    index : mapping of str to int
        Numbers of hosts; others become -1.

    Returns
    -------
    hosts : ndarray of int64
    at : ndarray of int64, shape (n_transfers,)
        A transfer leads from ``hosts[at]`` to ``hosts[at + 1]``.
    """
    routes = schedule.routes
    hosts = np.array([index.get(name, -1) for r in routes for name in r.hosts], dtype=np.int64)
    n_hosts = np.array([len(route.hosts) for route in routes], dtype=np.int64)
    begins = np.cumsum(n_hosts) - n_hosts
    return hosts, begins[schedule.columns.route] + schedule.columns.hop


def plan_money(problem: Problem, plan: ScheduleContents) -> float | None:
    """Return the price of all links that a plan uses, in the currency of the problem's prices.

    None where links have no prices.

    Examples
    --------
    >>> import datacollect as dc
    >>> hosts = [dc.Host("S", 2_000_000_000), dc.Host("D")]
    >>> problem = dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 1e6, price_per_gb=0.25)], "D")
    >>> plan_money(problem, dc.direct(problem))
    0.5
    """
    if problem.price_per_gb is None:
        return None
    require_belonging(problem, plan)
    where = legs(plan, problem.names)
    price = problem.price_per_gb[problem.link_indices(where.tail, where.head)]
    return float(price @ plan.columns.n_bytes) / BYTES_PER_GB


def streams_by_hop(schedule: ScheduleContents) -> dict[tuple[int, int], int]:
    """Return how many connections a route has on each hop: by its number, and the hop's.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> streams_by_hop(dc.direct(problem))
    {(0, 0): 1}
    """
    columns = schedule.columns
    found: dict[tuple[int, int], int] = {}
    for route, hop, streams in zip(
        columns.route.tolist(), columns.hop.tolist(), columns.streams.tolist(), strict=True
    ):
        found[route, hop] = max(streams, found.get((route, hop), 0))
    return dict(sorted(found.items()))


def bytes_by_link(schedule: ScheduleContents) -> dict[tuple[str, str], int]:
    """Return what each link carries in a plan, in all.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 4.0], [0, 0]], [10, 0], "D")
    >>> bytes_by_link(dc.coordinated(problem))
    {('S', 'D'): 10}
    """
    of = legs(schedule)
    found: dict[tuple[str, str], int] = {}
    for tail, head, n_bytes in zip(
        of.tail.tolist(), of.head.tolist(), schedule.columns.n_bytes.tolist(), strict=True
    ):
        link = of.names[tail], of.names[head]
        found[link] = found.get(link, 0) + n_bytes
    return found


def connections_by_link(schedule: ScheduleContents) -> dict[tuple[str, str], int]:
    """Return how many connections a plan has open on each link, by the names of its ends.

    Data of several owners that lie at one host follow each other on the same connections.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> connections_by_link(dc.direct(problem))
    {('S', 'D'): 1}
    """
    streams_of: dict[tuple[tuple[str, ...], bool, int], int] = {}
    for (number, hop), streams in streams_by_hop(schedule).items():
        route = schedule.routes[number]
        key = route.hosts, route.source == route.hosts[0], hop
        streams_of[key] = max(streams, streams_of.get(key, 0))
    found: dict[tuple[str, str], int] = {}
    for (hosts, _, hop), streams in streams_of.items():
        link = hosts[hop], hosts[hop + 1]
        found[link] = found.get(link, 0) + streams
    return found


def stored_over_time(
    columns: Transfers, where: Legs, *steps: tuple[IntArray, FloatArray, npt.NDArray[Any]]
) -> tuple[IntArray, FloatArray, FloatArray, list[npt.NDArray[Any]]]:
    """Follow other hosts' data at every host but the destination.

    Data flow in and out at the transfers' constant rates, so amounts are piecewise linear. What a
    route carries from a first host that is not its source has been there from time 0.

    Parameters
    ----------
    columns : Transfers
    where : Legs
    *steps : tuple of (host, time_s, delta)
        Other quantities to add up at the same instants.

    Returns
    -------
    host, time_s, stored_bytes : ndarray, shape (n_instants,)
        Sorted by host, then time.
    totals : list of ndarray, shape (n_instants,)
        For each of `steps` the total from that instant on.
    """
    arrives = (where.head != where.source) & ~where.is_last
    leaves = where.tail != where.source
    initial = leaves & (where.hop == 0)
    row = np.concatenate([np.flatnonzero(arrives), np.flatnonzero(leaves)])
    host = np.concatenate([where.head[arrives], where.tail[leaves]])
    amount = np.concatenate([columns.n_bytes[arrives], -columns.n_bytes[leaves]])
    start, finish = columns.start_s[row], columns.finish_s[row]
    rate = amount / (finish - start)
    n, n_initial = len(row), int(initial.sum())
    # Events in this order: starts, finishes, data that lie there at first, then each of `steps`.
    n_events = 2 * n + n_initial + sum(len(delta) for _, _, delta in steps)
    slope, shift = np.zeros(n_events), np.zeros(n_events)
    active, done = np.zeros(n_events, dtype=np.int64), np.zeros(n_events, dtype=np.int64)
    slope[:n], slope[n : 2 * n] = rate, -rate
    shift[: 2 * n] = slope[: 2 * n] * np.tile(start, 2)
    active[:n], active[n : 2 * n] = 1, -1
    done[n : 2 * n] = amount
    done[2 * n : 2 * n + n_initial] = columns.n_bytes[initial]
    others, position = [], 2 * n + n_initial
    for _, _, delta in steps:
        others.append(np.zeros(n_events, dtype=delta.dtype))
        others[-1][position : position + len(delta)] = delta
        position += len(delta)
    at, instant_s, totals = running_totals(
        np.concatenate([host, host, where.tail[initial], *(at for at, _, _ in steps)]),
        np.concatenate([start, finish, np.zeros(n_initial), *(when for _, when, _ in steps)]),
        *(slope, shift, active, done, *others),
    )
    slope, shift, active, done = totals[:4]
    # Whole bytes where nothing moves: the rounding of past rates must not stay behind.
    moving = np.where(active > 0, slope * instant_s - shift, 0.0)
    stored = np.asarray(done + moving, dtype=np.float64)
    return at, instant_s, stored, totals[4:]


def transfers(schedule: ScheduleContents) -> pd.DataFrame:
    """Return the transfers as a table, a row each, see `Schedule.to_dataframe`.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> transfers(dc.direct(problem))[["source", "bytes"]].to_dict("records")
    [{'source': 'S', 'bytes': 10}]
    """
    import pandas as pd

    columns = schedule.columns
    routes = [schedule.routes[i] for i in columns.route.tolist()]
    hops = columns.hop.tolist()
    return pd.DataFrame(
        {
            "source": [route.source for route in routes],
            "route": [route.hosts for route in routes],
            "hop": columns.hop,
            "from": [route.hosts[hop] for route, hop in zip(routes, hops, strict=True)],
            "to": [route.hosts[hop + 1] for route, hop in zip(routes, hops, strict=True)],
            "offset_bytes": columns.offset_bytes,
            "bytes": columns.n_bytes,
            "start_s": columns.start_s,
            "finish_s": columns.finish_s,
            "streams": columns.streams,
        }
    )


def storage(schedule: ScheduleContents) -> pd.DataFrame:
    """Follow other hosts' data at each host that stores any, the destination excepted.

    Returns
    -------
    DataFrame
        Columns host, time_s, stored_bytes, sorted by host and time, from time 0 to when the host
        stores nothing any more. Between two rows of a host the amount changes linearly.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 5, 0], [0, 0, 5], [0, 0, 0]], [10, 0, 0], "D"
    ... )
    >>> storage(dc.coordinated(problem, slot_s=1.0))
      host  time_s  stored_bytes
    0    K     0.0           0.0
    1    K     1.0           5.0
    2    K     2.0           5.0
    3    K     3.0           0.0
    """
    import pandas as pd

    where = legs(schedule)
    every = np.arange(len(where.names))
    zero = np.zeros(len(every))
    # A step of nothing at time 0 makes every curve begin there.
    host, time_s, stored, _ = stored_over_time(schedule.columns, where, (every, zero, zero))
    peak = _peaks(schedule, where, host, stored)
    shown = peak[host] > 0
    host, time_s, stored = host[shown], time_s[shown], stored[shown]
    stored = np.where(np.abs(stored) <= rounding_bytes(schedule.columns, where)[host], 0.0, stored)
    return pd.DataFrame({"host": _named(where, host), "time_s": time_s, "stored_bytes": stored})


def peak_storage_bytes(schedule: ScheduleContents) -> dict[str, int]:
    """Return the most bytes of others' data at each host that stores any, chunks included."""
    where = legs(schedule)
    host, _, stored, _ = stored_over_time(schedule.columns, where)
    peak = _peaks(schedule, where, host, stored)
    return {where.names[i]: int(peak[i]) for i in np.flatnonzero(peak > 0).tolist()}


def _peaks(schedule: ScheduleContents, where: Legs, host: IntArray, stored: FloatArray) -> IntArray:
    """Most bytes stored at each host, rounded up unless only rounding errors exceed a whole."""
    peak = np.zeros(len(where.names))
    np.maximum.at(peak, host, stored)
    noise = rounding_bytes(schedule.columns, where)
    whole = np.rint(peak)
    up = np.where(np.abs(peak - whole) <= noise, whole, np.ceil(peak))
    return np.where(peak <= noise, 0, up).astype(np.int64)


def rounding_bytes(columns: Transfers, where: Legs) -> FloatArray:
    """Return by how much rounding may move an amount at each host: relative to all that passes."""
    passes = np.bincount(where.tail, weights=columns.n_bytes, minlength=len(where.names))
    return np.asarray(FLOAT_ROUNDING * passes + NO_BYTES, dtype=np.float64)


def link_use(schedule: ScheduleContents) -> pd.DataFrame:
    """Return the rate on each link that is used, as stretches of constant rate.

    Returns
    -------
    DataFrame
        Columns from, to, start_s, finish_s, bytes_per_s; sorted by link and time. Stretches in
        which a link is idle are left out.
    """
    import pandas as pd

    where, columns = legs(schedule), schedule.columns
    start, finish = _same_instants(columns.start_s, columns.finish_s)
    rate = columns.n_bytes / (columns.finish_s - columns.start_s)
    one = np.ones(len(columns), dtype=np.int64)
    link = where.tail * len(where.names) + where.head
    link, time_s, (total, active) = running_totals(
        np.tile(link, 2),
        np.concatenate([start, finish]),
        np.concatenate([rate, -rate]),
        np.concatenate([one, -one]),
    )
    # A link's last instant ends its last stretch: idle from there on.
    busy = np.flatnonzero(active > 0)
    link, rate, start, finish = link[busy], total[busy], time_s[busy], time_s[busy + 1]
    new = np.ones(len(busy), dtype=bool)
    new[1:] = (
        (link[1:] != link[:-1])
        | (start[1:] != finish[:-1])
        | ~np.isclose(rate[1:], rate[:-1], rtol=RATE_ROUNDING, atol=0.0)
    )
    first = np.flatnonzero(new)
    return pd.DataFrame(
        {
            "from": _named(where, link[first] // max(len(where.names), 1)),
            "to": _named(where, link[first] % max(len(where.names), 1)),
            "start_s": start[first],
            "finish_s": finish[np.append(first[1:], len(busy)) - 1] if len(busy) else finish,
            "bytes_per_s": rate[first],
        }
    )


def source_completion_s(schedule: ScheduleContents) -> dict[str, float]:
    """Return when the last byte of each source reaches the destination, in order of the routes."""
    where = legs(schedule)
    done = np.full(len(where.names), -1.0)
    np.maximum.at(done, where.source[where.is_last], schedule.columns.finish_s[where.is_last])
    sources = dict.fromkeys(route.source for route in schedule.routes)
    index = {name: i for i, name in enumerate(where.names)}
    return {name: float(done[index[name]]) for name in sources if done[index[name]] >= 0}


def _named(where: Legs, host: IntArray) -> npt.NDArray[np.object_]:
    return np.array(where.names, dtype=object)[host]


def _same_instants(start_s: FloatArray, finish_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Make instants equal that differ by rounding only: a finish and the next start."""
    instants, inverse = np.unique(np.concatenate([start_s, finish_s]), return_inverse=True)
    if len(instants) == 0:
        return start_s, finish_s
    new = np.diff(instants, prepend=-1.0) > FLOAT_ROUNDING * instants[-1]
    same = instants[new][np.cumsum(new) - 1][inverse]
    return same[: len(start_s)], same[len(start_s) :]
