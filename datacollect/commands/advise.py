"""The command ``datacollect advise``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.commands.console import emit, emit_json, emit_table, emit_text, working
from datacollect.commands.last_steps import note_steps_of_advice
from datacollect.commands.options import Json, ProblemFile, SolverName
from datacollect.commands.reading import read_problem

if TYPE_CHECKING:
    from datacollect.explanation.advisory import Advisory


def advise(problem_file: ProblemFile, solver: SolverName = "auto", as_json: Json = False) -> None:
    """Say how to collect: directly, over more connections, or over relays.

    By how much each is faster, and adaptive at best; what that takes for granted, and what to
    measure to be sure.
    """
    from datacollect.explanation.advise import advise as find_advice
    from datacollect.methods.finishing.recurring import planned_to_the_end

    problem = read_problem(problem_file)
    with working("planning with every method"):
        _, found = planned_to_the_end(
            problem,
            lambda given: find_advice(given, solver=solver),
            lambda found: max(way.makespan_s or 0.0 for way in found.ways),
        )
    if as_json:
        emit_json(found.to_dict())
        return
    _show(found)
    note_steps_of_advice(found.take, found.measure, {"problem_file": problem_file})


def _show(found: Advisory) -> None:
    """Show it on one screen: what to do, the ways, what they lean on, what to measure."""
    from datacollect.explanation.advisory import NOT_MEASURED

    if not found.is_measured:
        emit_text(NOT_MEASURED)
    emit_text(found.text)
    emit("")
    emit_table(("way", "end", "vs direct", "given that"), found.rows, "<>><")
    leaning = found.assumptions
    if leaning is not None and leaning.matter:
        emit("")
        for line in leaning.lines[:-1]:  # the last has the two numbers of the table
            emit_text(line)
    if found.measure:
        emit("")
        emit("To be sure, measure:")
        for line in found.measure:
            emit(f"  {line}")
    for text in found.notes:
        emit_text(f"Note: {text}.")
