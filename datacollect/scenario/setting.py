"""Setting of a scenario for engines: network, hosts, backlogs, background."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, naming
from datacollect.problem.calendar import by_hours, listed_again, unrolled
from datacollect.problem.host_limits import LIMITS, varies
from datacollect.problem.problem import Problem
from datacollect.scenario.background import draw_background, strangers
from datacollect.scenario.placement import Placement, place
from datacollect.simulation.network import NO_WIRE, PRESETS, SimulatedNetwork, Transport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.numbers.arrays import IntArray
    from datacollect.scenario.scenario import Scenario
    from datacollect.simulation.fluid.problem_network import ProblemNetwork
    from datacollect.topologies import Topology


@dataclass(frozen=True, eq=False)
class Setting:
    """Common part of a scenario's runs, whatever the method.

    Attributes
    ----------
    scenario : Scenario
    network : SimulatedNetwork or ProblemNetwork
    destination : str
    backlog_bytes : dict of str to int
        Of the sources.
    hosts : tuple of str
        Everybody who takes part.
    problem : Problem or None
        What plans are made on, where the scenario names a problem; else estimates make it.
    topology : Topology or None
    facts : dict
        What was drawn, to be recorded with the result.
    warnings : tuple of str
    """

    scenario: Scenario
    network: SimulatedNetwork | ProblemNetwork
    destination: str
    backlog_bytes: Mapping[str, int]
    hosts: tuple[str, ...]
    problem: Problem | None = None
    topology: Topology | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def header_bytes(self) -> int:
        """Say what the fluid engine adds to each segment; only a topology's wires carry headers."""
        return int(self.scenario.section("transport")["header_bytes"])


def build(scenario: Scenario) -> Setting:
    """Build what a scenario describes.

    Topology, places, backlogs and background are drawn from streams of their own: methods, and
    other numbers of background flows, see the same places and backlogs.

    Raises
    ------
    ProblemError
        The scenario names what is not there, or a source cannot reach the destination.

    Examples
    --------
    >>> from datacollect.scenario.scenario import Scenario
    >>> setting = build(
    ...     Scenario.from_dict(
    ...         {
    ...             "topology": {"kind": "two-domains"},
    ...             "hosts": {
    ...                 "destination": {"at": "A0"},
    ...                 "sources": [{"at": "B0", "backlog_bytes": 1_000_000}],
    ...             },
    ...         }
    ...     )
    ... )
    >>> setting.hosts, setting.network.n_nodes
    (('D', 'S1'), 6)
    """
    if not scenario.has_topology:
        return _from_problem(scenario)
    placed = place(scenario)
    network = _network(scenario, placed)
    flows, facts = draw_background(scenario, placed.topology, network)
    network = replace(network, background=flows)
    _require_ways(network, placed)
    return Setting(
        scenario,
        network,
        placed.destination,
        placed.backlog_bytes,
        tuple(placed.host_node),
        topology=placed.topology,
        facts={
            "topology_sha256": placed.topology.sha256,
            "nodes_of_hosts": _nodes_of_hosts(placed),
            "background": facts,
        },
        warnings=(*placed.topology.notes, *strangers(network)),
    )


def network_sha256(network: SimulatedNetwork) -> str:
    """Hash of all that shapes what packets meet: wires, routes, background, transport, hosts."""
    digest = hashlib.sha256()
    words = (
        network.node_names,
        sorted(network.host_node.items()),
        network.background,
        network.transport,
    )
    digest.update(repr(words).encode())
    if not network.transport.sack:
        digest.update(b"no sack")
    if network.changes:
        digest.update(repr(network.changes).encode())
    for whole in (network.tail, network.head, network.queue_packets, network.next_wire):
        digest.update(np.ascontiguousarray(whole, dtype="<i8").tobytes())
    for real in (network.rate_bytes_per_s, network.delay_s):
        digest.update(np.ascontiguousarray(real, dtype="<f8").tobytes())
    return digest.hexdigest()


def network_of(
    topology: Topology,
    host_node: Mapping[str, str],
    next_wire: IntArray,
    transport: Transport | None = None,
) -> SimulatedNetwork:
    """Turn a topology into one-way wires.

    Parameters
    ----------
    topology : Topology
    host_node : mapping of str to str
        The node's name of every host.
    next_wire : ndarray of int, shape (n_nodes, n_nodes)
        Row = destination, column = node, as `Routes.next_wire` has it for all destinations.
    transport : Transport, optional

    Returns
    -------
    SimulatedNetwork
        Wires 2·i and 2·i + 1 are wire i of the topology, there and back.
    """
    one, other = topology.wire_from.astype(np.int64), topology.wire_to.astype(np.int64)
    away = next_wire.T.astype(np.int64)  # row = node
    known = away >= 0
    nodes = np.broadcast_to(np.arange(topology.n_nodes)[:, np.newaxis], away.shape)
    directed = np.full(away.shape, NO_WIRE, dtype=np.int64)
    directed[known] = 2 * away[known] + (one[away[known]] != nodes[known])
    return SimulatedNetwork(
        node_names=topology.names,
        host_node={host: topology.index[node] for host, node in host_node.items()},
        tail=np.column_stack([one, other]).ravel(),
        head=np.column_stack([other, one]).ravel(),
        rate_bytes_per_s=topology.rate_bytes_per_s.ravel(),
        delay_s=np.repeat(topology.delay_s, 2),
        queue_packets=topology.queue_packets.ravel(),
        next_wire=directed,
        transport=transport or Transport(),
    )


def _network(scenario: Scenario, placed: Placement) -> SimulatedNetwork:
    routing = scenario.section("routing")
    routes = placed.topology.shortest_routes(
        weight=routing["weight"], hot_potato=routing["kind"] == "hot-potato"
    )
    options = dict(scenario.section("transport"))
    del options["header_bytes"]  # the fluid engine's, not part of the network
    if options["sack"] is None:
        del options["sack"]
    if (preset := options.pop("preset")) is not None:
        options |= PRESETS[preset]
    transport = Transport(**options)
    return network_of(
        placed.topology, placed.host_node, routes.next_wire.astype(np.int64), transport
    )


def _require_ways(network: SimulatedNetwork, placed: Placement) -> None:
    node = network.host_node
    for source in placed.backlog_bytes:
        for a, b in ((source, placed.destination), (placed.destination, source)):
            if network.next_wire[node[a], node[b]] == NO_WIRE:
                raise ProblemError(
                    f"host {a!r} has no route to {b!r}; join their parts of the topology"
                )


def _nodes_of_hosts(placed: Placement) -> dict[str, str]:
    """Return where each host attaches."""
    topology = placed.topology
    where = {}
    for host, node in placed.host_node.items():
        neighbours = topology.neighbours(node)
        where[host] = neighbours[0] if node == host and neighbours else node
    return where


def _from_problem(scenario: Scenario) -> Setting:
    from datacollect.simulation.fluid.problem_network import ProblemNetwork

    with naming("problem"):
        problem = Problem.from_file(scenario.folder / scenario.sections["problem"])
    scale = float(scenario.sections["scale"])
    if scale != 1.0:
        raise ProblemError(
            f"scale must be 1 with a problem, got {scale:g}; change the problem's backlogs instead"
        )
    truth = problem
    if scenario.sections["truth_csv"] is not None:
        truth = _with_bandwidths(problem, scenario)
    backlog = {
        name: int(n)
        for name, n in zip(problem.names, problem.backlog_bytes.tolist(), strict=True)
        if n
    }
    return Setting(
        scenario,
        ProblemNetwork(truth),
        problem.destination,
        backlog,
        problem.names,
        problem=problem,
        facts={"problem_sha256": problem.sha256, "truth_sha256": truth.sha256},
    )


def _with_bandwidths(problem: Problem, scenario: Scenario) -> Problem:
    """The problem with the bandwidths of another file; pairs that it leaves out are no links."""
    from datacollect.problem.link_table import read_link_table

    path = scenario.folder / scenario.sections["truth_csv"]
    try:
        table = read_link_table(path, problem.host_index, None)
    except ProblemError as error:
        raise ProblemError(f"truth_csv {error}") from None
    links = set(zip(table.link_from.tolist(), table.link_to.tolist(), strict=True))
    names = problem.names
    for bottleneck in problem.shared:
        for a, b in bottleneck.links:
            if (problem.host_index[a], problem.host_index[b]) not in links:
                raise ProblemError(
                    f"truth_csv {path}: link {a!r} -> {b!r} of the shared bottleneck "
                    f"{bottleneck.name!r} is missing; give it a bandwidth, 0 for none"
                )
    if len(table.bandwidth_bytes_per_s) != 1:
        raise ProblemError(f"truth_csv {path}: must have one bandwidth per pair of {len(names)}")
    columns: Any = {
        "link_from": table.link_from.astype(np.int32),
        "link_to": table.link_to.astype(np.int32),
        "price_per_gb": None,
    }
    rates, daily = table.bandwidth_bytes_per_s, problem.daily
    # Hosts' limits, and windows, are what the problem says of them.
    if daily is not None and daily.windows and problem.clock is not None:
        of_hours = by_hours(problem)
        rates = np.repeat(rates, len(of_hours["periods_s"]), axis=0)
        truth = problem.replace(**of_hours | columns | {"bandwidth_bytes_per_s": rates})
        return truth.replace(**listed_again(truth, daily, problem.clock, daily.until_s))
    if not any(varies(getattr(problem, key)) for key in LIMITS):
        return problem.replace(bandwidth_bytes_per_s=rates, periods_s=np.zeros(1), **columns)
    rates = np.repeat(rates, problem.n_periods, axis=0)
    truth = problem.replace(bandwidth_bytes_per_s=rates, daily=daily, **columns)
    if daily is None or truth.clock is None:
        return truth
    return truth.replace(**unrolled(truth, daily, truth.clock, daily.until_s))
