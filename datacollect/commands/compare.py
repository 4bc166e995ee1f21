"""The command ``datacollect compare``."""

from __future__ import annotations

from typing import Any

from datacollect.commands.certainty import compared_asked, compared_tree, require_drawn
from datacollect.commands.console import emit_json, working
from datacollect.commands.method_options import taking
from datacollect.commands.options import (
    Json,
    ProblemFile,
    Samples,
    Scenarios,
    Seed,
    require_at_most_one,
)
from datacollect.commands.reading import clock_times, read_problem


@taking("compare", after="problem_file")
def compare(
    problem_file: ProblemFile,
    samples: Samples = None,
    scenarios: Scenarios = None,
    seed: Seed = None,
    as_json: Json = False,
    **asked: Any,
) -> None:
    """Compare all methods and the lower bound, and say what binds."""
    from datacollect.methods.comparison import compare as compare_methods
    from datacollect.methods.finishing.recurring import planned_to_the_end
    from datacollect.methods.warnings import plan_warnings

    require_drawn(samples, scenarios, seed)
    require_at_most_one({"--slot": asked["slot_s"], "--chunk": asked["chunk_s"]})
    given = {name: value for name, value in asked.items() if value is not None}
    problem = read_problem(problem_file)
    with working("planning with every method"):
        problem, found = planned_to_the_end(
            problem,
            lambda each: compare_methods(each, **given),
            lambda found: max((plan.makespan_s for plan in found.schedules.values()), default=0.0),
        )
    certainty = compared_asked(problem, found.schedules, samples, scenarios, seed)
    if as_json:
        tree = found.to_dict()
        for name, answer in tree["methods"].items():
            if certainty is not None:
                answer["certainty"] = compared_tree(certainty, name)
            if name in found.schedules:
                answer |= clock_times(problem, found.schedules[name].makespan_s)
        tree["missing"] = plan_warnings(problem, found.advised)
        emit_json(tree)
    else:
        from datacollect.commands.answers import show_comparison

        show_comparison(found, problem, certainty)
