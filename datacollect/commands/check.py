"""The command ``datacollect check``."""

from __future__ import annotations

from datacollect.commands.console import emit, emit_json, working
from datacollect.commands.options import Json, ProblemFile, ScheduleFile
from datacollect.commands.reading import read_both
from datacollect.errors import ScheduleError


def check(problem_file: ProblemFile, schedule_file: ScheduleFile, as_json: Json = False) -> None:
    """Check a schedule.

    Exit code 0 if it is valid; else 1, and the first rule that it breaks: what, where, when and
    by how much.
    """
    from datacollect.commands.answers import bound_ratio, files_text
    from datacollect.files.units import format_duration

    problem, schedule = read_both(problem_file, schedule_file)
    with working("checking"):
        try:
            schedule.check(problem)
        except ScheduleError as error:
            if as_json:
                emit_json({"valid": False, "error": str(error)})
            raise ScheduleError(f"{schedule_file}: invalid: {error}") from error
    if as_json:
        emit_json(
            {
                "valid": True,
                "method": schedule.method,
                "makespan_s": schedule.makespan_s,
                "lower_bound_s": schedule.lower_bound_s,
            }
        )
        return
    emit(
        f"valid: {schedule.method}, makespan {format_duration(schedule.makespan_s)}"
        f" ({bound_ratio(schedule.makespan_s, schedule.lower_bound_s)})"
    )
    if problem.manifest is not None:
        emit(f"files: {files_text(problem, schedule)}")
