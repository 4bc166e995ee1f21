"""The quickest flow through a layered network: discrete Newton on its minimum cuts.

With zero transit times and one sink, the earliest instant T* by which all can have arrived is
the largest, over all cuts, of the instant at which that cut has let everything behind it through
(max-flow min-cut for flows over time; Ford and Fulkerson, Operations Research 6, 1958). Start
from a length of the last piece of time; while a maximum flow leaves something behind, its
minimum cut gives the next, larger length (Dinkelbach, Management Science 13, 1967; for
parametric flows Gallo, Grigoriadis and Tarjan, SIAM J. Computing 18, 1989). The last cut is the
binding bottleneck, and T* follows from its capacities alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import SolverError
from datacollect.flow import CAPACITY_SUM_LIMIT, FlowNetwork, source_side
from datacollect.layered import LayeredNetwork, layered_network

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.flow import FlowSolver
    from datacollect.problem import Problem

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# Capacities are widened by this before they become integers, so that a flow that is feasible in
# real numbers still saturates after rounding; far below the 1e-6 at which schedules are judged.
ROUNDING_SLACK = 1e-11

# Newton's method takes a handful of cuts; this many mean that rounding keeps it from ending.
MOST_ITERATIONS = 1000


@dataclass(frozen=True, eq=False)
class Quickest:
    """The earliest end: lengths of the pieces used, and the cut that forbids an earlier one.

    ``cut`` marks the nodes on the sources' side; None where no single cut was needed.
    """

    network: LayeredNetwork
    lengths_s: FloatArray
    cut: BoolArray | None

    @property
    def makespan_s(self) -> float:
        """The end of the last piece."""
        return float(self.network.starts_s[-1] + self.lengths_s[-1])


class NeverArrives(Exception):
    """No length of the last piece suffices; carries the cut that nothing more crosses."""

    def __init__(self, network: LayeredNetwork, cut: BoolArray) -> None:
        super().__init__()
        self.network = network
        self.cut = cut


class ScaledFlow:
    """Maximum flows on one layered network, in integer units that cannot overflow.

    The scale is a power of two, so multiplying by it is exact.
    """

    def __init__(self, network: LayeredNetwork, solver: FlowSolver) -> None:
        self.network = network
        self.solver = solver
        self.supply_bytes = np.array([pool.n_bytes for pool in network.pools], dtype=float)
        self.total_bytes = float(self.supply_bytes.sum())
        degree = 1 + max(
            int(np.bincount(end, minlength=network.n_nodes).max(initial=0))
            for end in (network.tail, network.head)
        )
        self.scale = 2.0 ** math.floor(
            math.log2(CAPACITY_SUM_LIMIT / (2 * (degree + len(network.pools)) * self.total_bytes))
        )
        self.supply_units = np.rint(self.supply_bytes * self.scale).astype(np.int64)
        pool_nodes = np.array([pool.node for pool in network.pools], dtype=np.int64)
        self.tail = np.concatenate([network.tail, np.full(len(pool_nodes), network.n_nodes)])
        self.head = np.concatenate([network.head, pool_nodes])

    def capacity_units(self, lengths_s: FloatArray) -> IntArray:
        """Capacity of the network's arcs; more than the total is never needed."""
        capacity = np.minimum(self.network.capacity_bytes(lengths_s), self.total_bytes)
        capacity *= (1 + ROUNDING_SLACK) * self.scale
        # A unit of at most a byte may be rounded up: schedules are judged to one byte.
        rounded = np.ceil(capacity, out=capacity) if self.scale >= 1 else np.floor(capacity)
        return rounded.astype(np.int64)

    def saturate(self, lengths_s: FloatArray) -> tuple[IntArray, BoolArray | None]:
        """Return a maximum flow per arc, in units, and the minimum cut if it leaves some behind."""
        capacity = np.concatenate([self.capacity_units(lengths_s), self.supply_units])
        network = FlowNetwork(self.network.n_nodes + 1, self.tail, self.head, capacity)
        flow = self.solver.max_flow(network, self.network.n_nodes, self.network.sink)
        n_arcs = self.network.n_arcs
        if int(flow[n_arcs:].sum()) == int(self.supply_units.sum()):
            return flow[:n_arcs], None
        return flow[:n_arcs], source_side(network, flow, self.network.n_nodes)[:-1]

    def supply_behind(self, cut: BoolArray) -> float:
        """Bytes that enter on the sources' side of a cut."""
        nodes = [pool.node for pool in self.network.pools]
        return float(self.supply_bytes[cut[nodes]].sum())


def newton(network: LayeredNetwork, lengths_s: FloatArray, solver: FlowSolver) -> Quickest:
    """Find the least length of the last piece; ``lengths_s[-1]`` is ignored.

    Raises
    ------
    NeverArrives
        Some cut stays too small however long the last piece is.
    """
    scaled = ScaledFlow(network, solver)
    lengths = np.array(lengths_s, dtype=float)
    lengths[-1] = 0.0
    binding: BoolArray | None = None
    # Cuts around one node are cheap to try and often the answer.
    for simple in _single_node_cuts(scaled):
        length = _length_through(network, scaled.supply_behind(simple), simple, lengths)
        if length is None:
            raise NeverArrives(network, simple)
        if length > lengths[-1]:
            lengths[-1], binding = length, simple
    for _ in range(MOST_ITERATIONS):
        _, cut = scaled.saturate(lengths)
        if cut is None:
            return Quickest(network, lengths, binding)
        length = _length_through(network, scaled.supply_behind(cut), cut, lengths)
        if length is None:
            raise NeverArrives(network, cut)
        binding = cut
        # Rounding could return the same length for ever; the step is far below what counts.
        lengths[-1] = max(length, lengths[-1] * (1 + ROUNDING_SLACK))
    raise SolverError(
        f"Newton's method did not settle in {MOST_ITERATIONS} cuts; capacities may span too many "
        "orders of magnitude: leave out links that carry next to nothing"
    )


def _single_node_cuts(scaled: ScaledFlow) -> Iterator[BoolArray]:
    """The cut before the sink, and the one behind the pool that needs longest by itself."""
    network = scaled.network
    if network.n_pieces > 1:
        return
    before_sink = np.ones(network.n_nodes, dtype=bool)
    before_sink[network.sink] = False
    yield before_sink
    nodes = np.array([pool.node for pool in network.pools])
    rate = np.bincount(network.tail, network.rate_bytes_per_s, network.n_nodes)[nodes]
    with np.errstate(divide="ignore"):
        slowest = nodes[np.argmax(scaled.supply_bytes / rate)]
    yield np.arange(network.n_nodes) == slowest


def _length_through(
    network: LayeredNetwork, supply_bytes: float, cut: BoolArray, lengths_s: FloatArray
) -> float | None:
    """How long the last piece must be for `supply_bytes` to cross `cut`; None: for ever."""
    crossing = cut[network.tail] & ~cut[network.head]
    last = network.n_pieces - 1
    variable = crossing & (network.piece == last)
    rate = float(network.rate_bytes_per_s[variable].sum())
    fixed = float(network.capacity_bytes(lengths_s)[crossing & ~variable].sum())
    if rate <= 0:
        return None
    return (supply_bytes - fixed) / rate


def quickest(
    problem: Problem, starts_s: FloatArray, guard_s: float, solver: FlowSolver
) -> Quickest:
    """Find the earliest end over pieces that start at `starts_s`.

    Every piece but the last loses `guard_s`, which pipelines need to drain before it ends.

    Raises
    ------
    NeverArrives
        Some data cannot arrive at all.
    """
    full = np.maximum(np.diff(starts_s) - guard_s, 0.0)
    releases = [parcel.release_s for parcel in problem.parcels]
    fewest = 1 + int(np.searchsorted(starts_s, max(releases)))
    # Bisect for the piece in which the collection ends: all pieces before it are full.
    low, high = fewest, len(starts_s)
    while low < high:
        middle = (low + high) // 2
        network = layered_network(problem, starts_s[:middle])
        if ScaledFlow(network, solver).saturate(full[:middle])[1] is None:
            high = middle
        else:
            low = middle + 1
    network = layered_network(problem, starts_s[:low])
    return newton(network, np.append(full[: low - 1], 0.0), solver)
