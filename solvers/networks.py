"""Flow networks as plain data, and the protocol that flow solvers follow.

A flow solver sees nodes, arcs and whole numbers, neither hosts nor time. That makes solvers
interchangeable and easy to test against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.numbers.arrays import BoolArray, IntArray

# Sums of capacities at a node must stay below this, or 64-bit solvers overflow.
CAPACITY_SUM_LIMIT = 2**62

# Nodes are reached in rounds, a step further in each. After this many SciPy goes on, which looks at
# each arc once; most networks need fewer rounds, and then it need not be loaded.
ROUNDS = 4


@dataclass(frozen=True, eq=False)
class FlowNetwork:
    """A directed network with integer capacities; parallel arcs are allowed, self loops are not.

    Attributes
    ----------
    n_nodes : int
        Nodes are 0 ... n_nodes - 1.
    tail, head : ndarray of int, shape (n_arcs,)
        Arc i leads from ``tail[i]`` to ``head[i]``.
    capacity : ndarray of int64, shape (n_arcs,)
        Units that may pass; >= 0. Floats are refused: solvers truncate them silently.
    cost : ndarray of int64, shape (n_arcs,), optional
        Cost per unit, >= 0; used by minimum-cost flow only.
    """

    n_nodes: int
    tail: npt.NDArray[np.integer]
    head: npt.NDArray[np.integer]
    capacity: IntArray
    cost: IntArray | None = None

    def __post_init__(self) -> None:
        columns = {"tail": self.tail, "head": self.head, "capacity": self.capacity}
        if self.cost is not None:
            columns["cost"] = self.cost
        for name, column in columns.items():
            if not np.issubdtype(column.dtype, np.integer):
                raise ProblemError(
                    f"FlowNetwork.{name} must hold integers, got {column.dtype}; scale and round"
                )
            if column.shape != self.tail.shape or column.ndim != 1:
                raise ProblemError(
                    f"FlowNetwork.{name} must have shape {self.tail.shape}, got {column.shape}"
                )
        if self.n_arcs == 0:
            return
        self._check_nodes()
        for name in ("capacity", "cost"):
            if name in columns and columns[name].min() < 0:
                raise ProblemError(f"FlowNetwork.{name} must be >= 0, got {columns[name].min()}")
        self._check_capacity_sums()

    def _check_nodes(self) -> None:
        for name, column in (("tail", self.tail), ("head", self.head)):
            # Solvers written in C++ would read out of bounds instead of complaining.
            if column.min() < 0 or column.max() >= self.n_nodes:
                raise ProblemError(
                    f"FlowNetwork.{name} must lie in 0 ... n_nodes - 1 = {self.n_nodes - 1}, "
                    f"got {column.min()} ... {column.max()}"
                )
        loops = self.tail == self.head
        if loops.any():
            arc = int(loops.argmax())
            raise ProblemError(
                f"FlowNetwork: arc {arc} must join two nodes, got a loop at node {self.tail[arc]}"
            )

    def _check_capacity_sums(self) -> None:
        # Exact sums matter only where the cheap bound fails.
        if int(self.capacity.max()) * self.n_arcs < CAPACITY_SUM_LIMIT:
            return
        for end in (self.tail, self.head):
            total = np.bincount(end, weights=self.capacity, minlength=self.n_nodes).max()
            if total >= CAPACITY_SUM_LIMIT:
                raise ProblemError(
                    f"capacities at one node sum to {total:.3g}, limit 2**62; count in larger units"
                )

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.tail)


class FlowSolver(Protocol):
    """Protocol of flow solvers. Instances keep no state between calls: threads may share one."""

    @property
    def name(self) -> str:
        """Return who answers; of a combination, who has answered."""

    def max_flow(self, network: FlowNetwork, source: int, sink: int) -> IntArray:
        """Return a maximum flow from source to sink: units per arc, shape (n_arcs,)."""
        ...

    def min_cost_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """Return the cheapest flow that meets ``supply``: units per arc, shape (n_arcs,).

        ``supply`` has shape (n_nodes,), positive where flow enters, and sums to 0.

        Raises
        ------
        InfeasibleError
            No flow meets the supplies.
        """
        ...


def source_side(network: FlowNetwork, flow: IntArray, source: int) -> BoolArray:
    """Mark the nodes that `source` still reaches in the residual network of `flow`.

    After a maximum flow this is the source's side of a minimum cut (Ford and Fulkerson, 1956).
    """
    forward = flow < network.capacity
    backward = flow > 0
    tail = np.concatenate([network.tail[forward], network.head[backward]])
    head = np.concatenate([network.head[forward], network.tail[backward]])
    return reachable(network.n_nodes, tail, head, source)


def reachable(
    n_nodes: int,
    tail: npt.NDArray[np.integer],
    head: npt.NDArray[np.integer],
    source: int | BoolArray,
) -> BoolArray:
    """Mark the nodes to which arcs lead from a node, or from any of those marked, with itself.

    Parameters
    ----------
    n_nodes : int
    tail, head : ndarray of int, shape (n_arcs,)
        Swap them to find the nodes from which a node is reached.
    source : int or ndarray of bool, shape (n_nodes,)

    Returns
    -------
    ndarray of bool, shape (n_nodes,)

    Examples
    --------
    >>> reachable(4, np.array([0, 1, 3]), np.array([1, 2, 2]), 0)
    array([ True,  True,  True, False])
    """
    reached = np.zeros(n_nodes, dtype=bool)
    reached[source] = True
    for _ in range(ROUNDS):
        more = head[reached[tail] & ~reached[head]]
        if len(more) == 0:
            return reached
        reached[more] = True
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    # All that is reached so far becomes one node.
    first = int(np.flatnonzero(reached)[0])
    onward = ~reached[head]
    tail, head = np.where(reached[tail], first, tail)[onward], head[onward]
    arcs = csr_array((np.ones(len(tail), dtype=bool), (tail, head)), shape=(n_nodes, n_nodes))
    reached[breadth_first_order(arcs, first, return_predecessors=False)] = True
    return reached
