"""The rules that make a topology valid, and the messages when one is broken.

Everything here works on names and arrays; `Topology` calls it on construction.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.numbers.arrays import FloatArray, IndexArray, IntArray


# "router": a node of a network without transit and stub domains; "external": a neighbour's node
# that a map of a network shows; "host": an end host, which forwards nothing.
NODE_KINDS = ("transit", "stub", "router", "external", "host")
# "backbone": between routers of a network without domains; "access": what a host hangs on.
WIRE_KINDS = ("peering", "transit", "transit-stub", "stub", "backbone", "access")
DEFAULT_QUEUE_PACKETS = 50


def checked_names(names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return `names` as plain text, or raise `ProblemError` where one is empty or given twice."""
    plain = tuple(str(name) if isinstance(name, str) else name for name in names)
    for name in plain:
        if not isinstance(name, str) or not name:
            raise ProblemError(f"a {what}'s name must be text and not empty, got {name!r}")
    if len(set(plain)) < len(plain):
        twice = next(name for name, times in Counter(plain).items() if times > 1)
        raise ProblemError(f"{what} {twice!r}: name given twice; names must be unique")
    return plain


def checked_kinds(kinds: Sequence[str], names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the kinds of nodes or wires, or raise `ProblemError`."""
    known = NODE_KINDS if what == "node" else WIRE_KINDS
    _one_each(f"{what} kinds", len(kinds), len(names), what)
    for kind, name in zip(kinds, names, strict=True):
        if kind not in known:
            raise ProblemError(
                f"{what} {name!r}: kind must be one of {', '.join(known)}, got {kind!r}"
                + nearest_hint(str(kind), known)
            )
    return tuple(str(kind) for kind in kinds)


def checked_domains(domains: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes' domains, or raise `ProblemError`."""
    _one_each("domains", len(domains), len(names), "node")
    for domain, name in zip(domains, names, strict=True):
        if not isinstance(domain, str):
            raise ProblemError(
                f"node {name!r}: domain must be text, got {domain!r}; '' for no domain"
            )
    return tuple(str(domain) for domain in domains)


def checked_ends(
    names: Sequence[str], wire_from: npt.ArrayLike, wire_to: npt.ArrayLike
) -> tuple[IndexArray, IndexArray]:
    """Return the wires' ends as indices of nodes, or raise `ProblemError`."""
    tail, head = np.atleast_1d(wire_from), np.atleast_1d(wire_to)
    if tail.ndim != 1 or tail.shape != head.shape:
        raise ProblemError(
            f"wire_from and wire_to must have one node per wire, got shapes {tail.shape} and "
            f"{head.shape}"
        )
    if not len(tail):
        return tail.astype(np.int32), head.astype(np.int32)
    for ends in (tail, head):
        if not np.issubdtype(ends.dtype, np.integer):
            raise ProblemError(f"wires' ends must be indices of nodes, got {ends.dtype} numbers")
        if ends.min() < 0 or ends.max() >= len(names):
            bad = ends.min() if ends.min() < 0 else ends.max()
            raise ProblemError(f"wires must join nodes 0 ... {len(names) - 1}, got index {bad}")
    loops = tail == head
    if loops.any():
        name = names[tail[np.argmax(loops)]]
        raise ProblemError(f"wire {name!r} - {name!r}: joins a node to itself; remove it")
    low, high = np.minimum(tail, head).tolist(), np.maximum(tail, head).tolist()
    pairs = Counter(zip(low, high, strict=True))
    (a, b), times = pairs.most_common(1)[0]
    if times > 1:
        raise ProblemError(
            f"wire {names[a]!r} - {names[b]!r}: given {times} times; "
            "keep one, with the rates of all together"
        )
    return tail.astype(np.int32), head.astype(np.int32)


def checked_rates(values: npt.ArrayLike, wire_names: Sequence[str]) -> FloatArray:
    """Return rates as shape (n_wires, 2), or raise `ProblemError`."""
    rates = _both_ways("rate_bytes_per_s", np.asarray(values, dtype=float), len(wire_names))
    _reject(~(np.isfinite(rates) & (rates > 0)), rates, wire_names, "rate_bytes_per_s", "> 0")
    return rates


def checked_delays(values: npt.ArrayLike, wire_names: Sequence[str]) -> FloatArray:
    """Return delays as shape (n_wires,), or raise `ProblemError`."""
    delays = np.asarray(values, dtype=float)
    if delays.ndim == 0:
        delays = np.full(len(wire_names), float(delays))
    if delays.shape != (len(wire_names),):
        raise ProblemError(
            f"delay_s must have one number per wire ({len(wire_names)}), got shape {delays.shape}"
        )
    _reject(~(np.isfinite(delays) & (delays >= 0)), delays, wire_names, "delay_s", ">= 0")
    return delays


def checked_queues(values: npt.ArrayLike, wire_names: Sequence[str]) -> IntArray:
    """Return queues as shape (n_wires, 2), or raise `ProblemError`."""
    queues = _both_ways("queue_packets", np.asarray(values, dtype=float), len(wire_names))
    bad = ~(np.isfinite(queues) & (queues >= 1) & (queues == np.floor(queues)))
    _reject(bad, queues, wire_names, "queue_packets", "a whole number >= 1")
    return queues.astype(np.int64)


def checked_positions(values: npt.ArrayLike | None, n_nodes: int) -> FloatArray | None:
    """Return places on a map as shape (n_nodes, 2), or raise `ProblemError`."""
    if values is None:
        return None
    positions = np.asarray(values, dtype=float)
    if positions.shape != (n_nodes, 2):
        raise ProblemError(
            f"positions must have shape ({n_nodes}, 2), one row x, y per node, "
            f"got {positions.shape}"
        )
    if np.isinf(positions).any():
        raise ProblemError("positions must be finite; use NaN for an unknown place")
    return positions.copy()


def reject_disconnected(names: Sequence[str], tail: IndexArray, head: IndexArray) -> None:
    """Raise `ProblemError` unless every node reaches every other."""
    label = component_labels(len(names), tail, head)
    if label.max(initial=0) > 0:
        raise ProblemError(
            f"the topology must be connected, it falls into {describe_parts(names, label)}; "
            "join them with wires, or keep one part"
        )


def reject_forwarding_hosts(
    names: Sequence[str], kinds: Sequence[str], tail: IndexArray, head: IndexArray
) -> None:
    """Raise `ProblemError` where a host has several wires: it would forward others' packets."""
    degree = np.bincount(np.concatenate([tail, head]), minlength=len(names))
    for name, kind, n_wires in zip(names, kinds, degree.tolist(), strict=True):
        if kind == "host" and n_wires > 1:
            raise ProblemError(
                f"node {name!r}: a host hangs on one wire, got {n_wires}; "
                "make it a router and attach the host to it"
            )


def component_labels(n_nodes: int, tail: npt.ArrayLike, head: npt.ArrayLike) -> IntArray:
    """Return for each node the number of its connected part; parts count from 0 by first node.

    >>> component_labels(4, [2, 0], [3, 2]).tolist()
    [0, 1, 0, 0]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = (np.asarray(tail, dtype=np.int64), np.asarray(head, dtype=np.int64))
    graph = coo_array((np.ones(len(ends[0])), ends), shape=(n_nodes, n_nodes)).tocsr()
    label = connected_components(graph, directed=False)[1]
    # Numbered again: which number a part gets is scipy's business.
    _, first, part = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[part]


def describe_parts(names: Sequence[str], label: IntArray) -> str:
    """Return words for the connected parts, the largest first."""
    members = [np.flatnonzero(label == part).tolist() for part in range(int(label.max()) + 1)]
    members.sort(key=lambda nodes: (-len(nodes), nodes[0]))
    shown = [
        ", ".join(repr(names[i]) for i in nodes[:3])
        + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
        for nodes in members[:4]
    ]
    others = f" / and {len(members) - 4} parts more" if len(members) > 4 else ""
    return f"{len(members)} parts: {' / '.join(shown)}{others}"


def _one_each(what: str, n_given: int, n_needed: int, of: str) -> None:
    if n_given != n_needed:
        raise ProblemError(f"{what}: one per {of} is needed ({n_needed}), got {n_given}")


def _both_ways(key: str, values: FloatArray, n_wires: int) -> FloatArray:
    if values.ndim < 2 and values.shape in ((), (n_wires,)):
        values = np.broadcast_to(values, (n_wires,))[:, np.newaxis]
    if values.shape not in ((n_wires, 1), (n_wires, 2)):
        raise ProblemError(
            f"{key} must be one number, one per wire ({n_wires}), or one per wire and direction "
            f"({n_wires}, 2), got shape {values.shape}"
        )
    return np.broadcast_to(values, (n_wires, 2)).copy()


def _reject(
    bad: npt.NDArray[np.bool_],
    values: FloatArray,
    wire_names: Sequence[str],
    key: str,
    rule: str,
) -> None:
    if not bad.any():
        return
    place = np.argwhere(bad)[0]
    value = float(values[tuple(place)])
    remedy = "; remove wires that carry nothing" if value == 0 else ""
    finite = "" if math.isfinite(value) else " and finite"
    raise ProblemError(
        f"wire {wire_names[place[0]]!r}: {key} must be {rule}{finite}, got {value:g}{remedy}"
    )
