"""The command ``datacollect plan``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from datacollect.commands.certainty import certainty_asked, require_drawn
from datacollect.commands.console import emit_json, working
from datacollect.commands.inputs import require_kept
from datacollect.commands.method_options import PlanMethod, fitting, options_asked, taking
from datacollect.commands.options import (
    Force,
    Json,
    ProblemFile,
    Samples,
    Scenarios,
    ScheduleOutput,
    Seed,
    require_new,
    require_schedule_name,
)
from datacollect.commands.reading import clock_times, read_problem

PlanStart = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="WHEN",
        help='Clock time of 0 s, instead of what the problem says, such as 20:00 or "Sun 20:00".',
    ),
]


@taking("plan", after="method")
def plan(
    problem_file: ProblemFile,
    method: PlanMethod = "coordinated",
    samples: Samples = None,
    scenarios: Scenarios = None,
    seed: Seed = None,
    start: PlanStart = None,
    output: ScheduleOutput = None,
    force: Force = False,
    as_json: Json = False,
    **asked: Any,
) -> None:
    """Say how long a collection takes and why, and write the schedule."""
    from datacollect.methods.choice import plan as plan_by
    from datacollect.methods.finishing.recurring import planned_to_the_end
    from datacollect.methods.warnings import plan_warnings

    require_drawn(samples, scenarios, seed)
    given = fitting(method, asked)
    require_schedule_name(output)
    require_kept(output, problem_file)
    require_new(output, force=force)
    problem = read_problem(problem_file, start)
    options = options_asked(method, given, problem)
    with working("planning"):
        problem, schedule = planned_to_the_end(
            problem,
            lambda given: plan_by(given, options),
            # Until a deadline there may be a cheaper plan than one that ends with what is listed.
            lambda found: max(found.makespan_s, found.deadline_s or 0.0),
        )
    clock = problem.clock
    if clock is not None and (clock.is_next or start is not None):
        # Whoever reads both later is to count from the same instant.
        schedule = schedule.replace(starts_at=clock.iso(0))
    certainty = certainty_asked(problem, schedule, samples, scenarios, seed)
    if output is not None:
        schedule.to_file(output)
    from datacollect.methods.prediction import predictions
    from datacollect.schedule.data.use import plan_money
    from datacollect.schedule.summary import assumptions_tree, summary

    money = plan_money(problem, schedule)
    found = predictions(problem, schedule)
    if as_json:
        said = {
            **clock_times(problem, schedule.makespan_s),
            "missing": plan_warnings(problem, schedule),
            "assumptions": assumptions_tree(schedule),
        }
        likely = {name: one._asdict() for name, one in found.items()}
        if certainty is not None:
            said["certainty"] = certainty.to_dict()
        tree = {**summary(schedule, money), **said}
        emit_json({**tree, "predictions": likely} if likely else tree)
    else:
        from datacollect.commands.answers import show_plan

        show_plan(schedule, output, money, problem, found, certainty)
        if output is not None:
            from datacollect.commands.console import note_text
            from datacollect.commands.plan_for_scripts import needs_of_scripts

            for text in needs_of_scripts(problem, schedule):
                note_text(f"note: {text}")
