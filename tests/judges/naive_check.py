"""A second judge: plain loops over exact fractions, byte by byte where that matters.

It shares no code with the library and knows no vectors. It takes small schedules only.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple


class Move(NamedTuple):
    """A transfer, exact."""

    route: tuple  # (source, hosts)
    hop: int
    first: int
    size: int
    start: Fraction
    finish: Fraction

    @property
    def tail(self):
        return self.route[1][self.hop]

    @property
    def head(self):
        return self.route[1][self.hop + 1]

    @property
    def rate(self):
        return self.size / (self.finish - self.start)

    def instant(self, byte):
        """When all before `byte` has passed."""
        return self.start + (self.finish - self.start) * Fraction(byte - self.first, self.size)

    def moved(self, instant):
        """Bytes that have passed by `instant`."""
        share = (instant - self.start) / (self.finish - self.start)
        return self.size * min(max(share, Fraction(0)), Fraction(1))


def broken_rules(problem, schedule):
    """Names of all rules that the schedule breaks: an empty set if it is valid."""
    columns = schedule.columns
    moves = [
        Move(
            (schedule.routes[route].source, schedule.routes[route].hosts),
            hop,
            first,
            size,
            Fraction(start),
            Fraction(finish),
        )
        for route, hop, first, size, start, finish in zip(
            columns.route.tolist(),
            columns.hop.tolist(),
            columns.offset_bytes.tolist(),
            columns.n_bytes.tolist(),
            columns.start_s.tolist(),
            columns.finish_s.tolist(),
            strict=True,
        )
    ]
    if not _complete(problem, moves):
        return {"complete"}
    slot = None if schedule.slot_s is None else Fraction(schedule.slot_s)
    if slot is not None and any((t / slot).denominator > 1 for m in moves for t in m[4:6]):
        return {"grid"}
    chunk = Fraction(schedule.chunk_s or 0)
    rules = {
        "release": _after_release(problem, moves),
        "causality": _causal(moves) if slot is None else _slot_by_slot(moves, slot),
        "capacity": _within_capacity(problem, moves, slot),
        "storage": _within_storage(problem, moves, chunk, slot),
        "makespan": schedule.makespan_s == max(m.finish for m in moves if m.head == "D"),
    }
    return {name for name, kept in rules.items() if not kept}


def _complete(problem, moves):
    lies = {}
    for parcel in problem.parcels:
        for byte in range(parcel.offset_bytes, parcel.offset_bytes + parcel.n_bytes):
            lies[problem.names[parcel.source], byte] = problem.names[parcel.host]
    seen = {}
    for move in moves:
        for byte in range(move.first, move.first + move.size):
            seen.setdefault((move.route[0], byte), []).append((move.route, move.hop))
    if set(seen) != set(lies):
        return False
    for key, hops in seen.items():
        route = hops[0][0]
        if sorted(hops) != [(route, hop) for hop in range(len(route[1]) - 1)]:
            return False
        if route[1][0] != lies[key]:
            return False
    return True


def _after_release(problem, moves):
    release = dict(zip(problem.names, problem.release_s.tolist(), strict=True))
    return all(m.start >= release[m.route[0]] for m in moves if m.hop == 0 and m.tail == m.route[0])


def _pairs(moves):
    """Each arrival with each departure of some of its bytes on the next hop."""
    for one in moves:
        for two in moves:
            if two.route == one.route and two.hop == one.hop + 1:
                first = max(one.first, two.first)
                end = min(one.first + one.size, two.first + two.size)
                if first < end:
                    yield one, two, first, end


def _causal(moves):
    return all(
        two.instant(byte) >= one.instant(byte)
        for one, two, first, end in _pairs(moves)
        for byte in range(first, end + 1)
    )


def _slot_by_slot(moves, slot):
    """A byte cut by a slot's end arrives with its first part and leaves with its last."""
    return all(
        math.ceil(two.instant(byte + 1) / slot) - 1 > math.floor(one.instant(byte) / slot)
        for one, two, first, end in _pairs(moves)
        for byte in range(first, end)
    )


def _within_capacity(problem, moves, slot):
    starts = [Fraction(t) for t in problem.periods_s.tolist()]
    instants = {t for m in moves for t in (m.start, m.finish)} | set(starts)
    if slot is not None:
        last = max((m.finish for m in moves), default=Fraction(0))
        instants |= {i * slot for i in range(math.ceil(last / slot) + 1)}
    instants = sorted(instants)
    resources = []
    for i, (tail, head) in enumerate(zip(problem.link_from, problem.link_to, strict=True)):
        pair = (problem.names[tail], problem.names[head])
        rates = [Fraction(rate) for rate in problem.bandwidth_bytes_per_s[:, i].tolist()]
        resources.append((lambda m, pair=pair: (m.tail, m.head) == pair, rates))
    for name, up, down in zip(
        problem.names, problem.uplink_bytes_per_s, problem.downlink_bytes_per_s, strict=True
    ):
        resources.append((lambda m, name=name: m.tail == name, [up] * len(starts)))
        resources.append((lambda m, name=name: m.head == name, [down] * len(starts)))
    for shared in problem.shared:
        pairs = set(shared.links)
        limits = [shared.bandwidth_bytes_per_s] * len(starts)
        resources.append((lambda m, pairs=pairs: (m.tail, m.head) in pairs, limits))
    return all(_below(moves, uses, rates, starts, instants, slot) for uses, rates in resources)


def _below(moves, uses, rates, starts, instants, slot):
    excess, involved = Fraction(0), set()
    for left, right in pairwise(instants):
        span = (left, right)
        if slot is not None:
            index = math.floor(left / slot)
            span = (index * slot, (index + 1) * slot)
        ends = [*starts[1:], math.inf]
        limit = min(
            rate
            for rate, begin, end in zip(rates, starts, ends, strict=True)
            if begin < span[1] and end > span[0]
        )
        running = [m for m in moves if uses(m) and m.start <= left and m.finish >= right]
        load = sum((m.rate for m in running), Fraction(0))
        if limit == 0 and running:
            return False
        if limit < math.inf and load > limit * (1 + Fraction(1, 10**6)):
            excess += (load - Fraction(limit)) * (right - left)
            involved |= set(running)
            if excess > len(involved):
                return False
        else:
            excess, involved = Fraction(0), set()
    return True


def _within_storage(problem, moves, chunk, slot):
    instants = sorted({t for m in moves for t in (m.start, m.finish)} | {Fraction(0)})
    gone = {}
    for one, two, _, _ in _pairs(moves):
        gone[one] = max(gone.get(one, Fraction(0)), two.finish)
    for name, limit in zip(problem.names, problem.storage_bytes.tolist(), strict=True):
        if name == problem.destination or limit == math.inf:
            continue
        coming = [m for m in moves if m.head == name and m.route[0] != name]
        going = [m for m in moves if m.tail == name and m.route[0] != name]
        initial = sum(m.size for m in going if m.hop == 0)
        for left, right in pairwise(instants):
            middle = (left + right) / 2
            stored = [
                initial + sum(m.moved(t) for m in coming) - sum(m.moved(t) for m in going)
                for t in (left, right)
            ]
            there = [m for m in coming if m.start < middle < gone[m]]
            allowed = Fraction(limit)
            for route, hop in {(m.route, m.hop) for m in there}:
                stays = [m for m in coming if (m.route, m.hop) == (route, hop)]
                allowed += chunk * _highest_rate(_flight(stays, gone, middle))
            slack = max(allowed / 10**6, len(there))
            if slot is not None and limit == 0:
                slack = Fraction(1, 2)
            if max(stored) > allowed + slack:
                return False
    return True


def _highest_rate(moves):
    """The most that arrives together at any instant."""
    return max(
        sum(m.rate for m in moves if m.start <= t < m.finish) for t in {m.start for m in moves}
    )


def _flight(moves, gone, instant):
    """The moves whose stays join, overlap by overlap, around an instant."""
    low = high = instant
    while True:
        joined = [m for m in moves if m.start <= high and gone[m] >= low]
        reach = min(m.start for m in joined), max(gone[m] for m in joined)
        if reach == (low, high):
            return joined
        low, high = min(low, reach[0]), max(high, reach[1])
