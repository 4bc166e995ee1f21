"""The map of the routers between hosts, coloured by rate, round trip or provider.

Nothing is looked up. A router's provider is what a table of prefixes says, where one is given; else
its network stands for it: routers of one /16 (IPv6: /32) have one colour, since providers are given
addresses in such pieces, though not only such. Private addresses are of no provider.
"""

from __future__ import annotations

import html
import ipaddress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.tables import open_table
from datacollect.files.units import counted
from datacollect.measurement.outcomes import listed
from datacollect.measurement.routes import answering, read_route
from datacollect.measurement.sample_store import DONE
from datacollect.pictures.colours import OTHERS, PALETTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"
Providers: TypeAlias = "Mapping[Network, str]"

MBIT_BYTES = 125_000.0
PRIVATE = "private address"
# Of one network, where no table says more.
PREFIX = {4: 16, 6: 32}
EXAMPLE = "prefix,provider"


def read_providers(text: str, name: str) -> dict[Network, str]:
    r"""Read a table of networks and who they belong to.

    Parameters
    ----------
    text : str
        CSV with columns ``prefix`` and ``provider``.
    name : str
        Of the file, for messages.

    Raises
    ------
    ProblemError
        It is no such table.

    Examples
    --------
    >>> [*read_providers("prefix,provider\n9.9.9.0/24,Quad9\n", "a.csv").values()]
    ['Quad9']
    """
    table = open_table(text, name, EXAMPLE)
    for column in EXAMPLE.split(","):
        if column not in table.header:
            raise ProblemError(f"{name}: has no column {column}; its first line must be {EXAMPLE}")
    lines, raw = table.texts()
    found: dict[Network, str] = {}
    for line, prefix, provider in zip(lines, raw["prefix"], raw["provider"], strict=True):
        try:
            found[ipaddress.ip_network(prefix, strict=False)] = provider
        except ValueError:
            raise ProblemError(
                f"{name}, line {line}: prefix must be a network like 9.9.9.0/24, got {prefix!r}"
            ) from None
    return found


def provider_of(address: str, providers: Providers) -> str:
    """Return the provider of a router, or its network where no prefix has it.

    >>> provider_of("9.9.9.9", {}), provider_of("10.0.0.1", {})
    ('9.9.0.0/16', 'private address')
    """
    router = ipaddress.ip_address(address)
    having = [network for network in providers if router in network]
    if having:
        return providers[max(having, key=lambda network: network.prefixlen)]
    if not router.is_global:
        return PRIVATE
    return str(ipaddress.ip_network(f"{router}/{PREFIX[router.version]}", strict=False))


def router_map(table: pd.DataFrame, providers: Providers) -> dict[str, Any] | None:
    """Return the graph of hosts and routers that answered, and its colours; None without traces."""
    import networkx as nx

    traces = table[table["routers"].notna() & (table["ended"] == DONE)]
    if traces.empty:
        return None
    graph: nx.Graph[str] = nx.Graph()
    crossing: dict[str, set[tuple[str, str]]] = {}
    newest = traces.drop_duplicates(["from", "to"], keep="last")
    for tail, head, text in newest[["from", "to", "routers"]].itertuples(index=False):
        before = [tail]
        for hop in read_route(text):
            # A hop of several paths stands between all that is before and behind it.
            here = [f"router {each}" for each in answering(hop)]
            graph.add_edges_from((a, b) for a in before for b in here)
            for router in here:
                crossing.setdefault(router, set()).add((tail, head))
            before = here or before
        graph.add_edges_from((a, head) for a in before)
    place = nx.spring_layout(graph, seed=0)
    edges = [
        [each for a, b in graph.edges for each in (place[a][k], place[b][k], None)] for k in (0, 1)
    ]
    of_router = {each: provider_of(each.removeprefix("router "), providers) for each in crossing}
    hosts = [node for node in graph if node not in crossing]
    colours = _colours(table, crossing, of_router)
    routers = {
        **_at(place, crossing),
        "text": [_hover(each, of_router[each], pairs) for each, pairs in crossing.items()],
        "mode": "markers",
        "hoverinfo": "text",
        "marker": {"size": 11, **colours["Mbit/s"]["marker"]},
    }
    named = {
        **_at(place, hosts),
        "text": [plotly_text(host) for host in hosts],
        "mode": "markers+text",
        "textposition": "top center",
        "marker": {"size": 14, "symbol": "square", "color": "#888888"},
    }
    lines = {"x": edges[0], "y": edges[1], "mode": "lines", "line": {"color": OTHERS}}
    hidden = {"visible": False}
    return {
        "title": "Routers that answered: medians of links that cross them",
        "data": [lines | {"hoverinfo": "skip"}, routers, named],
        "colours": colours,
        "layout": {
            "showlegend": False,
            "xaxis": hidden,
            "yaxis": hidden | {"range": [-1.3, 1.3]},
        },
    }


def _at(place: Mapping[str, Any], nodes: Iterable[str]) -> dict[str, list[float]]:
    nodes = list(nodes)
    return {axis: [float(place[node][k]) for node in nodes] for k, axis in enumerate("xy")}


def _hover(router: str, provider: str, pairs: set[tuple[str, str]]) -> str:
    links = listed([plotly_text(f"{tail} → {head}") for tail, head in sorted(pairs)])
    of = f"{counted(len(pairs), 'link')}: {links}"
    return f"{plotly_text(router)}<br>{plotly_text(provider)}<br>{of}"


def _colours(
    table: pd.DataFrame,
    crossing: Mapping[str, set[tuple[str, str]]],
    of_router: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    """Return by what routers may be coloured: a marker of plotly's for each, and its legend."""
    done = table[table["ended"] == DONE].groupby(["from", "to"])
    scale = {"colorscale": "Viridis", "showscale": True}
    found: dict[str, dict[str, Any]] = {
        label: {
            "marker": {
                "color": _medians(done[column].median().dropna() * factor, crossing),
                **scale,
            }
        }
        for label, column, factor in (
            ("Mbit/s", "bandwidth_bytes_per_s", 1 / MBIT_BYTES),
            ("ms round trip", "rtt_s", 1e3),
        )
    }
    names = sorted(set(of_router.values()), key=lambda name: (name == PRIVATE, name))
    # Beyond as many as can be told apart, and without a provider, all look the same.
    colour = dict(zip(names, (*PALETTE, *[OTHERS] * len(names)), strict=False)) | {PRIVATE: OTHERS}
    found["provider"] = {
        "marker": {"color": [colour[each] for each in of_router.values()], "showscale": False},
        "legend": [[name, colour[name]] for name in names],
    }
    return found


def _medians(
    by_pair: pd.Series, crossing: Mapping[str, set[tuple[str, str]]]
) -> list[float | None]:
    """Return for each router the median of the links that cross it, where any is known."""
    known = by_pair.to_dict()
    values = [[known[pair] for pair in pairs if pair in known] for pairs in crossing.values()]
    return [float(np.median(each)) if each else None for each in values]


def plotly_text(text: str) -> str:
    """Return a text as plotly shows it: it takes tags for its own."""
    return html.escape(text, quote=False)
