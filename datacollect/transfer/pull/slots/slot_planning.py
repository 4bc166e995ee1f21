"""Plans in time slots: what lies at relays counts as held there, and hours of links count."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datacollect.errors import ProblemError, ScheduleError
from datacollect.files.clock import zone_of
from datacollect.methods.choice import plan
from datacollect.methods.timing.slots import (
    slot_bandwidth_bytes_per_s,
    slot_limits_bytes_per_s,
    whole_slot_bytes,
)
from datacollect.problem.problem import Problem
from datacollect.problem.windows import window_text
from datacollect.schedule.data.transfers import Transfers
from datacollect.transfer.pull.answer import Wait
from datacollect.transfer.pull.planning import given, says_links, there

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from datacollect.methods.planning_options import PlanningOptions
    from datacollect.numbers.arrays import IntArray
    from datacollect.schedule.schedule import Schedule
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.pull.core.todo import SourceWork
    from datacollect.transfer.pull.open_hours import OpenHours

# What a collection file says and a plan in slots does not count on.
_NOT_PLANNED = ("backlog_bytes", "release_s", "cap")
# What is stored later than after so many slots stays where the plan has it.
MOST_SHIFTED = 5000
MOST_SLOT_BYTES = 2**62


class HopTask(NamedTuple):
    """Pieces of a source that one hop moves in a slot.

    Attributes
    ----------
    source : str
    tail, head : str
        The hop: from the source to a relay that keeps them, or to the destination; or from a relay.
    pieces : tuple of int
    """

    source: str
    tail: str
    head: str
    pieces: tuple[int, ...]


@dataclass(frozen=True)
class SlotPlan:
    """A plan in slots, cut into pieces.

    Attributes
    ----------
    schedule : Schedule
    tasks : dict of int to list of HopTask
        By slot, from the plan's begin on.
    """

    schedule: Schedule
    tasks: dict[int, list[HopTask]]

    def waits(self, begins_s: float) -> tuple[Wait, ...]:
        """Return what waits where, and how long, by a plan that begins at an instant since 1970."""
        found: dict[tuple[str, str], Wait] = {}
        columns = self.schedule.columns
        rows = zip(
            *(each.tolist() for each in (columns.route, columns.hop, columns.n_bytes)),
            *(each.tolist() for each in (columns.start_s, columns.finish_s)),
            strict=True,
        )
        for number, hop, n_bytes, start_s, finish_s in rows:
            route = self.schedule.routes[number]
            tail, head = route.hosts[hop : hop + 2]
            # What is stored, and what was stored before and leaves.
            leaves = tail != route.source
            name = route.source, tail if leaves else head
            if not leaves and hop == len(route.hosts) - 2:
                continue
            wait = found.get(name, Wait(*name, 0, begins_s if leaves else math.inf, 0.0))
            found[name] = Wait(
                *name,
                wait.n_bytes + (n_bytes if leaves else 0),
                wait.from_s if leaves else min(wait.from_s, begins_s + start_s),
                max(wait.until_s, begins_s + finish_s) if leaves else wait.until_s,
            )
        return tuple(found[name] for name in sorted(found))


def require_links(collection: Collection) -> None:
    """Raise `ProblemError` where a collection cannot be planned in slots."""
    if not says_links(collection):
        raise ProblemError(
            "--slot needs links, and the collection file names none; write [[links]] with their "
            "bandwidths, or bandwidth_csv"
        )


def slotted_problem(
    collection: Collection,
    hours: OpenHours,
    work: Mapping[str, SourceWork],
    kept: Mapping[str, Mapping[int, str]],
    room_bytes: Mapping[str, float],
    begins: datetime,
) -> Problem:
    """Return the problem at an instant.

    Parameters
    ----------
    collection : Collection
    hours : OpenHours
    work : mapping of str to SourceWork
        Of each source all pieces, and those that the destination lacks.
    kept : mapping of str to mapping of int to str
        Which relay keeps a piece, by source.
    room_bytes : mapping of str to float
        Relays that keep pieces, and how much; all others keep nothing.
    begins : datetime
        When it begins, with its offset from UTC.
    """
    network, destination = collection.network, collection.destination
    hosts: dict[str, dict[str, Any]] = {destination: {}}
    hosts |= {name: {} for name in (*collection.hosts, *(collection.sources or {}), *work)}
    for name, entry in network["hosts"].items():
        hosts[name] = _said(entry)
    for name in hosts:
        if name != destination:
            most = min(hosts[name].get("storage_bytes", math.inf), room_bytes.get(name, 0.0))
            hosts[name] |= {} if math.isinf(most) else {"storage_bytes": int(most)}
    held = []
    for source, each in work.items():
        hosts[source]["backlog_bytes"] = each.starts[-1] + each.sizes[-1] if each.starts else 0
        rows = [(destination, *row) for row in there(each)]
        rows += [
            (relay, each.starts[piece], each.sizes[piece])
            for piece, relay in sorted(kept.get(source, {}).items())
        ]
        held += [
            {"host": host, "source": source, "offset_bytes": offset, "bytes": n_bytes}
            for host, offset, n_bytes in rows
        ]
    links = hours.file_links(closed_too=True) if hours else network["links"]
    if collection.timezone is not None:
        begins = begins.astimezone(zone_of(collection.timezone))
    tree: dict[str, Any] = {
        "destination": destination,
        "hosts": hosts,
        "held": held,
        "links": [_said(link) for link in links],
        "shared": [given(each) for each in network["shared"]],
        "start": begins.isoformat(),
        "timezone": collection.timezone,
        "bandwidth_csv": None if hours else network["bandwidth_csv"],
    }
    return Problem.from_dict(given(tree), base_dir=collection.folder)


def _said(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table of a host or a link says, as a problem file does."""
    said = {k: v for k, v in given(entry).items() if k not in _NOT_PLANNED}
    if said.get("open"):
        said["open"] = [window_text(window) for window in said["open"]]
    return said


def slotted_plan(
    problem: Problem, how: PlanningOptions, slot_s: float, work: Mapping[str, SourceWork]
) -> SlotPlan:
    """Plan in slots; each piece goes with the range in which it begins.

    Raises
    ------
    InfeasibleError
        A source has no way to the destination.
    ProblemError
        The method has no slots, or these would be too many.
    """
    how = replace(how, options={**how.options, "slot_s": slot_s})
    schedule = stored_soonest(problem, plan(problem, how.planning()), slot_s)
    return SlotPlan(schedule, _tasks(schedule, slot_s, work))


def _tasks(
    schedule: Schedule, slot_s: float, work: Mapping[str, SourceWork]
) -> dict[int, list[HopTask]]:
    tasks: dict[int, dict[tuple[str, str, str], list[int]]] = {}
    columns = by_slot(schedule.columns, slot_s)
    rows = zip(
        columns.start_s.tolist(),
        columns.route.tolist(),
        columns.hop.tolist(),
        columns.offset_bytes.tolist(),
        columns.n_bytes.tolist(),
        strict=True,
    )
    for start_s, number, hop, offset, n_bytes in rows:
        route = schedule.routes[number]
        each = work[route.source]
        pieces = [p for p in each.beginning_in(offset, n_bytes) if p in each.needed]
        if pieces:
            name = route.source, route.hosts[hop], route.hosts[hop + 1]
            tasks.setdefault(round(start_s / slot_s), {}).setdefault(name, []).extend(pieces)
    return {
        slot: [HopTask(*name, tuple(dict.fromkeys(pieces))) for name, pieces in of.items()]
        for slot, of in sorted(tasks.items())
    }


def by_slot(columns: Transfers, slot_s: float) -> Transfers:
    """Return transfers of one slot each: those that last longer are cut, at constant rate.

    >>> whole = Transfers.build(
    ...     route=[0], hop=[0], offset_bytes=[5], n_bytes=[11], start_s=[10.0], finish_s=[30.0]
    ... )
    >>> parts = by_slot(whole, 10.0)
    >>> parts.offset_bytes.tolist(), parts.n_bytes.tolist(), parts.start_s.tolist()
    ([5, 10], [5, 6], [10.0, 20.0])
    """
    first = np.rint(columns.start_s / slot_s).astype(np.int64)
    n_slots = np.maximum(np.rint(columns.finish_s / slot_s).astype(np.int64) - first, 1)
    row = np.repeat(np.arange(len(first)), n_slots)
    part = np.arange(len(row)) - np.repeat(np.cumsum(n_slots) - n_slots, n_slots)
    sizes, n_parts = columns.n_bytes[row], n_slots[row]
    begin, end = sizes * part // n_parts, sizes * (part + 1) // n_parts
    slot = first[row] + part
    return Transfers(
        columns.route[row],
        columns.hop[row],
        columns.offset_bytes[row] + begin,
        end - begin,
        slot * slot_s,
        (slot + 1) * slot_s,
        columns.streams[row],
    )


def stored_soonest(problem: Problem, schedule: Schedule, slot_s: float) -> Schedule:
    """Return a plan in which relays store what they are to store as soon as links have room.

    Plans leave that to the last slot after which all still ends in time. Where a slot comes to
    nothing, as hosts fail, there is another one then before the link closes.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        In slots.
    slot_s : float
    """
    columns, routes = by_slot(schedule.columns, slot_s), schedule.routes
    slots = np.rint(columns.start_s / slot_s).astype(np.int64)
    room = _Room(problem, slot_s)
    ends = [
        routes[route].hosts[hop : hop + 2]
        for route, hop in zip(columns.route.tolist(), columns.hop.tolist(), strict=True)
    ]
    sizes = columns.n_bytes.tolist()
    for hop, slot, n_bytes in zip(ends, slots.tolist(), sizes, strict=True):
        room.take(hop, slot, n_bytes)
    for row in np.argsort(slots, kind="stable").tolist():
        if ends[row][1] == problem.destination or slots[row] > MOST_SHIFTED:
            continue
        for slot in range(int(slots[row])):
            if room.has(ends[row], slot, sizes[row]):
                room.take(ends[row], int(slots[row]), -sizes[row])
                room.take(ends[row], slot, sizes[row])
                slots[row] = slot
                break
    start_s = np.asarray(slots * slot_s, dtype=np.float64)
    moved = replace(columns, start_s=start_s, finish_s=start_s + slot_s)
    sooner = schedule.replace(columns=moved)
    try:
        sooner.check(problem)
    except ScheduleError:  # as where relays have little room, or links share something
        return schedule
    return sooner


class _Room:
    """Bytes that links and hosts have left, by slots that are asked about."""

    def __init__(self, problem: Problem, slot_s: float) -> None:
        self._problem, self._slot_s = problem, slot_s
        self._hosts = {name: i for i, name in enumerate(problem.names)}
        self._links: dict[tuple[str, str], int] = {}
        self._left: dict[int, list[IntArray]] = {}

    def _of(self, slot: int) -> list[IntArray]:
        if slot not in self._left:
            rates = slot_bandwidth_bytes_per_s(self._problem, slot, self._slot_s)
            limits = slot_limits_bytes_per_s(self._problem, slot, self._slot_s)
            self._left[slot] = [
                whole_slot_bytes(each, self._slot_s, MOST_SLOT_BYTES) for each in (rates, *limits)
            ]
        return self._left[slot]

    def _at(self, hop: tuple[str, ...]) -> tuple[int, int, int]:
        tail, head = hop
        if (tail, head) not in self._links:
            ends = [self._hosts[tail]], [self._hosts[head]]
            self._links[tail, head] = int(self._problem.link_indices(*ends)[0])
        return self._links[tail, head], self._hosts[tail], self._hosts[head]

    def take(self, hop: tuple[str, ...], slot: int, n_bytes: int) -> None:
        """Let a hop carry so much more in a slot."""
        for left, at in zip(self._of(slot), self._at(hop), strict=True):
            left[at] -= n_bytes

    def has(self, hop: tuple[str, ...], slot: int, n_bytes: int) -> bool:
        """Return whether a hop can carry so much more."""
        return all(
            left[at] >= n_bytes for left, at in zip(self._of(slot), self._at(hop), strict=True)
        )


def relays_in(links: Iterable[Mapping[str, Any]], spooling: Iterable[str], end: str) -> set[str]:
    """Return which of the hosts that keep pieces lead to the destination alone.

    A relay gives what it keeps to the destination, not to another relay.

    >>> links = [{"from": a, "to": b} for a, b in (("S", "K"), ("K", "D"), ("S", "L"), ("L", "K"))]
    >>> relays_in(links, ["K", "L"], "D")
    {'K'}
    """
    onwards = {link["from"] for link in links if link["to"] != end}
    return set(spooling) - onwards
