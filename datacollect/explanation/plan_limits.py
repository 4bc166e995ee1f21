"""Binding constraints of a plan: those that are full on its data's routes, and when.

All is read from the transfers. Between two instants at which a transfer begins or ends, or a period
begins, all rates are constant, and a capacity is full where the rates through it sum to it. Where
rates are max-min fair (direct, best-path) a full capacity holds back those of its transfers only
than which none there is faster: that distinguishes max-min fair rates from others (Bertsekas and
Gallager, Data Networks, 2nd ed. 1992, section 6.5.2). Of other plans every full capacity counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.explanation.full_capacities import FullCapacities
from datacollect.explanation.resources import TURNS, Resource, ValueFrom, resource_name, values_text
from datacollect.explanation.tolerances import FULL
from datacollect.flow.on_demand import OnDemand, OnDemandByName
from datacollect.problem.production import made_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.explanation.full_capacities import Holds
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


@dataclass(frozen=True)
class Limit:
    """A constraint that holds data back between two instants.

    Attributes
    ----------
    resource : Resource
        Kind ``"turns"``: the host waits for its turn.
    name : str
    values : tuple of ValueFrom
        Its value, each time that a forecast changes it: bytes per second; bytes of storage; the
        release, in seconds; how many hosts send at once.
    from_s, to_s : float
        In between it holds back some of `sources` at every instant, pauses in which pipelines
        drain left out.
    sources : tuple of str
        Whose data it holds back.
    """

    resource: Resource
    name: str
    values: tuple[ValueFrom, ...]
    from_s: float
    to_s: float
    sources: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return what it is, in words, with its values."""
        return f"{self.name} ({values_text(self.resource.kind, self.values)})"

    @property
    def least(self) -> float:
        """The least of its values."""
        return min(then.value for then in self.values)

    @property
    def most(self) -> float:
        """The largest of its values."""
        return max(then.value for then in self.values)

    @property
    def held_s(self) -> float:
        """Return how long it holds data back."""
        return self.to_s - self.from_s

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree, without the sources."""
        return {
            "kind": self.resource.kind,
            "name": self.name,
            "least": self.least,
            "most": self.most,
            "from_s": self.from_s,
            "to_s": self.to_s,
            "values": [asdict(then) for then in self.values],
        }


def together(limits: Sequence[Limit]) -> Limit:
    """Return as one what a constraint does at several times: all its values, all whom it holds."""
    values = {then: None for limit in limits for then in limit.values}
    return replace(
        limits[0],
        values=tuple(sorted(values, key=lambda then: then.from_s)),
        from_s=min(limit.from_s for limit in limits),
        to_s=max(limit.to_s for limit in limits),
        sources=tuple(dict.fromkeys(name for limit in limits for name in limit.sources)),
    )


@dataclass(frozen=True)
class SourceLimits:
    """Limits that hold back one source's data.

    Attributes
    ----------
    limits : tuple of Limit
        By when they begin.
    at_end : tuple of Limit
        Those of them that hold its data back last.
    rivals : sequence of str
        Other sources that use one of `at_end` while it holds this source back.
    """

    limits: tuple[Limit, ...] = ()
    at_end: tuple[Limit, ...] = ()
    rivals: Sequence[str] = ()


@dataclass(frozen=True)
class PlanLimits:
    """Limits of a plan: whose data each holds back, and when.

    Attributes
    ----------
    binds : tuple of Limit
        Every constraint that holds data back, once for each stretch of time without a gap; those
        that do so to the end first.
    of_source : mapping of str to SourceLimits
        Made when asked for: of thousands few may be needed.
    """

    binds: tuple[Limit, ...] = ()
    of_source: Mapping[str, SourceLimits] = field(default_factory=dict)


def plan_limits(problem: Problem, plan: Schedule) -> PlanLimits:
    """Find what holds back each source's data in a plan, and when.

    Parameters
    ----------
    problem : Problem
    plan : Schedule
        A valid schedule for the problem.

    Examples
    --------
    A and B share D's downlink, 1.5 MB/s each, until B has sent its 3 MB; then A's own link, 2 MB/s,
    is all that holds A back:

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["A", "B", "D"],
    ...     [[0, 0, 2e6], [0, 0, 2e6], [0, 0, 0]],
    ...     [5_000_000, 3_000_000, 0],
    ...     "D",
    ...     downlink_bytes_per_s=[float("inf"), float("inf"), 3e6],
    ... )
    >>> found = plan_limits(problem, dc.direct(problem))
    >>> [(limit.name, limit.from_s, limit.to_s) for limit in found.of_source["A"].limits]
    [("downlink of 'D'", 0.0, 2.0), ("link 'A' -> 'D'", 2.0, 3.0)]
    """
    if plan.n_transfers == 0:
        return PlanLimits()
    full = FullCapacities(problem, plan)
    holds, pause_s = full.holds(), _pause_s(full)
    held = _runs(full, holds, pause_s)
    binding = _runs(full, holds._replace(source=np.zeros_like(holds.source)), pause_s)
    late = sorted({p.source for p in problem.parcels if p.release_s > 0})
    releases = {host: _release(full, host) for host in late}
    production = {host: _production(full, host) for host in problem.makers.tolist()}
    binds = [
        *_binds(full, binding, held),
        *releases.values(),
        *chain.from_iterable(production.values()),
    ]
    index = problem.host_index

    def limits_of(source: str) -> SourceLimits:
        host = index[source]
        others = [releases[host]] if host in releases else []
        return _of_source(full, host, held, [*others, *production.get(host, ())], pause_s)

    sources = [problem.names[host] for host in np.unique(full.where.source).tolist()]
    of_source = OnDemandByName(limits_of, sources)
    order = sorted(binds, key=lambda limit: (-limit.to_s, limit.from_s))
    return PlanLimits(tuple(order), of_source)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Stretches of time without a gap, in each of which `resource` holds `owner` back."""

    owner: IntArray
    resource: IntArray
    from_s: FloatArray
    to_s: FloatArray


def _pause_s(full: FullCapacities) -> float:
    """Return what is no pause of a constraint, seen from a pipeline.

    In front of changes pipelines drain, and after them hops begin a chunk after each other.
    """
    chunk_s = full.plan.chunk_s if full.plan.slot_s is None else None
    delay_s = (int(full.where.n_hops.max()) - 1) * (chunk_s or 0.0)
    return 2 * delay_s * (1 + FULL) + full.tolerance_s


def _runs(full: FullCapacities, holds: Holds, pause_s: float) -> _Runs:
    """Join neighbouring stretches of time in which one resource holds one source back."""
    order = np.lexsort((holds.first, holds.resource, holds.source))
    owner, resource, first, last = (column[order] for column in holds)
    same = (owner[1:] == owner[:-1]) & (resource[1:] == resource[:-1])
    # One of several that overlap may end last: the latest so far counts.
    group = np.cumsum(np.append(0, ~same)[: len(owner)]) * len(full.time_s)
    last = np.maximum.accumulate(last + group) - group
    begin, end = full.time_s[first], full.time_s[last]
    new = np.ones(len(owner), dtype=bool)
    new[1:] = ~same | (begin[1:] - end[:-1] > pause_s)
    first = np.flatnonzero(new)
    last = np.append(first, len(owner))[1:] - 1
    return _Runs(owner[first], resource[first], begin[first], end[last])


def _limit(
    full: FullCapacities, number: int, from_s: float, to_s: float, hosts: list[int]
) -> Limit:
    resource, values = full.resource_of(number), full.values(number, from_s, to_s)
    return Limit(
        resource,
        "turns" if resource == TURNS else resource_name(full.problem, resource),
        values,
        float(from_s),
        float(to_s),
        tuple(full.problem.names[host] for host in hosts),
    )


def _release(full: FullCapacities, host: int) -> Limit:
    until_s = float(full.problem.release_s[host])
    return _limit(full, full.number(Resource("release", host)), 0.0, until_s, [host])


def _production(full: FullCapacities, host: int) -> list[Limit]:
    """Return when a source has sent all that it has made, but for chunks, slots and rounding."""
    problem, plan, where = full.problem, full.plan, full.where
    assert problem.produces_bytes_per_s is not None
    assert problem.made_bytes is not None
    rows = np.flatnonzero((where.hop == 0) & (where.tail == host) & (where.source == host))
    if not len(rows):
        return []
    columns, time_s = plan.columns, full.time_s
    length_s = columns.finish_s[rows] - columns.start_s[rows]
    part = (time_s[:, np.newaxis] - columns.start_s[rows]) / length_s
    sent = (np.clip(part, 0.0, 1.0) * columns.n_bytes[rows]).sum(axis=1)
    made = made_by(problem, host, time_s)
    waits_s = plan.slot_s if plan.slot_s is not None else plan.chunk_s or 0.0
    rate = float(problem.produces_bytes_per_s[host])
    left = float(problem.backlog_bytes[host] - problem.made_bytes[host])
    slack = 2 * waits_s * rate + len(rows) + FULL * float(problem.backlog_bytes[host])
    elsewhere = sum(held.n_bytes for held in problem.held if held.source == problem.names[host])
    caught_up = made - elsewhere - sent <= slack
    making = time_s < problem.release_s[host] + left / rate
    holds = caught_up[:-1] & caught_up[1:] & making[:-1] & (time_s[:-1] >= problem.release_s[host])
    edges = np.flatnonzero(np.diff(np.concatenate([[0], holds.astype(np.int64), [0]])))
    number = full.number(Resource("production", host))
    return [
        _limit(full, number, float(time_s[first]), float(time_s[last]), [host])
        for first, last in edges.reshape(-1, 2).tolist()
    ]


def _binds(full: FullCapacities, binding: _Runs, held: _Runs) -> list[Limit]:
    """Say of each constraint when it binds, and whom it holds back."""
    order = np.argsort(held.resource, kind="stable")
    of_resource = held.resource[order]
    found = []
    columns = (binding.resource, binding.from_s, binding.to_s)
    for number, from_s, to_s in zip(*(column.tolist() for column in columns), strict=True):
        bounds = np.searchsorted(of_resource, [number, number + 1])
        runs = order[bounds[0] : bounds[1]]
        runs = runs[(held.from_s[runs] < to_s) & (held.to_s[runs] > from_s)]
        found.append(_limit(full, number, from_s, to_s, np.unique(held.owner[runs]).tolist()))
    return found


def _of_source(
    full: FullCapacities, host: int, held: _Runs, others: list[Limit], pause_s: float
) -> SourceLimits:
    runs = np.arange(*np.searchsorted(held.owner, [host, host + 1]))
    limits = list(others)
    limits += [
        _limit(full, int(held.resource[i]), held.from_s[i], held.to_s[i], [host])
        for i in runs.tolist()
    ]
    limits.sort(key=lambda limit: limit.from_s)
    end_s = max((limit.to_s for limit in limits), default=0.0)
    at_end = [limit for limit in limits if limit.to_s >= end_s - pause_s]
    rivals = np.zeros(full.problem.n_hosts, dtype=bool)
    for limit in at_end:
        rivals[full.users(full.number(limit.resource), limit.from_s, limit.to_s)] = True
    rivals[host] = False
    hosts, names = np.flatnonzero(rivals), full.problem.names
    named = OnDemand(lambda number: names[hosts[number]], len(hosts))
    return SourceLimits(tuple(limits), tuple(at_end), named)
