"""A scenario's background: whose traffic crosses which wires, and how much of it is UDP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown, wrong
from datacollect.scenario.placement import nodes_in
from datacollect.scenario.scenario import require_known
from datacollect.simulation.network import NO_WIRE, BackgroundFlow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.numbers.arrays import IntArray
    from datacollect.scenario.scenario import Scenario
    from datacollect.simulation.network import SimulatedNetwork
    from datacollect.topologies import Topology

PLACE = "background"

# Flows that a warning names.
MOST_NAMED = 3


def draw_background(
    scenario: Scenario, topology: Topology, network: SimulatedNetwork
) -> tuple[tuple[BackgroundFlow, ...], dict[str, Any]]:
    """Draw the background's flows.

    Ends are drawn among all pairs of nodes whose route crosses the wanted wire, different pairs
    while there are any. A flow is TCP with some probability; the UDP flows over a wire share
    equally in what UDP is to take of it on average. Where that is nothing they stay silent: the
    TCP flows are then the same as with more UDP.

    Returns
    -------
    tuple of BackgroundFlow
        The drawn flows, wire by wire, then the named pairs.
    dict
        What was drawn, to be recorded: flows, tcp and silent by wire.

    Raises
    ------
    ProblemError
        No pair of nodes has a route over a wire that flows are to cross.
    """
    section, random = scenario.section(PLACE), scenario.random(PLACE)
    flows: list[BackgroundFlow] = []
    facts: dict[str, Any] = {}
    if section["flows"]:
        wires = _wires(section, topology)
        counts = split_evenly(section["flows"], _ratio(section, wires))
        ends = _ends(section, topology)
        for wire, count in zip(wires, counts, strict=True):
            drawn, facts_of_wire = _over_wire(section, topology, network, wire, count, ends, random)
            flows += drawn
            facts[wire or "any"] = facts_of_wire
    for i, pair in enumerate(section["pairs"]):
        flows.append(_named(pair, f"{PLACE}.pairs[{i}]", topology))
    return tuple(flows), facts


def split_evenly(n: int, ratio: Sequence[float]) -> list[int]:
    """Divide a number in a ratio; what remains goes to the largest remainders.

    >>> split_evenly(20, [2, 1]), split_evenly(60, [1, 3])
    ([13, 7], [15, 45])
    """
    exact = np.array(ratio, dtype=float) * n / sum(ratio)
    counts = np.floor(exact + 1e-9).astype(int)
    order = np.argsort(-(exact - counts), kind="stable")
    counts[order[: n - int(counts.sum())]] += 1
    return [int(count) for count in counts]


def strangers(network: SimulatedNetwork) -> list[str]:
    """Say, in one text if any, which background flows cross no wire that hosts' routes cross."""
    if not network.background:
        return []
    nodes = np.unique(list(network.host_node.values()))
    used: set[int] = set()
    for head in nodes.tolist():
        for _, step in _steps(network, nodes, head):
            used.update(np.unique(step).tolist())
    found = []
    for number, flow in enumerate(network.background):
        if used.isdisjoint(_path_or_none(network, flow.from_node, flow.to_node)):
            ends = f"{network.node_names[flow.from_node]} -> {network.node_names[flow.to_node]}"
            found.append(f"{number} ({ends})")
    if not found:
        return []
    if len(found) == 1:
        what, does = f"background flow {found[0]} shares", "it changes"
    else:
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        what = f"background flows {', '.join(found[:MOST_NAMED])}{more} share"
        does = "they change"
    return [f"{what} no wire with any route between hosts: {does} nothing"]


def _path_or_none(network: SimulatedNetwork, a: int, b: int) -> list[int]:
    try:
        return network.path(a, b)
    except ProblemError:
        return []


def _wires(section: Mapping[str, Any], topology: Topology) -> list[str | None]:
    """Names of the wires to cross; None for any."""
    if section["over"] is None:
        peering = [topology.wire_names[i] for i in topology.wires_of_kind("peering").tolist()]
        if not peering and section["split"] is not None:
            raise wrong(f"{PLACE}.split", "needs wires to split over", section["split"],
                        "name them in over")  # fmt: skip
        return list(peering) or [None]
    for i, name in enumerate(section["over"]):
        require_known(name, topology.wire_names, f"{PLACE}.over[{i}]", "a wire of the topology")
        if name in section["over"][:i]:
            raise ProblemError(
                f"{PLACE}.over[{i}]: wire {shown(name)} is listed twice; remove one, and use split"
            )
    return list(section["over"])


def _ratio(section: Mapping[str, Any], wires: Sequence[str | None]) -> list[float]:
    ratio = section["split"] or [1.0] * len(wires)
    if len(ratio) != len(wires) or sum(ratio) <= 0:
        names = ", ".join(str(wire) for wire in wires)
        rule = f"must be one number for each of {len(wires)} wires ({names}), not all 0"
        raise wrong(f"{PLACE}.split", rule, section["split"], "write it so")
    return [float(part) for part in ratio]


def _ends(section: Mapping[str, Any], topology: Topology) -> tuple[IntArray, IntArray]:
    """Nodes that flows may come from and go to."""
    ends = []
    for key in ("from", "to"):
        names = nodes_in(topology, section[key], section["among"], f"{PLACE}.{key}")
        ends.append(np.array([topology.index[name] for name in names], dtype=np.int64))
    return ends[0], ends[1]


def _over_wire(
    section: Mapping[str, Any],
    topology: Topology,
    network: SimulatedNetwork,
    wire: str | None,
    count: int,
    ends: tuple[IntArray, IntArray],
    random: np.random.Generator,
) -> tuple[list[BackgroundFlow], dict[str, Any]]:
    """The flows over one wire, and what to record of them."""
    number = None if wire is None else topology.wire_index(wire)
    pairs = crossing_pairs(network, *ends, number)
    if count and not len(pairs):
        raise ProblemError(
            f"{PLACE}: no route from {section['from'] or 'any node'} to "
            f"{section['to'] or 'any node'} crosses the wire {wire!r}; choose another wire, other "
            'domains, or routing.kind = "hot-potato"'
        )
    chosen = _draw_pairs(pairs, count, random)
    # Drawn for every flow, used or not: kinds and times do not depend on each other.
    is_tcp = random.random(count) < section["tcp_probability"]
    mean_s = random.uniform(section["least_mean_s"], section["most_mean_s"], (count, 2))
    start_s = random.uniform(0.0, section["latest_start_s"], count)
    n_udp = int((~is_tcp).sum())
    flows = []
    for i, (a, b) in enumerate(chosen.tolist()):
        on_s, off_s = mean_s[i].tolist()
        if is_tcp[i]:
            flows.append(BackgroundFlow("tcp", a, b, float(start_s[i])))
            continue
        wires = network.path(a, b)
        rates = network.rate_bytes_per_s[[w for w in wires if number is None or w // 2 == number]]
        mean = section["udp_share"] * float(rates.min()) / n_udp
        if mean > 0:
            rate = mean * (on_s + off_s) / on_s
            flows.append(BackgroundFlow("udp", a, b, float(start_s[i]), rate, on_s, off_s))
    silent = count - len(flows)
    return flows, {"flows": count, "tcp": int(is_tcp.sum()), "silent": silent}


def crossing_pairs(
    network: SimulatedNetwork, tails: IntArray, heads: IntArray, wire: int | None
) -> IntArray:
    """Return the pairs of different nodes whose route crosses a wire, in either direction.

    Parameters
    ----------
    network : SimulatedNetwork
        Wires 2·i and 2·i + 1 are the two directions of the topology's wire i.
    tails, heads : ndarray of int
        Nodes.
    wire : int or None
        Index of the topology's wire; None for pairs with any route at all.

    Returns
    -------
    ndarray of int, shape (n_pairs, 2)
    """
    found = []
    for head in heads.tolist():
        start = tails[(tails != head) & (network.next_wire[tails, head] != NO_WIRE)]
        if wire is not None:
            crossed = np.zeros(len(start), dtype=bool)
            for moving, step in _steps(network, start, head):
                crossed[moving] |= step // 2 == wire
            start = start[crossed]
        found.append(np.column_stack([start, np.full(len(start), head)]))
    if not found:
        return np.zeros((0, 2), dtype=np.int64)
    return np.concatenate(found).astype(np.int64)


def _steps(
    network: SimulatedNetwork, start: IntArray, head: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Walk from many nodes to one at the same time: which of them still move, over which wires."""
    here = start.copy()
    for _ in range(network.n_nodes):
        moving = np.flatnonzero((here != head) & (network.next_wire[here, head] != NO_WIRE))
        if len(moving) == 0:
            return
        step = network.next_wire[here[moving], head]
        yield moving, step
        here[moving] = network.head[step]


def _draw_pairs(pairs: IntArray, count: int, random: np.random.Generator) -> IntArray:
    """Different pairs while there are any, then again from all."""
    rounds = [random.permutation(len(pairs)) for _ in range(-(-count // max(len(pairs), 1)))]
    order = np.concatenate(rounds)[:count] if rounds else np.zeros(0, dtype=np.int64)
    return pairs[order]


def _named(pair: Mapping[str, Any], place: str, topology: Topology) -> BackgroundFlow:
    nodes = []
    for key in ("from", "to"):
        require_known(pair[key], topology.names, f"{place}.{key}", "a node of the topology")
        nodes.append(topology.index[pair[key]])
    a, b = nodes
    if a == b:
        raise wrong(place, "must join two different nodes", [pair["from"], pair["to"]])
    if pair["kind"] == "tcp":
        return BackgroundFlow("tcp", a, b, pair["start_s"])
    rate, on_s, off_s = pair["rate_bytes_per_s"], pair["mean_on_s"], pair["mean_off_s"]
    return BackgroundFlow("udp", a, b, pair["start_s"], rate, on_s, off_s)
