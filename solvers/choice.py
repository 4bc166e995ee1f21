"""Network flows and linear programs: plain data, and the protocols that solvers follow.

A flow solver sees nodes, arcs and whole numbers, a linear solver rows and columns; neither
knows hosts or time. That makes solvers interchangeable and easy to test against each other.

``load_flow_solver(name)`` and ``load_linear_solver(name)`` import a solver on first use.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError, SolverUnavailableError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Iterable

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Sums of capacities at a node must stay below this, or 64-bit solvers overflow.
CAPACITY_SUM_LIMIT = 2**62


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
    """What a flow solver offers. Instances keep no state between calls: threads may share one."""

    name: str

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


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise ``cost @ x`` with ``row_lower <= A x <= row_upper`` and ``lower <= x <= upper``.

    Attributes
    ----------
    cost, lower, upper : ndarray of float, shape (n_columns,)
        Bounds may be infinite.
    row_lower, row_upper : ndarray of float, shape (n_rows,)
        Equal for an equation; infinite where a side is open.
    rows, columns, values : ndarray, shape (n_entries,)
        The matrix A by its entries; no pair (row, column) twice.
    """

    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    rows: IntArray
    columns: IntArray
    values: FloatArray

    @property
    def n_columns(self) -> int:
        """Number of variables."""
        return len(self.cost)

    @property
    def n_rows(self) -> int:
        """Number of constraints."""
        return len(self.row_lower)


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """An optimum: values per column, dual value per row (d objective / d right-hand side)."""

    x: FloatArray
    row_dual: FloatArray
    objective: float


class LinearSolver(Protocol):
    """What a linear solver offers. Instances keep no state between calls."""

    name: str

    def solve(self, program: LinearProgram, time_limit_s: float | None = None) -> LinearSolution:
        """Return an optimal solution.

        Raises
        ------
        InfeasibleError
            No x satisfies the constraints.
        TimeLimitError
            `time_limit_s` passed first.
        SolverError
            Any other end than an optimum (unbounded, numerical trouble).
        """
        ...


def source_side(network: FlowNetwork, flow: IntArray, source: int) -> BoolArray:
    """Mark the nodes that `source` still reaches in the residual network of `flow`.

    After a maximum flow this is the source's side of a minimum cut (Ford and Fulkerson, 1956).
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    forward = flow < network.capacity
    backward = flow > 0
    tail = np.concatenate([network.tail[forward], network.head[backward]])
    head = np.concatenate([network.head[forward], network.tail[backward]])
    residual = csr_array(
        (np.ones(len(tail), dtype=np.int8), (tail, head)), shape=(network.n_nodes, network.n_nodes)
    )
    reached = np.zeros(network.n_nodes, dtype=bool)
    reached[breadth_first_order(residual, source, return_predecessors=False)] = True
    return reached


class _Backend(NamedTuple):
    """Where a solver lives: imported on first use only."""

    module: str
    class_name: str
    package: str
    install: str


# Fastest first, as measured for maximum flows on full meshes.
_FLOW_BACKENDS = {
    "ortools": _Backend("ortools", "OrToolsFlow", "ortools", "pip install ortools"),
    "lemon": _Backend("lemon", "LemonFlow", "pylmcf", "pip install 'datacollect[fast]'"),
    "networkx": _Backend("networkx", "NetworkxFlow", "networkx", "pip install networkx"),
    "pulp": _Backend("pulp", "PulpFlow", "pulp", "pip install pulp"),
}
_MIN_COST_ORDER = ("lemon", "ortools", "networkx", "pulp")

_LINEAR_BACKENDS = {
    "ortools": _Backend("glop", "Glop", "ortools", "pip install ortools"),
    "pulp": _Backend("pulp", "PulpCbc", "pulp", "pip install pulp"),
}
# The names that linear solvers give themselves.
_LINEAR_ALIASES = {"glop": "ortools", "cbc": "pulp"}


def available_flow_solvers() -> tuple[str, ...]:
    """Return the names of the installed flow solvers, fastest for maximum flows first.

    >>> "ortools" in available_flow_solvers()
    True
    """
    return _installed(_FLOW_BACKENDS)


def available_linear_solvers() -> tuple[str, ...]:
    """Return the names of the installed linear solvers, fastest first.

    >>> "ortools" in available_linear_solvers()
    True
    """
    return _installed(_LINEAR_BACKENDS)


def load_flow_solver(name: str = "auto", time_limit_s: float | None = None) -> FlowSolver:
    """Import a flow solver and return it.

    Parameters
    ----------
    name : {"auto", "ortools", "lemon", "networkx", "pulp"}
        ``"auto"`` takes the fastest installed solver for each task.
    time_limit_s : float, optional
        Seconds from now until all calls of the returned solver must have ended; a call that has
        not raises TimeLimitError. Costs about a fifth of a second, see
        `datacollect.solvers.limited`.

    Raises
    ------
    ProblemError
        The name is unknown or the limit is not positive.
    SolverUnavailableError
        The solver is not installed; the message holds the command that installs it.

    Examples
    --------
    Two routes from 0 to 2, one directly, one over 1:

    >>> import numpy as np
    >>> solver = load_flow_solver("ortools")
    >>> solver.max_flow(
    ...     FlowNetwork(3, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([5, 4, 3])), 0, 2
    ... )
    array([3, 4, 3])
    """
    _check_name(name, ("auto", *_FLOW_BACKENDS), "flow solver")
    if time_limit_s is not None and not time_limit_s > 0:
        raise ProblemError(f"time_limit_s must be > 0, got {time_limit_s}")
    if time_limit_s is not None and math.isfinite(time_limit_s):
        from datacollect.solvers.limited import TimeLimitedFlow

        return TimeLimitedFlow(name, time.monotonic() + time_limit_s)
    if name == "auto":
        from datacollect.solvers.auto import AutoFlow

        max_flow_name, min_cost_name = _auto_flow_names()
        return AutoFlow(load_flow_solver(max_flow_name), load_flow_solver(min_cost_name))
    return cast("FlowSolver", _load(name, _FLOW_BACKENDS[name]))


def load_linear_solver(name: str = "auto") -> LinearSolver:
    """Import a solver of linear programs and return it.

    Parameters
    ----------
    name : {"auto", "ortools", "pulp"}
        ``"ortools"`` is GLOP, ``"pulp"`` is CBC; ``"glop"`` and ``"cbc"`` mean the same.

    Raises
    ------
    ProblemError
        The name is unknown.
    SolverUnavailableError
        The solver is not installed, or solves network flows only.

    Examples
    --------
    >>> load_linear_solver("auto").name
    'glop'
    >>> load_linear_solver("lemon")
    Traceback (most recent call last):
    datacollect.errors.SolverUnavailableError: solver 'lemon' solves network flows only; this \
problem has shared bottlenecks, which need a linear program: choose 'ortools' or 'pulp'
    """
    known = ("auto", *_FLOW_BACKENDS, *_LINEAR_ALIASES)
    _check_name(name, known, "linear solver")
    name = _LINEAR_ALIASES.get(name, name)
    if name == "auto":
        name = _first_found(_LINEAR_BACKENDS, _LINEAR_BACKENDS) or "ortools"
    if name not in _LINEAR_BACKENDS:
        raise SolverUnavailableError(
            f"solver {name!r} solves network flows only; this problem has shared bottlenecks, "
            "which need a linear program: choose 'ortools' or 'pulp'"
        )
    return cast("LinearSolver", _load(name, _LINEAR_BACKENDS[name]))


def auto_flow_name() -> str:
    """Return the name that ``load_flow_solver("auto")`` has, without importing a solver.

    >>> auto_flow_name() in ("ortools", "ortools+lemon")
    True
    """
    return "+".join(dict.fromkeys(_auto_flow_names()))


def _auto_flow_names() -> tuple[str, str]:
    fastest = _first_found(_FLOW_BACKENDS, _FLOW_BACKENDS)
    cheapest = _first_found(_FLOW_BACKENDS, _MIN_COST_ORDER)
    if fastest is None or cheapest is None:
        raise SolverUnavailableError("no flow solver is installed: pip install ortools")
    return fastest, cheapest


def _installed(backends: dict[str, _Backend]) -> tuple[str, ...]:
    return tuple(name for name, backend in backends.items() if _is_there(backend.package))


def _is_there(package: str) -> bool:
    # find_spec looks for the package without importing it: this must stay fast.
    return bool(importlib.util.find_spec(package))


# Packages that were found, and by whom: to look takes long, and every plan asks.
_found: set[tuple[object, str]] = set()


def _first_found(backends: dict[str, _Backend], order: Iterable[str]) -> str | None:
    """Return the first solver that is installed, or was when it was first looked for."""
    for name in order:
        package = backends[name].package
        key = (importlib.util.find_spec, package)
        if key in _found or _is_there(package):
            _found.add(key)
            return name
    return None


def _check_name(name: str, known: tuple[str, ...], what: str) -> None:
    if name not in known:
        raise ProblemError(
            f"unknown {what} {name!r}{nearest_hint(name, known)} (known: {', '.join(known)})"
        )


def _load(name: str, backend: _Backend) -> object:
    try:
        module = importlib.import_module(f"datacollect.solvers.{backend.module}")
    except ImportError as error:
        raise SolverUnavailableError(
            f"solver {name!r} needs the package {backend.package}, which cannot be imported "
            f"({error}); install it with: {backend.install}"
        ) from error
    return getattr(module, backend.class_name)()
