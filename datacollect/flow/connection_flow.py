"""Fastest flow under a budget of connections: a linear program, and prices.

The k-th connection of a link adds Δ(k) = b(k) - b(k - 1) to its rate, less than the one before, so
that an optimum opens them in order: it is a flow with concave capacities, and a linear program with
a column for each connection of each link. On a wire that links share, N connections of ours get
b_w(N) together, again piece by piece, and the links' connections on it must be as many. Parts of
connections are allowed here, so no plan with whole ones is faster, nor one that opens and closes
them in between: its averages over time are a point of this program, since b is concave.

Of all columns few are used: those whose prices are attractive join, until none is (column
generation: Ford and Fulkerson, Management Science 5, 1958).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import SolverError
from datacollect.flow.network.best_arcs import best_per_tail
from datacollect.flow.network.tolerances import ATTAINED
from datacollect.flow.shared.network import SharedNetwork, arcs_to_sink, widest_arcs
from datacollect.numbers.arrays import ranges
from datacollect.problem.connection_rates import link_rates, wire_rates
from datacollect.solvers.programs import LinearProgram

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget
    from datacollect.solvers.programs import LinearSolution

# A handful of rounds is usual.
MOST_ROUNDS = 100

# Links per host that the first round lets in; each later round lets in twice as many.
NEW_LINKS_PER_HOST = 2


@dataclass(frozen=True, eq=False)
class ConnectionFlow:
    """The fastest flow with parts of connections.

    Attributes
    ----------
    makespan_s : float
        No plan under the budget is faster, apart from releases, which it ignores.
    rate_bytes_per_s, connections : ndarray of float, shape (n_links,)
    saves_s : float
        What one connection more in all would save, at most.
    host_price : ndarray of float, shape (n_hosts,)
        What data at a host add to the makespan, as a part, per part of all data: 0 where data wait
        for nothing.
    """

    makespan_s: float
    rate_bytes_per_s: FloatArray
    connections: FloatArray
    saves_s: float
    host_price: FloatArray


def fastest_flow(
    problem: Problem, supply_bytes: FloatArray, connections: int, budget: Budget
) -> ConnectionFlow:
    """Find the fastest flow of what lies at each host to the destination.

    Parameters
    ----------
    problem : Problem
        Of its forecasts the first period counts.
    supply_bytes : ndarray of float, shape (n_hosts,)
        Some of it positive; 0 at the destination.
    connections : int
        In all; a host's own limit is `Problem.most_connections`.
    budget : Budget

    Raises
    ------
    SolverError
        The linear program cannot be solved.

    Examples
    --------
    Of 12 bytes/s two connections beside two of others get half:

    >>> import datacollect as dc
    >>> from datacollect.solvers.budget import Budget
    >>> link = dc.Link("S", "D", 4.0, capacity_bytes_per_s=12.0)
    >>> problem = dc.Problem.from_hosts([dc.Host("S", 60), dc.Host("D")], [link], "D")
    >>> round(fastest_flow(problem, np.array([60.0, 0.0]), 2, Budget()).makespan_s, 6)
    10.0
    """
    return _Columns(problem, supply_bytes, connections).solve(budget)


class _Columns:
    """The linear program: which columns it has so far, and its rows.

    Rates are counted in units of the fastest link, data in units of all. Rows, one after another: a
    host's conservation (none for the destination, whose row stays empty), the budget, hosts'
    budgets, uplinks, downlinks, wires' rates, wires' connections.
    """

    def __init__(self, problem: Problem, supply_bytes: FloatArray, connections: int) -> None:
        self.problem, self.connections = problem, connections
        self.total_bytes = float(supply_bytes.sum())
        self.supply = supply_bytes / self.total_bytes
        self.rates = link_rates(problem)
        self.wires = wire_rates(problem)
        self.tail = problem.link_from.astype(np.int64)
        self.head = problem.link_to.astype(np.int64)
        self.unit = float(problem.bandwidth_bytes_per_s[0].max(initial=0.0)) or 1.0
        self.n = np.zeros(problem.n_links, dtype=np.int64)  # columns of each link so far
        n_hosts, n_wires = problem.n_hosts, len(problem.shared)
        hosts = problem.most_connections
        self.host_room = np.full(n_hosts, np.inf) if hosts is None else hosts
        self.wire = np.repeat(np.arange(n_wires), [len(links) for links in problem.shared_links])
        self.member = np.concatenate([np.zeros(0, dtype=np.int64), *problem.shared_links])
        starts = np.cumsum([0, n_hosts, 1, n_hosts, n_hosts, n_hosts, n_wires, n_wires])
        self.budget_row, self.host_row, self.up_row, self.down_row = starts[1:5]
        self.wire_row, self.count_row, self.n_rows = starts[5:8]
        # One more than there are: what it would save has a price.
        self.most = np.where(self.rates.grows, connections + 1, 1)
        self.most[self.rates.bandwidth_bytes_per_s <= 0] = 0

    def solve(self, budget: Budget) -> ConnectionFlow:
        self._begin()
        for number in range(MOST_ROUNDS):
            link, k = self._pieces()
            program = self._program(link, k)
            found = budget.linear_solver().solve(program, budget.remaining_s())
            if not self._extend(found.row_dual, number):
                return self._answer(found, link, k)
        raise SolverError(
            f"rates by connections did not converge in {MOST_ROUNDS} linear programs; numbers span "
            "too many orders of magnitude: leave out links that carry next to nothing"
        )

    def _begin(self) -> None:
        """Let in arcs that lead every host to the destination, and the widest arcs of sources."""
        first = self.rates.rate(1)
        nothing = np.zeros(0, dtype=np.int64)
        network = SharedNetwork(
            self.problem.n_hosts,
            self.problem.destination_index,
            self.tail,
            self.head,
            first,
            self.supply,
            nothing,
            nothing,
            np.zeros(0),
        )
        leading, width = arcs_to_sink(network)
        links = np.union1d(leading, widest_arcs(network, width))
        per_source = self.connections // max(1, len(np.flatnonzero(self.supply)))
        self.n[links] = np.minimum(self.most[links], 1 + per_source)

    def _pieces(self) -> tuple[IntArray, IntArray]:
        """Link and number, from 1, of each column of a connection."""
        link = np.repeat(np.arange(len(self.n)), self.n)
        return link, ranges(np.ones_like(self.n), self.n)

    def _added(self, link: IntArray, k: IntArray) -> FloatArray:
        """Δ(k) of links, in units."""
        rates = self.rates.at(link)
        return (rates.rate(k) - rates.rate(k - 1)) / self.unit

    def _wire_pieces(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Wire, number and Δ(k) of each connection of ours on wires that give to each."""
        grows = np.flatnonzero(self.wires.grows)
        wire = np.repeat(grows, self.connections)
        k = np.tile(np.arange(1, self.connections + 1), len(grows))
        rates = self.wires.at(wire)
        return wire, k, (rates.rate(k) - rates.rate(k - 1)) / self.unit

    def _program(self, link: IntArray, k: IntArray) -> LinearProgram:
        """Columns: connections of links, idle ones on wires' links, those of wires, the share."""
        added = self._added(link, k)
        idle = np.flatnonzero(self.n * self._on_crowded_wire())
        of_wire, _, gained = self._wire_pieces()
        n_pieces, n_idle, n_wire = len(link), len(idle), len(of_wire)
        entries = [
            *self._flow_entries(link, added, np.arange(n_pieces)),
            *self._count_entries(link, np.arange(n_pieces)),
            *self._count_entries(idle, n_pieces + np.arange(n_idle)),
            (self.wire_row + of_wire, n_pieces + n_idle + np.arange(n_wire), -gained),
            (self.count_row + of_wire, n_pieces + n_idle + np.arange(n_wire), np.ones(n_wire)),
        ]
        sources = np.flatnonzero(self.supply)
        share = n_pieces + n_idle + n_wire
        entries.append((sources, np.full(len(sources), share), -self.supply[sources]))
        rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
        cost = np.zeros(share + 1)
        cost[share] = -1.0
        upper = np.concatenate(
            [np.ones(n_pieces), np.full(n_idle, self.connections), np.ones(n_wire), [np.inf]]
        )
        row_lower, row_upper = self._row_bounds()
        return LinearProgram(
            cost, np.zeros(share + 1), upper, row_lower, row_upper, rows, columns, values
        )

    def _on_crowded_wire(self) -> IntArray:
        found = np.zeros(self.problem.n_links, dtype=np.int64)
        found[self.member[self.wires.grows[self.wire]]] = 1
        return found

    def _row_bounds(self) -> tuple[FloatArray, FloatArray]:
        problem, n_hosts = self.problem, self.problem.n_hosts
        constant = np.where(self.wires.grows, 0.0, self.wires.bandwidth_bytes_per_s / self.unit)
        upper = np.concatenate(
            [
                np.zeros(n_hosts),
                [float(self.connections)],
                self.host_room,
                problem.uplink_bytes_per_s[0] / self.unit,
                problem.downlink_bytes_per_s[0] / self.unit,
                constant,
                np.zeros(len(constant)),
            ]
        )
        lower = np.full(len(upper), -np.inf)
        lower[:n_hosts] = 0.0
        lower[problem.destination_index] = -np.inf
        upper[problem.destination_index] = np.inf
        return lower, upper

    def _flow_entries(
        self, link: IntArray, added: FloatArray, column: IntArray
    ) -> list[tuple[IntArray, IntArray, FloatArray]]:
        """Return where the rates of connections count."""
        tail, head = self.tail[link], self.head[link]
        at, wire = self._members(link)
        return [
            (tail, column, added),
            (head, column, -added),
            (self.up_row + tail, column, added),
            (self.down_row + head, column, added),
            (self.wire_row + wire, column[at], added[at]),
        ]

    def _count_entries(
        self, link: IntArray, column: IntArray
    ) -> list[tuple[IntArray, IntArray, FloatArray]]:
        """Return where connections count by their number."""
        one = np.ones(len(link))
        at, wire = self._members(link)
        return [
            (np.full(len(link), self.budget_row), column, one),
            (self.host_row + self.tail[link], column, one),
            (self.host_row + self.head[link], column, one),
            (self.count_row + wire, column[at], -one[at]),
        ]

    def _members(self, link: IntArray) -> tuple[IntArray, IntArray]:
        """Pairs: a position among `link`, and a wire that this link crosses."""
        order = np.argsort(self.member, kind="stable")
        members = self.member[order]
        first = np.searchsorted(members, link, side="left")
        counts = np.searchsorted(members, link, side="right") - first
        return np.repeat(np.arange(len(link)), counts), self.wire[order][ranges(first, counts)]

    def _extend(self, dual: FloatArray, number: int) -> bool:
        """Let in attractive columns; return whether there were any."""
        per_byte, per_connection = self._prices(dual)
        more = np.flatnonzero(self.n < self.most)
        worth = self._added(more, self.n[more] + 1) * per_byte[more] + per_connection[more]
        more, worth = more[worth > ATTAINED], worth[worth > ATTAINED]
        if len(more) == 0:
            return False
        most = NEW_LINKS_PER_HOST * 2**number
        chosen = more[best_per_tail(self.tail[more], worth, most, self.problem.n_hosts)]
        known = more[self.n[more] > 0]
        grown = np.union1d(chosen, known)
        self.n[grown] = np.minimum(self.most[grown], 2 * self.n[grown] + 1)
        return True

    def _prices(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what a byte per second on each link gains, and what a connection there gains."""
        tail, head = self.tail, self.head
        node = dual[: self.problem.n_hosts].copy()
        node[self.problem.destination_index] = 0.0
        per_byte = node[tail] - node[head] + dual[self.up_row + tail] + dual[self.down_row + head]
        per_connection = (
            dual[self.budget_row] + dual[self.host_row + tail] + dual[self.host_row + head]
        )
        np.add.at(per_byte, self.member, dual[self.wire_row + self.wire])
        np.add.at(per_connection, self.member, -dual[self.count_row + self.wire])
        return per_byte, per_connection

    def _answer(self, found: LinearSolution, link: IntArray, k: IntArray) -> ConnectionFlow:
        share = float(found.x[-1])
        used = found.x[: len(link)]
        n_links = self.problem.n_links
        makespan_s = self.total_bytes / (share * self.unit) if share > 0 else np.inf
        rate = np.bincount(link, used * self._added(link, k), n_links) * self.unit
        return ConnectionFlow(
            makespan_s=makespan_s,
            rate_bytes_per_s=rate.astype(np.float64),
            connections=np.bincount(link, used, n_links).astype(np.float64),
            saves_s=makespan_s * float(-found.row_dual[self.budget_row]) / share if share else 0.0,
            host_price=-found.row_dual[: self.problem.n_hosts],
        )
