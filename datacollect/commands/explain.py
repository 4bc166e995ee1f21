"""The command ``datacollect explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.console import emit, emit_json, note, working
from datacollect.errors import ProblemError
from datacollect.options import Json, ProblemFile, Solver, SolverName


def explain(
    problem_file: ProblemFile,
    schedule_file: Annotated[
        str | None,
        typer.Argument(
            metavar="SCHEDULE", help="Schedule file, JSON or Parquet.", show_default=False
        ),
    ] = None,
    solver: SolverName = Solver.auto,
    as_json: Json = False,
) -> None:
    """Explain what binds when, and what to relax first.

    Also what limits each source. With a schedule, by any method: what binds in it, what to relax
    first for its method, what coordination would gain, and why it ends later than the lower bound.
    """
    from datacollect.explanation import explain as find_explanation
    from datacollect.files import read_problem, read_schedule

    if problem_file == schedule_file == "-":
        raise ProblemError("only one of PROBLEM and SCHEDULE can be standard input")
    with working("reading"):
        problem = read_problem(problem_file)
        plan = None if schedule_file is None else read_schedule(schedule_file)
    if plan is not None and plan.problem_sha256 != problem.sha256:
        note("note: this schedule was made for another problem, or the problem has changed since")
    with working("solving, and planning, with each constraint relaxed"):
        found = find_explanation(problem, plan, solver=solver.value)
    if as_json:
        emit_json(found.to_dict())
    else:
        emit(found.text)
