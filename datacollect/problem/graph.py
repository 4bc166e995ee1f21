"""Problems from and to directed graphs (networkx)."""

from __future__ import annotations

import math
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.with_units import in_units
from datacollect.numbers.containers import by_name, opened
from datacollect.problem.building import contents_of_hosts
from datacollect.problem.connection_rates import RATE_COLUMNS, rates_of
from datacollect.problem.fields import COUNTED
from datacollect.problem.host_limits import LIMITS, SHOWN
from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
from datacollect.problem.hourly_rates import is_no_limit
from datacollect.problem.places import PLACE_COLUMNS
from datacollect.problem.production import PRODUCTION_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import networkx as nx

    from datacollect.files.quantities import WholeBytes
    from datacollect.numbers.arrays import IndexArray
    from datacollect.problem.contents import ProblemContents

NODE_ATTRIBUTES = (
    "backlog_bytes",
    "release_s",
    "storage_bytes",
    "uplink_bytes_per_s",
    "downlink_bytes_per_s",
    *SHOWN.values(),
    "most_connections",
    *PRODUCTION_COLUMNS,
    *PLACE_COLUMNS,
)
EDGE_ATTRIBUTES = ("bandwidth_bytes_per_s", "price_per_gb", *RATE_COLUMNS)
GRAPH_ATTRIBUTES = ("destination", "periods_s", "shared", "held")


def contents_of_graph(
    graph: nx.DiGraph[Any],
    destination: str | None = None,
    *,
    backlog: WholeBytes | float | Mapping[str, WholeBytes] | None = None,
    capacity: str | None = None,
) -> ProblemContents:
    """Bring a directed graph into columns.

    Parameters and errors are those of `datacollect.problem.problem.Problem.from_networkx`, which
    says what they mean.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.DiGraph()
    >>> graph.add_node("S", backlog_bytes=10)
    >>> graph.add_edge("S", "D", bandwidth_bytes_per_s=5.0)
    >>> contents_of_graph(graph, "D").backlog_bytes.tolist()
    [10, 0]
    """
    if not graph.is_directed() or graph.is_multigraph():
        raise ProblemError(
            f"the graph must be a networkx.DiGraph, got {type(graph).__name__}; "
            "graph.to_directed() makes two links of each edge, networkx.DiGraph(graph) keeps one "
            "of parallel edges"
        )
    attributes = graph.graph
    _reject_near_misses(attributes, GRAPH_ATTRIBUTES, "the graph")
    chosen = attributes.get("destination") if destination is None else destination
    if chosen is None:
        raise ProblemError(
            "destination is missing: give it as argument or as graph.graph['destination']"
        )
    return contents_of_hosts(
        [
            _host_of_node(node, data)
            for node, data in _with_backlogs(graph.nodes(data=True), backlog, chosen)
        ],
        [
            _link_of_edge(tail, head, _with_bandwidth(tail, head, data, capacity))
            for tail, head, data in graph.edges(data=True)
        ],
        chosen,
        shared=_instances(attributes, "shared", SharedBottleneck),
        held=_instances(attributes, "held", Held),
        periods_s=attributes.get("periods_s"),
    )


def _with_backlogs(
    nodes: Iterable[tuple[Any, Mapping[str, Any]]],
    backlog: WholeBytes | float | Mapping[str, WholeBytes] | None,
    destination: str,
) -> list[tuple[Any, Mapping[str, Any]]]:
    """Return nodes with the backlogs that are given by name or for all, or in an attribute."""
    listed = list(nodes)
    if backlog is None:
        return listed
    each = _of_each_host(backlog, [data for _, data in listed])
    if each is not None:
        return [
            (node, {**data, "backlog_bytes": 0 if node == destination else each})
            for node, data in listed
        ]
    if isinstance(backlog, str):
        key = backlog
        found = {node: data[key] for node, data in listed if key in data}
        return [
            (node, _without(data, key) | {"backlog_bytes": found.get(node, 0)})
            for node, data in listed
        ]
    backlog = by_name(backlog, "backlog")
    names = [node for node, _ in listed]
    for name in backlog:
        if name not in names:
            raise ProblemError(
                f"backlog: the graph has no node {name!r}{nearest_hint(str(name), names)}"
            )
    return [(node, {**data, "backlog_bytes": backlog.get(node, 0)}) for node, data in listed]


def _of_each_host(backlog: Any, nodes: Sequence[Mapping[str, Any]]) -> Any:
    """Return one amount for all hosts; None where backlogs are by name, or in an attribute."""
    found = opened(backlog, "backlog")
    if isinstance(found, Real):
        return in_units(found, COUNTED["backlog_bytes"], "backlog")
    if not isinstance(found, str) or any(found in data for data in nodes):
        return None
    if not any(letter.isdigit() for letter in found):
        raise ProblemError(
            f"backlog: no node has an attribute {found!r}; name the one of bytes, or write an "
            "amount that every host holds, such as '6 GB'"
        )
    return in_units(found, COUNTED["backlog_bytes"], "backlog")


def _with_bandwidth(
    tail: Any, head: Any, data: Mapping[str, Any], capacity: str | None
) -> Mapping[str, Any]:
    """Return an edge's attributes with the bandwidth that stands in another one."""
    if capacity is None:
        return data
    if capacity not in data:
        raise ProblemError(
            f"edge {tail!r} -> {head!r}: {capacity} is missing, got attributes {list(data)}"
        )
    return _without(data, capacity) | {"bandwidth_bytes_per_s": data[capacity]}


def _without(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}


def graph_of(problem: ProblemContents) -> nx.DiGraph[str]:
    """Return the directed graph that `contents_of_graph` reads back as the same contents.

    Unlimited storage, uplinks and downlinks are left out. What a host without a limit was seen to
    do is infinite.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> graph = graph_of(problem)
    >>> graph.edges["S", "D"]
    {'bandwidth_bytes_per_s': 5.0}
    >>> dc.Problem.from_networkx(graph).sha256 == problem.sha256
    True
    """
    attributes: dict[str, Any] = {"destination": problem.destination}
    if len(problem.periods_s) > 1:
        attributes["periods_s"] = problem.periods_s.tolist()
    attributes |= {
        key: getattr(problem, key) for key in ("shared", "held") if getattr(problem, key)
    }
    per_host = {
        key: column[0].tolist() if key in LIMITS else column.tolist()
        for key in NODE_ATTRIBUTES
        if (column := getattr(problem, key)) is not None
    }
    for key in LIMITS:
        limit = getattr(problem, key)
        for i in np.flatnonzero((limit != limit[0]).any(axis=0)).tolist():
            per_host[key][i] = limit[:, i].tolist()
    said_above_0 = frozenset((*SHOWN.values(), "made_bytes"))
    nodes = {
        name: {
            key: x
            for key, column in per_host.items()
            if isinstance(x := column[i], list) or (x > 0 if key in said_above_0 else x < math.inf)
        }
        for i, name in enumerate(problem.names)
    }
    data = _edge_attributes(problem)
    return _graph(attributes, nodes, *_neighbours(problem, data))


def _edge_attributes(problem: ProblemContents) -> list[dict[str, Any]]:
    """Return the attributes of every link, in the problem's order."""
    key, price = EDGE_ATTRIBUTES[:2]
    columns = problem.bandwidth_bytes_per_s
    bandwidth: list[Any] = columns.T.tolist() if len(columns) > 1 else columns[0].tolist()
    data: list[dict[str, Any]] = [{key: rate} for rate in bandwidth]
    if problem.price_per_gb is not None:
        for values, cost in zip(data, problem.price_per_gb.tolist(), strict=True):
            values[price] = cost
    if problem.competitors is not None:
        for i, values in enumerate(data):
            values |= rates_of(problem, i)
    return data


_Neighbours: TypeAlias = dict[str, dict[str, dict[str, Any]]]


def _neighbours(
    problem: ProblemContents, data: Sequence[dict[str, Any]]
) -> tuple[_Neighbours, _Neighbours]:
    """Return for every host those that its links lead to, and those that links lead from to it."""
    names = problem.names
    tails, heads = problem.link_from, problem.link_to
    into = np.argsort(heads, kind="stable")
    return (
        _grouped(names, tails, [names[i] for i in heads.tolist()], data),
        _grouped(
            names,
            heads[into],
            [names[i] for i in tails[into].tolist()],
            [data[i] for i in into.tolist()],
        ),
    )


def _grouped(
    names: Sequence[str], ends: IndexArray, others: list[str], data: Sequence[dict[str, Any]]
) -> _Neighbours:
    """Return the others of each host and what the edge between has; ends are sorted."""
    bounds = np.searchsorted(ends, np.arange(len(names) + 1)).tolist()
    return {
        name: dict(zip(others[a:b], data[a:b], strict=True))
        for name, (a, b) in zip(names, pairwise(bounds), strict=True)
    }


def _graph(
    attributes: Mapping[str, Any],
    nodes: dict[str, dict[str, Any]],
    successors: _Neighbours,
    predecessors: _Neighbours,
) -> nx.DiGraph[str]:
    """Return a graph that has all of it from the start.

    A graph asks factories, which it documents for subclasses, for the tables that it fills: here
    they are full. To add a million edges takes two to three times as long.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph.__new__(nx.DiGraph)
    hooks = {
        "adjlist_outer_dict_factory": iter((successors, predecessors)).__next__,
        "node_dict_factory": iter((nodes,)).__next__,
    }
    vars(graph).update(hooks)
    graph.__init__(**attributes)  # type: ignore[misc]  # once, after the hooks are there
    for name in hooks:
        del vars(graph)[name]
    return graph


def _host_of_node(node: Any, data: Mapping[str, Any]) -> Host:
    if not isinstance(node, str):
        raise ProblemError(
            f"node {node!r}: a host's name must be text; networkx.relabel_nodes(graph, str) turns "
            "all names into text"
        )
    where = f"node {node!r}"
    _reject_near_misses(data, NODE_ATTRIBUTES, where)
    values = {key: _plain(data[key], key, where) for key in NODE_ATTRIBUTES if key in data}
    for key, value in values.items():
        if not (key in LIMITS and is_no_limit(value)):
            _require_numbers(value, f"{where}: {key}", may_be_several=key in LIMITS)
    return Host(node, **values)


def _link_of_edge(tail: Any, head: Any, data: Mapping[str, Any]) -> Link:
    where = f"edge {tail!r} -> {head!r}"
    # Graphs may carry capacities of their own.
    _reject_near_misses(data, [a for a in EDGE_ATTRIBUTES if a not in RATE_COLUMNS], where)
    if "bandwidth_bytes_per_s" not in data:
        raise ProblemError(
            f"{where}: bandwidth_bytes_per_s is missing, got attributes {list(data)}"
        )
    bandwidth = _plain(data["bandwidth_bytes_per_s"], "bandwidth_bytes_per_s", where)
    _require_numbers(bandwidth, f"{where}: bandwidth_bytes_per_s")
    price = _plain(data.get("price_per_gb", 0.0), "price_per_gb", where)
    _require_numbers(price, f"{where}: price_per_gb", may_be_several=False)
    rates = {key: _plain(data[key], key, where) for key in RATE_COLUMNS if key in data}
    for key, value in rates.items():
        _require_numbers(value, f"{where}: {key}", may_be_several=False)
    return Link(tail, head, bandwidth, price, **rates)


def _plain(value: Any, key: str, where: str) -> Any:
    """Return an attribute with numbers where it has texts with units."""
    if key in LIMITS and is_no_limit(value):
        return value
    return in_units(value, COUNTED[key], f"{where}: {key}") if key in COUNTED else value


def _require_numbers(value: Any, where: str, *, may_be_several: bool = True) -> None:
    several = may_be_several and isinstance(value, list | np.ndarray)
    for one in value if several else [value]:
        if not isinstance(one, Real):
            raise ProblemError(f"{where} must be a number, got {one!r}")


def _instances(attributes: Mapping[str, Any], key: str, kind: type) -> Sequence[Any]:
    values = tuple(attributes.get(key, ()))
    for value in values:
        if not isinstance(value, kind):
            raise ProblemError(
                f"the graph's {key} must hold {kind.__name__} objects, got {value!r}"
            )
    return values


def _reject_near_misses(data: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Refuse an attribute that looks like a missing one of ours: ``backlog``, ``storage_gb``.

    Graphs carry attributes of others, so unknown ones are no error as such.
    """
    for given in data:
        if given in known or not isinstance(given, str):
            continue
        for ours in known:
            stem, _, _ = ours.partition("_")
            if given.partition("_")[0] == stem and ours not in data:
                raise ProblemError(
                    f"{where}: unknown attribute {given!r}; did you mean {ours!r}? "
                    "Rename it, or remove what has nothing to do with the plan"
                )
