"""The command ``datacollect plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit_json, note, working
from datacollect.commands.inputs import require_kept
from datacollect.commands.options import Force, Json, ProblemFile, require_new
from datacollect.commands.reading import read_both, read_problem
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


def plot(
    problem_file: ProblemFile,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="Picture: .png, .svg, .pdf or .html."),
    ],
    schedule_file: Annotated[
        str | None,
        typer.Argument(
            metavar="SCHEDULE",
            help="Schedule file, JSON or Parquet; --map needs none.",
            show_default=False,
        ),
    ] = None,
    is_map: Annotated[
        bool,
        typer.Option(
            "--map",
            help="A map: routes as arrows as wide as their rate; without SCHEDULE the problem's "
            "links, by bandwidth.",
        ),
    ] = False,
    html: Annotated[
        bool, typer.Option("--html", help="A page to zoom and look around in; -o ends in .html.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw a schedule.

    What each host sends, receives and stores over time; with --map who sends to whom; with --html a
    page, which needs no network: zoom, exact values under the pointer, and who sends what to whom
    at any instant.
    """
    require_kept(output, problem_file, *filter(None, [schedule_file]))
    if is_map and output.lower().endswith(".html"):
        raise ProblemError(
            f"-o must name a picture, .png, .svg or .pdf, with --map, got {output!r}; the page has "
            "a map of its own"
        )
    if schedule_file is None and not is_map:
        raise ProblemError(
            "nothing to draw; name a SCHEDULE, or draw the problem's links with --map"
        )
    if html and not output.lower().endswith(".html"):
        raise ProblemError(f"-o must name a file that ends in .html with --html, got {output!r}")
    require_new(output, force=force)
    problem, schedule = _read(problem_file, schedule_file)
    with working("drawing"):
        if is_map or schedule is None:
            from datacollect.pictures.network_map import save_map

            save_map(problem, schedule, output)
        else:
            from datacollect.pictures.plot import save_plot

            save_plot(problem, schedule, output)
    if as_json:
        makespan_s = None if schedule is None else schedule.makespan_s
        emit_json({"picture": output, "makespan_s": makespan_s})
    note(f"saved to {output}")


def _read(problem_file: str, schedule_file: str | None) -> tuple[Problem, Schedule | None]:
    if schedule_file is None:
        return read_problem(problem_file), None
    return read_both(problem_file, schedule_file)
