"""The command ``datacollect compare``."""

from __future__ import annotations

from datacollect.commands.console import emit_json, working
from datacollect.commands.options import (
    Chunk,
    Derate,
    FinishName,
    Json,
    ProblemFile,
    Slot,
    SolverName,
    TimeLimit,
    require_at_most_one,
)
from datacollect.commands.reading import clock_times, read_problem


def compare(
    problem_file: ProblemFile,
    slot_s: Slot = None,
    chunk_s: Chunk = None,
    finish: FinishName = None,
    solver: SolverName = "auto",
    time_limit_s: TimeLimit = None,
    derate: Derate = 1.0,
    as_json: Json = False,
) -> None:
    """Compare all methods and the lower bound, and say what binds."""
    from datacollect.methods.comparison import compare as compare_methods
    from datacollect.methods.finishing.recurring import planned_to_the_end
    from datacollect.methods.options.names import EARLY
    from datacollect.methods.warnings import cautions

    require_at_most_one({"--slot": slot_s, "--chunk": chunk_s})
    problem = read_problem(problem_file)
    with working("planning with every method"):
        problem, found = planned_to_the_end(
            problem,
            lambda given: compare_methods(
                given,
                slot_s=slot_s,
                chunk_s=chunk_s,
                finish=finish or EARLY,
                solver=solver,
                time_limit_s=time_limit_s,
                derate=derate,
            ),
            lambda found: max((plan.makespan_s for plan in found.schedules.values()), default=0.0),
        )
    if as_json:
        tree = found.to_dict()
        for name, answer in tree["methods"].items():
            if name in found.schedules:
                answer |= clock_times(problem, found.schedules[name].makespan_s)
        tree["missing"] = cautions(problem, found.advised)
        emit_json(tree)
    else:
        from datacollect.commands.answers import show_comparison

        show_comparison(found, problem)
