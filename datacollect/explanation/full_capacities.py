"""Capacities that a plan's transfers fill, and when: links, hosts' limits, bottlenecks, storage.

Between two instants at which a transfer begins or ends, or a period begins, all rates are constant.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.explanation.resources import TURNS, Resource, ValueFrom, values_between
from datacollect.explanation.tolerances import FULL
from datacollect.methods.choice import is_max_min_fair
from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray, ranges
from datacollect.numbers.tolerances import SAME_INSTANT
from datacollect.schedule.data.use import legs, stored_over_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.use import Legs
    from datacollect.schedule.schedule import Schedule

KINDS = ("link", "uplink", "downlink", "shared", "storage", "release", "production", "turns")

# Pairs of a transfer and a stretch of time that are looked at together.
MOST_PAIRS = 2_000_000

# Far finer than by what part rates may differ that are equal; and a million of them can be added.
RATE_PARTS = 2.0**40


class Holds(NamedTuple):
    """That a resource holds back a source for some time; arrays of shape (n_holds,).

    Sources by their hosts' index, resources and stretches of time by the numbers of
    `FullCapacities`: from the first one to before the last.
    """

    source: IntArray
    resource: IntArray
    first: IntArray
    last: IntArray


class _Spans(NamedTuple):
    """Spans of time in which neither a resource's users nor its capacity change.

    Those of all resources are numbered one after another. A span lasts from one number's stretch of
    time to the next one's; `begin` and `end` say from which to which each use lasts.
    """

    at: IntArray  # stretch of time, shape (n_spans + 1,)
    full: BoolArray
    n_users: IntArray
    begin: IntArray  # of each use
    end: IntArray


class FullCapacities:
    """A plan's transfers, ready to be asked what they fill.

    Resources have one number each: links first, then hosts' uplinks, their downlinks, shared
    bottlenecks, hosts' storage, hosts' releases, what they make, turns.

    Attributes
    ----------
    time_s : ndarray of float, shape (n_stretches + 1,)
        Stretches of time: one from each instant to the next.
    where : Legs
    fair : bool
        Whether a full capacity holds back only the fastest that use it.
    """

    def __init__(self, problem: Problem, plan: Schedule) -> None:
        self.problem, self.plan = problem, plan
        self.fair = is_max_min_fair(plan.method)
        self.where: Legs = legs(plan, problem.names)
        columns = plan.columns
        self.rate = columns.n_bytes / (columns.finish_s - columns.start_s)
        # Whole bytes: each transfer may fall short of its rate by one, in slots by one in each.
        whole = columns.finish_s - columns.start_s if plan.slot_s is None else plan.slot_s
        self.byte_rate = np.broadcast_to(1.0 / whole, self.rate.shape)
        self.tolerance_s = SAME_INSTANT * plan.makespan_s
        changes = np.append(problem.periods_s, [p.release_s for p in problem.parcels])
        changes = changes[changes < plan.makespan_s]
        instants = np.concatenate([columns.start_s, columns.finish_s, changes])
        self.time_s = _distinct(instants, self.tolerance_s)
        self.first = _index(self.time_s, columns.start_s)
        self.last = _index(self.time_s, columns.finish_s)
        middle_s = (self.time_s[:-1] + self.time_s[1:]) / 2
        self.period = np.searchsorted(problem.periods_s, middle_s, side="right") - 1
        n = problem.n_hosts
        self.bases: list[int] = np.cumsum(
            [0, problem.n_links, n, n, len(problem.shared), n, n, n]
        ).tolist()
        self.link = problem.link_indices(self.where.tail, self.where.head)
        self.row, self.resource = self._uses()

    # Resources ----------------------------------------------------------------------------------

    def number(self, resource: Resource) -> int:
        """Return a resource's number."""
        return self.bases[KINDS.index(resource.kind)] + resource.number

    def resource_of(self, number: int) -> Resource:
        """Return the resource of a number."""
        kind = int(np.searchsorted(self.bases, number, side="right")) - 1
        return Resource(KINDS[kind], number - self.bases[kind])

    def values(self, number: int, from_s: float, to_s: float) -> tuple[ValueFrom, ...]:
        """Return a resource's values between two instants."""
        resource = self.resource_of(number)
        if resource.kind == "turns":
            assert self.plan.turns is not None
            return (ValueFrom(float(from_s), float(to_s), float(self.plan.turns.at_a_time)),)
        return values_between(self.problem, resource, from_s, to_s, self.tolerance_s)

    def _capacity(self, resource: IntArray, stretch: IntArray) -> FloatArray:
        problem = self.problem
        capacity = np.empty(len(resource))
        by_period = (
            problem.bandwidth_bytes_per_s,
            problem.uplink_bytes_per_s,
            problem.downlink_bytes_per_s,
        )
        kind = np.searchsorted(self.bases, resource, side="right") - 1
        for i, rates in enumerate(by_period):
            its = kind == i
            capacity[its] = rates[self.period[stretch[its]], resource[its] - self.bases[i]]
        constant = kind >= len(by_period)
        capacity[constant] = self._constants[resource[constant] - self.bases[len(by_period)]]
        return capacity

    @cached_property
    def _constants(self) -> FloatArray:
        """Capacities of what no forecast changes, in the order of their numbers."""
        shared = [bottleneck.bandwidth_bytes_per_s for bottleneck in self.problem.shared]
        return np.concatenate([shared, self.problem.storage_bytes])

    # Who uses what ------------------------------------------------------------------------------

    def users(self, resource: int, from_s: float, to_s: float) -> IntArray:
        """Return the sources whose data use a resource at some time between two instants."""
        order, of_resource = self._by_resource
        bounds = np.searchsorted(of_resource, [resource, resource + 1])
        rows = self.row[order[bounds[0] : bounds[1]]]
        columns = self.plan.columns
        there = columns.start_s[rows] < to_s - self.tolerance_s
        there &= columns.finish_s[rows] > from_s + self.tolerance_s
        return self.where.source[rows[there]]

    @cached_property
    def _by_resource(self) -> tuple[IntArray, IntArray]:
        order = np.argsort(self.resource, kind="stable")
        return order, self.resource[order]

    def _uses(self) -> tuple[IntArray, IntArray]:
        """Return pairs of a transfer and a resource on its hop, sorted by transfer."""
        problem, plan, where = self.problem, self.plan, self.where
        _, uplinks, downlinks, shared, storage, *_ = self.bases
        every = np.arange(len(self.rate))
        pairs = [(every, self.link)]
        for base, limit, end in (
            (uplinks, problem.uplink_bytes_per_s, where.tail),
            (downlinks, problem.downlink_bytes_per_s, where.head),
        ):
            rows = np.flatnonzero(np.isfinite(limit[0, end]))
            pairs.append((rows, base + end[rows]))
        rows, number = self._shared_uses()
        pairs.append((rows, shared + number))
        # A pipelined best-path plan stores chunks only, whatever the limit.
        if not (self.fair and plan.slot_s is None):
            stores = (where.head != where.source) & ~where.is_last
            room = problem.storage_bytes[where.head]
            # A relay without storage passes chunks on: it is full all the time, and keeps nobody.
            rows = np.flatnonzero(stores & np.isfinite(room) & ((room > 0) | bool(plan.slot_s)))
            pairs.append((rows, storage + where.head[rows]))
        row = np.concatenate([rows for rows, _ in pairs])
        order = np.argsort(row, kind="stable")
        return row[order], np.concatenate([used for _, used in pairs])[order]

    def _shared_uses(self) -> tuple[IntArray, IntArray]:
        """Return pairs of a transfer and a shared bottleneck that its link is part of."""
        members = self.problem.shared_links
        number = np.repeat(np.arange(len(members)), [len(links) for links in members])
        link = np.concatenate([np.zeros(0, dtype=np.int64), *members])
        order = np.argsort(link, kind="stable")
        begin = np.searchsorted(link[order], self.link, side="left")
        count = np.searchsorted(link[order], self.link, side="right") - begin
        return np.repeat(np.arange(len(count)), count), number[order][ranges(begin, count)]

    # What is full -------------------------------------------------------------------------------

    def holds(self) -> Holds:
        """Find what holds whom back: what is full on their routes, and what makes them wait."""
        nothing = np.zeros(0, dtype=np.int64)
        found = [Holds(nothing, nothing, nothing, nothing), *self._full(), *self._waits()]
        return Holds(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _full(self) -> Iterator[Holds]:
        is_store = self.resource >= self.bases[4]
        moves = (self.first < self.last)[self.row]
        stores, rates = np.flatnonzero(is_store & moves), np.flatnonzero(~is_store & moves)
        if len(stores):
            yield from self._full_stores(stores)
        if len(rates):
            yield from self._full_rates(rates)

    def _full_rates(self, uses: IntArray) -> Iterator[Holds]:
        """Find what is full of links, limits and shared bottlenecks, and whom that holds back."""
        spans = self._spans(uses)
        source, resource = self.where.source[self.row[uses]], self.resource[uses]
        full = np.flatnonzero(spans.full)
        if self.fair:
            for use, span in self._fastest(uses, spans, full):
                yield Holds(source[use], resource[use], spans.at[span], spans.at[span + 1])
            return
        # Who uses what is full is held back by it: spans that follow each other are as one.
        begins = full[np.diff(full, prepend=-2) > 1]
        ends = full[np.diff(full, append=len(spans.at) + 1) > 1] + 1
        low = np.searchsorted(ends, spans.begin, side="right")
        count = np.searchsorted(begins, spans.end) - low
        use, run = np.repeat(np.arange(len(uses)), count), ranges(low, count)
        first = spans.at[np.maximum(spans.begin[use], begins[run])]
        yield Holds(
            source[use], resource[use], first, spans.at[np.minimum(spans.end[use], ends[run])]
        )

    def _spans(self, uses: IntArray) -> _Spans:
        """Divide the time of each resource where its own users or its capacity change."""
        row, n_stretches = self.row[uses], len(self.time_s)
        known, place = np.unique(self.resource[uses], return_inverse=True)
        begins, ends = (place * n_stretches + at[row] for at in (self.first, self.last))
        keys = np.unique(np.concatenate([begins, ends, self._changes(known)]))
        begin, end = np.searchsorted(keys, begins), np.searchsorted(keys, ends)
        place_of, at = np.divmod(keys, n_stretches)
        used, bytes_lost = (
            _added_up(rate[row], place, begin, end, place_of)
            for rate in (self.rate, self.byte_rate)
        )
        n_users = np.cumsum(np.bincount(begin, minlength=len(keys))) - np.cumsum(
            np.bincount(end, minlength=len(keys))
        )
        full = n_users > 0  # so none behind a resource's last user
        some = np.flatnonzero(full)
        capacity = self._capacity(known[place_of[some]], at[some])
        full[some] = used[some] >= capacity * (1 - FULL) - bytes_lost[some]
        return _Spans(at, full, n_users, begin, end)

    def _changes(self, resources: IntArray) -> IntArray:
        """Return where capacities change, as keys: a resource's place, and a stretch of time."""
        problem, keys = self.problem, [np.zeros(0, dtype=np.int64)]
        by_period = (
            problem.bandwidth_bytes_per_s,
            problem.uplink_bytes_per_s,
            problem.downlink_bytes_per_s,
        )
        for kind, rates in enumerate(by_period if problem.n_periods > 1 else ()):
            places = np.flatnonzero(
                (resources >= self.bases[kind]) & (resources < self.bases[kind + 1])
            )
            of_resource = rates[:, resources[places] - self.bases[kind]]
            before, which = np.nonzero(of_resource[1:] != of_resource[:-1])
            stretch = np.searchsorted(self.period, before + 1)
            keys.append(places[which] * len(self.time_s) + stretch)
        return np.concatenate(keys)

    def _fastest(
        self, uses: IntArray, spans: _Spans, full: IntArray
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield who uses a full capacity fastest, as pairs of a use and a span of time.

        In blocks, each of not too many pairs.
        """
        rate, byte_rate = self.rate[self.row[uses]], self.byte_rate[self.row[uses]]
        low, high = np.searchsorted(full, spans.begin), np.searchsorted(full, spans.end)
        total = np.cumsum(spans.n_users[full])
        n_pairs = int(total[-1]) if len(full) else 0
        edges = np.searchsorted(total, np.arange(0, n_pairs, MOST_PAIRS), side="right").tolist()
        for begin, end in pairwise([*edges, len(full)]):
            first = np.clip(low, begin, end)
            count = np.clip(high, begin, end) - first
            use, span = np.repeat(np.arange(len(uses)), count), full[ranges(first, count)]
            fastest = np.zeros(len(spans.at))
            np.maximum.at(fastest, span, rate[use])
            holds = rate[use] >= fastest[span] * (1 - FULL) - 2 * byte_rate[use]
            yield use[holds], span[holds]

    def _full_stores(self, uses: IntArray) -> Iterator[Holds]:
        """Find what storage is full: it fills and empties evenly, so each stretch is looked at.

        Go through blocks of time, in each of which not too much happens.
        """
        n_stretches = len(self.time_s) - 1
        first, last = self.first[self.row[uses]], self.last[self.row[uses]]
        n_active = np.zeros(n_stretches + 1, dtype=np.int64)
        np.add.at(n_active, first, 1)
        np.add.at(n_active, last, -1)
        total = np.cumsum(np.cumsum(n_active)[:-1])
        edges = np.searchsorted(total, np.arange(0, total[-1], MOST_PAIRS), side="right").tolist()
        for begin, end in pairwise([*edges, n_stretches]):
            some = np.flatnonzero((first < end) & (last > begin))
            low = np.maximum(first[some], begin)
            count = np.minimum(last[some], end) - low
            if count.sum():
                yield self._full_among(np.repeat(uses[some], count), ranges(low, count))

    def _full_among(self, use: IntArray, stretch: IntArray) -> Holds:
        """Find what storage is full among pairs of its use and a stretch of time."""
        row, resource = self.row[use], self.resource[use]
        n = self.problem.n_hosts
        host = resource - self.bases[4]
        keys, where = np.unique(stretch * n + host, return_inverse=True)
        stretches, hosts = np.divmod(keys, n)
        rate = np.asarray(np.bincount(where, self.rate[row]), dtype=np.float64)
        used = self._stored_bytes(hosts, stretches, rate)
        full = used >= self.problem.storage_bytes[hosts] * (1 - FULL) - np.bincount(where)
        holds = full[where]
        if self.fair:
            fastest = np.zeros(len(keys))
            np.maximum.at(fastest, where, self.rate[row])
            holds &= self.rate[row] >= fastest[where] * (1 - FULL) - 2 * self.byte_rate[row]
        found = np.unique(where[holds] * n + self.where.source[row[holds]])
        key, source = np.divmod(found, n)
        return Holds(source, hosts[key] + self.bases[4], stretches[key], stretches[key] + 1)

    def _stored_bytes(self, host: IntArray, stretch: IntArray, rate: FloatArray) -> FloatArray:
        """Bytes for which there has to be room at relays, at most, in stretches of time.

        In slots their ends count. A best-path plan in slots asks for room for all that arrives in
        one, at `rate`, whatever leaves.
        """
        begin, end = self.time_s[stretch], self.time_s[stretch + 1]
        slot_s, arriving = self.plan.slot_s, np.zeros(len(host))
        times = [end]
        if slot_s is not None:
            times = [np.ceil(end / slot_s * (1 - SAME_INSTANT)) * slot_s]
        if slot_s is not None and self.fair:
            times = [np.floor(begin / slot_s * (1 + SAME_INSTANT)) * slot_s, times[0] - slot_s]
            arriving = rate * slot_s
        found = np.zeros(len(host))
        at, time_s, stored = self._stored
        for number in np.unique(host).tolist():
            rows, curve = host == number, at == number
            each = [np.interp(t[rows], time_s[curve], stored[curve]) for t in times]
            found[rows] = np.max(each, axis=0) + arriving[rows]
        return found

    @cached_property
    def _stored(self) -> tuple[IntArray, FloatArray, FloatArray]:
        return stored_over_time(self.plan.columns, self.where)[:3]

    # What waits ---------------------------------------------------------------------------------

    def _waits(self) -> Iterator[Holds]:
        """Find when fair plans' data rest: for their turn, or since a link has no bandwidth."""
        if not self.fair or (self.plan.turns is None and self.problem.n_periods == 1):
            return
        place = self.where.route * (1 + int(self.where.hop.max())) + self.where.hop
        order = np.lexsort((self.first, place))
        for rows in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
            source = int(self.where.source[rows[0]])
            begin, end = self._ready(rows), int(self.last[rows].max())
            moving = np.zeros(len(self.time_s), dtype=np.int64)
            np.add.at(moving, self.first[rows], 1)
            np.add.at(moving, self.last[rows], -1)
            rests = begin + np.flatnonzero(np.cumsum(moving)[begin:end] == 0)
            open_all = np.ones(len(rests), dtype=bool)
            for resource, is_closed in self._closed(rows[0], self.period[rests]):
                open_all &= ~is_closed
                yield self._held(source, resource, rests[is_closed])
            if self.plan.turns is not None:
                yield self._held(source, self.number(TURNS), rests[open_all])

    @staticmethod
    def _held(source: int, resource: int, at: IntArray) -> Holds:
        return Holds(np.full(len(at), source), np.full(len(at), resource), at, at + 1)

    def _closed(self, row: int, period: IntArray) -> Iterator[tuple[int, BoolArray]]:
        """Yield what a transfer's hop uses, and in which of some periods it has no bandwidth."""
        problem = self.problem
        for rates, number, base in (
            (problem.bandwidth_bytes_per_s, self.link[row], self.bases[0]),
            (problem.uplink_bytes_per_s, self.where.tail[row], self.bases[1]),
            (problem.downlink_bytes_per_s, self.where.head[row], self.bases[2]),
        ):
            yield int(base + number), rates[period, number] == 0

    def _ready(self, rows: IntArray) -> int:
        """Return from which stretch of time on a route's data lie before one of its hops."""
        hop, source = self.where.hop[rows[0]], self.where.source[rows[0]]
        if hop > 0:
            before = (self.where.route == self.where.route[rows[0]]) & (self.where.hop == hop - 1)
            return int(self.first[before].min())
        own = self.where.tail[rows[0]] == source
        release_s = self.problem.release_s[source] if own else 0.0
        return int(np.searchsorted(self.time_s, release_s * (1 - SAME_INSTANT)))


def _added_up(
    rate: FloatArray, place: IntArray, begin: IntArray, end: IntArray, place_of: IntArray
) -> FloatArray:
    """Add up the rates of a resource's users in each of its spans.

    In whole parts of the largest rate of each, so that nothing is lost however many come and go.
    """
    unit = np.zeros(int(place.max()) + 1)
    np.maximum.at(unit, place, rate)
    unit /= RATE_PARTS
    parts = np.rint(rate / unit[place]).astype(np.int64)
    change = np.zeros(len(place_of), dtype=np.int64)
    np.add.at(change, begin, parts)
    np.subtract.at(change, end, parts)
    total: FloatArray = np.cumsum(change) * unit[place_of]
    return total


def _distinct(instants: FloatArray, tolerance_s: float) -> FloatArray:
    """Sort instants, and leave out those that another one stands for."""
    ordered = np.sort(instants)
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = np.diff(ordered) > tolerance_s
    return ordered[new]


def _index(time_s: FloatArray, instants: FloatArray) -> IntArray:
    """Return which of the distinct instants each one is."""
    after = np.minimum(np.searchsorted(time_s, instants), len(time_s) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(time_s[before] - instants) < np.abs(time_s[after] - instants)
    return np.where(nearer, before, after)
