"""Solver `auto`: the fastest for each task, and the next one where it fails."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, TypeVar

from datacollect.errors import SolverError, SolverUnavailableError, TimeLimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.numbers.arrays import IntArray
    from datacollect.solvers.networks import FlowNetwork, FlowSolver
    from datacollect.solvers.programs import LinearProgram, LinearSolution, LinearSolver

Solver = TypeVar("Solver", bound="FlowSolver | LinearSolver")
Answer = TypeVar("Answer")


class AutoFlow:
    """The fastest installed solver for each of the two tasks; where it fails, the others.

    OR-Tools' push-relabel code is the fastest for maximum flows, LEMON's network simplex for
    minimum-cost flows: 2 to 20 times faster than OR-Tools' cost scaling on time-expanded graphs.

    Parameters
    ----------
    max_flow_solver, min_cost_solver : FlowSolver
    others : sequence of callable
        Each loads a solver to fall back to.
    """

    def __init__(
        self,
        max_flow_solver: FlowSolver,
        min_cost_solver: FlowSolver,
        others: Sequence[Callable[[], FlowSolver]] = (),
    ) -> None:
        self._max_flow = _InTurn((lambda: max_flow_solver, *others))
        self._min_cost = _InTurn((lambda: min_cost_solver, *others))

    @property
    def name(self) -> str:
        """Return what is used, for example ``"ortools+lemon"``, and what has stepped in."""
        return "+".join(dict.fromkeys((*self._max_flow.names, *self._min_cost.names)))

    def max_flow(self, network: FlowNetwork, source: int, sink: int) -> IntArray:
        """See `FlowSolver.max_flow`."""
        return self._max_flow.answer(lambda solver: solver.max_flow(network, source, sink))

    def min_cost_flow(self, network: FlowNetwork, supply: IntArray) -> IntArray:
        """See `FlowSolver.min_cost_flow`."""
        return self._min_cost.answer(lambda solver: solver.min_cost_flow(network, supply))


class AutoLinear:
    """The fastest installed solver of linear programs; where it fails, the next.

    Parameters
    ----------
    solvers : sequence of callable
        Each loads a solver; the first is loaded at once.
    """

    def __init__(self, solvers: Sequence[Callable[[], LinearSolver]]) -> None:
        self._in_turn = _InTurn(solvers)

    @property
    def name(self) -> str:
        """Return what is used, for example ``"glop"``; ``"glop+cbc"`` where another has stepped in.

        Another algorithm of the same solver counts as another.
        """
        return "+".join(self._in_turn.names)

    def solve(self, program: LinearProgram, time_limit_s: float | None = None) -> LinearSolution:
        """Return an optimal solution, see `LinearSolver.solve`."""
        stop_at_s = None if time_limit_s is None else time.monotonic() + time_limit_s

        def ask(solver: LinearSolver) -> LinearSolution:
            left_s = None if stop_at_s is None else max(stop_at_s - time.monotonic(), 0.0)
            return solver.solve(program, left_s)

        found = self._in_turn.answer(ask)
        self._in_turn.note(found.found_by)
        return found


class _InTurn(Generic[Solver]):
    """Solvers that are asked one after another, until one answers.

    `names` are of those that have answered, or of the first.
    """

    def __init__(self, loaders: Sequence[Callable[[], Solver]]) -> None:
        self._loaders = list(loaders)
        self._loaded: dict[int, Solver] = {}
        self.names: list[str] = [self._solver(0).name]

    def answer(self, ask: Callable[[Solver], Answer]) -> Answer:
        failures: list[str] = []
        asked: set[str] = set()
        for number in range(len(self._loaders)):
            try:
                solver = self._solver(number)
                if solver.name in asked:
                    continue
                asked.add(solver.name)
                found = ask(solver)
            except TimeLimitError:
                raise
            except SolverUnavailableError:
                continue
            except SolverError as error:
                failures.append(str(error))
                continue
            self.note(solver.name)
            return found
        if len(failures) == 1:
            raise SolverError(failures[0])
        raise SolverError(f"every solver that is installed failed: {'; '.join(failures)}")

    def note(self, name: str) -> None:
        """Remember who has answered, or how."""
        if name not in self.names:
            self.names.append(name)

    def _solver(self, number: int) -> Solver:
        """Return a solver, imported when it is first asked."""
        if number not in self._loaded:
            self._loaded[number] = self._loaders[number]()
        return self._loaded[number]
