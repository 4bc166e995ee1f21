"""Reference of a run: the fastest flow with as many connections and known shared wires."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.methods.connections.connected import earliest_s
from datacollect.problem.hosts import Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem
from datacollect.scenario.known_wires import late_capacity_bytes_per_s, simulated
from datacollect.simulation.network import SimulatedNetwork

if TYPE_CHECKING:
    from datacollect.scenario.setting import Setting


def reference_s(setting: Setting, connections: int) -> float:
    """Return how soon all can have arrived with `connections` at a time; NaN if not known.

    The value of the linear program with parts of connections (`datacollect.flow.connection_flow`),
    for the true wires, the background's TCP flows on each as competitors and its UDP at its mean.
    It takes for granted that others' flows send all the time, and that wires give to each alike.

    Parameters
    ----------
    setting : Setting
        Of a topology; with a problem nothing is known of wires.
    connections : int

    Examples
    --------
    625 000 bytes/s beside two flows of others: two of ours get half of it.

    >>> from datacollect.scenario.scenario import Scenario
    >>> from datacollect.scenario.setting import build
    >>> pair = {"from": "B0", "to": "A0"}
    >>> scenario = Scenario.from_dict(
    ...     {
    ...         "topology": {"kind": "two-domains"},
    ...         "hosts": {
    ...             "destination": {"at": "A0"},
    ...             "sources": [{"at": "B0", "backlog_bytes": 1_000_000}],
    ...         },
    ...         "background": {"pairs": [pair, pair]},
    ...         "transport": {"header_bytes": 0},
    ...     }
    ... )
    >>> round(reference_s(build(scenario), 2), 6)
    3.2
    """
    if not isinstance(setting.network, SimulatedNetwork):
        return math.nan
    return earliest_s(true_problem(setting), connections)


def true_problem(setting: Setting) -> Problem:
    """Return the problem that only the simulator knows: every wire, and who else is on it."""
    from datacollect.simulation.fluid.wires import WireNetwork

    network = simulated(setting)
    wires = WireNetwork(network, header_bytes=setting.header_bytes)
    capacity = late_capacity_bytes_per_s(network, wires)
    competitors = np.zeros(len(capacity))
    for flow in wires.background_paths:
        competitors[np.unique(flow.resources)] += 1
    links, crossing = [], dict[int, list[tuple[str, str]]]()
    for tail in setting.hosts:
        for head in setting.hosts:
            path = None if tail in (head, setting.destination) else wires.path(tail, head)
            if path is None:
                continue
            used = list(path.resources)
            most = min(path.limit_bytes_per_s, float(capacity[used].min()))
            links.append(Link(tail, head, most, per_connection_bytes_per_s=most))
            for wire in set(used):
                crossing.setdefault(wire, []).append((tail, head))
    shared = [
        SharedBottleneck(
            network.wire_name(wire),
            float(capacity[wire] / (1 + competitors[wire])),
            tuple(pairs),
            competitors=float(competitors[wire]) if competitors[wire] else None,
        )
        for wire, pairs in sorted(crossing.items())
    ]
    hosts = [Host(name, setting.backlog_bytes.get(name, 0)) for name in setting.hosts]
    return Problem.from_hosts(hosts, links, setting.destination, shared=shared)
