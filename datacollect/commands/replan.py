"""The command ``datacollect replan``: a schedule for what remains of a collection."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit_json, note, working
from datacollect.commands.inputs import require_kept
from datacollect.commands.options import (
    Chunk,
    Force,
    Json,
    ProblemFile,
    ScheduleFile,
    ScheduleOutput,
    Slot,
    SolverName,
    TimeLimit,
    require_at_most_one,
    require_new,
    require_one_standard_input,
    require_schedule_name,
)
from datacollect.commands.reading import (
    clock_times,
    note_another_problem,
    planned_problem,
    read_problem,
    read_schedule,
)
from datacollect.errors import ProblemError, naming
from datacollect.files.choices import Preference

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.progress import Progress
    from datacollect.schedule.schedule import Schedule


def _not_negative(value: float) -> float:
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"must be a finite number >= 0, got {value:g}; 0.01 is 1 %")
    return value


def replan(
    problem_file: ProblemFile,
    schedule_file: ScheduleFile,
    progress_file: Annotated[
        str,
        typer.Argument(metavar="PROGRESS", help="Progress file: what lies where, what changed."),
    ],
    slot_s: Slot = None,
    chunk_s: Chunk = None,
    prefer: Annotated[
        Preference | None,
        typer.Option(
            "--prefer",
            help="Choose among the fastest as plan --prefer does, whatever the old schedule's "
            "links.",
        ),
    ] = None,
    stability: Annotated[
        float,
        typer.Option(
            "--stability",
            metavar="PART",
            callback=_not_negative,
            help="To keep to the old links, the rest may end later by at most this part of its "
            "duration.",
        ),
    ] = 0.01,
    solver: SolverName = "auto",
    time_limit_s: TimeLimit = None,
    output: ScheduleOutput = None,
    problem_output: Annotated[
        str | None,
        typer.Option(
            "--problem-output",
            metavar="FILE",
            help="Write the remaining problem, by which check judges the new schedule: .json.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Plan the rest of a collection, from where the data lie now.

    Time in the new schedule starts at the progress' instant.
    """
    from datacollect.methods.finishing.recurring import planned_to_the_end
    from datacollect.methods.replanning.replan import replan as plan_remaining
    from datacollect.schedule.data.use import plan_money
    from datacollect.schedule.progress import remaining_problem
    from datacollect.schedule.summary import summary

    require_at_most_one({"--slot": slot_s, "--chunk": chunk_s})
    inputs = (problem_file, schedule_file, progress_file)
    require_one_standard_input(dict(zip(("PROBLEM", "SCHEDULE", "PROGRESS"), inputs, strict=True)))
    require_schedule_name(output)
    require_kept(output, *inputs)
    require_kept(problem_output, *inputs, option="--problem-output")
    _require_problem_name(problem_output)
    require_new(output, force=force)
    require_new(problem_output, force=force)
    problem, plan, progress, remaining = _read(*inputs)
    with working("planning"):
        longer, schedule = planned_to_the_end(
            problem,
            lambda given: plan_remaining(
                given,
                plan,
                progress,
                slot_s=slot_s,
                chunk_s=chunk_s,
                prefer=prefer,
                stability=stability,
                solver=solver,
                time_limit_s=time_limit_s,
            ),
            lambda rest: progress.at_s + rest.makespan_s,
        )
    if longer is not problem:
        remaining = remaining_problem(longer, progress)
    if problem_output is not None:
        _write_problem(remaining, problem_file, problem_output)
    if output is not None:
        schedule.to_file(output)
    money = plan_money(remaining, schedule)
    if as_json:
        clocks = clock_times(remaining, schedule.makespan_s)
        emit_json({"at_s": progress.at_s, **summary(schedule, money), **clocks})
    else:
        from datacollect.commands.answers import show_plan

        show_plan(schedule, output, money, remaining)
        if output is not None and problem_output is None:
            note("note: --problem-output FILE writes the problem that the new schedule solves")


def _read(
    problem_file: str, schedule_file: str, progress_file: str
) -> tuple[Problem, Schedule, Progress, Problem]:
    from datacollect.files.documents import document_name
    from datacollect.schedule.progress import Progress, remaining_problem

    plan = read_schedule(schedule_file)
    problem = planned_problem(read_problem(problem_file, plan.starts_at), plan)
    with working(f"reading {document_name(progress_file)}"):
        progress = Progress.from_file(progress_file, problem)
        with naming(document_name(progress_file)):
            remaining = remaining_problem(problem, progress)
    note_another_problem(problem, plan)
    _note_lost(progress)
    return problem, plan, progress, remaining


def _note_lost(progress: Progress) -> None:
    """Say which data start again at their sources."""
    from datacollect.files.units import format_bytes

    lost: dict[tuple[str, str], int] = {}
    for held in progress.lost_data:
        lost[held.host, held.source] = lost.get((held.host, held.source), 0) + held.n_bytes
    for (host, source), n_bytes in lost.items():
        note(f"note: {format_bytes(n_bytes)} lost with {host!r} must be sent again from {source!r}")


def _require_problem_name(path: str | None) -> None:
    if path is not None and not path.lower().endswith(".json"):
        raise ProblemError(f"--problem-output must name a .json file, got {path!r}")


def _write_problem(problem: Problem, problem_file: str, path: str) -> None:
    """Write the problem that remains; its files are still those of the manifest before."""
    from datacollect.files.documents import read_tree, write_atomically

    tree = problem.to_dict()
    if problem.manifest is not None and problem_file != "-":
        manifest = Path(problem_file).parent / read_tree(problem_file)["manifest"]
        # Relative to the file that names it, which may lie elsewhere now.
        tree["manifest"] = os.path.relpath(manifest, Path(path).parent)
        tree["file_tolerance"] = problem.file_tolerance
    elif problem.manifest is not None:
        note(
            f"note: {path} names no manifest: the problem came from standard input, which has no "
            "folder"
        )
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=1)
    write_atomically(path, f"{text}\n".encode())
