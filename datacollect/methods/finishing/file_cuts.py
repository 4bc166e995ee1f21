"""Plans of files: where routes share a source's backlog, they share it at files' boundaries.

A plan says how many bytes each route carries, not which. Here every route gets one stretch of the
source's files in the manifest's order. Where a stretch ends within a file, its end moves to the
file's, if no route's share grows by more than a tolerance; the whole plan then takes longer by the
largest growth. Otherwise the file is split, and has a range for each route that it meets.

Which ends move is found exactly, by dynamic programming over the ends with three choices each: the
file's beginning, its end, where the share is exact. Of all such choices the fewest files are split;
of these the least growth is taken. At most one file for each route but the last is split, whatever
the number of files: n files and k routes take O(k log n), after one sum over the files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.smallest_sufficient import bisected
from datacollect.schedule.data.transfers import Transfers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.numbers.arrays import BoolArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# Growth is looked for in steps of about a millionth of the tolerance.
GROWTH_STEPS = 2**20


def with_cuts_at_files(problem: Problem, schedule: Schedule) -> Iterator[Schedule]:
    """Yield the plan with routes that share a source's backlog at files' boundaries, best first.

    Storage that is full to the last byte, say, may forbid a shape: then the next one is tried.

    Parameters
    ----------
    problem : Problem
        With or without a manifest.
    schedule : Schedule
        A valid plan for it.

    Yields
    ------
    Schedule
        Later by the problem's `file_tolerance` at most, as a part of the makespan; the plan itself
        comes last. With periods or slots no share changes: files are split where stretches end.

    Examples
    --------
    >>> import numpy as np
    >>> import datacollect as dc
    >>> from datacollect.problem.manifest import Files
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]], [2_000_000, 0, 0], "D"
    ... )
    >>> files = Files(("a", "b"), np.array([1_001_000, 999_000]), ("", ""))
    >>> plan = dc.coordinated(problem.replace(manifest={"S": files}))
    >>> sorted(plan.transfers.query("hop == 0").groupby("route")["bytes"].sum())
    [999000, 1001000]
    """
    if problem.manifest is None:
        yield schedule
        return
    held = {part.source for part in problem.held}
    steady = problem.n_periods == 1 and schedule.slot_s is None
    latest = problem.file_tolerance if steady else 0.0
    if schedule.deadline_s is not None and schedule.makespan_s > 0:
        latest = min(latest, max(0.0, schedule.deadline_s / schedule.makespan_s - 1))
    sources = {
        source: files.ends for source, files in problem.manifest.items() if source not in held
    }
    for tolerance in (latest, 0.0) if latest else (0.0,):
        yield _with_cuts(schedule, sources, tolerance)
    yield schedule


def files_split(problem: Problem, schedule: Schedule) -> tuple[int, int]:
    """Return how many files travel in several ranges, and how many ranges that makes.

    What lies together and takes the same route is one range, in however many transfers it goes.
    """
    n_split = n_ranges = 0
    columns = schedule.columns
    sources = np.array([route.source for route in schedule.routes], dtype=object)
    for source, files in (problem.manifest or {}).items():
        rows = np.flatnonzero((columns.hop == 0) & (sources[columns.route] == source))
        rows = rows[np.argsort(columns.offset_bytes[rows], kind="stable")]
        route, start = columns.route[rows], columns.offset_bytes[rows]
        changes = start[1:][route[1:] != route[:-1]]
        place = np.searchsorted(files.ends, changes, side="right")
        begins = files.ends - files.n_bytes
        inside = changes > begins[np.minimum(place, len(begins) - 1)]
        cut = place[inside & (place < len(begins))]
        n_split += len(np.unique(cut))
        n_ranges += len(np.unique(cut)) + len(cut)
    return n_split, n_ranges


def stretches(shares: IntArray, ends: IntArray, tolerance: float) -> IntArray:
    """Return where the stretches of routes end: at files' ends, where shares allow it.

    Parameters
    ----------
    shares : ndarray of int64, shape (n_routes,)
        Bytes of each route, above 0; together all bytes of the files.
    ends : ndarray of int64, shape (n_files,)
        Where files end, in bytes from the first one's beginning.
    tolerance : float
        A route's share may grow by this part of itself.

    Returns
    -------
    ndarray of int64, shape (n_routes,)

    Examples
    --------
    >>> stretches(np.array([50, 50]), np.array([51, 100]), 0.02).tolist()
    [51, 100]
    >>> stretches(np.array([50, 50]), np.array([90, 100]), 0.02).tolist()
    [50, 100]
    """
    exact = np.cumsum(shares)
    after = np.minimum(np.searchsorted(ends, exact), len(ends) - 1)
    before = np.where(after > 0, ends[after - 1], 0)
    choices = np.stack([exact, before, ends[after]], axis=1)
    # An end that is a file's already costs nothing.
    splits = np.isin(exact, ends, invert=True)
    least, found = _fewest_splits(shares, choices, splits, tolerance)

    def attempt(steps: int) -> IntArray | None:
        growth = tolerance * steps / GROWTH_STEPS
        n_split, other = _fewest_splits(shares, choices, splits, growth)
        return other if n_split == least else None

    return bisected(attempt, 0, GROWTH_STEPS, found) if tolerance else found


def _fewest_splits(
    shares: IntArray, choices: IntArray, splits: BoolArray, tolerance: float
) -> tuple[int, IntArray]:
    """Choose an end for each stretch, so that no share grows too much and few ends split a file."""
    n = len(shares)
    most = np.floor(shares * (1 + tolerance))
    cost = np.full((n, 3), np.inf)
    came = np.zeros((n, 3), dtype=np.int64)
    price = np.zeros((n, 3))
    price[:, 0] = splits
    starts, so_far = np.zeros(1, dtype=np.int64), np.zeros(1)
    for i in range(n):
        size = choices[i][:, None] - starts[None, :]
        fits = (size >= 0) & (size <= most[i])
        total = np.where(fits, so_far[None, :], np.inf)
        came[i] = total.argmin(axis=1)
        cost[i] = total.min(axis=1) + price[i]
        starts, so_far = choices[i], cost[i]
    chosen = np.zeros(n, dtype=np.int64)
    pick = 0  # the last stretch ends with the last file, exactly
    for i in range(n - 1, -1, -1):
        chosen[i] = choices[i, pick]
        pick = int(came[i, pick])
    return int(cost[-1, 0]), chosen


def _with_cuts(schedule: Schedule, sources: dict[str, IntArray], tolerance: float) -> Schedule:
    """Give every route its stretch of its source's files."""
    columns = schedule.columns
    route = columns.route
    first = columns.hop == 0
    offset, n_bytes = columns.offset_bytes.copy(), columns.n_bytes.copy()
    growth = 1.0
    for source, ends in sources.items():
        own = [i for i, r in enumerate(schedule.routes) if r.source == source]
        shares = np.array(
            [columns.n_bytes[first & (route == i)].sum() for i in own], dtype=np.int64
        )
        used = [i for i, share in zip(own, shares.tolist(), strict=True) if share]
        shares = shares[shares > 0]
        if len(used) < 2 or int(shares.sum()) != int(ends[-1]):
            continue
        until = stretches(shares, ends[np.diff(ends, prepend=0) > 0], tolerance)
        starts = np.concatenate([[0], until[:-1]])
        growth = max(growth, float(((until - starts) / shares).max()))
        for i, begin, end, share in zip(
            used, starts.tolist(), until.tolist(), shares.tolist(), strict=True
        ):
            rows = np.flatnonzero(route == i)
            places = _Places(columns, np.flatnonzero(first & (route == i)))
            low = places.of(columns.offset_bytes[rows])
            high = low + columns.n_bytes[rows]
            ratio = (end - begin) / share
            scaled = _scaled(low, ratio, share, end - begin)
            offset[rows] = begin + scaled
            n_bytes[rows] = _scaled(high, ratio, share, end - begin) - scaled
    keep = n_bytes > 0
    order = np.flatnonzero(keep)
    changed = Transfers(
        route=route[order],
        hop=columns.hop[order],
        offset_bytes=offset[order],
        n_bytes=n_bytes[order],
        start_s=columns.start_s[order] * growth,
        finish_s=columns.finish_s[order] * growth,
        streams=columns.streams[order],
    )
    chunk_s = None if schedule.chunk_s is None else schedule.chunk_s * growth
    return schedule.replace(
        columns=changed,
        makespan_s=float(changed.finish_s.max(initial=0.0)),
        chunk_s=chunk_s,
    )


def _scaled(place: IntArray, ratio: float, share: int, size: int) -> IntArray:
    """Return places of a share in one of another size: whole, in order, the last at the end."""
    if share == size:
        return place
    scaled = np.rint(place * ratio).astype(np.int64)
    return np.where(place == share, size, np.minimum(scaled, size))


class _Places:
    """Positions of a source's bytes among those of one route, in the backlog's order."""

    def __init__(self, columns: Transfers, rows: IntArray) -> None:
        rows = rows[np.argsort(columns.offset_bytes[rows], kind="stable")]
        self.starts = columns.offset_bytes[rows]
        self.before = np.cumsum(columns.n_bytes[rows]) - columns.n_bytes[rows]

    def of(self, offsets: IntArray) -> IntArray:
        """Return the place of each byte."""
        i = np.searchsorted(self.starts, offsets, side="right") - 1
        places: IntArray = self.before[i] + offsets - self.starts[i]
        return places
