"""Plans in time slots: what lies at relays counts as held there, and hours of links count."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.errors import ProblemError
from datacollect.methods.choice import plan
from datacollect.methods.options.names import ADAPTIVE, COORDINATED
from datacollect.problem.problem import Problem
from datacollect.problem.windows import window_text
from datacollect.transfer.pull.planning import given, says_links, there

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from datacollect.methods.planning_options import PlanningOptions
    from datacollect.schedule.schedule import Schedule
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.pull.core.todo import SourceWork
    from datacollect.transfer.pull.open_hours import OpenHours

# What a collection file says and a plan in slots does not count on.
_NOT_PLANNED = ("backlog_bytes", "release_s", "cap")


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


def require_links(collection: Collection) -> None:
    """Raise `ProblemError` where a collection cannot be planned in slots."""
    if not says_links(collection):
        raise ProblemError(
            "--slot plans by links, and the collection file names none; write [[links]] with their "
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
    name = COORDINATED if how.name == ADAPTIVE else how.name
    how = replace(how, name=name, options={**how.options, "slot_s": slot_s})
    schedule = plan(problem, how.planning())
    return SlotPlan(schedule, _tasks(schedule, slot_s, work))


def _tasks(
    schedule: Schedule, slot_s: float, work: Mapping[str, SourceWork]
) -> dict[int, list[HopTask]]:
    tasks: dict[int, dict[tuple[str, str, str], list[int]]] = {}
    columns = schedule.columns
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


def relays_in(links: Iterable[Mapping[str, Any]], spooling: Iterable[str], end: str) -> set[str]:
    """Return which of the hosts that keep pieces lead to the destination alone.

    A relay gives what it keeps to the destination, not to another relay.

    >>> links = [{"from": a, "to": b} for a, b in (("S", "K"), ("K", "D"), ("S", "L"), ("L", "K"))]
    >>> relays_in(links, ["K", "L"], "D")
    {'K'}
    """
    onwards = {link["from"] for link in links if link["to"] != end}
    return set(spooling) - onwards
