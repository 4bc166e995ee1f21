"""Independent answers for small problems: linear programs with one commodity per source.

Nothing here shares code or model with the library: every source's data are a commodity of their
own, storage is counted per commodity, and SciPy's HiGHS solves. Slow and plain on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from scipy.optimize import linprog

from datacollect.problem.problem import Problem


class _Rows:
    """Rows of a linear program, written one coefficient at a time."""

    def __init__(self) -> None:
        self.columns: dict[object, int] = {}
        self.equal: list[tuple[dict[int, float], float]] = []
        self.at_most: list[tuple[dict[int, float], float]] = []

    def column(self, key: object) -> int:
        return self.columns.setdefault(key, len(self.columns))

    def minimise(self, key: object) -> float | None:
        return self.cheapest({self.columns[key]: 1.0})

    def cheapest(self, cost_of: dict[int, float]) -> float | None:
        n = len(self.columns)
        # Tolerances are absolute: costs near 1.
        unit = max(map(abs, cost_of.values()), default=1.0) or 1.0
        cost = np.zeros(n)
        cost[list(cost_of)] = np.array(list(cost_of.values())) / unit
        parts = {}
        for name, rows in (("eq", self.equal), ("ub", self.at_most)):
            if rows:
                matrix = np.zeros((len(rows), n))
                for i, (row, _) in enumerate(rows):
                    for column, value in row.items():
                        matrix[i, column] += value
                parts[f"A_{name}"] = matrix
                parts[f"b_{name}"] = np.array([side for _, side in rows])
        result = linprog(cost, bounds=(0, None), method="highs", **parts)
        return float(result.fun) * unit if result.status == 0 else None


def fluid_makespan_s(problem: Problem) -> float | None:
    """The earliest end in the fluid model; None if something can never arrive."""
    if problem.total_bytes == 0:
        return 0.0
    changes = sorted({0.0, *problem.periods_s.tolist(), *(p.release_s for p in problem.parcels)})
    for last in range(len(changes)):
        length = _last_length(problem, changes[: last + 1], [*changes, np.inf][last + 1])
        if length is not None:
            return changes[last] + length
    return None


def _last_length(problem: Problem, starts: list[float], end: float) -> float | None:
    """Least length of the last piece; None if even its full length is too short."""
    total = float(problem.total_bytes)
    reference = total / (problem.bandwidth_bytes_per_s.max() or 1.0)
    destination = problem.destination_index
    pieces = range(len(starts))
    sources = sorted({parcel.source for parcel in problem.parcels})
    links = list(zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True))
    rows = _Rows()
    length = rows.column("length")
    rows.at_most.append(({length: 1.0}, min((end - starts[-1]) / reference, 1e12)))
    if any(parcel.release_s > starts[-1] for parcel in problem.parcels):
        return None

    def room(capacity: float, piece: int) -> tuple[dict[int, float], float]:
        """Capacity of a piece: a constant, or a multiple of the last piece's length."""
        if piece == len(starts) - 1:
            return {length: -capacity * reference / total}, 0.0
        return {}, capacity * (starts[piece + 1] - starts[piece]) / total

    def limit(columns: list[int], capacity: float, piece: int) -> None:
        if np.isfinite(capacity):
            row, side = room(capacity, piece)
            rows.at_most.append((dict.fromkeys(columns, 1.0) | row, side))

    for piece in pieces:
        period = int(np.searchsorted(problem.periods_s, starts[piece], side="right")) - 1
        flow = {
            (s, e): rows.column(("flow", s, e, piece)) for s in sources for e in range(len(links))
        }
        for e in range(len(links)):
            limit([flow[s, e] for s in sources], problem.bandwidth_bytes_per_s[period, e], piece)
        for host in range(problem.n_hosts):
            out = [flow[s, e] for s in sources for e, (a, _) in enumerate(links) if a == host]
            into = [flow[s, e] for s in sources for e, (_, b) in enumerate(links) if b == host]
            limit(out, problem.uplink_bytes_per_s[period, host], piece)
            limit(into, problem.downlink_bytes_per_s[period, host], piece)
        for shared, members in zip(problem.shared, problem.shared_links, strict=True):
            used = [flow[s, e] for s in sources for e in members.tolist()]
            limit(used, shared.bandwidth_bytes_per_s, piece)
        for s in sources:
            for host in range(problem.n_hosts):
                _balance(problem, rows, flow, links, s, host, piece, starts, total)
        for host in range(problem.n_hosts):
            if host != destination and np.isfinite(problem.storage_bytes[host]):
                kept = [rows.column(("kept", s, host, piece)) for s in sources if s != host]
                rows.at_most.append((dict.fromkeys(kept, 1.0), problem.storage_bytes[host] / total))
    found = rows.minimise("length")
    return None if found is None else found * reference


def most_arrived_bytes(problem: Problem, time_s: float) -> float:
    """The most that can have arrived by an instant: a linear program of its own.

    What a host holds of others takes up its storage until it leaves, whenever that is.
    """
    changes = sorted({0.0, *problem.periods_s.tolist(), *(p.release_s for p in problem.parcels)})
    starts = [start for start in changes if start < time_s]
    ends = [*starts[1:], time_s]
    total = float(problem.total_bytes)
    sources = sorted({parcel.source for parcel in problem.parcels})
    links = list(zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True))
    rows = _Rows()
    for piece, (start, end) in enumerate(zip(starts, ends, strict=True)):
        period = int(np.searchsorted(problem.periods_s, start, side="right")) - 1
        flow = {(s, e): rows.column((s, e, piece)) for s in sources for e in range(len(links))}

        def limit(used: list[tuple[int, int]], capacity: float) -> None:
            if np.isfinite(capacity):
                columns = [flow[key] for key in used]  # noqa: B023 - called in this round only
                room = capacity * (end - start) / total  # noqa: B023 - as above
                rows.at_most.append((dict.fromkeys(columns, 1.0), room))

        for e in range(len(links)):
            limit([(s, e) for s in sources], problem.bandwidth_bytes_per_s[period, e])
        for members, shared in zip(problem.shared_links, problem.shared, strict=True):
            used = [(s, e) for s in sources for e in members.tolist()]
            limit(used, shared.bandwidth_bytes_per_s)
        for host in range(problem.n_hosts):
            limit([(s, e) for s in sources for e, (a, _) in enumerate(links) if a == host],
                  problem.uplink_bytes_per_s[period, host])  # fmt: skip
            limit([(s, e) for s in sources for e, (_, b) in enumerate(links) if b == host],
                  problem.downlink_bytes_per_s[period, host])  # fmt: skip
            for s in sources:
                row = {rows.column(("at", s, host, piece)): 1.0}
                if piece:
                    row[rows.column(("at", s, host, piece - 1))] = -1.0
                for e, (a, b) in enumerate(links):
                    if host in (a, b):
                        row[flow[s, e]] = 1.0 if host == a else -1.0
                entering = sum(
                    parcel.n_bytes / total
                    for parcel in problem.parcels
                    if (parcel.host, parcel.source, parcel.release_s) == (host, s, start)
                )
                rows.equal.append((row, entering))
            others = [rows.column(("at", s, host, piece)) for s in sources if s != host]
            is_limited = np.isfinite(problem.storage_bytes[host]) and others
            if is_limited and host != problem.destination_index:
                room = problem.storage_bytes[host] / total
                rows.at_most.append((dict.fromkeys(others, 1.0), room))
    last = len(starts) - 1
    missing = rows.column("missing")
    arrived = {rows.column(("at", s, problem.destination_index, last)): 1.0 for s in sources}
    rows.equal.append((arrived | {missing: 1.0}, 1.0))
    least = rows.minimise("missing")
    assert least is not None  # to leave everything where it is breaks no rule
    return (1.0 - least) * total


def least_cost(
    problem: Problem, wish: str, end_s: float, late_bytes: Mapping[float, float] | None = None
) -> float | None:
    """Least cost of a fluid plan in which everything has arrived by `end_s`; None if there is none.

    ``"relay-bytes"``: bytes times links. ``"storage"``: byte-seconds of others' data at relays.
    ``"money"``: bytes times price. ``"arrived by T"``, T a number: bytes that have *not* arrived
    by then. By the instants of `late_bytes` at most so many have not arrived.
    """
    late_bytes = late_bytes or {}
    total = float(problem.total_bytes)
    arrival_s = float(wish.removeprefix("arrived by ")) if wish.startswith("arrived") else 0.0
    changes = {0.0, arrival_s, *late_bytes, *problem.periods_s.tolist()}
    changes |= {parcel.release_s for parcel in problem.parcels}
    if max(changes & {parcel.release_s for parcel in problem.parcels}) >= end_s:
        return None
    starts = sorted(change for change in changes if change < end_s)
    lengths = np.diff([*starts, end_s])
    sources = sorted({parcel.source for parcel in problem.parcels})
    links = list(zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True))
    destination = problem.destination_index
    prices = np.zeros(len(links)) if problem.price_per_gb is None else problem.price_per_gb
    rows, cost = _Rows(), {}
    late = {time_s: [] for time_s in late_bytes}

    def limit(columns: list[int], capacity: float) -> None:
        if np.isfinite(capacity):
            rows.at_most.append((dict.fromkeys(columns, 1.0), min(capacity / total, 1e9)))

    for piece, length in enumerate(lengths):
        period = int(np.searchsorted(problem.periods_s, starts[piece], side="right")) - 1
        flow = {
            (s, e): rows.column(("flow", s, e, piece)) for s in sources for e in range(len(links))
        }
        for (_, e), column in flow.items():
            arrives = links[e][1] == destination
            for time_s, columns in late.items():
                columns += [column] if arrives and starts[piece] >= time_s else []
            is_late = arrives and starts[piece] >= arrival_s
            per_byte = {"relay-bytes": 1.0, "money": prices[e] / 1e9, "storage": 0.0}
            cost[column] = per_byte.get(wish, float(is_late))
        for e in range(len(links)):
            bandwidth = problem.bandwidth_bytes_per_s[period, e]
            limit([flow[s, e] for s in sources], bandwidth * length)
        for host in range(problem.n_hosts):
            out = [flow[s, e] for s in sources for e, (a, _) in enumerate(links) if a == host]
            into = [flow[s, e] for s in sources for e, (_, b) in enumerate(links) if b == host]
            limit(out, problem.uplink_bytes_per_s[period, host] * length)
            limit(into, problem.downlink_bytes_per_s[period, host] * length)
        for shared, members in zip(problem.shared, problem.shared_links, strict=True):
            used = [flow[s, e] for s in sources for e in members.tolist()]
            limit(used, shared.bandwidth_bytes_per_s * length)
        for s in sources:
            for host in range(problem.n_hosts):
                _balance(problem, rows, flow, links, s, host, piece, starts, total)
        for host in range(problem.n_hosts):
            kept = [rows.column(("kept", s, host, piece)) for s in sources if s != host]
            if host == destination or not kept:
                continue
            limit(kept, problem.storage_bytes[host])
            # What is stored changes linearly: half of it counts in this piece, half in the next.
            following = lengths[piece + 1] if piece + 1 < len(lengths) else 0.0
            for column in kept:
                cost[column] = (length + following) / 2 * (wish == "storage")
    for time_s, columns in late.items():
        limit(columns, late_bytes[time_s])
    held = sum(p.n_bytes for p in problem.parcels if p.host != p.source) / total
    least = rows.cheapest(cost)
    if least is None:
        return None
    return (least + held * lengths[0] / 2 * (wish == "storage")) * total


def _balance(problem, rows, flow, links, s, host, piece, starts, total) -> None:
    """What is at a host and arrives in a piece leaves in it or is kept for the next."""
    row: dict[int, float] = {}
    for e, (a, b) in enumerate(links):
        if a == host:
            row[flow[s, e]] = row.get(flow[s, e], 0.0) + 1.0
        if b == host:
            row[flow[s, e]] = row.get(flow[s, e], 0.0) - 1.0
    entering = 0.0
    for parcel in problem.parcels:
        if parcel.host == host and parcel.source == s:
            starts_here = parcel.release_s == starts[piece]
            entering += parcel.n_bytes / total * starts_here
    if piece > 0:
        row[rows.column(("kept", s, host, piece - 1))] = -1.0
    if host == problem.destination_index or piece < len(starts) - 1:
        row[rows.column(("kept", s, host, piece))] = 1.0
    else:
        rows.column(("kept", s, host, piece))  # nothing may be left at the end
    rows.equal.append((row, entering))


def slotted_makespan_slots(problem: Problem, slot_s: float, most: int) -> int | None:
    """Fewest slots by store and forward, trying one after the other; None beyond `most`."""
    for n_slots in range(1, most + 1):
        if _arrives(problem, slot_s, n_slots):
            return n_slots
    return None


def _arrives(problem: Problem, slot_s: float, n_slots: int) -> bool:
    """Say whether all arrives: a linear program with one commodity per source."""
    sources = sorted({parcel.source for parcel in problem.parcels})
    links = list(zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True))
    destination = problem.destination_index
    rows = _Rows()
    missing = rows.column("missing")

    def whole(rate: float) -> float:
        return float(np.floor(rate * slot_s + 1e-9 * rate * slot_s))

    periods = [*problem.periods_s.tolist(), np.inf]
    for slot in range(n_slots):
        touched = [
            k
            for k, (a, b) in enumerate(pairwise(periods))
            if a < (slot + 1) * slot_s - 1e-9 and b > slot * slot_s + 1e-9
        ]
        bandwidth = problem.bandwidth_bytes_per_s[touched].min(axis=0)
        uplink = problem.uplink_bytes_per_s[touched].min(axis=0)
        downlink = problem.downlink_bytes_per_s[touched].min(axis=0)
        flow = {(s, e): rows.column((s, e, slot)) for s in sources for e in range(len(links))}

        def limit(columns: list[int], rate: float) -> None:
            if np.isfinite(rate) and columns:
                rows.at_most.append((dict.fromkeys(columns, 1.0), whole(rate)))

        for e in range(len(links)):
            limit([flow[s, e] for s in sources], bandwidth[e])
        for host in range(problem.n_hosts):
            out = [flow[s, e] for s in sources for e, (a, _) in enumerate(links) if a == host]
            into = [flow[s, e] for s in sources for e, (_, b) in enumerate(links) if b == host]
            limit(out, uplink[host])
            limit(into, downlink[host])
        for shared, members in zip(problem.shared, problem.shared_links, strict=True):
            limit([flow[s, e] for s in sources for e in members.tolist()],
                  shared.bandwidth_bytes_per_s)  # fmt: skip
    # at[s, host, t]: bytes of s at a host at boundary t, arrivals of slot t - 1 included
    for boundary in range(n_slots + 1):
        for host in range(problem.n_hosts):
            others = [rows.column(("at", s, host, boundary)) for s in sources if s != host]
            if host != destination and np.isfinite(problem.storage_bytes[host]) and others:
                rows.at_most.append((dict.fromkeys(others, 1.0), problem.storage_bytes[host]))
            for s in sources:
                row = {rows.column(("at", s, host, boundary)): 1.0}
                entering = 0.0
                for parcel in problem.parcels:
                    if (parcel.host, parcel.source) == (host, s):
                        entering += parcel.n_bytes * (
                            np.ceil(parcel.release_s / slot_s - 1e-9) == boundary
                        )
                if boundary > 0:
                    row[rows.column(("at", s, host, boundary - 1))] = -1.0
                    for e, (a, b) in enumerate(links):
                        crossing = rows.column((s, e, boundary - 1))
                        if b == host:
                            row[crossing] = row.get(crossing, 0.0) - 1.0
                        if a == host:
                            row[crossing] = row.get(crossing, 0.0) + 1.0
                rows.equal.append((row, entering))
                if boundary < n_slots:
                    leaving = {
                        rows.column((s, e, boundary)): 1.0
                        for e, (a, _) in enumerate(links)
                        if a == host
                    }
                    leaving[rows.column(("at", s, host, boundary))] = -1.0
                    rows.at_most.append((leaving, 0.0))
    arrived = {rows.column(("at", s, destination, n_slots)): -1.0 for s in sources}
    rows.at_most.append((arrived | {missing: -1.0}, -float(problem.total_bytes)))
    lost = rows.minimise("missing")
    return lost is not None and lost <= 1e-6
