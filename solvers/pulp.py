"""CBC through PuLP: linear programs, and network flows as linear programs.

Slow on flows (files are written and read), but an independent opinion; see
`datacollect.solvers.cbc` for how CBC is called.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.errors import InfeasibleError, SolverError, SolverUnavailableError, TimeLimitError
from datacollect.solvers.cbc import run_cbc
from datacollect.solvers.checks import check_supply, check_terminals, unmet_supply
from datacollect.solvers.networks import FlowNetwork, source_side
from datacollect.solvers.programs import LinearProgram, LinearSolution

if TYPE_CHECKING:
    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray

# CBC's tolerances are absolute, 1e-7: beyond 1e8 the spacing of doubles alone exceeds them. At
# bounds of 1e16 CBC 2.10 calls feasible programs infeasible, at 1e20 it returned an objective 25 %
# off as optimal.
_LARGEST_BOUND = 1e8
# Bounds below this drown in the tolerance once scaled.
_SMALLEST_BOUND = 1e-4
# One step of a flow moves at most 2**30 units over an arc: far inside what doubles hold exactly.
_STEP_BITS = 30
_STEP = 2**_STEP_BITS
# Costs and potentials are doubles in CBC, exact up to here.
_EXACT = 2**53


class PulpCbc:
    """Linear programs by CBC's simplex code.

    Examples
    --------
    Maximise x + 2 y with x + y <= 4, y <= 3: one more unit on the first row gains 1.

    >>> program = LinearProgram(
    ...     cost=np.array([-1.0, -2.0]), lower=np.zeros(2), upper=np.array([np.inf, 3.0]),
    ...     row_lower=np.array([-np.inf]), row_upper=np.array([4.0]),
    ...     rows=np.array([0, 0]), columns=np.array([0, 1]), values=np.ones(2),
    ... )
    >>> solution = PulpCbc().solve(program)
    >>> solution.x, solution.row_dual, solution.objective
    (array([1., 3.]), array([-1.]), -7.0)
    """

    name = "cbc"

    def solve(self, program: LinearProgram, time_limit_s: float | None = None) -> LinearSolution:
        """Return an optimal solution, see `LinearSolver.solve`."""
        stop_at_s = None if time_limit_s is None else time.monotonic() + time_limit_s
        scaled, unit = _scale_bounds(program)
        try:
            x, dual = run_cbc(scaled, stop_at_s)
        except (TimeLimitError, SolverUnavailableError):
            raise
        except (InfeasibleError, SolverError) as report:
            # CBC calls some unbounded programs infeasible, and gives up on some that are both.
            # Without costs the question has one answer: this run raises if there is no solution.
            run_cbc(replace(scaled, cost=np.zeros(program.n_columns)), stop_at_s)
            if isinstance(report, SolverError):
                raise
            raise SolverError(
                "cbc: the linear program is unbounded; bound its variables"
            ) from report
        try:
            _check_optimum(scaled, x, dual)
        except SolverError:
            x, dual = run_cbc(scaled, stop_at_s, tight=True)
            _check_optimum(scaled, x, dual)
        x *= unit
        return LinearSolution(x, dual, float(program.cost @ x), self.name)


class PulpFlow:
    """Network flows by linear programming with CBC.

    The matrix of a network is totally unimodular, so the vertex that the simplex method returns
    is integral. Doubles do not hold capacities beyond 2**53, so such flows are found in steps:
    first in units of a power of two that leaves 30 bits, then corrected in finer units, as in
    capacity scaling (Edmonds and Karp, 1972). The result is proved optimal in integers: by a
    minimum cut, or by node potentials.

    Examples
    --------
    >>> network = FlowNetwork(
    ...     3, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([5, 4, 3]), np.array([1, 9, 1])
    ... )
    >>> PulpFlow().max_flow(network, 0, 2)
    array([3, 4, 3])
    >>> PulpFlow().min_cost_flow(network, np.array([4, 0, -4]))
    array([3, 1, 3])
    """

    name = "pulp"

    def max_flow(self, network: FlowNetwork, source: int, sink: int) -> IntArray:
        """Return a maximum flow, see `FlowSolver.max_flow`."""
        check_terminals(network, source, sink)
        leaves, arrives = network.tail == source, network.head == sink
        # No arc needs more than what any cut could carry.
        limit = min(int(network.capacity[leaves].sum()), int(network.capacity[arrives].sum()))
        if limit == 0:
            return np.zeros(network.n_arcs, dtype=np.int64)
        gain = leaves.astype(np.int64) - (network.head == source)
        balanced = np.ones(network.n_nodes, dtype=bool)
        balanced[[source, sink]] = False
        task = _Task(network, np.minimum(network.capacity, limit), -gain, balanced)
        flow, _ = _improve(task, np.zeros(network.n_arcs, dtype=np.int64))
        if source_side(network, flow, source)[sink]:
            raise SolverError("cbc: the flow found is not maximal; choose 'ortools'")
        return flow

    def min_cost_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """Return the cheapest flow, see `FlowSolver.min_cost_flow`."""
        cost = check_supply(network, supply).astype(np.int64)
        if not supply.any():
            return np.zeros(network.n_arcs, dtype=np.int64)
        if network.n_arcs and int(cost.max()) * network.n_nodes >= _EXACT:
            raise SolverError(
                f"cbc: costs up to {cost.max()} on {network.n_nodes} nodes must stay below "
                "2**53 / n_nodes; count costs in larger units or choose 'ortools'"
            )
        flow = self._feasible_flow(network, supply)
        total = int(np.maximum(supply, 0).sum())
        # An optimal flow without cycles carries at most the whole supply on an arc.
        capacity = np.minimum(network.capacity, total)
        task = _Task(network, capacity, cost, np.ones(network.n_nodes, dtype=bool))
        flow, potential = _improve(task, flow)
        if not _proves_optimal(network, cost, flow, potential):
            raise SolverError("cbc: the flow found is not the cheapest; choose 'ortools'")
        return flow

    def _feasible_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """Return a flow that meets the supplies: from a super-source to a super-sink."""
        enters, exits = np.flatnonzero(supply > 0), np.flatnonzero(supply < 0)
        source, sink = network.n_nodes, network.n_nodes + 1
        units = supply[enters].astype(np.int64)
        total = int(units.sum())
        extended = FlowNetwork(
            network.n_nodes + 2,
            np.concatenate([network.tail, np.full(len(enters), source), exits]),
            np.concatenate([network.head, enters, np.full(len(exits), sink)]),
            np.concatenate([np.minimum(network.capacity, total), units, -supply[exits]]),
        )
        flow = self.max_flow(extended, source, sink)
        if int(flow[extended.tail == source].sum()) < total:
            raise unmet_supply(supply)
        return flow[: network.n_arcs]


class _Task(NamedTuple):
    """A flow to improve: the cheapest that leaves as much as arrives at every balanced node."""

    network: FlowNetwork
    capacity: IntArray
    cost: IntArray
    balanced: BoolArray


def _improve(task: _Task, flow: IntArray) -> tuple[IntArray, IntArray]:
    """Return an optimal flow and node potentials, starting from a feasible flow.

    Each round solves a linear program for the best change of the flow in units of 2**shift, at
    most 2**30 of them per arc. A best change that nowhere reaches this artificial bound would be
    best without it, too; then a finer unit follows, until the unit is 1.
    """
    shift = max(0, int(task.capacity.max()).bit_length() - _STEP_BITS)
    while True:
        back, forth = flow >> shift, (task.capacity - flow) >> shift
        change, potential = _best_change(task, np.minimum(back, _STEP), np.minimum(forth, _STEP))
        flow = flow + (change << shift)
        held_back = ((change == _STEP) & (forth > _STEP)) | ((change == -_STEP) & (back > _STEP))
        # Python integers: the products may exceed 64 bits.
        if held_back.any() and sum(map(mul, task.cost.tolist(), change.tolist())) < 0:
            continue
        if shift == 0:
            return flow, potential
        # A few bits of room: the correction may be larger than the rounding that causes it.
        shift = max(0, shift - _STEP_BITS + 6)


def _best_change(task: _Task, back: IntArray, forth: IntArray) -> tuple[IntArray, IntArray]:
    """Return the cheapest change of a flow by -back ... forth units per arc, and potentials."""
    network, balanced = task.network, task.balanced
    row = np.cumsum(balanced) - 1
    arc = np.arange(network.n_arcs)
    nodes = np.concatenate([network.tail, network.head])
    kept = balanced[nodes]
    zeros = np.zeros(int(balanced.sum()))
    program = LinearProgram(
        cost=task.cost.astype(np.float64),
        lower=-back.astype(np.float64),
        upper=forth.astype(np.float64),
        row_lower=zeros,
        row_upper=zeros,
        rows=row[nodes[kept]],
        columns=np.concatenate([arc, arc])[kept],
        values=np.repeat([1.0, -1.0], network.n_arcs)[kept],
    )
    x, dual = run_cbc(program, None)
    change = np.rint(x).astype(np.int64)
    balance = np.zeros(network.n_nodes, dtype=np.int64)
    np.add.at(balance, network.tail, change)
    np.subtract.at(balance, network.head, change)
    if balance[balanced].any() or (change < -back).any() or (change > forth).any():
        raise SolverError("cbc returned a flow that is not integral; choose 'ortools'")
    potential = np.zeros(network.n_nodes, dtype=np.int64)
    potential[balanced] = np.rint(-dual).astype(np.int64)
    return change, potential


def _proves_optimal(
    network: FlowNetwork, cost: IntArray, flow: IntArray, potential: IntArray
) -> bool:
    """Tell whether no cycle in the residual network has negative cost.

    Bellman and Ford's rounds, started from the solver's potentials, which end them at once when
    they are right: potentials under which no residual arc is worth using prove optimality
    (Ahuja, Magnanti and Orlin, 1993, theorem 9.3).
    """
    forward, backward = flow < network.capacity, flow > 0
    tail = np.concatenate([network.tail[forward], network.head[backward]])
    head = np.concatenate([network.head[forward], network.tail[backward]])
    length = np.concatenate([cost[forward], -cost[backward]])
    for _ in range(network.n_nodes + 1):
        reached = potential[tail] + length
        better = reached < potential[head]
        if not better.any():
            return True
        np.minimum.at(potential, head[better], reached[better])
    return False


def _scale_bounds(program: LinearProgram) -> tuple[LinearProgram, float]:
    """Return the program in larger units of x, a power of two, if its bounds need that."""
    sides = (program.lower, program.upper, program.row_lower, program.row_upper)
    finite = [np.abs(side[np.isfinite(side)]) for side in sides]
    largest = max((float(side.max()) for side in finite if len(side)), default=0.0)
    if largest <= _LARGEST_BOUND:
        return program, 1.0
    unit = 2.0 ** math.ceil(math.log2(largest / _LARGEST_BOUND))
    smallest = min(float(side[side > 0].min(initial=math.inf)) for side in finite)
    if smallest / unit < _SMALLEST_BOUND:
        raise SolverError(
            f"cbc: bounds from {smallest:.3g} to {largest:.3g} are too far apart for its "
            "tolerances; make those that never bind infinite, or choose 'ortools'"
        )
    lower, upper, row_lower, row_upper = (side / unit for side in sides)
    scaled = replace(program, lower=lower, upper=upper, row_lower=row_lower, row_upper=row_upper)
    return scaled, unit


def _check_optimum(program: LinearProgram, x: FloatArray, dual: FloatArray) -> None:
    """Raise SolverError unless x is feasible and the dual values prove it optimal.

    Complementary slackness: where a row or a column has a price, it lies at its bound. Development
    versions of CBC (3.0, as PuLP 4 installs) turn rows of one entry into bounds and report 0 for
    them, which shows here.
    """
    reduced = program.cost - np.bincount(
        program.columns, program.values * dual[program.rows], program.n_columns
    )
    activity = np.bincount(program.rows, program.values * x[program.columns], program.n_rows)
    noise = 1e-6 * max(1.0, float(np.abs(program.cost).max(initial=0.0)))
    for price, value, lower, upper in (
        (reduced, x, program.lower, program.upper),
        (dual, activity, program.row_lower, program.row_upper),
    ):
        room = 1e-6 * np.maximum(1.0, np.abs(value))
        if (value < lower - room).any() or (value > upper + room).any():
            raise SolverError(
                "cbc: the solution violates the constraints; scale the numbers nearer to 1, or "
                "choose 'ortools'"
            )
        priced = np.abs(price) > noise
        bound = np.where(price > 0, lower, upper)
        if not (np.abs(value - bound) <= room)[priced].all():
            raise SolverError(
                "cbc: the dual values do not belong to the solution (known of CBC 3.0 "
                "development versions); choose 'ortools' or install CBC 2.10"
            )
