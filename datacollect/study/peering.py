"""Traffic of a collection over each peering wire: planned, and carried out by either engine.

The core paper reasons with it: under equal load direct moves "approximately half of the data" over
each of the two wires.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from datacollect.simulation.network import SimulatedNetwork

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.scenario.setting import Setting
    from datacollect.schedule.schedule import Schedule
    from datacollect.simulation.run import Run


def moved_bytes(run: Run, setting: Setting) -> str:
    """Return what the collection moved over each peering wire, as text of JSON.

    Payload of our own transfers only, by the routes of the network. A hop that crosses a wire
    counts each byte once; a byte that crosses it on two hops counts twice.

    Parameters
    ----------
    run : Run
    setting : Setting

    Returns
    -------
    str
        From the wire's name, such as ``"B0 -> A0"``, to whole bytes; wires with none are there,
        too. Empty without a topology, or where it has no peering wires.
    """
    table = run.routes
    return _over_wires(
        zip(table["from"].tolist(), table["to"].tolist(), table["bytes"].tolist(), strict=True),
        setting,
    )


def planned_bytes(schedule: Schedule, setting: Setting) -> str:
    """Return what a schedule has over each peering wire, as `moved_bytes` does."""
    columns = schedule.columns
    hops = []
    for number, hop, n_bytes in zip(
        columns.route.tolist(), columns.hop.tolist(), columns.n_bytes.tolist(), strict=True
    ):
        hosts = schedule.routes[number].hosts
        hops.append((hosts[hop], hosts[hop + 1], n_bytes))
    return _over_wires(hops, setting)


def shares(text: str) -> list[float]:
    """Return each peering wire's part of the bytes, busiest first; either way counts.

    >>> shares('{"A0 -> B0": 0, "A1 -> B1": 10, "B0 -> A0": 20, "B1 -> A1": 10}')
    [0.5, 0.5]
    >>> shares("")
    []
    """
    found: dict[frozenset[str], int] = {}
    for name, n_bytes in json.loads(text or "{}").items():
        wire = frozenset(name.split(" -> "))
        found[wire] = found.get(wire, 0) + int(n_bytes)
    total = sum(found.values())
    return sorted((n / total for n in found.values()), reverse=True) if total else []


def _over_wires(hops: Iterable[tuple[str, str, float]], setting: Setting) -> str:
    topology, network = setting.topology, setting.network
    if topology is None or not isinstance(network, SimulatedNetwork):
        return ""
    moved = {2 * int(i) + way: 0 for i in topology.wires_of_kind("peering") for way in (0, 1)}
    if not moved:
        return ""
    paths: dict[tuple[str, str], list[int]] = {}
    for a, b, n_bytes in hops:
        if (a, b) not in paths:
            path = network.path(network.host_node[a], network.host_node[b])
            paths[a, b] = [wire for wire in path if wire in moved]
        for wire in paths[a, b]:
            moved[wire] += round(n_bytes)
    by_name = {network.wire_name(wire): n_bytes for wire, n_bytes in moved.items()}
    return json.dumps(by_name, sort_keys=True)
