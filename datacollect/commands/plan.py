"""The command ``datacollect plan``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit_json, working
from datacollect.commands.inputs import require_kept
from datacollect.commands.options import (
    AtATime,
    Chunk,
    Connections,
    Deadline,
    Derate,
    FinishName,
    Force,
    Json,
    MostTransfers,
    Order,
    PreferName,
    ProblemFile,
    ScheduleOutput,
    Slot,
    SolverName,
    TimeLimit,
    TimeSlot,
    deadline_seconds,
    require_fit,
    require_new,
    require_schedule_name,
    split_names,
)
from datacollect.commands.reading import clock_times, read_problem
from datacollect.files.choices import Method

if TYPE_CHECKING:
    from datacollect.methods.options.of_methods import MethodOptions


def plan(
    problem_file: ProblemFile,
    method: Annotated[Method, typer.Option("--method", help="Planning method.")] = ("coordinated"),
    slot_s: Slot = None,
    chunk_s: Chunk = None,
    solver: SolverName = "auto",
    prefer: PreferName = None,
    deadline: Deadline = None,
    finish: FinishName = None,
    time_limit_s: TimeLimit = None,
    order: Order = None,
    at_a_time: AtATime = None,
    time_slot_s: TimeSlot = None,
    derate: Derate = 1.0,
    most_transfers: MostTransfers = None,
    connections: Connections = None,
    output: ScheduleOutput = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Say how long a collection takes and why, and write the schedule."""
    from datacollect.methods.choice import plan as plan_by
    from datacollect.methods.finishing.recurring import planned_to_the_end
    from datacollect.methods.options.names import EARLY
    from datacollect.methods.options.of_methods import (
        BestPathOptions,
        CoordinatedOptions,
        DirectOptions,
    )
    from datacollect.methods.warnings import cautions

    turns = {"--order": order, "--at-a-time": at_a_time, "--time-slot": time_slot_s}
    shape, wishes = (
        {"--slot": slot_s, "--chunk": chunk_s},
        {
            "--prefer": prefer,
            "--deadline": deadline,
            "--finish": finish,
            "--most-transfers": most_transfers,
            "--connections": connections,
        },
    )
    require_fit(method, shape, turns, wishes, time_limit_s)
    require_schedule_name(output)
    require_kept(output, problem_file)
    require_new(output, force=force)
    problem = read_problem(problem_file)
    options: MethodOptions
    if method == "direct":
        options = DirectOptions(split_names(order), at_a_time, time_slot_s)
    elif method == "best-path":
        options = BestPathOptions(slot_s, chunk_s)
    else:
        options = CoordinatedOptions(
            slot_s,
            chunk_s,
            prefer,
            deadline_seconds(deadline, problem),
            time_limit_s=time_limit_s,
            finish=finish or EARLY,
            most_transfers=most_transfers,
            connections=connections,
        )
    options = replace(options, solver=solver, derate=derate)
    with working("planning"):
        problem, schedule = planned_to_the_end(
            problem,
            lambda given: plan_by(given, options),
            # Until a deadline there may be a cheaper plan than one that ends with what is listed.
            lambda found: max(found.makespan_s, found.deadline_s or 0.0),
        )
    if output is not None:
        schedule.to_file(output)
    from datacollect.methods.prediction import predictions
    from datacollect.schedule.data.use import plan_money
    from datacollect.schedule.summary import summary

    money = plan_money(problem, schedule)
    found = predictions(problem, schedule)
    if as_json:
        said = {**clock_times(problem, schedule.makespan_s), "missing": cautions(problem, schedule)}
        likely = {name: one._asdict() for name, one in found.items()}
        tree = {**summary(schedule, money), **said}
        emit_json({**tree, "predictions": likely} if likely else tree)
    else:
        from datacollect.commands.answers import show_plan

        show_plan(schedule, problem_file, output, money, problem, found)
