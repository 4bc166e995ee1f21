"""The command ``datacollect plot``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import emit_json, note, working
from datacollect.commands.inputs import require_kept
from datacollect.commands.options import Force, Json, ProblemFile, ScheduleFile, require_new
from datacollect.commands.reading import read_both
from datacollect.errors import ProblemError


def plot(
    problem_file: ProblemFile,
    schedule_file: ScheduleFile,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="Picture: .png, .svg, .pdf or .html."),
    ],
    html: Annotated[
        bool, typer.Option("--html", help="A page to zoom and look around in; -o ends in .html.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw a schedule.

    What each host sends, receives and stores over time; with --html a page, which needs no
    network: zoom, exact values under the pointer, and who sends what to whom at any instant.
    """
    require_kept(output, problem_file, schedule_file)
    if html and not output.lower().endswith(".html"):
        raise ProblemError(f"-o must name a file that ends in .html with --html, got {output!r}")
    require_new(output, force=force)
    problem, schedule = read_both(problem_file, schedule_file)
    with working("drawing"):
        from datacollect.pictures.plot import save_plot

        save_plot(problem, schedule, output)
    if as_json:
        emit_json({"picture": output, "makespan_s": schedule.makespan_s})
    note(f"saved to {output}")
