"""Nodes and edges of maps as files have them: GraphML and GML, with all that they state.

Which of them a file is, its content says. What a general reader of graphs would lose in silence is
kept or refused: edges that lead one way in an undirected graph, defaults that keys declare, ids
that are given twice.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import XML, Element, ParseError

from datacollect.errors import ProblemError
from datacollect.files.documents import decode
from datacollect.files.kinds import shown_text
from datacollect.files.quantities import plain_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_TRUE_OR_FALSE = {"true": True, "1": True, "false": False, "0": False}


def _truth(text: str) -> bool:
    return _TRUE_OR_FALSE[text.lower()]


def _real(text: str) -> float:
    number = plain_number(text)
    if math.isnan(number) and text.lower() != "nan":
        raise ValueError(text)
    return number


def _whole(text: str) -> int:
    _real(text)
    return int(text)


_TYPES: dict[str, Callable[[str], Any]] = {
    "int": _whole,
    "integer": _whole,
    "long": _whole,
    "float": _real,
    "double": _real,
    "real": _real,
    "boolean": _truth,
    "string": str,
}

# GML begins with a word, a list in brackets somewhere behind: `Creator "..." graph [ node [ ...`.
_GML = re.compile(r"\s*(#[^\n]*\n\s*)*(\w+\s+(\"[^\"]*\"|[-+\w.]+)\s+)*graph\s*\[")


# Brackets, and what edges do; texts and comments are passed over.
_GML_DIRECTED = re.compile(
    r"\bdirected\s+(\"[^\"]*\"|[^\s\[\]]+)|\"[^\"]*\"|^\s*#.*$|[\[\]]", re.MULTILINE
)


@dataclass(frozen=True)
class Edge:
    """An edge, with its attributes; it leads both ways unless `one_way`."""

    source: str
    target: str
    one_way: bool
    data: Mapping[str, Any]


@dataclass(frozen=True)
class MapFile:
    """Attributes of nodes by their ids, in the file's order, and the edges."""

    nodes: Mapping[str, Mapping[str, Any]]
    edges: tuple[Edge, ...]


def read_map_file(data: bytes, where: str) -> MapFile:
    """Return what the bytes of a map file, unpacked, state.

    Raises
    ------
    ProblemError
        It is neither GraphML nor GML, or breaks their rules.

    Examples
    --------
    >>> gml = b"graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 LinkSpeedRaw 8 ] ]"
    >>> read_map_file(gml, "a.gml").edges
    (Edge(source='0', target='1', one_way=False, data={'LinkSpeedRaw': 8}),)
    """
    if data.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n").startswith(b"<"):
        return _from_graphml(data, where)
    text = decode(data, where)
    if _GML.match(text):
        return _from_gml(text, where)
    raise ProblemError(
        f"{where}: neither GraphML, which begins with <, nor GML, which is graph [ node [ id 0 ] "
        "... edge [ source 0 target 1 ] ]; save the map as one of them"
    )


# GraphML ------------------------------------------------------------------------------------


def _from_graphml(data: bytes, where: str) -> MapFile:
    try:
        root = XML(data)
    except ParseError as error:
        line, column = error.position
        raise ProblemError(
            f"{where}: line {line}, column {column}: not well-formed XML "
            f"({str(error).partition(':')[0]}); repair the file, or fetch it again"
        ) from None
    except (LookupError, ValueError) as error:
        raise ProblemError(
            f"{where}: not XML in the encoding that its first line names: "
            f"{shown_text(str(error))}; save it as UTF-8, and say so there"
        ) from None
    graphs = [one for one in root if _tag(one) == "graph"] if _tag(root) == "graphml" else []
    if not graphs:
        raise ProblemError(
            f"{where}: not a graph in GraphML: is the root element <graphml>, with a <graph> "
            "inside, and is every key of <data> declared?"
        )
    if len(graphs) > 1:
        raise ProblemError(
            f"{where}: holds {len(graphs)} graphs, which may be one network or several; keep one"
        )
    for one in graphs[0]:
        nested = _tag(one) == "node" and any(_tag(part) == "graph" for part in one)
        if nested or _tag(one) == "hyperedge":
            what = f"node {one.get('id')!r} holds a graph of its own" if nested else "a hyperedge"
            raise ProblemError(
                f"{where}: {what}, which is no node or wire; draw its nodes and edges in the one "
                "graph"
            )
    keys = _Keys(root, where)
    nodes = [one for one in graphs[0] if _tag(one) == "node"]
    edges = [one for one in graphs[0] if _tag(one) == "edge"]
    ids = [str(node.get("id")) for node in nodes]
    _require_once(ids, "node", where)
    _require_once((edge.get("id") for edge in edges), "edge", where)
    said = graphs[0].get("edgedefault", "undirected")
    if said.lower() not in ("directed", "undirected"):
        raise ProblemError(
            f"{where}: edgedefault of the graph must be directed or undirected, got {said!r}"
        )
    is_directed = said.lower() == "directed"
    return _checked(
        {
            name: keys.values(node, "node", f"node {name!r}")
            for name, node in zip(ids, nodes, strict=True)
        },
        [
            Edge(
                str(edge.get("source")),
                str(edge.get("target")),
                _is_one_way(edge, is_directed, where),
                keys.values(edge, "edge", f"edge {edge.get('source')!r} - {edge.get('target')!r}"),
            )
            for edge in edges
        ],
        where,
    )


def _is_one_way(edge: Element, default: bool, where: str) -> bool:
    said = edge.get("directed")
    if said is None:
        return default
    if said.lower() not in _TRUE_OR_FALSE:
        raise ProblemError(
            f"{where}: edge {edge.get('source')!r} - {edge.get('target')!r}: directed must be true "
            f"or false, got {said!r}"
        )
    return _truth(said)


class _Keys:
    """The attributes that a GraphML file declares: their names, types and defaults."""

    def __init__(self, root: Element, where: str) -> None:
        self._where = where
        declared = [one for one in root if _tag(one) == "key"]
        _require_once((one.get("id") for one in declared), "key", where)
        self._keys: dict[str, tuple[str, str]] = {}
        self._defaults: dict[str, dict[str, Any]] = {"node": {}, "edge": {}}
        for one in declared:
            name, kind = one.get("attr.name", one.get("id", "")), one.get("attr.type", "string")
            self._keys[str(one.get("id"))] = (name, kind)
            default = next((part.text for part in one if _tag(part) == "default"), None)
            for owner, defaults in self._defaults.items():
                if default is not None and one.get("for", "all") in (owner, "all"):
                    defaults[name] = self._value(kind, default, f"key {name!r}: default")

    def values(self, element: Element, owner: str, place: str) -> dict[str, Any]:
        """Return the attributes of a node or an edge: its own, else the file's defaults."""
        own: dict[str, Any] = {}
        for part in element:
            if _tag(part) != "data":
                continue
            key = str(part.get("key"))
            if key not in self._keys:
                raise ProblemError(
                    f"{self._where}: not a graph in GraphML: no key {key} is declared, which "
                    f"{place} has; is every key of <data> declared?"
                )
            name, kind = self._keys[key]
            if name in own:
                raise ProblemError(f"{self._where}: {place}: {name} is given twice; keep one")
            own[name] = self._value(kind, part.text or "", f"{place}: {name}")
        return self._defaults[owner] | own

    def _value(self, kind: str, text: str, place: str) -> Any:
        convert = _TYPES.get(kind)
        if convert is None:
            raise ProblemError(
                f"{self._where}: {place}: attr.type must be one of {', '.join(_TYPES)}, got "
                f"{kind!r}"
            )
        try:
            return text if convert is str else convert(text.strip())
        except (ValueError, KeyError):
            raise ProblemError(
                f"{self._where}: not a graph in GraphML: {place} is {text!r}; each value must be "
                f"of the attr.type of its key, here {kind}"
            ) from None


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


# GML ----------------------------------------------------------------------------------------


def _from_gml(text: str, where: str) -> MapFile:
    import networkx as nx

    several = text
    if not re.search(r"\bmultigraph\s+[01]", text):
        # Without it a second edge between the same nodes is an error; maps have such.
        several = re.sub(r"\bgraph\s*\[", "graph [ multigraph 1 ", text, count=1)
    # What networkx refuses, and what it lets through.
    refused = (nx.NetworkXError, LookupError, ValueError, TypeError, AttributeError, RecursionError)
    try:
        graph = nx.parse_gml(several.splitlines(), label="id")
    except refused as error:
        raise ProblemError(
            f"{where}: not a graph in GML: {shown_text(str(error))}; is it graph [ node [ id 0 ] "
            "... edge [ source 0 target 1 ] ]?"
        ) from None
    one_way = _is_directed(text, where)
    for node, data in graph.nodes(data=True):
        _require_single(data, f"{where}: node {str(node)!r}")
    for a, b, data in graph.edges(data=True):
        _require_single(data, f"{where}: edge {str(a)!r} - {str(b)!r}")
    return _checked(
        {str(node): data for node, data in graph.nodes(data=True)},
        [Edge(str(a), str(b), one_way, data) for a, b, data in graph.edges(data=True)],
        where,
    )


def _is_directed(text: str, where: str) -> bool:
    """Return what the graph itself says by ``directed``; a general reader takes any text for 1."""
    depth, said = 0, []
    for found in _GML_DIRECTED.finditer(text):
        if found[0] in "[]":
            depth += 1 if found[0] == "[" else -1
        elif found[1] and depth == 1:
            said.append(found[1])
    if len(said) > 1 or said not in ([], ["0"], ["1"]):
        raise ProblemError(
            f"{where}: directed of the graph must be 0 or 1, once, got {' and '.join(said)}"
        )
    return said == ["1"]


def _require_single(data: Mapping[str, Any], place: str) -> None:
    """Refuse a value that is given more than once; tables may be, such as the points of a line."""
    for name, value in data.items():
        if isinstance(value, list) and not all(isinstance(one, dict) for one in value):
            raise ProblemError(f"{place}: {name} is given {len(value)} times; keep one")


# Both ---------------------------------------------------------------------------------------


def _require_once(ids: Iterable[str | None], what: str, where: str) -> None:
    for name, times in Counter(ids).items():
        if name is not None and times > 1:
            raise ProblemError(f"{where}: {times} {what}s have the id {name!r}; give each its own")


def _checked(nodes: Mapping[str, Mapping[str, Any]], edges: Iterable[Edge], where: str) -> MapFile:
    edges = tuple(edges)
    for edge in edges:
        for end, other in ((edge.source, edge.target), (edge.target, edge.source)):
            if end not in nodes:
                raise ProblemError(
                    f"{where}: an edge joins {other!r} to node {end!r}, which the file does not "
                    "declare; add the node, or correct source or target of the edge"
                )
    return MapFile(nodes, edges)
