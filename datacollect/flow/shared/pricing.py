"""Flows with side constraints on large networks: a linear program over a few arcs, and prices.

A capacity that arbitrary arcs share breaks the structure of a network flow: what remains is a
linear program with a column per arc. Of a million arcs an optimal flow uses a few thousand, so
the program starts with few; its dual values put a price on data at every node and on room in
every side constraint, and thereby show whether an absent arc is worth having. Arcs that
are join, until none is left: the flow is then optimal among all arcs (column generation: Ford and
Fulkerson, Management Science 5, 1958; Dantzig and Wolfe, Operations Research 8, 1960).

The prices give a lower bound as well (weak duality), so every answer says how far from the
optimum it may be.

A caller describes network and side constraints once as a `SharedNetwork`. `largest_share` tells
whether everything can arrive, `cheapest` finds the cheapest way; each may start from the arcs that
the other ended with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, SolverError
from datacollect.flow.network.best_arcs import best_per_tail
from datacollect.flow.network.tolerances import ATTAINED, CHEAP
from datacollect.flow.shared.network import arcs_to_sink, widest_arcs
from datacollect.solvers.programs import LinearProgram

if TYPE_CHECKING:
    from datacollect.flow.shared.network import SharedNetwork
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.solvers.budget import Budget
    from datacollect.solvers.programs import LinearSolution


# The first round lets in twice as many arcs per node, and each later one twice as many as the one
# before: a few rounds of small programs, or some more of larger ones, but never many.
NEW_ARCS_PER_NODE = 2

NO_ARCS = np.zeros(0, dtype=np.int64)

# Passes that raise prices of idle nodes: as many as a relay's limits make arcs in a row.
PASSES = 4


@dataclass(frozen=True, eq=False)
class PricedFlow:
    """An optimal flow with the prices that prove it.

    Prices belong to quantities as fractions of all supply. With `reduced_cost` r,
    ``sum(supply * node_price)`` is at most what the flow costs plus ``sum(-r * capacity)`` over
    all arcs with r < 0 plus ``sum(-row_price * room)``, for any flow of all supply.

    Attributes
    ----------
    share : float
        Part of every supply that arrives.
    flow_bytes : ndarray of float, shape (n_arcs,)
    arcs : ndarray of int
        Arcs that the last program had; good ones to start a similar search from.
    node_price : ndarray of float, shape (n_nodes,)
        What one more unit at a node costs; 0 at the sink.
    row_price : ndarray of float, shape (n_rows,)
        What one more unit of room changes, <= 0.
    reduced_cost : ndarray of float, shape (n_arcs,)
        Cost of an arc beyond what the prices account for; what one more unit of its capacity
        changes where negative.
    gap : float
        The optimum is better by at most this part of it.
    rounds : int
        Linear programs solved.
    """

    share: float
    flow_bytes: FloatArray
    arcs: IntArray
    node_price: FloatArray
    row_price: FloatArray
    reduced_cost: FloatArray
    gap: float
    rounds: int


def largest_share(
    network: SharedNetwork, budget: Budget, arcs: IntArray | None = None
) -> PricedFlow:
    """Find the largest part, up to 1, of every supply that can arrive together.

    Parameters
    ----------
    network : SharedNetwork
    budget : Budget
        Which solver, and until when.
    arcs : ndarray of int, optional
        Arcs to start with besides those that lead every node to the sink.

    Examples
    --------
    Two sources with 2 bytes each have links to the sink that carry 2 bytes, but 3 together.

    >>> from datacollect.flow.shared.network import SharedNetwork
    >>> from datacollect.solvers.budget import Budget
    >>> network = SharedNetwork(
    ...     n_nodes=3, sink=2, tail=np.array([0, 1]), head=np.array([2, 2]),
    ...     capacity_bytes=np.array([2.0, 2.0]), supply_bytes=np.array([2.0, 2.0, 0.0]),
    ...     member_row=np.array([0, 0]), member_arc=np.array([0, 1]), room_bytes=np.array([3.0]),
    ... )
    >>> largest_share(network, Budget()).share
    0.75
    """
    cost = np.zeros(network.n_arcs)
    return _ColumnGeneration(network, cost, budget, share=(-1.0, 0.0)).run(arcs)


def cheapest(
    network: SharedNetwork,
    cost: FloatArray,
    budget: Budget,
    arcs: IntArray | None = None,
    full: IntArray = NO_ARCS,
) -> PricedFlow:
    """Find the flow of all supply that costs least.

    Parameters
    ----------
    network : SharedNetwork
    cost : ndarray of float, shape (n_arcs,)
        Per unit, >= 0.
    budget : Budget
        Which solver, and until when.
    arcs : ndarray of int, optional
        Arcs on which all supply can arrive, as `largest_share` ends with. Without it they are
        found first.
    full : ndarray of int, optional
        Arcs that most likely are filled: the simplex code begins with them full.

    Raises
    ------
    InfeasibleError
        Not everything can arrive, on the given arcs or, without them, on any.

    Examples
    --------
    A byte goes directly for 1 or over node 1 for 4; what goes directly is limited to half of it.

    >>> from datacollect.flow.shared.network import SharedNetwork
    >>> from datacollect.solvers.budget import Budget
    >>> network = SharedNetwork(
    ...     n_nodes=3, sink=2, tail=np.array([0, 0, 1]), head=np.array([2, 1, 2]),
    ...     capacity_bytes=np.full(3, np.inf), supply_bytes=np.array([1.0, 0.0, 0.0]),
    ...     member_row=np.array([0]), member_arc=np.array([0]), room_bytes=np.array([0.5]),
    ... )
    >>> found = cheapest(network, np.array([1.0, 2.0, 2.0]), Budget())
    >>> found.flow_bytes, found.row_price
    (array([0.5, 0.5, 0.5]), array([-3.]))
    """
    if arcs is None:
        possible = largest_share(network, budget)
        if possible.share < 1 - ATTAINED:
            raise InfeasibleError(
                f"at most {possible.share:.9g} of what is to be moved can arrive; widen "
                "capacities, or allow more time"
            )
        arcs = possible.arcs
    found = _ColumnGeneration(network, cost, budget, share=(0.0, 1.0), full=full).run(arcs)
    paid = _sum_of_products(cost, found.flow_bytes) / network.total_bytes
    dearest = float(cost.max(initial=0.0))
    if found.gap <= ATTAINED or paid > CHEAP * dearest:
        return found
    # Dear arcs are avoided altogether; beside their costs those that matter drowned.
    unit = max(paid, ATTAINED * dearest)
    try:
        search = _ColumnGeneration(network, cost, budget, share=(0.0, 1.0), unit=unit, full=full)
        again = search.run(found.arcs)
    except SolverError:
        return found  # the gap says how good it is
    return min(again, found, key=lambda flow: flow.gap)


@dataclass(frozen=True, eq=False)
class _Master:
    """The program over some arcs, the `columns`; its last column is the share of every supply.

    Solvers judge by absolute tolerances, so every column is counted in units of what it can carry,
    and every row in units of its largest entry: a small source's bytes then count as much as a
    large one's. Units are powers of two, which cost no precision.
    """

    columns: IntArray
    program: LinearProgram
    arc_unit: FloatArray
    row_unit: FloatArray


class _ColumnGeneration:
    """Rounds of a linear program over some arcs, and of pricing all others.

    Columns are the arcs' flows, as fractions of all supply, and the share of every supply, which
    costs ``share[0]`` and lies between ``share[1]`` and 1.
    """

    def __init__(
        self,
        network: SharedNetwork,
        cost: FloatArray,
        budget: Budget,
        share: tuple[float, float],
        unit: float | None = None,
        full: IntArray = NO_ARCS,
    ) -> None:
        self.network = network
        self.budget = budget
        self.share_cost, self.least_share = share
        total = network.total_bytes
        self.first_arcs, self.width_bytes = arcs_to_sink(network)
        self.useful = self.width_bytes[network.head] > 0
        # No flow without cycles carries more than everything, or goes where no arc leads on.
        self.upper = np.where(self.useful, np.minimum(network.capacity_bytes / total, 1.0), 0.0)
        self.supply = network.supply_bytes / total
        self.room = np.minimum(network.room_bytes / total, network.n_arcs)
        # Costs near 1 suit the solver's tolerances.
        self.cost_unit = unit or float(cost.max(initial=0.0)) or 1.0
        self.cost = cost / self.cost_unit
        self.row_of_node = np.arange(network.n_nodes) - (np.arange(network.n_nodes) > network.sink)
        self.row_of_node[network.sink] = -1
        self.full = np.zeros(network.n_arcs, dtype=bool)
        self.full[full] = True

    def run(self, arcs: IntArray | None) -> PricedFlow:
        """Begin with some arcs, and add others until none is attractive."""
        network, solver = self.network, self.budget.linear_solver()
        present = np.zeros(network.n_arcs, dtype=bool)
        present[self.first_arcs] = True
        present[widest_arcs(network, self.width_bytes) if arcs is None else arcs] = True
        rounds = 0
        while True:
            rounds += 1
            master = self._master(np.flatnonzero(present))
            solution = solver.solve(master.program, time_limit_s=self.budget.remaining_s())
            answer = self._answer(master, solution, rounds)
            worth = np.where(present, 0.0, -answer.reduced_cost / self.cost_unit)
            attractive = np.flatnonzero((worth > ATTAINED) & (self.upper > 0))
            if answer.gap <= ATTAINED or len(attractive) == 0:
                return answer
            gain, tail = (worth * self.upper)[attractive], network.tail[attractive]
            most = NEW_ARCS_PER_NODE * 2**rounds
            present[attractive[best_per_tail(tail, gain, most, network.n_nodes)]] = True

    def _master(self, columns: IntArray) -> _Master:
        """Return the program over some arcs.

        Columns begin at 0. Those of full arcs count what is left free.
        """
        network = self.network
        n_nodes, n_columns = network.n_nodes - 1, len(columns)
        unit = np.append(_power_of_two(self._throughput(columns)), 1.0)
        rows, entries, values = self._matrix(columns, unit)
        row_unit = np.zeros(n_nodes + len(self.room))
        np.maximum.at(row_unit, rows, np.abs(values))
        row_unit = _power_of_two(np.where(row_unit > 0, row_unit, 1.0))
        values /= row_unit[rows]
        zeros = np.zeros(n_nodes)
        upper = np.append(self.upper[columns] / unit[:-1], 1.0)
        is_full = np.append(self.full[columns], False)
        sign = np.where(is_full, -1.0, 1.0)
        filled = np.bincount(rows, values * (upper * is_full)[entries], len(row_unit))
        program = LinearProgram(
            cost=np.append(self.cost[columns] * unit[:-1], self.share_cost) * sign,
            lower=np.append(np.zeros(n_columns), self.least_share),
            upper=upper,
            row_lower=np.concatenate([zeros, np.full(len(self.room), -np.inf)]) - filled,
            row_upper=np.concatenate([zeros, self.room / row_unit[n_nodes:]]) - filled,
            rows=rows,
            columns=entries,
            values=values * sign[entries],
        )
        return _Master(columns, program, unit[:-1], row_unit)

    def _matrix(self, columns: IntArray, unit: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return rows, columns and values of the matrix, its columns in these units."""
        network = self.network
        n_nodes, n_columns = network.n_nodes - 1, len(columns)
        column_of = np.full(network.n_arcs, -1)
        column_of[columns] = np.arange(n_columns)
        leaving = self.row_of_node[network.tail[columns]]
        entering = self.row_of_node[network.head[columns]]
        leaves, enters = np.flatnonzero(leaving >= 0), np.flatnonzero(entering >= 0)
        member = column_of[network.member_arc]
        counted = member >= 0
        supplied = np.flatnonzero((self.supply > 0) & (self.row_of_node >= 0))
        rows = np.concatenate(
            [
                leaving[leaves],
                entering[enters],
                n_nodes + network.member_row[counted],
                self.row_of_node[supplied],
            ]
        )
        entries = np.concatenate(
            [leaves, enters, member[counted], np.full(len(supplied), n_columns)]
        )
        values = unit[entries]
        values[len(leaves) : len(leaves) + len(enters)] *= -1
        values[len(values) - len(supplied) :] = -self.supply[supplied]
        return rows, entries, values

    def _throughput(self, columns: IntArray) -> FloatArray:
        """Bound what each arc can carry by what its ends take in and give out."""
        network = self.network
        upper = self.upper.copy()
        np.minimum.at(upper, network.member_arc, self.room[network.member_row])
        upper = upper[columns]
        tail, head = network.tail[columns], network.head[columns]
        into = self.supply + np.bincount(head, upper, network.n_nodes)
        out = np.bincount(tail, upper, network.n_nodes).astype(float)  # no arcs: integers
        out[network.sink] = np.inf
        passing = np.minimum(into, out)
        carried = np.minimum(upper, np.minimum(passing[tail], passing[head]))
        return np.where(carried > 0, carried, 1.0)

    def _answer(self, master: _Master, solution: LinearSolution, rounds: int) -> PricedFlow:
        network, columns = self.network, master.columns
        dual = solution.row_dual / master.row_unit
        node_price = np.zeros(network.n_nodes)
        kept = self.row_of_node >= 0
        node_price[kept] = dual[self.row_of_node[kept]]
        row_price = np.minimum(dual[network.n_nodes - 1 :], 0.0)
        paid = self.cost.copy()
        np.subtract.at(paid, network.member_arc, row_price[network.member_row])
        flow = np.zeros(network.n_arcs)
        flow[columns] = np.maximum(solution.x[:-1], 0.0) * master.arc_unit
        full = columns[self.full[columns]]
        flow[full] = np.maximum(self.upper[full] - flow[full], 0.0)
        self._raise_idle_prices(node_price, columns, flow[columns], paid[columns])
        reduced = paid - node_price[network.tail]
        reduced += node_price[network.head]
        # Nobody pays for room that leads nowhere.
        np.maximum(reduced, 0.0, out=reduced, where=~self.useful)
        share = float(solution.x[-1])
        value = _sum_of_products(self.cost, flow) + self.share_cost * share
        return PricedFlow(
            share=share,
            flow_bytes=flow * network.total_bytes,
            arcs=columns,
            node_price=node_price * self.cost_unit,
            row_price=row_price * self.cost_unit,
            reduced_cost=reduced * self.cost_unit,
            gap=self._gap(value, node_price, row_price, reduced),
            rounds=rounds,
        )

    def _raise_idle_prices(
        self, node_price: FloatArray, columns: IntArray, flow: FloatArray, paid: FloatArray
    ) -> None:
        """Raise prices where nothing flows to what sending on from there costs.

        The program leaves such a price open between what entering and leaving arcs allow. The
        highest keeps absent arcs into the node from looking better than they are.
        """
        network = self.network
        tail, head = network.tail[columns], network.head[columns]
        idle = self.supply == 0
        idle[network.sink] = False
        idle[tail[flow > 0]] = False
        out = np.flatnonzero(idle[tail])
        for _ in range(PASSES):
            room = np.full(network.n_nodes, np.inf)
            np.minimum.at(
                room, tail[out], paid[out] - node_price[tail[out]] + node_price[head[out]]
            )
            higher = np.isfinite(room) & (room > 0)
            if not higher.any():
                return
            node_price[higher] += room[higher]

    def _gap(
        self, value: float, node_price: FloatArray, row_price: FloatArray, reduced: FloatArray
    ) -> float:
        """Return how far `value` may lie above the optimum, by weak duality over all arcs."""
        bound = _sum_of_products(row_price, self.room)
        bound += _sum_of_products(np.minimum(reduced, 0.0), self.upper)
        share = self.share_cost + _sum_of_products(self.supply, node_price)
        bound += min(share, share * self.least_share)
        return max(value - bound, 0.0) / max(abs(value), 1e-300)


def _power_of_two(values: FloatArray) -> FloatArray:
    """Round positive numbers to powers of two."""
    return np.asarray(np.exp2(np.rint(np.log2(values))))


def _sum_of_products(a: FloatArray, b: FloatArray) -> float:
    """Return ``a @ b`` without BLAS, whose idle threads keep every core busy for a while."""
    return float((a * b).sum())
