"""Remedies about scenarios, networks of routers, and runs in them."""

from __future__ import annotations

import re

from instances.small_scenarios import line_of
from remedies.trying import Example

from datacollect.scenario.setting import build
from datacollect.topologies.parts import Wire
from datacollect.topologies.routing import shortest_routes
from datacollect.topologies.small import line
from datacollect.topologies.topology import Topology

LINE = line(3, rate_bytes_per_s=1e6, delay_s=0.01)
SLOW = line(2, rate_bytes_per_s=1.0, delay_s=1e8)
DIRECT = {"name": "direct"}
TURNS = DIRECT | {"time_slot_s": 1.0, "at_a_time": 1}
UNKNOWN = {"kind": "unknown"}
TIMES = {"as_many_times": 2}
SHARED = {"wire": "N0-N1", "bandwidth_bytes_per_s": 1e6, "connections": 1}
PLACED = {"hosts": {"destination": {"at": "N1"}, "sources": [{"name": "S", "at": "N0"}]}}


def method(**values):
    return lambda: line_of(method=values)


def estimates(**values):
    return lambda: line_of(estimates=values)


def background(**values):
    return lambda: line_of(background={"flows": 1} | values)


def drawn(backlog=None, n_sources=2, **source):
    """Build a scenario whose sources have drawn backlogs, or what `source` says."""
    tree = {"destination": {"at": "N1"}, "sources": [{"at": "N0", "count": n_sources} | source]}
    sections = {"hosts": tree} | ({} if backlog is None else {"backlog": backlog})
    return lambda: build(line_of(**sections))


def split(ends):
    return re.split("([-=])", ends)


def wired(*ends):
    """Return a network of wires such as ``A-B``, and ``A=B`` for one between regions."""
    kinds = {"-": "backbone", "=": "peering"}
    return Topology.from_wires(
        [Wire(a, b, 1.0, 0.001, kind=kinds[sign]) for a, sign, b in map(split, ends)]
    )


# Two ways lead from S to E. The upper one, over B3=A3, is for hot potatoes only.
REGIONS = ("B3-B0", "A3-A2", "A2-A1", "A1-A0", "B0=A0", "B3=A3", "S-B3", "A0-E")


def crowded(wire, to="far", kind="shortest"):
    """Build a scenario in which flows from S to E, or to A3, cross a wire."""
    domains = {"from": "S", "far": "E", "near": "A3"}
    wires = [
        {"a": a, "b": b, "rate_bytes_per_s": 1e6} | ({"kind": "peering"} if sign == "=" else {})
        for a, sign, b in map(split, REGIONS)
    ]
    nodes = [{"name": name, "domain": domain} for domain, name in domains.items()]
    tree = line_of(
        topology={"kind": "explicit", "wires": wires, "nodes": nodes},
        hosts={"destination": {"at": "A0"}, "sources": [{"at": "B0", "backlog_bytes": 1}]},
        routing={"kind": kind},
        background={"flows": 1, "from": "from", "to": to, "over": [wire]},
    )
    return lambda: build(tree)


RANGE = {"least_bytes": 1_000_000, "most_bytes": 2_000_000}

EXAMPLES = [
    Example(
        "time_slot_s cannot be combined with streams, total_streams and streams_as: in turns each "
        "source has one",
        method(**TURNS, streams=2),
        method(**TURNS),
    ),
    Example(
        "needs at_a_time, how many sources send in each turn, got {}; add method.at_a_time",
        method(**DIRECT, time_slot_s=1.0),
        method(**TURNS),
    ),
    Example(
        "total_streams and streams_as cannot be combined; give one",
        method(**DIRECT, total_streams=4, streams_as="coordinated"),
        method(**DIRECT, total_streams=4),
    ),
    Example(
        "total_streams and streams_as cannot be combined; give one",
        method(**DIRECT, total_streams=4, streams_as="coordinated"),
        method(**DIRECT, streams_as="coordinated"),
    ),
    Example(
        "connections and connections_as cannot be combined; give one",
        method(name="adaptive", connections=4, connections_as="coordinated"),
        method(name="adaptive", connections=4),
    ),
    Example(
        "connections and connections_as cannot be combined; give one",
        method(name="adaptive", connections=4, connections_as="coordinated"),
        method(name="adaptive", connections_as="coordinated"),
    ),
    Example(
        "adaptive, chains, replan_s, got {}; leave it out",
        method(name="coordinated", piece_bytes=1000),
        method(name="coordinated"),
    ),
    Example(
        'cannot be combined with timing = "planned", pace and time_slot_s: '
        "nobody knows when a transfer ends; leave them out",
        lambda: line_of(method=DIRECT | {"timing": "planned"}, estimates=UNKNOWN),
        lambda: line_of(method=DIRECT, estimates=UNKNOWN),
    ),
    Example(
        "where links are learned on the way, got {}; set it",
        lambda: line_of(method={"name": "coordinated"}, estimates=UNKNOWN),
        lambda: line_of(method={"name": "coordinated", "relays": "chains"}, estimates=UNKNOWN),
    ),
    Example(
        'set it, or take method.name = "direct"',
        lambda: line_of(method={"name": "coordinated"}, estimates=UNKNOWN),
        lambda: line_of(method=DIRECT, estimates=UNKNOWN),
    ),
    *(
        Example(says, method(**DIRECT, **TIMES), method(**instead))
        for says, instead in (
            (
                'got {}; use it in direct with streams_as = "coordinated"',
                DIRECT | TIMES | {"streams_as": "coordinated"},
            ),
            (
                "over chains with connections_as, or in adaptive",
                {"name": "coordinated", "relays": "chains", "connections_as": "coordinated"}
                | TIMES,
            ),
            ("or in adaptive without connections", {"name": "adaptive"} | TIMES),
            ("or in adaptive without connections, or leave it out", DIRECT),
        )
    ),
    Example(
        "least_bytes and most_bytes belong together; give both",
        lambda: line_of(**PLACED, backlog={"least_bytes": 1}),
        lambda: line_of(**PLACED, backlog={"least_bytes": 1, "most_bytes": 2}),
    ),
    Example(
        "backlog.least_bytes must be <= most_bytes ({}), got {}; swap least_bytes and most_bytes",
        lambda: line_of(**PLACED, backlog={"least_bytes": 2, "most_bytes": 1}),
        lambda: line_of(**PLACED, backlog={"least_bytes": 1, "most_bytes": 2}),
    ),
    Example(
        "background.least_mean_s must be <= most_mean_s ({}), got {}; "
        "swap least_mean_s and most_mean_s",
        background(least_mean_s=2.0, most_mean_s=1.0),
        background(least_mean_s=1.0, most_mean_s=2.0),
    ),
    *(
        Example(
            "bandwidth_bytes_per_s and connections cannot be combined; give one of them, or none",
            estimates(shared=[SHARED]),
            estimates(shared=[{key: SHARED[key] for key in keys}]),
        )
        for keys in (("wire", "bandwidth_bytes_per_s"), ("wire", "connections"), ("wire",))
    ),
    Example(
        'estimates.file is for kind = "given" and is needed there',
        estimates(kind="exact", file="e.csv"),
        estimates(kind="exact"),
    ),
    Example(
        "{} has no backlog: give it backlog_bytes",
        drawn(),
        drawn(backlog_bytes=1000),
    ),
    Example(
        "give it backlog_bytes, or all of them backlog.least_bytes and backlog.most_bytes",
        drawn(),
        drawn(RANGE),
    ),
    Example(
        "so nothing is drawn; remove [backlog]",
        drawn(RANGE, backlog_bytes=1000),
        drawn(backlog_bytes=1000),
    ),
    Example(
        "remove [backlog], or their backlog_bytes",
        drawn(RANGE, backlog_bytes=1000),
        drawn(RANGE),
    ),
    Example(
        "backlog.total_bytes must lie between {} × least_bytes = {} and {} × most_bytes = {}, "
        "got {}; change one of them",
        drawn(RANGE | {"total_bytes": 5_000_000}),
        drawn(RANGE | {"total_bytes": 3_000_000}),
    ),
    Example(
        "random draws almost never meet it ({} failed); give each source its backlog_bytes",
        drawn(RANGE | {"total_bytes": 12_000_001}, n_sources=12),
        drawn(n_sources=12, backlog_bytes=1_000_000),
    ),
    Example(
        "crosses the wire {}; choose another wire",
        crowded("B3-A3"),
        crowded("B0-A0"),
    ),
    Example("choose another wire, other domains", crowded("B3-A3"), crowded("B3-A3", to="near")),
    Example(
        'other domains, or routing.kind = "hot-potato"',
        crowded("B3-A3"),
        crowded("B3-A3", kind="hot-potato"),
    ),
    Example(
        "mark them with kind='peering'",
        lambda: shortest_routes(LINE, ["N1"], hot_potato=True),
        lambda: shortest_routes(wired("N0=N1", "N1=N2"), ["N1"], hot_potato=True),
    ),
    Example(
        "mark them with kind='peering', or route without hot_potato",
        lambda: shortest_routes(LINE, ["N1"], hot_potato=True),
        lambda: shortest_routes(LINE, ["N1"]),
    ),
    Example(
        "its ends are connected without any peering wire; remove the way around",
        lambda: shortest_routes(wired("A=B", "A-K", "K-B"), ["B"], hot_potato=True),
        lambda: shortest_routes(wired("A=B", "A-K"), ["B"], hot_potato=True),
    ),
    Example(
        "remove the way around, or route without hot_potato",
        lambda: shortest_routes(wired("A=B", "A-K", "K-B"), ["B"], hot_potato=True),
        lambda: shortest_routes(wired("A=B", "A-K", "K-B"), ["B"]),
    ),
    Example(
        "name it among the destinations of shortest_routes",
        lambda: shortest_routes(LINE, ["N1"]).path("N1", "N0"),
        lambda: shortest_routes(LINE, ["N0"]).path("N1", "N0"),
    ),
    Example(
        "delay_s is too long to compare routes exactly, got {}; use weight='hops'",
        lambda: shortest_routes(SLOW, ["N1"], weight="delay"),
        lambda: shortest_routes(SLOW, ["N1"], weight="hops"),
    ),
]
