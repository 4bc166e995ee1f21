"""Schedules given row by row, for what carries them out."""

from __future__ import annotations

from collections.abc import Sequence

from datacollect.problem.problem import Problem
from datacollect.schedule.data.transfers import Route, Transfers
from datacollect.schedule.schedule import Schedule

RATE = 312_500.0  # 2.5 Mbit/s
LINE_BYTES = 5_000_000

Row = tuple[int, int, int, int, float, float]


def plan_of(
    routes: Sequence[tuple[str, ...]], rows: Sequence[Row], slot_s: float | None = None
) -> Schedule:
    """A schedule of rows (route, hop, offset, bytes, start, finish); sources come first."""
    names = ("route", "hop", "offset_bytes", "n_bytes", "start_s", "finish_s")
    columns = Transfers.build(**dict(zip(names, zip(*rows, strict=True), strict=True)))
    return Schedule(
        method="by hand",
        destination=routes[0][-1],
        makespan_s=max(row[5] for row in rows),
        lower_bound_s=0.0,
        slot_s=slot_s,
        chunk_s=None if slot_s else 0.0,
        solver="",
        problem_sha256="",
        routes=tuple(Route(hosts[0], hosts) for hosts in routes),
        columns=columns,
    )


def line_problem() -> Problem:
    """S holds 5 MB, and reaches D through K, over two links of 2.5 Mbit/s."""
    bandwidth = [[0, RATE, 0], [0, 0, RATE], [0, 0, 0]]
    return Problem.from_matrix(["S", "K", "D"], bandwidth, [LINE_BYTES, 0, 0], "D")


def line_in_pieces(n: int) -> Schedule:
    """Store and forward in n equal pieces; the relay sends each a slot after it got it."""
    piece, slot_s = LINE_BYTES // n, LINE_BYTES / n / RATE
    rows = [
        (0, hop, i * piece, piece, (i + hop) * slot_s, (i + hop + 1) * slot_s)
        for i in range(n)
        for hop in (0, 1)
    ]
    return plan_of([("S", "K", "D")], rows, slot_s)
