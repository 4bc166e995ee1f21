"""Rows of a schedule as a controller needs them: lanes, rates, what waits for what."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from datacollect.control.connections import SHARED, Lane, Piece, RouteHop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.schedule.schedule import Schedule


class Row(NamedTuple):
    """One transfer, in a slotted schedule one slot of it."""

    route: int
    hop: int
    piece: Piece
    start_s: float
    finish_s: float
    lanes: int


def rows_of(schedule: Schedule, lanes: int | None) -> list[Row]:
    """Return the transfers in order of start, route, hop; `lanes` replaces their streams.

    Slotted transfers are cut into slots: a relay has to pass on what came in one slot in the
    next, before the whole transfer is there.
    """
    columns = schedule.columns
    rows = zip(
        columns.route.tolist(),
        columns.hop.tolist(),
        columns.offset_bytes.tolist(),
        columns.n_bytes.tolist(),
        columns.start_s.tolist(),
        columns.finish_s.tolist(),
        columns.streams.tolist(),
        strict=True,
    )
    listed = [
        Row(r, hop, Piece(schedule.routes[r].source, offset, n), start, finish, lanes or streams)
        for r, hop, offset, n, start, finish, streams in rows
        if n
    ]
    if schedule.slot_s is not None:
        listed = [part for row in listed for part in _slots_of(row, schedule.slot_s)]
    listed.sort(key=lambda row: (row.start_s, row.route, row.hop, row.piece.offset_bytes))
    return listed


def _slots_of(row: Row, slot_s: float) -> list[Row]:
    """Cut a transfer into what it carries in each of its slots."""
    n_slots = max(1, round((row.finish_s - row.start_s) / slot_s))
    length_s = (row.finish_s - row.start_s) / n_slots
    return [
        row._replace(
            piece=piece,
            start_s=row.start_s + i * length_s,
            finish_s=row.start_s + (i + 1) * length_s,
        )
        for i, piece in enumerate(stripes(row.piece, n_slots))
        if piece.n_bytes
    ]


def lanes_of_rows(
    schedule: Schedule, rows: Sequence[Row], *, shared: bool
) -> list[tuple[Lane, ...]]:
    """Return the lanes over which each row is divided."""
    known: dict[tuple[int, int, int], tuple[Lane, ...]] = {}
    for row in rows:
        key = (row.route, row.hop, row.lanes)
        if key not in known:
            hosts = schedule.routes[row.route].hosts
            route = SHARED if shared else row.route
            known[key] = tuple(
                Lane(hosts[row.hop], hosts[row.hop + 1], route, number)
                for number in range(row.lanes)
            )
    return [known[row.route, row.hop, row.lanes] for row in rows]


def stripes(piece: Piece, n_parts: int) -> list[Piece]:
    """Divide a piece into consecutive parts whose sizes differ by a byte at most.

    >>> stripes(Piece("S", 0, 10), 3)  # doctest: +NORMALIZE_WHITESPACE
    [Piece(source='S', offset_bytes=0, n_bytes=3), Piece(source='S', offset_bytes=3, n_bytes=3),
     Piece(source='S', offset_bytes=6, n_bytes=4)]
    """
    if n_parts == 1:
        return [piece]
    cuts = [piece.offset_bytes + piece.n_bytes * i // n_parts for i in range(n_parts + 1)]
    return [Piece(piece.source, start, end - start) for start, end in pairwise(cuts)]


def planned_paces(rows: Sequence[Row], lanes: Sequence[tuple[Lane, ...]]) -> dict[Lane, float]:
    """Return the greatest rate that is planned on each lane at any instant."""
    changes: dict[Lane, list[tuple[float, float]]] = {}
    for row, used in zip(rows, lanes, strict=True):
        rate = row.piece.n_bytes / (row.finish_s - row.start_s) / len(used)
        for lane in used:
            changes.setdefault(lane, []).extend([(row.start_s, rate), (row.finish_s, -rate)])
    paces = {}
    for lane, steps in changes.items():
        rate = pace = 0.0
        for _, step in sorted(steps):  # what ends at an instant goes before what starts
            rate += step
            pace = max(pace, rate)
        paces[lane] = pace
    return paces


class WholeRanges:
    """Follow which rows are entirely at the host that is to send them.

    Ranges arrive in other cuts than they leave; on each hop of a route those that leave are
    disjoint, so every arriving range counts towards the few rows that it overlaps.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._missing_bytes = [row.piece.n_bytes if row.hop else 0 for row in rows]
        self._by_hop: dict[RouteHop, list[tuple[int, int, int]]] = {}
        for number, row in enumerate(rows):
            if row.hop:
                entry = (row.piece.offset_bytes, row.piece.n_bytes, number)
                self._by_hop.setdefault(RouteHop(row.route, row.hop), []).append(entry)
        for entries in self._by_hop.values():
            entries.sort()
        self._starts = {
            route_hop: [e[0] for e in entries] for route_hop, entries in self._by_hop.items()
        }

    def is_whole(self, row: int) -> bool:
        """Return whether all of a row is at its sender."""
        return self._missing_bytes[row] == 0

    def arrived(self, route_hop: RouteHop, offset_bytes: int, n_bytes: int) -> list[int]:
        """Count what one hop delivered; return the rows of the next that have become whole."""
        following = RouteHop(route_hop.route, route_hop.hop + 1)
        entries = self._by_hop.get(following)
        if entries is None:
            return []
        end, whole = offset_bytes + n_bytes, []
        first = max(0, bisect_right(self._starts[following], offset_bytes) - 1)
        for i in range(first, len(entries)):
            start, size, row = entries[i]
            if start >= end:
                break
            overlap = min(end, start + size) - max(offset_bytes, start)
            if overlap > 0:
                self._missing_bytes[row] -= overlap
                if self._missing_bytes[row] == 0:
                    whole.append(row)
        return whole
