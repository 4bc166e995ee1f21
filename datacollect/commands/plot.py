"""The command ``datacollect plot``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import note, working
from datacollect.commands.options import ProblemFile, ScheduleFile, require_other_file
from datacollect.commands.reading import read_both


def plot(
    problem_file: ProblemFile,
    schedule_file: ScheduleFile,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="Picture: .png, .svg or .pdf."),
    ],
) -> None:
    """Draw a schedule.

    What each host sends, receives and stores over time.
    """
    require_other_file(output, problem_file, schedule_file)
    problem, schedule = read_both(problem_file, schedule_file)
    with working("drawing"):
        from datacollect.schedule.plot import save_plot

        save_plot(problem, schedule, output)
    note(f"saved to {output}")
