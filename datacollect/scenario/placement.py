"""A scenario's topology with its hosts in it, and what each of them holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, naming
from datacollect.files.kinds import shown
from datacollect.scenario.scenario import require_known
from datacollect.topologies import (
    Node,
    Topology,
    Wire,
    WireClass,
    dumbbell,
    from_topohub,
    line,
    paper_152,
    star,
    transit_stub,
    two_domains,
)
from datacollect.topologies.graphml import read_map
from datacollect.topologies.maps import MapOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.numbers.arrays import IntArray
    from datacollect.scenario.scenario import Scenario

# Failed draws before a total is taken for one that cannot be met.
MOST_DRAWS = 2_000_000
_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, eq=False)
class Placement:
    """Placement of hosts, and what each holds.

    Attributes
    ----------
    topology : Topology
        With the hosts attached.
    host_node : dict of str to str
        The node of each host: destination, sources, relays.
    destination : str
    backlog_bytes : dict of str to int
        Of the sources.
    """

    topology: Topology
    host_node: Mapping[str, str]
    destination: str
    backlog_bytes: Mapping[str, int]


def place(scenario: Scenario) -> Placement:
    """Draw or read the topology, attach the hosts, draw the backlogs.

    Raises
    ------
    ProblemError
        A node or domain does not exist, a name is given twice, backlogs cannot be drawn.
    """
    with naming("topology"):
        topology = make_topology(scenario)
    bare = topology
    hosts, random = scenario.section("hosts"), scenario.random("hosts")
    used: dict[str, int] = {}
    host_node: dict[str, str] = {}
    given: dict[str, int | None] = {}
    for at, name, group, entry in _entries(hosts):
        if name in host_node:
            raise ProblemError(f"{at}: host {name!r} is named twice; give each a name of its own")
        node = entry["at"]
        if node is None:
            key = "among" if entry["domain"] is None else "domain"
            nodes = nodes_in(bare, entry["domain"], entry["among"], f"{at}.{key}")
            node = _least_used(nodes, used, random)
        else:
            require_known(node, bare.names, f"{at}.at", "a node of the topology")
        if bare.kinds[bare.index[node]] == "host":
            _require_unused(at, node, entry, host_node)
            host_node[name] = node
        else:
            access = entry["access"] or hosts["access"]
            topology = topology.attach(
                name, node, access["rate_bytes_per_s"], access["delay_s"], access["queue_packets"]
            )
            host_node[name] = name
        used[node] = used.get(node, 0) + 1
        if group == "sources":
            given[name] = entry["backlog_bytes"]
    return Placement(
        topology,
        host_node,
        hosts["destination"]["name"],
        _backlogs(given, scenario),
    )


def make_topology(scenario: Scenario) -> Topology:
    """Build what [topology] says, without the scenario's hosts."""
    options = dict(scenario.section("topology"))
    kind = options.pop("kind")
    if "seed" in options and options["seed"] is None:
        options["seed"] = scenario.number("topology")
    for name in ("peering", "transit", "transit_stub_wires", "stub"):
        if name in options:
            options[name] = WireClass(**options[name])
    match kind:
        case "paper-152":
            return paper_152(**options)
        case "transit-stub":
            return transit_stub(**options)
        case "two-domains":
            return two_domains((), (), **options)
        case "dumbbell":
            return dumbbell(**options)
        case "star":
            return star(options.pop("n_hosts"), **options)
        case "line":
            return line(options.pop("n_nodes"), **options)
        case "graphml":
            path, factor = scenario.folder / options.pop("file"), options.pop("rate_factor")
            return read_map(path, MapOptions(**options, notes_defaults=True), factor)
        case "topohub":
            return from_topohub(options.pop("name"), **options)
    return Topology.from_wires(
        [Wire(**_said(wire)) for wire in options["wires"]],
        [Node(**_said(node)) for node in options["nodes"]],
    )


def _said(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None}


def nodes_in(topology: Topology, domain: str | None, among: str | None, place: str) -> list[str]:
    """Return the nodes of a domain that are of a kind; by default of kind stub if there are any.

    The stub domains of a transit domain's nodes belong to it: those of A0 are A0.0, A0.1, ...
    """
    names, kinds, domains = topology.names, topology.kinds, topology.domains
    inside = list(range(topology.n_nodes))
    if domain is not None:
        transit = {name for name, d in zip(names, domains, strict=True) if d == domain}
        inside = [
            i for i in inside if domains[i] == domain or domains[i].rpartition(".")[0] in transit
        ]
        if not inside:
            known = [name for name in dict.fromkeys(domains) if name]
            require_known(domain, known, place, "a domain of the topology")
    routers = [i for i in inside if kinds[i] != "host"]
    if among is None:
        stubs = [i for i in routers if kinds[i] == "stub"]
        chosen = stubs or [i for i in routers if kinds[i] != "external"]
    else:
        chosen = routers if among == "any" else [i for i in routers if kinds[i] == among]
    if not chosen:
        here = "the topology" if domain is None else f"domain {domain!r}"
        raise ProblemError(
            f"{place}: no node of kind {among or 'router'!r} in {here}; there are "
            f"{', '.join(sorted({kinds[i] for i in inside}))}"
        )
    return [names[i] for i in chosen]


def _entries(hosts: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Place, name, group and entry of every host."""
    yield "hosts.destination", hosts["destination"]["name"], "destination", hosts["destination"]
    for group, letter in (("sources", "S"), ("relays", "K")):
        number = 0
        for i, entry in enumerate(hosts[group]):
            for k in range(entry["count"]):
                number += 1
                name = entry["name"]
                if name is None:
                    name = f"{letter}{number}"
                elif entry["count"] > 1:
                    name = f"{name}{k + 1}"
                yield f"hosts.{group}[{i}]", name, group, entry


def _least_used(nodes: Sequence[str], used: Mapping[str, int], random: np.random.Generator) -> str:
    """Draw one of the nodes that have the fewest hosts: different ones while there are any."""
    least = min(used.get(node, 0) for node in nodes)
    free = [node for node in nodes if used.get(node, 0) == least]
    return free[int(random.integers(len(free)))]


def _require_unused(
    place: str, node: str, entry: Mapping[str, Any], host_node: Mapping[str, str]
) -> None:
    if node in host_node.values():
        raise ProblemError(f"{place}.at: {node!r} is a host that is already in use; name another")
    if entry["access"] is not None:
        raise ProblemError(
            f"{place}.access: {node!r} is a host of the topology and has its wire already; "
            "remove access, or attach to a router"
        )


# Backlogs -----------------------------------------------------------------------------------


def _backlogs(given: Mapping[str, int | None], scenario: Scenario) -> dict[str, int]:
    backlog, scale = scenario.section("backlog"), float(scenario.sections["scale"])
    drawn = [name for name, n_bytes in given.items() if n_bytes is None]
    least, most, total = (backlog[f"{key}_bytes"] for key in ("least", "most", "total"))
    if drawn and least is None:
        raise ProblemError(
            f"source {drawn[0]!r} has no backlog: give it backlog_bytes, or all of them "
            "backlog.least_bytes and backlog.most_bytes"
        )
    if not drawn and (least, total) != (None, None):
        raise ProblemError(
            "backlog: every source has a backlog_bytes of its own, so nothing is drawn; remove "
            "[backlog], or their backlog_bytes"
        )
    sizes = dict(given)
    if drawn:
        random = scenario.random("backlog")
        amounts = (
            random.integers(least, most, len(drawn), endpoint=True)
            if total is None
            else uniform_with_total(len(drawn), least, most, total, random)
        )
        sizes |= dict(zip(drawn, amounts.tolist(), strict=True))
    scaled = scaled_with_total(np.array([n or 0 for n in sizes.values()], dtype=np.int64), scale)
    backlog_bytes = dict(zip(sizes, scaled.tolist(), strict=True))
    for name, n_bytes in backlog_bytes.items():
        if n_bytes < 1:
            raise ProblemError(f"scale {scale:g} leaves source {name!r} no byte; raise the scale")
    return backlog_bytes


def uniform_with_total(
    n: int, least: int, most: int, total: int, random: np.random.Generator
) -> IntArray:
    """Draw whole numbers, uniform between bounds on condition that they add up to a total.

    By rejection: all but the last are drawn uniformly, the last is what is missing, and a draw
    counts if that lies within the bounds too. Scaling independent draws to the total would leave
    the bounds and favour the middle.

    Raises
    ------
    ProblemError
        The total cannot be met, or lies so near to what the bounds allow that no draw meets it.

    Examples
    --------
    >>> drawn = uniform_with_total(7, 25, 75, 350, np.random.default_rng(1))
    >>> int(drawn.sum()), int(drawn.min()) >= 25, int(drawn.max()) <= 75
    (350, True, True)
    """
    if not n * least <= total <= n * most:
        raise ProblemError(
            f"backlog.total_bytes must lie between {n} × least_bytes = {n * least} and {n} × "
            f"most_bytes = {n * most}, got {shown(total)}; change one of them"
        )
    if total in (n * least, n * most):
        return np.full(n, total // n, dtype=np.int64)
    for _ in range(MOST_DRAWS // _ROWS_AT_ONCE):
        # A row per draw, so that the first that fits is the same whatever is drawn at once.
        rows = random.integers(least, most, (_ROWS_AT_ONCE, n - 1), endpoint=True)
        last = total - rows.sum(axis=1)
        fits = np.flatnonzero((last >= least) & (last <= most))
        if len(fits):
            return np.append(rows[fits[0]], last[fits[0]])
    raise ProblemError(
        f"backlog.total_bytes {total} is so near to {n} × least_bytes or most_bytes that random "
        f"draws almost never meet it ({MOST_DRAWS} failed); give each source its backlog_bytes"
    )


def scaled_with_total(amounts: IntArray, scale: float) -> IntArray:
    """Scale whole amounts; the sum is the rounded scaled sum, by largest remainders.

    >>> scaled_with_total(np.array([25, 26, 49]), 0.1).tolist()
    [2, 3, 5]
    """
    exact = amounts * scale
    scaled = np.floor(exact).astype(np.int64)
    missing = round(float(amounts.sum()) * scale) - int(scaled.sum())
    order = np.argsort(-(exact - scaled), kind="stable")
    scaled[order[:missing]] += 1
    return np.asarray(scaled, dtype=np.int64)
