"""The command ``datacollect explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.certainty import certainty_asked, require_drawn, show_certainty
from datacollect.commands.console import emit, emit_json, working
from datacollect.commands.options import (
    Json,
    ProblemFile,
    Samples,
    Scenarios,
    Seed,
    SolverName,
)
from datacollect.commands.reading import read_both, read_problem

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver


def explain(
    problem_file: ProblemFile,
    schedule_file: Annotated[
        str | None,
        typer.Argument(
            metavar="SCHEDULE", help="Schedule file, JSON or Parquet.", show_default=False
        ),
    ] = None,
    solver: SolverName = "auto",
    samples: Samples = None,
    scenarios: Scenarios = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Explain what binds when, and what to relax first.

    Also what limits each source. With a schedule, by any method: what binds in it, what to relax
    first for its method, what coordination would gain, and why it ends later than the lower bound.
    """
    from datacollect.explanation.explain import explain as find_explanation
    from datacollect.methods.finishing.recurring import planned_to_the_end

    require_drawn(samples, scenarios, seed)
    if schedule_file is None:
        problem, plan = read_problem(problem_file), None
    else:
        problem, plan = read_both(problem_file, schedule_file)
    with working("solving, and planning, with each constraint relaxed"):
        _, found = planned_to_the_end(
            problem,
            lambda given: find_explanation(given, plan, solver=solver),
            # Periods of a schedule's problem are listed as they were when it was made.
            lambda found: found.lower_bound_s if plan is None else 0.0,
        )
    certainty = None
    if samples is not None or scenarios is not None:
        problem, plan = _planned(problem, plan, solver)
        certainty = certainty_asked(problem, plan, samples, scenarios, seed, costs=True)
    if as_json:
        tree = found.to_dict()
        emit_json(tree if certainty is None else {**tree, "certainty": certainty.to_dict()})
        return
    emit(found.text)
    if certainty is not None:
        emit("")
        show_certainty(certainty)


def _planned(problem: Problem, plan: Schedule | None, solver: Solver) -> tuple[Problem, Schedule]:
    """Return a plan of which to say how certain it is: that which was given, or coordinated's."""
    from datacollect.methods.coordinated.coordinated import coordinated
    from datacollect.methods.finishing.recurring import planned_to_the_end

    if plan is None:
        return planned_to_the_end(
            problem, lambda given: coordinated(given, solver=solver), lambda found: found.makespan_s
        )
    return problem.until(plan.makespan_s), plan
