"""Which solver does it: loaded by name, or the fastest that is installed.

``load_flow_solver(name)`` and ``load_linear_solver(name)`` import a solver on first use.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from datacollect.errors import ProblemError, SolverUnavailableError, nearest_hint
from datacollect.files.refusals import refusal_of
from datacollect.installation import command_for_package, is_absent
from datacollect.leaving import interruption_behind

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt

    from datacollect.solvers.lemon import LemonRestarts
    from datacollect.solvers.networks import FlowSolver
    from datacollect.solvers.programs import LinearSolver


class _Backend(NamedTuple):
    """Where a solver lives: imported on first use only."""

    module: str
    class_name: str
    package: str


# Fastest first, as measured for maximum flows on full meshes.
_FLOW_BACKENDS = {
    "ortools": _Backend("ortools", "OrToolsFlow", "ortools"),
    "lemon": _Backend("lemon", "LemonFlow", "pylmcf"),
    "networkx": _Backend("networkx", "NetworkxFlow", "networkx"),
    "pulp": _Backend("pulp", "PulpFlow", "pulp"),
}
_MIN_COST_ORDER = ("lemon", "ortools", "networkx", "pulp")

_LINEAR_BACKENDS = {
    "ortools": _Backend("glop", "Glop", "ortools"),
    "pulp": _Backend("pulp", "PulpCbc", "pulp"),
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
        ``"auto"`` takes the fastest installed solver for each task, and another where that fails.
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
    >>> from datacollect.solvers.networks import FlowNetwork
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

        answering = auto_flow_name() if name == "auto" else name
        return TimeLimitedFlow(name, time.monotonic() + time_limit_s, answering)
    if name == "auto":
        from datacollect.solvers.auto import AutoFlow

        first, second = (load_flow_solver(each) for each in _auto_flow_names())
        # Which of them are installed is asked only where the first fails: to look takes long.
        others = [partial(load_flow_solver, each) for each in _FLOW_BACKENDS]
        return AutoFlow(first, second, others)
    return cast("FlowSolver", _load(name, _FLOW_BACKENDS[name]))


def load_restarts(
    name: str, n_nodes: int, tail: npt.NDArray[np.integer], head: npt.NDArray[np.integer]
) -> LemonRestarts | None:
    """Return what finds cheapest flows on one network over and over; None where that is not there.

    Parameters
    ----------
    name : str
        As for `load_flow_solver`.
    n_nodes : int
    tail, head : ndarray of int, shape (n_arcs,)
    """
    if name not in ("auto", "lemon"):
        return None
    try:
        from datacollect.solvers.lemon import LemonRestarts
    except ImportError:
        return None
    return LemonRestarts(n_nodes, tail, head)


def load_linear_solver(name: str = "auto") -> LinearSolver:
    """Import a solver of linear programs and return it.

    Parameters
    ----------
    name : {"auto", "ortools", "pulp"}
        ``"ortools"`` is GLOP, ``"pulp"`` is CBC; ``"glop"`` and ``"cbc"`` mean the same. ``"auto"``
        takes the fastest that is installed, and the next where that fails.

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
    names = (available_linear_solvers() or ("ortools",)) if name == "auto" else (name,)
    for each in names:
        if each not in _LINEAR_BACKENDS:
            raise SolverUnavailableError(
                f"solver {each!r} solves network flows only; this problem has shared bottlenecks, "
                "which need a linear program: choose 'ortools' or 'pulp'"
            )
    from datacollect.solvers.auto import AutoLinear

    return AutoLinear([partial(_load_linear, each) for each in names])


def _load_linear(name: str) -> LinearSolver:
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
        command = command_for_package("ortools")
        raise SolverUnavailableError(f"no flow solver is installed: {command}")
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
        if interruption_behind(error) is not None:
            raise KeyboardInterrupt from error
        raise SolverUnavailableError(f"solver {name!r} {_why_not(error, backend)}") from error
    return getattr(module, backend.class_name)()


def _why_not(error: ImportError, backend: _Backend) -> str:
    package = backend.package
    if is_absent(error, package):
        command = command_for_package(package)
        return f"needs the package {package}, which is not installed; install it with: {command}"
    reason, remedy = refusal_of(error)
    return (
        f"cannot load the package {package}, which is installed: {reason}; "
        f"{remedy or 'mend that, or choose another solver'}"
    )
