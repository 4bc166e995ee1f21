"""The command ``datacollect explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import emit, emit_json, working
from datacollect.commands.options import Json, ProblemFile, SolverName
from datacollect.commands.reading import read_both, read_problem


def explain(
    problem_file: ProblemFile,
    schedule_file: Annotated[
        str | None,
        typer.Argument(
            metavar="SCHEDULE", help="Schedule file, JSON or Parquet.", show_default=False
        ),
    ] = None,
    solver: SolverName = "auto",
    as_json: Json = False,
) -> None:
    """Explain what binds when, and what to relax first.

    Also what limits each source. With a schedule, by any method: what binds in it, what to relax
    first for its method, what coordination would gain, and why it ends later than the lower bound.
    """
    from datacollect.explanation.explain import explain as find_explanation
    from datacollect.methods.finishing.recurring import planned_to_the_end

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
    if as_json:
        emit_json(found.to_dict())
    else:
        emit(found.text)
