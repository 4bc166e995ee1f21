"""Pipelined schedules: every path of a fluid plan becomes a pipeline of transfers.

A relay forwards what it received one chunk ago, so hop j of a path runs j chunks after hop 0, at
the same rate. Rates are constant within a piece of time; a piece that others follow has been
planned short by the longest pipeline's delay, so that it drains before rates change.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from datacollect.routes import cut_parcels, whole_bytes
from datacollect.schedule import Route, Transfers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.fluid import FluidPlan
    from datacollect.problem import Problem
    from datacollect.routes import PathFlow


class RouteBook:
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
    problem: Problem, plan: FluidPlan, chunk_s: float
) -> tuple[tuple[Route, ...], Transfers]:
    """Turn a fluid plan into routes and transfers, with whole bytes."""
    book = RouteBook(problem)
    starts, lengths = plan.starts_s.tolist(), plan.lengths_s.tolist()
    rows: list[tuple[int, int, int, int, float, float]] = []
    paths_of_pool: defaultdict[int, list[PathFlow]] = defaultdict(list)
    for path in plan.paths:
        paths_of_pool[path.pool].append(path)
    for number, pool in enumerate(plan.pools):
        paths = paths_of_pool[number]
        # The earlier part of a stream takes the earlier paths: easier to follow, equally fast.
        paths.sort(key=lambda path: path.pieces)
        sizes = whole_bytes(pool.n_bytes, [path.amount for path in paths])
        windows = [_windows(path.pieces, starts, lengths, chunk_s) for path in paths]
        for i, parcel, offset, n_bytes in cut_parcels(pool, sizes):
            route = book.number(parcel.source, paths[i].hosts)
            rows.extend(
                (route, hop, offset, n_bytes, start, finish)
                for hop, (start, finish) in enumerate(windows[i])
            )
    return book.routes(), transfers_from_rows(rows)


def transfers_from_rows(rows: Sequence[tuple[int, int, int, int, float, float]]) -> Transfers:
    """Build the table from rows (route, hop, offset_bytes, n_bytes, start_s, finish_s)."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in range(6))
    names = ("route", "hop", "offset_bytes", "n_bytes", "start_s", "finish_s")
    return Transfers.build(**dict(zip(names, columns, strict=True)))


def longest_pipeline(plan: FluidPlan) -> int:
    """Most hops that any path takes within one piece of time."""
    return max((_run_positions(path.pieces)[1] for path in plan.paths), default=1)


def _run_positions(pieces: Sequence[int]) -> tuple[list[int], int]:
    """Position of each hop among consecutive hops of its piece, and the longest run's length."""
    positions: list[int] = []
    for hop, piece in enumerate(pieces):
        same = hop > 0 and pieces[hop - 1] == piece
        positions.append(positions[-1] + 1 if same else 0)
    return positions, max(positions) + 1


def _windows(
    pieces: Sequence[int], starts_s: Sequence[float], lengths_s: Sequence[float], chunk_s: float
) -> list[tuple[float, float]]:
    """Start and finish of each hop."""
    windows = []
    for piece, position in zip(pieces, _run_positions(pieces)[0], strict=True):
        start = starts_s[piece] + position * chunk_s
        windows.append((start, start + lengths_s[piece]))
    return windows
