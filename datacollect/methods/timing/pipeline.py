"""Pipelined schedules: every path of a fluid plan becomes a pipeline of transfers.

A relay forwards what it received one chunk ago, so hop j of a path runs j chunks after hop 0, at
the same rate. Rates are constant within a piece of time; a piece that others follow has been
planned short by the longest pipeline's delay, so that it drains before rates change.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.flow.routes.path_table import PathTable
from datacollect.methods.options.names import EARLY
from datacollect.methods.timing.early_finish import hurried_lengths_s
from datacollect.methods.timing.fitting import fluid_bytes, whole_bytes
from datacollect.methods.timing.hop_uses import FluidHops, positions
from datacollect.methods.timing.instants import finish_s
from datacollect.numbers.arrays import IntArray, ranges
from datacollect.schedule.data.transfers import Route, Transfers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.flow.routes.fluid_plan import FluidPlan
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem


class RouteNumbers:
    """Numbers routes as they are first used."""

    def __init__(self, problem: Problem) -> None:
        self._names = problem.names
        self._number: dict[tuple[int, tuple[int, ...]], int] = {}

    def number(self, source: int, hosts: tuple[int, ...]) -> int:
        """Return the route's number, a new one at first sight."""
        return self._number.setdefault((source, hosts), len(self._number))

    def routes(self) -> tuple[Route, ...]:
        """Return all routes in the order of their numbers."""
        return tuple(
            Route(self._names[source], tuple(self._names[host] for host in hosts))
            for source, hosts in self._number
        )


def pipelined_transfers(
    problem: Problem, plan: FluidPlan, chunk_s: float, bound_s: float, finish: str = EARLY
) -> tuple[tuple[Route, ...], Transfers]:
    """Turn a fluid plan into routes and transfers, with whole bytes.

    Parameters
    ----------
    problem : Problem
    plan : FluidPlan
    chunk_s : float
    bound_s : float
        No plan ends sooner: where this seems to, what binds seemed to have room, by the rounding
        of a flow in whole units, and rates stay as planned.
    finish : str
        ``"early"``: rates are raised as far as capacities allow, see
        `datacollect.methods.timing.early_finish`; ``"together"``: all that moves in a piece of
        time takes all of it, but for chunks, which delay no more than the others' end.
    """
    paths, ways, way = _paths_in_order(problem, plan)
    hops = FluidHops(problem, plan, paths)
    amount = fluid_bytes(hops)
    lengths_s = plan.lengths_s[paths.pieces]
    starts_s = plan.starts_s[paths.pieces] + hops.position * chunk_s
    hurried_s = hurried_lengths_s(hops, amount)
    end_s = float(finish_s(starts_s, hurried_s).max(initial=0.0))
    if end_s >= bound_s:
        together_s = _ending_by(hops, end_s - starts_s, lengths_s, hurried_s)
        lengths_s = hurried_s if finish == EARLY else together_s
    n_bytes = whole_bytes(hops, amount, lengths_s)
    finishes_s = finish_s(starts_s, lengths_s)
    # The earlier part of a stream takes the earlier paths: easier to follow, equally fast.
    order = np.lexsort((*_padded_pieces(paths), paths.pool))
    row, parcel, begin, end = _cut(n_bytes[order], plan)
    path = order[row]
    routes, route = _routes(problem, ways, way[path], parcel.source)
    offset = parcel.offset_bytes + begin - parcel.begin
    # A row per hop of each part.
    n_hops = paths.n_hops[path]
    row = np.repeat(np.arange(len(path)), n_hops)
    hop = ranges(np.zeros_like(n_hops), n_hops)
    at = (np.cumsum(paths.n_hops) - paths.n_hops)[path][row] + hop
    return routes, Transfers.build(
        route=route[row],
        hop=hop,
        offset_bytes=offset[row],
        n_bytes=(end - begin)[row],
        start_s=starts_s[at],
        finish_s=finishes_s[at],
    )


def _ending_by(
    hops: FluidHops, left_s: FloatArray, lengths_s: FloatArray, hurried_s: FloatArray
) -> FloatArray:
    """Shorten what ends with the whole plan, so that how sources finish does not change its end.

    What a relay passes on begins some chunks late. As planned it would end so late, and the whole
    with it, although it need not: it may hurry.
    """
    if len(left_s) == 0:
        return lengths_s
    first = np.flatnonzero(hops.begins)
    run = np.cumsum(hops.begins) - 1
    least_s = np.minimum.reduceat(left_s, first)[run]
    ending: FloatArray = np.minimum(lengths_s, np.maximum(hurried_s, least_s))
    return ending


class _PartParcels(NamedTuple):
    """The parcels that parts were cut from: their owners, offsets, and begins among all bytes."""

    source: IntArray
    offset_bytes: IntArray
    begin: IntArray


def _paths_in_order(
    problem: Problem, plan: FluidPlan
) -> tuple[PathTable, list[list[int]], IntArray]:
    """Paths, pool after pool; those along the same hosts are neighbours, in the order of time.

    Besides, the sequences of hosts, and which of them each path takes.
    """
    paths = PathTable.of(plan.paths)
    ways, way = paths.routes(problem.n_hosts)
    order = np.lexsort((*_padded_pieces(paths), way, paths.pool))
    return paths.at(order), ways, way[order]


def _padded_pieces(paths: PathTable) -> IntArray:
    """Pieces of time of the hops, a row per position, the last hop's first: keys to sort by."""
    return paths.padded(paths.pieces, paths.n_hops).T[::-1]


def _cut(n_bytes: IntArray, plan: FluidPlan) -> tuple[IntArray, _PartParcels, IntArray, IntArray]:
    """Cut all bytes, pool after pool, where a path's share ends and where a parcel ends.

    Returns the path and the parcel of each part, and its begin and end among all bytes.
    """
    parcels = list(chain.from_iterable(pool.parcels for pool in plan.pools))
    sizes = np.array([parcel.n_bytes for parcel in parcels], dtype=np.int64)
    path_ends, parcel_ends = np.cumsum(n_bytes), np.cumsum(sizes)
    ends = np.union1d(path_ends[n_bytes > 0], parcel_ends)
    begins = np.append(0, ends[:-1])
    path = np.searchsorted(path_ends, begins, side="right")
    number = np.searchsorted(parcel_ends, begins, side="right")
    source = np.array([parcel.source for parcel in parcels], dtype=np.int64)
    offset = np.array([parcel.offset_bytes for parcel in parcels], dtype=np.int64)
    found = _PartParcels(source[number], offset[number], (parcel_ends - sizes)[number])
    return path, found, begins, ends


def _routes(
    problem: Problem, ways: Sequence[Sequence[int]], way: IntArray, source: IntArray
) -> tuple[tuple[Route, ...], IntArray]:
    """Number routes (a source and hosts) as parts first use them; return them, and each part's."""
    key = source * len(ways) + way
    keys, first, same = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    names = problem.names
    hosts = [tuple([names[host] for host in row]) for row in ways]
    sources, numbers = divmod(keys[order], max(len(ways), 1))
    routes = tuple(
        Route(names[origin], hosts[i])
        for origin, i in zip(sources.tolist(), numbers.tolist(), strict=True)
    )
    return routes, rank[same.ravel()]


def longest_pipeline(plan: FluidPlan) -> int:
    """Most hops that any path takes within one piece of time."""
    paths = PathTable.of(plan.paths)
    return int(positions(paths).max(initial=0)) + 1


def transfers_from_rows(rows: Sequence[tuple[int, int, int, int, float, float]]) -> Transfers:
    """Build the table from rows (route, hop, offset_bytes, n_bytes, start_s, finish_s)."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in range(6))
    names = ("route", "hop", "offset_bytes", "n_bytes", "start_s", "finish_s")
    return Transfers.build(**dict(zip(names, columns, strict=True)))
