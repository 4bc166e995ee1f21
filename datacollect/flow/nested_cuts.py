"""Nested minimum cuts: when each node leaves the sources' side, where nothing changes but time.

In one piece of time every capacity grows evenly, and what hosts hold stays as it is: the longer
data have moved, the fewer nodes lie behind the minimum cut. So the cuts of all instants are nested
(Gallo, Grigoriadis and Tarjan, SIAM J. Computing 18, 1989), and one instant for each node tells
them all. Between two instants only the nodes that leave in between are in question: what lies
behind the later cut counts as source, what the earlier one has left as sink. Such groups of nodes
have no arc in common that matters. So one maximum flow halves all of them, each at its own instant:
where the lines of its two cuts cross. Nodes without an arc to others of their group need none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.flow.network.tolerances import CAPACITY_ROUNDING, SAME_BREAKPOINT
from datacollect.solvers.networks import CAPACITY_SUM_LIMIT, FlowNetwork, source_side

if TYPE_CHECKING:
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.solvers.networks import FlowSolver

# Of nodes whose instant is known.
SETTLED = -1


def leaving_s(
    network: LayeredNetwork, end_s: float, tolerance_bytes: float, solver: FlowSolver
) -> FloatArray:
    """Return until when each node lies on the sources' side of the minimum cut.

    Parameters
    ----------
    network : LayeredNetwork
        Of one piece of time.
    end_s : float
        When all has arrived.
    tolerance_bytes : float
        Bounds that differ by less are the same one.
    solver : FlowSolver

    Returns
    -------
    ndarray of float, shape (n_nodes,)
        Between 0 and `end_s`. At first all nodes but the sink do, in the end none.

    Examples
    --------
    A has 10 bytes at 5 bytes/s and is done at 2 s, B 10 at 1:

    >>> import datacollect as dc
    >>> from datacollect.flow.network.layered import layered_network
    >>> from datacollect.solvers.choice import load_flow_solver
    >>> problem = dc.Problem.from_matrix(
    ...     ["A", "B", "D"], [[0, 0, 5.0], [0, 0, 1.0], [0, 0, 0]], [10, 10, 0], "D"
    ... )
    >>> leaving_s(layered_network(problem, [0.0]), 10.0, 1e-8, load_flow_solver()).tolist()
    [2.0, 10.0, 0.0]
    """
    known = _Known.at_first(network, end_s)
    while known.in_question.any():
        _halve(network, known, tolerance_bytes, solver)
    return known.until_s


@dataclass(frozen=True, eq=False)
class _Known:
    """Between which instants each node leaves; both are one where that is known."""

    supply_bytes: FloatArray
    from_s: FloatArray
    until_s: FloatArray
    end_s: float

    @classmethod
    def at_first(cls, network: LayeredNetwork, end_s: float) -> _Known:
        supply = np.zeros(network.n_nodes)
        for pool in network.pools:
            supply[pool.node] += pool.n_bytes
        until = np.full(network.n_nodes, end_s)
        until[network.sink] = 0.0
        return cls(supply, np.zeros(network.n_nodes), until, end_s)

    @property
    def in_question(self) -> BoolArray:
        return self.from_s < self.until_s

    def groups(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Number the groups of nodes that leave between the same instants, and return these."""
        nodes = np.flatnonzero(self.in_question)
        from_s, first, number = np.unique(
            self.from_s[nodes], return_index=True, return_inverse=True
        )
        group = np.full(len(self.from_s), SETTLED)
        group[nodes] = number
        return group, from_s, self.until_s[nodes[first]]


class _Arcs(NamedTuple):
    """Amounts that nodes in question send and receive, by their groups."""

    inside: IntArray  # arcs between nodes of one group
    out: FloatArray  # bytes per second of each node to nodes that have left
    into: FloatArray  # bytes per second to each node from nodes that leave later


def _arcs(network: LayeredNetwork, known: _Known, group: IntArray) -> _Arcs:
    tail, head, rate = network.tail, network.head, network.rate_bytes_per_s
    same = group[tail] == group[head]
    after = known.from_s[head] >= known.until_s[tail]
    before = known.from_s[tail] >= known.until_s[head]
    leaves = np.flatnonzero((group[tail] != SETTLED) & ~same & ~after)
    enters = np.flatnonzero((group[head] != SETTLED) & ~same & before)
    return _Arcs(
        np.flatnonzero(same & (group[tail] != SETTLED)),
        np.bincount(tail[leaves], rate[leaves], network.n_nodes).astype(float),
        np.bincount(head[enters], rate[enters], network.n_nodes).astype(float),
    )


def _halve(
    network: LayeredNetwork, known: _Known, tolerance_bytes: float, solver: FlowSolver
) -> None:
    """Say of each group which nodes leave first, or that all leave together, and when."""
    group, from_s, until_s = known.groups()
    arcs, nodes = _arcs(network, known, group), np.flatnonzero(group != SETTLED)

    def total(of_nodes: FloatArray) -> FloatArray:
        return np.bincount(group[nodes], of_nodes[nodes], len(from_s)).astype(float)

    supply, rate = total(known.supply_bytes), total(arcs.out - arcs.into)
    leave_s, is_open = _crossings(supply, rate, from_s, until_s, known.end_s, tolerance_bytes)
    at_s, in_open = leave_s[group], (group != SETTLED) & is_open[group]
    behind = in_open & _behind(network, known, arcs, at_s, in_open, solver)
    less = known.supply_bytes - (arcs.out - arcs.into) * at_s
    inside = arcs.inside[behind[network.tail[arcs.inside]] & ~behind[network.head[arcs.inside]]]
    across = network.rate_bytes_per_s[inside] * at_s[network.tail[inside]]
    np.subtract.at(less, network.tail[inside], across)
    # By this much the cut lies below the two that are known.
    is_split = total(np.where(behind, less, 0.0)) > tolerance_bytes
    goes = nodes[~(behind[nodes] & is_split[group[nodes]])]
    stays = nodes[behind[nodes] | ~is_split[group[nodes]]]
    known.until_s[goes], known.from_s[stays] = at_s[goes], at_s[stays]


def _crossings(
    supply_bytes: FloatArray,
    rate_bytes_per_s: FloatArray,
    from_s: FloatArray,
    until_s: FloatArray,
    end_s: float,
    tolerance_bytes: float,
) -> tuple[FloatArray, BoolArray]:
    """Say when the lines of each group's two cuts cross, and whether a third may lie below.

    None does where one of the two is tight at both ends; the curve is concave.
    """
    leave_s, is_open = np.zeros(len(from_s)), np.zeros(len(from_s), dtype=bool)
    later = supply_bytes - rate_bytes_per_s * from_s <= tolerance_bytes
    leave_s[later] = from_s[later]
    earlier = ~later & (rate_bytes_per_s * until_s - supply_bytes <= tolerance_bytes)
    leave_s[earlier] = until_s[earlier]
    rest = np.flatnonzero(~later & ~earlier)
    crossing = supply_bytes[rest] / rate_bytes_per_s[rest]
    after, before = crossing - from_s[rest], until_s[rest] - crossing
    # Between rates of very different sizes rounding would go on splitting for ever.
    near = np.minimum(after, before) <= SAME_BREAKPOINT * end_s
    nearest = np.where(after < before, from_s[rest], until_s[rest])
    leave_s[rest] = np.where(near, nearest, crossing)
    is_open[rest] = ~near
    return leave_s, is_open


def _behind(
    network: LayeredNetwork,
    known: _Known,
    arcs: _Arcs,
    at_s: FloatArray,
    in_open: BoolArray,
    solver: FlowSolver,
) -> BoolArray:
    """Mark the nodes behind the minimum cut of each group, at its instant."""
    enters, leaves = known.supply_bytes + arcs.into * at_s, arcs.out * at_s
    behind: BoolArray = enters > leaves
    inside = arcs.inside[in_open[network.tail[arcs.inside]]]
    if not len(inside):
        return behind
    linked, ends = np.unique([network.tail[inside], network.head[inside]], return_inverse=True)
    tail, head = ends.reshape(2, -1)
    n = len(linked)
    # More than all data never move.
    most = float(known.supply_bytes.sum())
    scale = 2.0 ** math.floor(math.log2(CAPACITY_SUM_LIMIT / (2 * (n + 2) * most)))
    through = network.rate_bytes_per_s[inside] * at_s[linked[tail]]
    widened = np.append(through, leaves[linked]) * (1 + CAPACITY_ROUNDING)
    carried, left = np.split(widened, [len(inside)])
    part = FlowNetwork(
        n + 2,
        np.concatenate([tail, np.full(n, n), np.arange(n)]),
        np.concatenate([head, np.arange(n), np.full(n, n + 1)]),
        np.ceil(np.minimum(np.concatenate([carried, enters[linked], left]), most) * scale).astype(
            np.int64
        ),
    )
    behind[linked] = source_side(part, solver.max_flow(part, n, n + 1), n)[:n]
    return behind
