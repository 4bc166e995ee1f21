"""Planning of a round: from wanted bytes and known links to a plan and its controller."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectError
from datacollect.files.clock import zone_of
from datacollect.methods.execution import PULLS, UNKNOWN_BYTES_PER_S, execution_of
from datacollect.problem.hourly_rates import HourlyRate, is_no_limit
from datacollect.problem.problem import Problem
from datacollect.transfer.rates.spells import spell_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from datacollect.methods.execution import Execution
    from datacollect.methods.planning_options import PlanningOptions
    from datacollect.transfer.protocol.source import Reached
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.pull.core.todo import SourceWork

# Rates that were observed longer ago are learned again.
OLDEST_RATES_S = 24 * 3600.0


# Where no row of the file names a link, it counts for so little of the slowest that is named: it is
# a last resort.
LAST_RESORT_PART = 1e-3


# What a collection file says of hosts and links, and plans do not count on: what is there to
# collect is listed, and rounds are planned of what is open then.
NOT_PLANNED = (
    *("backlog_bytes", "release_s", "produces_bytes_per_s", "made_bytes"),
    *("open", "cap"),
)


def possible_links(destination: str, reached: Mapping[str, Reached]) -> list[tuple[str, str]]:
    """Return the links that hosts allow: to the destination, and to relays that reach a source."""
    links = [(name, destination) for name, each in reached.items() if not each.relays]
    for relay, each in reached.items():
        known = (name for name in each.relays_to if name in reached)
        links += [(name, relay) for name in known if name not in (relay, destination)]
    return links


def problem_of(
    collection: Collection,
    work: Mapping[str, SourceWork],
    links: Iterable[tuple[str, str]],
    rates: Mapping[tuple[str, str], float],
    last_resorts: Iterable[tuple[str, str]] = (),
    now: datetime | None = None,
    file_links: Sequence[Mapping[str, Any]] | None = None,
) -> Problem:
    """Return the problem: what is to be fetched counts as backlog, what is there as held.

    It begins now, so that limits of hosts change at the hours that the file names.

    Parameters
    ----------
    collection : Collection
    work : mapping of str to SourceWork
    links : iterable of (str, str)
        That agents allow; used where the collection file says nothing of links.
    rates : mapping of (str, str) to float
        Observed bytes per second.
    last_resorts : iterable of (str, str)
        Links that agents allow and the file does not name, which are to be used where nothing else
        is left.
    now : datetime, optional
        With its offset from UTC; by default what this host's clock shows.
    file_links : sequence of mapping, optional
        Instead of all links that the file and its CSV name: those that are open.
    """
    network, destination = collection.network, collection.destination
    hosts: dict[str, dict[str, Any]] = {destination: {}}
    hosts |= {name: {} for name in (*collection.hosts, *(collection.sources or {}), *work)}
    for name, entry in network["hosts"].items():
        said = given(entry)
        hosts[name] = {k: v for k, v in said.items() if k not in NOT_PLANNED}
    held = []
    for source, each in work.items():
        hosts[source]["backlog_bytes"] = each.starts[-1] + each.sizes[-1] if each.starts else 0
        held += [
            {"host": destination, "source": source, "offset_bytes": offset, "bytes": n_bytes}
            for offset, n_bytes in there(each)
        ]
    tree: dict[str, Any] = {"destination": destination, "hosts": hosts, "held": held}
    if collection.timezone is not None and _have_hours(hosts):
        now = (now or datetime.now(UTC)).astimezone(zone_of(collection.timezone))
        tree |= {"start": now.isoformat(), "timezone": collection.timezone}
    if says_links(collection):
        if collection.limits.rate is not None:
            hosts[destination]["downlink_bytes_per_s"] = _narrowed(collection, hosts[destination])
        tree["bandwidth_csv"] = network["bandwidth_csv"] if file_links is None else None
        tree["links"] = [
            {k: v for k, v in given(link).items() if k not in NOT_PLANNED}
            for link in (network["links"] if file_links is None else file_links)
        ]
        tree["shared"] = _shared(network["shared"], file_links)
        tree = {key: value for key, value in tree.items() if value is not None}
        named = Problem.from_dict(tree, base_dir=collection.folder)
        more = _last_resorts(named, last_resorts)
        if not more:
            return named
        tree["links"] += more
    else:
        tree["links"] = [
            {"from": a, "to": b, "bandwidth_bytes_per_s": rates.get((a, b), UNKNOWN_BYTES_PER_S)}
            for a, b in dict.fromkeys(links)
        ]
    return Problem.from_dict(tree, base_dir=collection.folder)


def _narrowed(collection: Collection, said: Mapping[str, Any]) -> float | HourlyRate:
    """Return what may come in all, as far as a plan counts on it: the rate as it is now."""
    zone = UTC if collection.timezone is None else zone_of(collection.timezone)
    assert collection.limits.rate is not None
    rate = spell_of(collection.limits.rate, zone, time.time()).bytes_per_s
    downlink = said.get("downlink_bytes_per_s", math.inf)
    if is_no_limit(downlink):
        return rate
    if isinstance(downlink, HourlyRate):
        return replace(downlink, bytes_per_s=tuple(min(x, rate) for x in downlink.bytes_per_s))
    return min(float(downlink), rate)


def _have_hours(hosts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether limits of hosts follow the hours of the day."""
    return any(isinstance(value, HourlyRate) for host in hosts.values() for value in host.values())


def _last_resorts(named: Problem, links: Iterable[tuple[str, str]]) -> list[dict[str, str | float]]:
    """Return links that the file does not name, far slower than any that it names."""
    names = named.names
    ends = zip(named.link_from.tolist(), named.link_to.tolist(), strict=True)
    there = {(names[tail], names[head]) for tail, head in ends}
    rates = named.bandwidth_bytes_per_s
    slowest = float(rates[rates > 0].min()) if (rates > 0).any() else UNKNOWN_BYTES_PER_S
    rate = slowest * LAST_RESORT_PART
    return [
        {"from": tail, "to": head, "bandwidth_bytes_per_s": rate}
        for tail, head in dict.fromkeys(links)
        if (tail, head) not in there and {tail, head} <= set(names)
    ]


def _shared(
    shared: Iterable[Mapping[str, Any]], links: Iterable[Mapping[str, Any]] | None
) -> list[dict[str, Any]]:
    """Return shared bottlenecks of these links; None: of all."""
    if links is None:
        return [given(each) for each in shared]
    there = {(link["from"], link["to"]) for link in links}
    kept = [
        {**given(each), "links": [pair for pair in each["links"] if tuple(pair) in there]}
        for each in shared
    ]
    return [each for each in kept if each["links"]]


def given(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table of a file says, without what it leaves out."""
    return {key: value for key, value in entry.items() if value is not None}


# What sessions, tickets, the state and the name service import on first use.
_NEEDED_LATER = (
    "apsw",
    "blake3",
    "cryptography.exceptions",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "encodings.idna",
    "h11",
)


def warm_up(collection: Collection, how: PlanningOptions) -> None:
    """Import what a pull needs: plan a byte, so that all that planning imports is there, too.

    Whatever is imported later has to open files, of which a busy process may have none left. What
    is wrong with solvers the plan itself will say.
    """
    for name in _NEEDED_LATER:
        import_module(name)
    shared = [{"name": "all", "links": [["S", "D"]], "bandwidth_bytes_per_s": 1.0}]
    tree = {
        "destination": "D",
        "hosts": {"S": {"backlog_bytes": 2}, "R": {}, "D": {}},
        "links": [
            {"from": a, "to": b, "bandwidth_bytes_per_s": 1.0}
            for a, b in (("S", "D"), ("S", "R"), ("R", "D"))
        ],
        "shared": shared if collection.network["shared"] else [],
    }
    with suppress(DatacollectError):
        problem = Problem.from_dict(tree)
        planned(problem, how, connections=4, piece_bytes=1, is_known=says_links(collection))


def says_links(collection: Collection) -> bool:
    """Return whether the collection file says what links there are."""
    return bool(collection.network["links"]) or collection.network["bandwidth_csv"] is not None


def planned(
    problem: Problem, how: PlanningOptions, *, connections: int, piece_bytes: int, is_known: bool
) -> Execution:
    """Plan, and choose who carries the plan out: as a scenario does that says so.

    Parameters
    ----------
    problem : Problem
    how : PlanningOptions
    connections : int
        Most at a time.
    piece_bytes : int
        How data are cut.
    is_known : bool
        Whether its bandwidths mean anything.

    Raises
    ------
    ProblemError
        There is no such method.
    InfeasibleError
        A source has no way to the destination.
    """
    execution = replace(
        PULLS,
        name=how.name,
        options=how.options,
        connections=connections,
        piece_bytes=piece_bytes,
        is_known=is_known,
    )
    return execution_of(problem, execution)


def there(work: SourceWork) -> list[tuple[int, int]]:
    """Return the ranges of a source that need not be fetched."""
    ranges: list[tuple[int, int]] = []
    for piece, (start, size) in enumerate(zip(work.starts, work.sizes, strict=True)):
        if piece in work.needed:
            continue
        if ranges and sum(ranges[-1]) == start:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + size)
        else:
            ranges.append((start, size))
    return ranges


def largest_piece(work: Mapping[str, SourceWork]) -> int:
    """Return the bytes of the largest piece that is needed."""
    return max((each.sizes[piece] for each in work.values() for piece in each.needed), default=1)


def recent_rates(
    observed: Mapping[tuple[str, ...], tuple[float, float]],
) -> dict[tuple[str, str], float]:
    """Return what was observed on links not too long ago.

    >>> recent_rates({("S1", "D"): (5e6, 60.0), ("S2", "D"): (5e6, 1e6)})
    {('S1', 'D'): 5000000.0}
    """
    return {
        (hosts[0], hosts[1]): rate
        for hosts, (rate, age_s) in observed.items()
        if age_s <= OLDEST_RATES_S and rate > 0
    }
