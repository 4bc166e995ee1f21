"""The command ``datacollect pulls``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import emit_json
from datacollect.commands.options import Json, ProblemFile, ScheduleFile
from datacollect.commands.reading import read_both
from datacollect.errors import ProblemError, nearest_hint


def pulls(
    problem_file: ProblemFile,
    schedule_file: ScheduleFile,
    host: Annotated[
        str | None, typer.Option("--host", metavar="HOST", help="Only what this host requests.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the pull lists.

    What each host has to request: from whom, which range, when and at what rate.
    """
    from datacollect.schedule.belonging import require_belonging
    from datacollect.schedule.pulls import pull_list

    problem, schedule = read_both(problem_file, schedule_file)
    require_belonging(problem, schedule)
    if host is not None and host not in problem.names:
        hint = nearest_hint(host, problem.names)
        raise ProblemError(f"--host: {problem_file} has no host {host!r}{hint}")
    table = pull_list(schedule, host, hosts=problem.names)
    from datacollect.commands.answers import pull_rows, show_pulls

    if as_json:
        totals = {"destination": schedule.destination, "makespan_s": schedule.makespan_s}
        emit_json({**totals, "pulls": pull_rows(table)})
    else:
        show_pulls(table, host)
