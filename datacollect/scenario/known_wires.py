"""Wires that the planner knows to be shared: which links cross them, what they carry together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.numbers.fairshare import max_min_fair_rates
from datacollect.problem.hosts import SharedBottleneck

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.scenario.options import SharedWire
    from datacollect.scenario.setting import Setting
    from datacollect.simulation.fluid.wires import FluidPath, WireNetwork
    from datacollect.simulation.network import SimulatedNetwork
    from datacollect.topologies import Topology


def with_shared_wires(
    problem: Problem, setting: Setting, shared_wires: Sequence[SharedWire]
) -> Problem:
    """Add what ``estimates.shared`` says: a shared bottleneck for each direction of a wire.

    All links whose route crosses the wire in that direction share it. Its capacity is the number
    given, or what a number of our connections get there together (max-min fairly beside the
    background, UDP at its mean, held back by nothing else), or the wire's rate less headers. A
    direction that no link's route takes is left out.

    Parameters
    ----------
    problem : Problem
        What the planner knows without them.
    setting : Setting
    shared_wires : sequence of SharedWire

    Raises
    ------
    ProblemError
        A wire is not in the topology, or is named twice.

    Examples
    --------
    >>> from datacollect.scenario.knowledge import planning_problem
    >>> from datacollect.scenario.scenario import Scenario
    >>> from datacollect.scenario.setting import build
    >>> scenario = Scenario.from_dict(
    ...     {
    ...         "topology": {"kind": "two-domains"},
    ...         "hosts": {
    ...             "destination": {"at": "A0"},
    ...             "sources": [{"at": "B0", "count": 2, "backlog_bytes": 1_000_000}],
    ...         },
    ...         "estimates": {"kind": "exact", "shared": [{"wire": "B0-A0"}]},
    ...         "transport": {"header_bytes": 0},
    ...     }
    ... )
    >>> problem, _ = planning_problem(build(scenario), "fluid")
    >>> for wire in problem.shared:
    ...     print(wire.name, wire.bandwidth_bytes_per_s, wire.links)
    A0 -> B0 625000.0 (('D', 'S1'), ('D', 'S2'))
    B0 -> A0 625000.0 (('S1', 'D'), ('S2', 'D'))
    """
    topology = setting.topology
    if not shared_wires or topology is None:
        return problem
    network, names = simulated(setting), problem.names
    ends = [
        (names[a], names[b])
        for a, b in zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    ]
    crossed = wires_crossed(problem, network)
    shared = []
    for entry, cable in zip(shared_wires, _cables(shared_wires, topology), strict=True):
        for wire in (2 * cable, 2 * cable + 1):  # there and back
            links = [pair for pair, wires in zip(ends, crossed, strict=True) if wire in wires]
            if links:
                capacity = _known_bytes_per_s(entry, wire, setting)
                shared.append(SharedBottleneck(network.wire_name(wire), capacity, tuple(links)))
    return problem.replace(shared=tuple(shared))


def wires_crossed(problem: Problem, network: SimulatedNetwork) -> list[set[int]]:
    """Return the one-way wires on the route of each link of a problem, in the links' order."""
    node = [network.host_node[name] for name in problem.names]
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    return [set(network.path(node[a], node[b])) for a, b in ends]


def payload_bytes_per_s(setting: Setting) -> FloatArray:
    """Return what each one-way wire carries besides headers."""
    network = simulated(setting)
    segment = network.transport.segment_bytes
    share = segment / (segment + setting.header_bytes)
    rates: FloatArray = network.rate_bytes_per_s * share
    return rates


def simulated(setting: Setting) -> SimulatedNetwork:
    """Return the network that the setting's topology makes.

    Raises
    ------
    ProblemError
        The scenario has a problem instead.
    """
    from datacollect.simulation.network import SimulatedNetwork

    if not isinstance(setting.network, SimulatedNetwork):
        raise ProblemError("estimates: a scenario with a problem has no network to measure")
    return setting.network


def late_capacity_bytes_per_s(network: SimulatedNetwork, wires: WireNetwork) -> FloatArray:
    """Return what UDP leaves of each wire once all background flows have started."""
    late_s = max((flow.start_s for flow in network.background), default=0.0)
    return wires.capacity_bytes_per_s(late_s)


def fair_bytes_per_s(
    uses: Sequence[int],
    limit_bytes_per_s: float,
    capacity_bytes_per_s: FloatArray,
    others: Sequence[FluidPath],
    n_connections: int = 1,
) -> float:
    """Return what equal connections get together, max-min fairly beside others' flows.

    Parameters
    ----------
    uses : sequence of int
        The wires that each of them crosses.
    limit_bytes_per_s : float
        What each can do at most.
    capacity_bytes_per_s : ndarray, shape (n_wires,)
    others : sequence of FluidPath
    n_connections : int
    """
    # As many equal connections are one of that weight.
    flow, resource = [0] * len(uses), list(uses)
    limits, weights = [limit_bytes_per_s * n_connections], [float(n_connections)]
    for number, path in enumerate(others, start=1):
        flow += [number] * len(path.resources)
        resource += path.resources
        limits.append(path.limit_bytes_per_s)
        weights.append(1.0)
    rates = max_min_fair_rates(
        capacity_bytes_per_s, flow, resource, len(limits), weight=weights, rate_limit=limits
    )
    return float(rates[0])


# ----------------------------------------------------------------------------------------------


def _cables(shared_wires: Sequence[SharedWire], topology: Topology) -> list[int]:
    """Indices of the entries' wires in the topology."""
    cables: list[int] = []
    for i, entry in enumerate(shared_wires):
        place = f"estimates.shared[{i}].wire"
        try:
            cable = topology.wire_index(entry.wire)
        except ProblemError as error:
            raise ProblemError(f"{place}: {error}") from None
        if cable in cables:
            raise ProblemError(f"{place}: {entry.wire!r} is listed twice; keep one of them")
        cables.append(cable)
    return cables


def _known_bytes_per_s(entry: SharedWire, wire: int, setting: Setting) -> float:
    """Return what links share on a wire, as the entry says."""
    if entry.bandwidth_bytes_per_s is not None:
        return entry.bandwidth_bytes_per_s
    if entry.connections is None:
        return float(payload_bytes_per_s(setting)[wire])
    from datacollect.simulation.fluid.wires import WireNetwork

    network = simulated(setting)
    wires = WireNetwork(network, header_bytes=setting.header_bytes)
    capacity = late_capacity_bytes_per_s(network, wires)
    others = wires.background_paths
    return fair_bytes_per_s((wire,), math.inf, capacity, others, entry.connections)
