"""Completeness of a schedule: every byte that has to move travels each hop of one route, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import ScheduleError
from datacollect.numbers.arrays import IntArray, ranges
from datacollect.schedule.check.case import byte_range, counted, describe_route, first_true

if TYPE_CHECKING:
    from datacollect.schedule.check.case import Case

# Half-open ranges of bytes, sorted, not overlapping.
Ranges: TypeAlias = list[tuple[int, int]]


def every_byte_once(case: Case) -> None:
    """Raise ScheduleError unless the transfers move every byte, once, along one route."""
    columns, where = case.schedule.columns, case.legs
    order = np.lexsort((columns.offset_bytes, where.hop, where.route))
    route, hop = where.route[order], where.hop[order]
    low, high = columns.offset_bytes[order], (columns.offset_bytes + columns.n_bytes)[order]
    same = np.zeros(len(order), dtype=bool)
    same[1:] = (route[1:] == route[:-1]) & (hop[1:] == hop[:-1])
    _reject_twice_on_hop(case, order, same, low, high)
    first, high = _merged(same, low, high)
    route, hop, low = route[first], hop[first], low[first]
    _require_same_on_every_hop(case, route, hop, low, high)
    at_first = hop == 0
    _require_all_that_lies_anywhere(case, route[at_first], low[at_first], high[at_first])


def _merged(
    same: npt.NDArray[np.bool_], low: IntArray, high: IntArray
) -> tuple[IntArray, IntArray]:
    """Join neighbours that touch; return where each joined range begins, and its end."""
    new = ~same
    new[1:] |= low[1:] > high[:-1]
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(low))[: len(first)] - 1
    return first, high[last]


def _reject_twice_on_hop(
    case: Case, order: IntArray, same: npt.NDArray[np.bool_], low: IntArray, high: IntArray
) -> None:
    # Sorted by offset: if any two ranges overlap, some neighbours do.
    again = np.zeros(len(low), dtype=bool)
    again[1:] = same[1:] & (low[1:] < high[:-1])
    at = first_true(again)
    if at is not None:
        both = _text([(int(low[at]), int(min(high[at], high[at - 1])))])
        one, two = (case.describe(int(order[i])) for i in (at - 1, at))
        raise ScheduleError(
            f"{two}: no byte may travel a hop twice, but {both} travels it here and in {one}"
        )


def _require_same_on_every_hop(
    case: Case, route: IntArray, hop: IntArray, low: IntArray, high: IntArray
) -> None:
    """Require that what travels the first hop of a route travels all others."""
    n_hops = np.array([r.n_hops for r in case.schedule.routes], dtype=np.int64)
    start = np.flatnonzero(hop == 0)
    copies = n_hops[route[start]]
    wanted = np.repeat(start, copies)
    wanted_hop = ranges(np.zeros_like(copies), copies)
    order = np.lexsort((low[wanted], wanted_hop, route[wanted]))
    wanted, wanted_hop = wanted[order], wanted_hop[order]
    if len(wanted) == len(route) and all(
        np.array_equal(a, b)
        for a, b in (
            (route[wanted], route),
            (wanted_hop, hop),
            (low[wanted], low),
            (high[wanted], high),
        )
    ):
        return
    travel: dict[tuple[int, int], Ranges] = {}
    for i, k, a, b in zip(*(x.tolist() for x in (route, hop, low, high)), strict=True):
        travel.setdefault((i, k), []).append((a, b))
    for i in sorted({i for i, _ in travel}):
        for k in range(1, case.schedule.routes[i].n_hops):
            before, after = travel.get((i, k - 1), []), travel.get((i, k), [])
            if before != after:
                raise ScheduleError(_broken_route(case, i, k, before, after))


def _broken_route(case: Case, i: int, hop: int, before: Ranges, after: Ranges) -> str:
    route = case.schedule.routes[i]
    relay, follower = route.hosts[hop], route.hosts[hop + 1]
    lost, invented = _without(before, after), _without(after, before)
    where = f"route {describe_route(route)}"
    if lost:
        missing = _text(lost, route.source)
        return f"{where}: what arrives at {relay!r} must leave for {follower!r}, missing: {missing}"
    missing = _text(invented, route.source)
    return f"{where}: what leaves {relay!r} for {follower!r} must arrive there, missing: {missing}"


def _require_all_that_lies_anywhere(
    case: Case, route: IntArray, low: IntArray, high: IntArray
) -> None:
    """Require that hosts send along their routes what lies there and has yet to move."""
    problem = case.problem
    index = problem.host_index
    source = np.array([index[r.source] for r in case.schedule.routes], dtype=np.int64)[route]
    host = np.array([index[r.hosts[0]] for r in case.schedule.routes], dtype=np.int64)[route]
    order = np.lexsort((low, source))
    again = np.zeros(len(order), dtype=bool)
    again[1:] = (np.diff(source[order]) == 0) & (low[order][1:] < high[order][:-1])
    at = first_true(again)
    if at is not None:
        one, two = order[at - 1], order[at]
        both = _text([(int(low[two]), int(min(high[one], high[two])))])
        paths = " and ".join(describe_route(case.schedule.routes[route[i]]) for i in (one, two))
        owner = problem.names[source[two]]
        raise ScheduleError(
            f"no byte may travel two routes, but of {owner!r}, {both} travels {paths}"
        )
    lies = np.array(
        [(p.host, p.source, p.offset_bytes, p.offset_bytes + p.n_bytes) for p in problem.parcels],
        dtype=np.int64,
    ).reshape(-1, 4)
    leaves = _joined(np.stack([host, source, low, high], axis=1))
    lies = _joined(lies)
    if np.array_equal(lies, leaves):
        return
    there, gone = _by_host_and_source(lies), _by_host_and_source(leaves)
    # What leaves a wrong host is missing elsewhere: the former says more.
    for pair in sorted(gone):
        wrong = _without(gone[pair], there.get(pair, []))
        if wrong:
            raise ScheduleError(_wrong_host(case, *pair, wrong))
    for (host_index, owner), held in sorted(there.items()):
        stays = _without(held, gone.get((host_index, owner), []))
        if stays:
            raise ScheduleError(
                f"the data at {problem.names[host_index]!r} must leave it, missing: "
                f"{_text(stays, problem.names[owner])}"
            )


def _by_host_and_source(rows: IntArray) -> dict[tuple[int, int], Ranges]:
    ranges: dict[tuple[int, int], Ranges] = {}
    for host, source, low, high in rows.tolist():
        ranges.setdefault((host, source), []).append((low, high))
    return ranges


def _joined(rows: IntArray) -> IntArray:
    """Sort rows (host, source, first byte, end) and join those that touch."""
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    same = np.zeros(len(rows), dtype=bool)
    same[1:] = (rows[1:, :2] == rows[:-1, :2]).all(axis=1)
    first, high = _merged(same, rows[:, 2], rows[:, 3])
    return np.column_stack([rows[first, :3], high])


def _wrong_host(case: Case, host: int, source: int, wrong: Ranges) -> str:
    problem = case.problem
    lies_at = next(
        (
            problem.names[p.host]
            for p in problem.parcels
            if p.source == source and p.offset_bytes <= wrong[0][0] < p.offset_bytes + p.n_bytes
        ),
        problem.destination,
    )
    which = ", the destination," if lies_at == problem.destination else ""
    return (
        f"what starts at {problem.names[host]!r} must lie there, but at {lies_at!r}{which} lies: "
        f"{_text(wrong, problem.names[source])}"
    )


def _without(ranges: Ranges, others: Ranges) -> Ranges:
    """Return the parts of `ranges` that no range of `others` covers."""
    # Most ranges are in both: leave the others to the loops.
    both = set(ranges) & set(others)
    others = [pair for pair in others if pair not in both]
    left = []
    for low, high in (pair for pair in ranges if pair not in both):
        for a, b in others:
            if a < high and b > low:
                if a > low:
                    left.append((low, a))
                low = max(low, b)
        if low < high:
            left.append((low, high))
    return left


def _text(ranges: Ranges, source: str | None = None) -> str:
    low, high = ranges[0]
    total = counted(sum(b - a for a, b in ranges), "byte")
    others = f" and {counted(len(ranges) - 1, 'more range')}" if len(ranges) > 1 else ""
    owner = f" of {source!r}" if source else ""
    return f"{byte_range(low, high - low)}{others}{owner} ({total})"
