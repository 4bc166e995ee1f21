"""Jobs of each host: pieces of files to fetch, each with its place, its hop, its time and rate."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError
from datacollect.numbers.byte_ranges import ByteRanges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.manifest import Files
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.contents import ScheduleContents

# What passes relays is cut: a relay forwards only whole pieces. Fifty on a route delay its end by
# about a fiftieth for each relay; below a mebibyte requests would take longer than data.
PIECES_PER_ROUTE, LEAST_PIECE_BYTES = 50, 2**20


@dataclass(frozen=True)
class Cuts:
    """Into which pieces a plan is cut, where the tool fetches parts of files.

    Attributes
    ----------
    most_bytes : int or None
        Most bytes of a piece that passes relays; None: a part of what its route carries, at least
        a mebibyte.
    per_route : int
        That part: one of so many.
    at_rates : bool
        Whether pieces also end where the plan's rates change: each goes at a rate that it has.
    longest_s : float
        As the plan has it, a piece that passes relays takes so long on each hop at most.
    """

    most_bytes: int | None = None
    per_route: int = PIECES_PER_ROUTE
    at_rates: bool = False
    longest_s: float = math.inf


@dataclass(frozen=True)
class FilePiece:
    """A range of a file that travels as one.

    Attributes
    ----------
    source, path : str
    offset_bytes, n_bytes : int
        Its place in the file.
    file_bytes : int
    sha256 : str
        Of the whole file; empty where it is not known.
    """

    source: str
    path: str
    offset_bytes: int
    n_bytes: int
    file_bytes: int
    sha256: str

    @property
    def is_whole(self) -> bool:
        """Return whether it is the whole file."""
        return self.n_bytes == self.file_bytes


@dataclass(frozen=True)
class FetchJob:
    """Piece that one host fetches from another.

    Attributes
    ----------
    piece : FilePiece
    host, request_from : str
        Who fetches, and from whom.
    forward_to : str or None
        Who fetches it from `host`; None at the destination.
    start_s : float
        When the plan has it begin.
    rate_bytes_per_s : float
    lane : int
        Jobs of one lane follow each other; lanes of a host run side by side.
    after : int or None
        Index of the job that brings it to `request_from`.
    """

    piece: FilePiece
    host: str
    request_from: str
    forward_to: str | None
    start_s: float
    rate_bytes_per_s: float
    lane: int
    after: int | None = None


@dataclass(frozen=True)
class Jobs:
    """All jobs of a plan, in an order in which none comes before what it waits for.

    Attributes
    ----------
    jobs : tuple of FetchJob
    n_cut : int
        Files that the plan cuts, where the tool takes whole files only.
    """

    jobs: tuple[FetchJob, ...]
    n_cut: int = 0

    def of(self, host: str) -> list[FetchJob]:
        """Return what one host fetches."""
        return [job for job in self.jobs if job.host == host]


def jobs_of(
    problem: Problem,
    schedule: ScheduleContents,
    manifest: Mapping[str, Files],
    *,
    may_cut: bool = True,
    cuts: Cuts = Cuts(),
) -> Jobs:
    """Turn a schedule's transfers into jobs for tools.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Of this problem.
    manifest : mapping of str to Files
        By source; together they are exactly the backlogs.
    may_cut : bool
        Whether files may be fetched in pieces. Else they go whole, each by the route that carries
        most of it.
    cuts : Cuts, optional
        By default a piece that passes relays is a fiftieth of what its route carries.
    """
    found: list[FetchJob] = []
    n_lanes = 0
    cut = _cut_files(schedule, manifest, may_cut)
    whole, direct = _whole_files(problem, schedule, manifest, cut)
    for index, route in enumerate(schedule.routes):
        clock = _Clock(schedule, index)
        pieces = _pieces(schedule, index, clock, manifest, may_cut, cuts)
        streams = clock.streams
        timed = _in_turn([*pieces, *whole.get(index, [])], clock)
        if not timed:
            continue
        hosts = route.hosts
        before: list[int | None] = [None] * len(timed)
        for hop in range(len(hosts) - 1):
            for i, (first, last, piece) in enumerate(timed):
                start_s, rate = clock.when(hop, first, last)
                if piece.is_whole and piece.n_bytes > last - first:
                    rate = clock.mean_rate(hop)
                job = FetchJob(
                    piece=piece,
                    host=hosts[hop + 1],
                    request_from=hosts[hop],
                    forward_to=hosts[hop + 2] if hop + 2 < len(hosts) else None,
                    start_s=start_s,
                    rate_bytes_per_s=rate / streams,
                    lane=n_lanes + i % streams,
                    after=before[i],
                )
                before[i] = len(found)
                found.append(job)
            n_lanes += streams
    for source, i in direct:
        found.append(_direct_job(problem, source, i, manifest, n_lanes))
        n_lanes += 1
    return Jobs(tuple(found), len(cut))


class _Clock:
    """Times at which the bytes of one route cross its hops, by their place in the backlog."""

    def __init__(self, schedule: ScheduleContents, route: int) -> None:
        columns = schedule.columns
        self._hops: list[tuple[IntArray, IntArray, FloatArray, FloatArray]] = []
        mine = columns.route == route
        self.streams = int(columns.streams[mine].max(initial=1))
        for hop in range(schedule.routes[route].n_hops):
            rows = np.flatnonzero(mine & (columns.hop == hop))
            rows = rows[np.argsort(columns.offset_bytes[rows], kind="stable")]
            first = columns.offset_bytes[rows]
            ends = first + columns.n_bytes[rows]
            self._hops.append((first, ends, columns.start_s[rows], columns.finish_s[rows]))

    @property
    def n_hops(self) -> int:
        """Return how many hops the route has."""
        return len(self._hops)

    def stretches(self) -> list[tuple[int, int]]:
        """Return the ranges, cut where a transfer of any hop begins or ends."""
        edges = np.unique(np.concatenate([each for hop in self._hops for each in hop[:2]])).tolist()
        found = []
        for low, high in self.ranges():
            inner = edges[bisect_right(edges, low) : bisect_left(edges, high)]
            found += [*pairwise([low, *inner, high])]
        return found

    def ranges(self) -> list[tuple[int, int]]:
        """Return the first hop's ranges (first byte, end) in the order in which they leave."""
        first, ends, start_s, finish_s = self._hops[0]
        order = np.lexsort((first, start_s))
        joined: list[tuple[int, int]] = []
        finish = -math.inf
        for i in order.tolist():
            low, high = int(first[i]), int(ends[i])
            # Ranges that follow each other in both place and time are one.
            tolerance_s = 1e-6 * max(1.0, float(finish_s[i]))
            if joined and joined[-1][1] == low and abs(start_s[i] - finish) <= tolerance_s:
                joined[-1] = (joined[-1][0], high)
            else:
                joined.append((low, high))
            finish = float(finish_s[i])
        return joined

    def when(self, hop: int, low: int, high: int) -> tuple[float, float]:
        """Return when a range begins to cross a hop, and at which mean rate."""
        first, ends, start_s, finish_s = self._hops[hop]
        a = int(np.searchsorted(ends, low, side="right"))
        b = int(np.searchsorted(first, high, side="left"))
        n = (ends - first)[a:b]
        length = (finish_s - start_s)[a:b]
        begin = start_s[a:b] + np.maximum(low - first[a:b], 0) / n * length
        end = finish_s[a:b] - np.maximum(ends[a:b] - high, 0) / n * length
        begin_s, end_s = float(begin.min()), float(end.max())
        return begin_s, (high - low) / max(end_s - begin_s, 1e-9)

    def mean_rate(self, hop: int) -> float:
        """Return the rate of all that crosses a hop, while it does."""
        first, ends, start_s, finish_s = self._hops[hop]
        return float((ends - first).sum() / max(float((finish_s - start_s).sum()), 1e-9))


_Timed = tuple[int, int, FilePiece]


def _pieces(
    schedule: ScheduleContents,
    index: int,
    clock: _Clock,
    manifest: Mapping[str, Files],
    may_cut: bool,
    cuts: Cuts,
) -> list[_Timed]:
    """Cut a route's ranges at the ends of files, and into pieces where relays forward them."""
    route = schedule.routes[index]
    ranges = clock.stretches() if cuts.at_rates and may_cut else clock.ranges()
    carried = sum(high - low for low, high in ranges)
    files = manifest[route.source]
    pieces: list[_Timed] = []
    for low, high in ranges:
        for i, first, last in _by_file(files, low, high):
            path, size = files.paths[i], int(files.n_bytes[i])
            begins = int(files.ends[i]) - size
            is_whole = last - first == size
            if not is_whole and not may_cut:
                continue
            parts = 1
            if may_cut and route.n_hops > 1:
                parts = -(-(last - first) // _most_bytes(cuts, carried, clock, low, high))
            if may_cut:
                parts = max(parts, min(clock.streams, last - first))
            edges = [first + (last - first) * k // parts for k in range(parts + 1)]
            for a, b in pairwise(edges):
                piece = FilePiece(route.source, path, a - begins, b - a, size, files.sha256[i])
                pieces.append((a, b, piece))
    return pieces


def _most_bytes(cuts: Cuts, carried: int, clock: _Clock, low: int, high: int) -> int:
    """Return how large pieces of a range may be that pass relays."""
    if cuts.most_bytes is not None:
        return cuts.most_bytes
    most = carried // cuts.per_route
    if math.isfinite(cuts.longest_s):
        slowest = min(clock.when(hop, low, high)[1] for hop in range(clock.n_hops))
        most = min(most, math.floor(slowest * cuts.longest_s))
    return max(most, LEAST_PIECE_BYTES)


def _in_turn(pieces: list[_Timed], clock: _Clock) -> list[_Timed]:
    """Sort pieces as the plan has them leave."""
    lows = [low for low, _ in clock.ranges()]
    turn = {low: k for k, low in enumerate(lows)}
    starts = sorted(lows)

    def key(item: _Timed) -> tuple[int, int]:
        return turn[starts[bisect_right(starts, item[0]) - 1]], item[0]

    return sorted(pieces, key=key)


def _by_file(files: Files, low: int, high: int) -> Iterator[tuple[int, int, int]]:
    i = int(np.searchsorted(files.ends, low, side="right"))
    while low < high:
        end = min(int(files.ends[i]), high)
        if end > low:
            yield i, low, end
        low = max(low, end)
        i += 1


def _held_by(problem: Problem) -> dict[tuple[str, str], ByteRanges]:
    held: dict[tuple[str, str], ByteRanges] = {}
    for entry in problem.held:
        held.setdefault((entry.host, entry.source), ByteRanges()).add(
            entry.offset_bytes, entry.n_bytes
        )
    return held


def _cut_files(
    schedule: ScheduleContents, manifest: Mapping[str, Files], may_cut: bool
) -> dict[tuple[str, int], dict[int, int]]:
    """Return, for each file that goes whole though the plan cuts it, its bytes by route."""
    moved: dict[tuple[str, int], dict[int, int]] = {}
    for index, route in enumerate(schedule.routes):
        files = manifest[route.source]
        for low, high in _Clock(schedule, index).ranges():
            for i, first, last in _by_file(files, low, high):
                if may_cut or last - first == files.n_bytes[i]:
                    continue
                by_route = moved.setdefault((route.source, i), {})
                by_route[index] = by_route.get(index, 0) + last - first
    return moved


def _whole_files(
    problem: Problem,
    schedule: ScheduleContents,
    manifest: Mapping[str, Files],
    cut: Mapping[tuple[str, int], Mapping[int, int]],
) -> tuple[dict[int, list[_Timed]], list[tuple[str, int]]]:
    """Give each file that may not be cut to the route that carries most of it.

    Where every route begins at hosts that hold only parts of it, it has to go directly.
    """
    held = _held_by(problem)
    found: dict[int, list[_Timed]] = {}
    direct = []
    for (source, i), by_route in cut.items():
        files = manifest[source]
        end, size = int(files.ends[i]), int(files.n_bytes[i])
        able = [
            index
            for index in by_route
            if (first := schedule.routes[index].hosts[0]) == source
            or not held[first, source].missing(end - size, size)
        ]
        if not able:
            direct.append((source, i))
            continue
        index = max(able, key=lambda k: (by_route[k], -k))
        low, high = next(
            (first, last)
            for low, high in _Clock(schedule, index).ranges()
            for j, first, last in _by_file(files, low, high)
            if j == i
        )
        piece = FilePiece(source, files.paths[i], 0, size, size, files.sha256[i])
        found.setdefault(index, []).append((low, high, piece))
    return found, direct


def _direct_job(
    problem: Problem, source: str, i: int, manifest: Mapping[str, Files], lane: int
) -> FetchJob:
    files, destination = manifest[source], problem.destination
    tail, head = problem.host_index[source], problem.destination_index
    row = np.flatnonzero((problem.link_from == tail) & (problem.link_to == head))
    rate = float(np.max(problem.bandwidth_bytes_per_s[..., row], initial=0.0))
    if rate <= 0:
        raise ProblemError(
            f"{files.paths[i]!r} of {source!r} lies in parts at relays, the tool fetches whole "
            f"files only, and no link leads from {source!r} to {destination!r}; use curl or rclone"
        )
    size = int(files.n_bytes[i])
    piece = FilePiece(source, files.paths[i], 0, size, size, files.sha256[i])
    return FetchJob(piece, destination, source, None, 0.0, rate, lane)
