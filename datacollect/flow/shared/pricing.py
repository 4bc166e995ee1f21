"""Flows with side constraints on large networks: a linear program over a few arcs, and prices.

A capacity that arbitrary arcs share breaks the structure of a network flow: what remains is a
linear program with a column per arc. Of a million arcs an optimal flow uses a few thousand, so
the program starts with few; its dual values put a price on data at every node and on room in
every side constraint, and thereby tell of each absent arc whether it is worth having. Arcs that
are join, until none is left: the flow is then optimal among all arcs (column generation: Ford and
Fulkerson, Management Science 5, 1958; Dantzig and Wolfe, Operations Research 8, 1960).

The prices give a lower bound as well (weak duality), so every answer says how far from the
optimum it may be.

A caller describes network and side constraints once as a `SharedNetwork`, with arcs as plain
arrays: a layered network and a time-expanded graph look alike here. `largest_share` tells whether
everything can arrive, `cheapest` finds the cheapest way; each may start from the arcs that the
other ended with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import InfeasibleError, SolverError
from datacollect.flow import LinearProgram

if TYPE_CHECKING:
    from datacollect.budget import Budget
    from datacollect.flow import LinearSolution

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]

# An answer within this part of the optimum is optimal: what linear solvers attain.
TOLERANCE = 1e-9

# The first round lets in twice as many arcs per node, and each later one twice as many as the one
# before: a few rounds of small programs, or some more of larger ones, but never many.
NEW_ARCS_PER_NODE = 2

NO_ARCS = np.zeros(0, dtype=np.int64)

# Relays that a source starts with: about what it uses in the end.
WIDEST_WAYS = 8

# A flow that costs less than this part of the dearest arc is found again in its own unit of cost.
SMALL = 1e-3

# Passes that raise prices of idle nodes: as many as a relay's limits make arcs in a row.
PASSES = 4

# A node with so few ways out is no choice but a passage: a host's limit, or data waiting.
PASSAGE = 2


@dataclass(frozen=True, eq=False)
class SharedNetwork:
    """A network whose arcs have capacities, some of them shared; quantities in bytes.

    Attributes
    ----------
    n_nodes : int
    sink : int
        Where everything is to arrive.
    tail, head : ndarray of int, shape (n_arcs,)
    capacity_bytes : ndarray of float, shape (n_arcs,)
        May be infinite.
    supply_bytes : ndarray of float, shape (n_nodes,)
        What enters at each node; >= 0, some of it positive.
    member_row, member_arc : ndarray of int, shape (n_members,)
        Arc ``member_arc[i]`` counts in side constraint ``member_row[i]``; no pair twice.
    room_bytes : ndarray of float, shape (n_rows,)
        What the arcs of each side constraint carry together at most.
    """

    n_nodes: int
    sink: int
    tail: IntArray
    head: IntArray
    capacity_bytes: FloatArray
    supply_bytes: FloatArray
    member_row: IntArray
    member_arc: IntArray
    room_bytes: FloatArray

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.tail)

    @property
    def total_bytes(self) -> float:
        """All that enters."""
        return float(self.supply_bytes.sum())


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

    >>> from datacollect.budget import Budget
    >>> network = SharedNetwork(
    ...     n_nodes=3, sink=2, tail=np.array([0, 1]), head=np.array([2, 2]),
    ...     capacity_bytes=np.array([2.0, 2.0]), supply_bytes=np.array([2.0, 2.0, 0.0]),
    ...     member_row=np.array([0, 0]), member_arc=np.array([0, 1]), room_bytes=np.array([3.0]),
    ... )
    >>> largest_share(network, Budget()).share
    0.75
    """
    cost = np.zeros(network.n_arcs)
    return _Search(network, cost, budget, share=(-1.0, 0.0)).run(arcs)


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

    >>> from datacollect.budget import Budget
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
        if possible.share < 1 - TOLERANCE:
            raise InfeasibleError(
                f"at most {possible.share:.9g} of what is to be moved can arrive; widen "
                "capacities, or allow more time"
            )
        arcs = possible.arcs
    found = _Search(network, cost, budget, share=(0.0, 1.0), full=full).run(arcs)
    paid = _sum_of_products(cost, found.flow_bytes) / network.total_bytes
    dearest = float(cost.max(initial=0.0))
    if found.gap <= TOLERANCE or paid > SMALL * dearest:
        return found
    # Dear arcs are avoided altogether; beside their costs those that matter drowned.
    unit = max(paid, TOLERANCE * dearest)
    try:
        search = _Search(network, cost, budget, share=(0.0, 1.0), unit=unit, full=full)
        again = search.run(found.arcs)
    except SolverError:
        return found  # the gap says how good it is
    return min(again, found, key=lambda flow: flow.gap)


class _Search:
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
        self.ways, self.width_bytes = ways_to_sink(network)
        self.useful = self.width_bytes[network.head] > 0
        # No flow without cycles carries more than everything, or goes where no way leads on.
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
        network, solver = self.network, self.budget.linear_solver()
        present = np.zeros(network.n_arcs, dtype=bool)
        present[self.ways] = True
        present[widest_ways(network, self.width_bytes) if arcs is None else arcs] = True
        rounds = 0
        while True:
            rounds += 1
            columns = np.flatnonzero(present)
            program, arc_unit, row_unit = self._program(columns)
            solution = solver.solve(program, time_limit_s=self.budget.remaining_s())
            answer = self._answer(columns, solution, arc_unit, row_unit, rounds)
            worth = np.where(present, 0.0, -answer.reduced_cost / self.cost_unit)
            attractive = np.flatnonzero((worth > TOLERANCE) & (self.upper > 0))
            gain = worth * self.upper
            if answer.gap <= TOLERANCE or len(attractive) == 0:
                return answer
            most = NEW_ARCS_PER_NODE * 2**rounds
            present[best_per_tail(network, attractive, gain[attractive], most)] = True

    def _program(self, columns: IntArray) -> tuple[LinearProgram, FloatArray, FloatArray]:
        """Return the program over some arcs, and the units of its columns and rows.

        Solvers judge by absolute tolerances, so every column is counted in units of what it can
        carry, and every row in units of its largest entry: a small source's bytes then count as
        much as a large one's. Units are powers of two, which cost no precision.

        Columns begin at 0. Those of full arcs count what is left free.
        """
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
        unit = np.append(_power_of_two(self._throughput(columns)), 1.0)
        values = unit[entries]
        values[len(leaves) : len(leaves) + len(enters)] *= -1
        values[len(values) - len(supplied) :] = -self.supply[supplied]
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
        return program, unit[:-1], row_unit

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

    def _answer(
        self,
        columns: IntArray,
        solution: LinearSolution,
        arc_unit: FloatArray,
        row_unit: FloatArray,
        rounds: int,
    ) -> PricedFlow:
        network = self.network
        dual = solution.row_dual / row_unit
        node_price = np.zeros(network.n_nodes)
        kept = self.row_of_node >= 0
        node_price[kept] = dual[self.row_of_node[kept]]
        row_price = np.minimum(dual[network.n_nodes - 1 :], 0.0)
        paid = self.cost.copy()
        np.subtract.at(paid, network.member_arc, row_price[network.member_row])
        flow = np.zeros(network.n_arcs)
        flow[columns] = np.maximum(solution.x[:-1], 0.0) * arc_unit
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
        """How far `value` may lie above the optimum, by weak duality over all arcs."""
        bound = _sum_of_products(row_price, self.room)
        bound += _sum_of_products(np.minimum(reduced, 0.0), self.upper)
        share = self.share_cost + _sum_of_products(self.supply, node_price)
        bound += min(share, share * self.least_share)
        return max(value - bound, 0.0) / max(abs(value), 1e-300)


def ways_to_sink(network: SharedNetwork) -> tuple[IntArray, FloatArray]:
    """Return an arc per node that leads to the sink by fewest arcs, and how much passes that way.

    Among several such arcs of a node the widest is taken. These arcs make prices sensible from the
    first round on: what lies at any node could go to the sink at some price.

    Returns
    -------
    tuple of (ndarray of int, ndarray of float)
        The arcs, and for each node the least capacity on its way; 0 where there is none.
    """
    width = np.zeros(network.n_nodes)
    width[network.sink] = np.inf
    way = np.full(network.n_nodes, -1)
    is_open = network.capacity_bytes > 0
    while True:
        more = np.flatnonzero(is_open & (width[network.head] > 0) & (width[network.tail] == 0))
        if len(more) == 0:
            return way[way >= 0], width
        passing = np.minimum(network.capacity_bytes[more], width[network.head[more]])
        order = np.argsort(passing, kind="stable")
        # Of equal indices the last, the widest, stays.
        way[network.tail[more[order]]] = more[order]
        width[network.tail[more[order]]] = passing[order]


def widest_ways(network: SharedNetwork, width_bytes: FloatArray) -> IntArray:
    """Return for each source the arcs by which most gets out and, by the others' ways, arrives."""
    degree = np.bincount(network.tail, minlength=network.n_nodes)
    passages = np.flatnonzero(degree[network.tail] <= PASSAGE)
    fed = network.supply_bytes > 0
    while True:
        follow = passages[fed[network.tail[passages]] & ~fed[network.head[passages]]]
        if len(follow) == 0:
            break
        fed[network.head[follow]] = True
    leaving = np.flatnonzero(fed[network.tail])
    passing = np.minimum(network.capacity_bytes[leaving], width_bytes[network.head[leaving]])
    return best_per_tail(network, leaving, passing, WIDEST_WAYS)


def best_per_tail(network: SharedNetwork, arcs: IntArray, score: FloatArray, most: int) -> IntArray:
    """Return of each node's `arcs` out of it those with the highest scores, at most `most`."""
    candidates = _promising(network, arcs, score, most)
    arcs, score = arcs[candidates], score[candidates]
    tail = network.tail[arcs]
    order = np.lexsort((-score, tail))
    sorted_tail = tail[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_tail, sorted_tail)
    return arcs[order[rank < most]]


def _promising(network: SharedNetwork, arcs: IntArray, score: FloatArray, most: int) -> IntArray:
    """Return positions of `arcs` among which are the best of each node: there is less to sort.

    Dealt to `most` groups, a node's arcs have `most` group winners. What scores less than the
    worst of them is not among the best `most`.
    """
    if network.n_nodes * most > len(arcs):
        return np.arange(len(arcs))
    tail = network.tail[arcs].astype(np.int64)
    winner = np.full(network.n_nodes * most, -np.inf)
    np.maximum.at(winner, tail * most + np.arange(len(arcs)) % most, score)
    return np.flatnonzero(score >= winner.reshape(-1, most).min(axis=1)[tail])


def _power_of_two(values: FloatArray) -> FloatArray:
    """Round positive numbers to powers of two."""
    return np.asarray(np.exp2(np.rint(np.log2(values))))


def _sum_of_products(a: FloatArray, b: FloatArray) -> float:
    """Return ``a @ b`` without BLAS, whose idle threads keep every core busy for a while."""
    return float((a * b).sum())
