"""Inputs and outputs that several commands share: problems, their schedules, texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.commands.console import emit, note, working
from datacollect.commands.instants import local_zone, start_text
from datacollect.commands.next_steps import while_reading
from datacollect.commands.options import require_one_standard_input

if TYPE_CHECKING:
    from pathlib import Path

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


# So many times the days of recurring periods are doubled to find those of a schedule.
FURTHER = 12


def read_problem(path: str, start: str | None = None) -> Problem:
    """Read a problem, showing that something is going on.

    Parameters
    ----------
    path : str
    start : str, optional
        When it starts, instead of what it says: a clock time, or as people say it.
    """
    from datacollect.files.documents import document_name
    from datacollect.problem.fields import PROBLEM
    from datacollect.problem.problem import Problem

    def starting(tree: Any, folder: Path) -> Problem:
        if start is not None and isinstance(tree, dict):
            zone = tree.get("timezone")
            tree = {
                **tree,
                "start": start_text(start, zone if isinstance(zone, str) else local_zone()),
            }
        return Problem.from_dict(tree, folder)

    with working(f"reading {document_name(path)}"), while_reading():
        return Problem.from_file(path) if start is None else PROBLEM.from_file(path, starting)


def read_schedule(path: str) -> Schedule:
    """Read a schedule, showing that something is going on."""
    from datacollect.files.documents import document_name
    from datacollect.schedule.schedule import Schedule

    with working(f"reading {document_name(path)}"), while_reading():
        return Schedule.from_file(path)


def read_both(problem_file: str, schedule_file: str) -> tuple[Problem, Schedule]:
    """Read a problem and a schedule; note where they do not belong together."""
    require_one_standard_input({"PROBLEM": problem_file, "SCHEDULE": schedule_file})
    schedule = read_schedule(schedule_file)
    problem = planned_problem(read_problem(problem_file, schedule.starts_at), schedule)
    note_another_problem(problem, schedule)
    return problem, schedule


def planned_problem(problem: Problem, schedule: Schedule) -> Problem:
    """Return the problem with daily periods listed as far as when the schedule was made."""
    listed = problem
    for _ in range(FURTHER):
        if listed.daily is None or listed.daily.windows:
            break  # with windows the hash is that of the hours, however far they are listed
        if listed.sha256 == schedule.problem_sha256:
            return listed
        listed = listed.until(2 * listed.daily.until_s)
    return problem.until(schedule.makespan_s)


def clock_times(problem: Problem, end_s: float) -> dict[str, str]:
    """Return for JSON what clocks show at the start and the end; nothing without a start."""
    if problem.clock is None:
        return {}
    return {"starts_at": problem.clock.iso(0), "ends_at": problem.clock.iso(end_s)}


def note_another_problem(problem: Problem, schedule: Schedule) -> None:
    """Say so where the schedule was not made for this problem."""
    if schedule.problem_sha256 != problem.sha256:
        note("note: this schedule was made for another problem, or the problem has changed since")


def write_text(text: str, path: str | None) -> None:
    """Write a text to a file, or to standard output."""
    if path is None:
        emit(text)
        return
    from datacollect.files.documents import write_atomically

    write_atomically(path, f"{text}\n".encode())
    note(f"saved to {path}")
