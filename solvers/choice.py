"""Choice of a solver: loaded by name, or the fastest that is installed.

``load_flow_solver(name)`` and ``load_linear_solver(name)`` import a solver on first use.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from functools import partial
from typing import TYPE_CHECKING, cast

from datacollect.errors import ProblemError, SolverUnavailableError, nearest_hint
from datacollect.files.refusals import refusal_of
from datacollect.installation import command_for_package, is_absent
from datacollect.leaving import interruption_behind
from datacollect.solvers.registry import (
    FLOW_BACKENDS,
    LINEAR_ALIASES,
    LINEAR_BACKENDS,
    MIN_COST_ORDER,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt

    from datacollect.solvers.lemon import LemonRestarts
    from datacollect.solvers.networks import FlowSolver
    from datacollect.solvers.programs import LinearSolver
    from datacollect.solvers.registry import Backend


# What is asked for where none is installed, so that the message says how to install it.
_FIRST_LINEAR = tuple(LINEAR_BACKENDS)[:1]


def available_flow_solvers() -> tuple[str, ...]:
    """Return the names of the installed flow solvers, fastest for maximum flows first.

    >>> "ortools" in available_flow_solvers()
    True
    """
    return _installed(FLOW_BACKENDS)


def available_linear_solvers() -> tuple[str, ...]:
    """Return the names of the installed linear solvers, fastest first.

    >>> "ortools" in available_linear_solvers()
    True
    """
    return _installed(LINEAR_BACKENDS)


def load_flow_solver(name: str = "auto", time_limit_s: float | None = None) -> FlowSolver:
    """Import a flow solver and return it.

    Parameters
    ----------
    name : str
        Of `FLOW_BACKENDS`; ``"auto"`` takes the fastest installed solver for each task, and another
        where that fails.
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
    _check_name(name, ("auto", *FLOW_BACKENDS), "flow solver")
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
        others = [partial(load_flow_solver, each) for each in FLOW_BACKENDS]
        return AutoFlow(first, second, others)
    return cast("FlowSolver", _load(name, FLOW_BACKENDS[name]))


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
    names = _auto_flow_names() if name == "auto" else (name,)
    found = next((FLOW_BACKENDS[each] for each in names if FLOW_BACKENDS[each].restarts), None)
    if found is None:
        return None
    try:
        module = importlib.import_module(f"datacollect.solvers.{found.module}")
    except ImportError:
        return None  # who plans goes on without; where it is asked for by name, that is said
    return cast("LemonRestarts", getattr(module, found.restarts)(n_nodes, tail, head))


def load_linear_solver(name: str = "auto") -> LinearSolver:
    """Import a solver of linear programs and return it.

    Parameters
    ----------
    name : str
        Of `LINEAR_BACKENDS`, or what its solver calls itself, such as ``"glop"``; ``"auto"`` takes
        the fastest that is installed, and the next where that fails.

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
    >>> load_linear_solver("lemon")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    datacollect.errors.SolverUnavailableError: solver 'lemon' solves network flows only; ...
    """
    known = ("auto", *FLOW_BACKENDS, *LINEAR_ALIASES)
    _check_name(name, known, "linear solver")
    name = LINEAR_ALIASES.get(name, name)
    names = (available_linear_solvers() or _FIRST_LINEAR) if name == "auto" else (name,)
    for each in names:
        if each not in LINEAR_BACKENDS:
            raise SolverUnavailableError(
                f"solver {each!r} solves network flows only; this problem has shared bottlenecks, "
                f"which need a linear program: choose {' or '.join(map(repr, LINEAR_BACKENDS))}"
            )
    from datacollect.solvers.auto import AutoLinear

    return AutoLinear([partial(_load_linear, each) for each in names])


def _load_linear(name: str) -> LinearSolver:
    return cast("LinearSolver", _load(name, LINEAR_BACKENDS[name]))


def auto_flow_name() -> str:
    """Return the name that ``load_flow_solver("auto")`` has, without importing a solver.

    >>> auto_flow_name() in ("ortools", "ortools+lemon")
    True
    """
    return "+".join(dict.fromkeys(_auto_flow_names()))


def takes_large_networks(name: str) -> bool:
    """Return whether some solver of a name soon finds cheapest flows on large networks.

    >>> takes_large_networks("ortools+lemon"), takes_large_networks("ortools")
    (True, False)
    """
    backends = map(FLOW_BACKENDS.get, name.split("+"))
    return any(backend.takes_large_networks for backend in backends if backend is not None)


def _auto_flow_names() -> tuple[str, str]:
    fastest = _first_found(FLOW_BACKENDS, FLOW_BACKENDS)
    cheapest = _first_found(FLOW_BACKENDS, MIN_COST_ORDER)
    if fastest is None or cheapest is None:
        command = command_for_package(next(iter(FLOW_BACKENDS.values())).package)
        raise SolverUnavailableError(f"no flow solver is installed: {command}")
    return fastest, cheapest


def _installed(backends: dict[str, Backend]) -> tuple[str, ...]:
    return tuple(name for name, backend in backends.items() if _is_there(backend.package))


def _is_there(package: str) -> bool:
    # find_spec looks for the package without importing it: this must stay fast.
    return bool(importlib.util.find_spec(package))


# Packages that were found, and by whom: to look takes long, and every plan asks.
_found: set[tuple[object, str]] = set()


def _first_found(backends: dict[str, Backend], order: Iterable[str]) -> str | None:
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


def _load(name: str, backend: Backend) -> object:
    try:
        module = importlib.import_module(f"datacollect.solvers.{backend.module}")
    except ImportError as error:
        if interruption_behind(error) is not None:
            raise KeyboardInterrupt from error
        raise SolverUnavailableError(f"solver {name!r} {_why_not(error, backend)}") from error
    return getattr(module, backend.class_name)()


def _why_not(error: ImportError, backend: Backend) -> str:
    package = backend.package
    if is_absent(error, package):
        command = command_for_package(package)
        return f"needs the package {package}, which is not installed; install it with: {command}"
    reason, remedy = refusal_of(error)
    return (
        f"cannot load the package {package}, which is installed: {reason}; "
        f"{remedy or 'fix that, or choose another solver'}"
    )
