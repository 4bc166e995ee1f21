"""Arguments and options of the command line, and what they must fulfil together."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import emit
from datacollect.commands.conversion import TIME
from datacollect.errors import ProblemError
from datacollect.methods.options.shared import CHUNK_S, SLOT_S, SOLVER, TIME_LIMIT_S
from datacollect.solvers.registry import Solver

if TYPE_CHECKING:
    from collections.abc import Sequence


def _print_version(wanted: bool) -> None:
    if wanted:
        from datacollect.installation import installed_version

        version = installed_version()
        emit("datacollect, not installed" if version is None else f"datacollect {version}")
        raise typer.Exit


def positive(value: float | None) -> float | None:
    """Refuse numbers that are not above 0."""
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"must be a finite number > 0, got {value:g}")
    return value


def not_negative(value: float | None) -> float | None:
    """Refuse numbers below 0."""
    if value is not None and not 0 <= value < math.inf:
        raise typer.BadParameter(f"must be a finite number >= 0, got {value:g}")
    return value


def part(value: float | None) -> float | None:
    """Refuse what is no part of something."""
    if value is not None and not 0 < value <= 1:
        raise typer.BadParameter(f"must be a number > 0 and at most 1, got {value:g}")
    return value


Version = Annotated[
    bool,
    typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
]
ProblemFile = Annotated[
    str,
    typer.Argument(metavar="PROBLEM", help="Problem file, TOML or JSON; - is standard input."),
]
ScheduleFile = Annotated[
    str,
    typer.Argument(metavar="SCHEDULE", help="Schedule file, JSON or Parquet."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
Processes = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=0, help="Processes. Default: one for each processor."
    ),
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Use the workers of a Dask scheduler."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what exists.")]
Slot = Annotated[
    float | None,
    typer.Option(
        "--slot",
        metavar=TIME,
        callback=positive,
        help=SLOT_S.text,
    ),
]
Chunk = Annotated[
    float | None,
    typer.Option(
        "--chunk",
        metavar=TIME,
        callback=not_negative,
        help=CHUNK_S.text,
    ),
]
SolverName = Annotated[Solver, typer.Option("--solver", help=SOLVER.text)]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar=TIME,
        callback=positive,
        help=TIME_LIMIT_S.text,
    ),
]
ScheduleOutput = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the schedule: .json or .parquet."),
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write to this file instead of standard output."
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="ADDRESS=HOST",
        help="For results of iperf3: an address and its host's name; repeatable.",
    ),
]
Samples = Annotated[
    str | None,
    typer.Option(
        "--samples",
        metavar="DIR",
        help="Folder of tests in cycles: show how long the plan takes if links carry what these "
        "tests found.",
    ),
]
Scenarios = Annotated[
    int | None,
    typer.Option(
        "--scenarios",
        metavar="N",
        min=1,
        help="How many scenarios to draw from --samples, or else from the problem's intervals.  "
        "[default: 200]",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="Seed with which scenarios are drawn.  [default: 0]"),
]
# Of agents that are set up.
Collectors = Annotated[
    list[str],
    typer.Option("--collector", metavar="KEY", help="Public key of a collector; repeatable."),
]
Listen = Annotated[
    str | None,
    typer.Option(
        "--listen", metavar="HOST:PORT", help="Where the agent listens. Default: 0.0.0.0:7443."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST",
        help="Address at which others reach the agent. Default: this host's name.",
    ),
]
AgentFile = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="The agent's file. Default: NAME.toml."),
]


def split_names(names: str | None) -> tuple[str, ...] | None:
    """Split a list of hosts at commas; names that hold commas stand in double quotes."""
    import csv

    return None if names is None else tuple(next(csv.reader([names], skipinitialspace=True), []))


def names_by_address(pairs: Sequence[str] | None, file: str | None) -> dict[str, str] | None:
    """Return hosts' names by address: those of a table, and of each ADDRESS=HOST before them."""
    names: dict[str, str] = {}
    if file is not None:
        from datacollect.measurement.addresses import read_names

        names = read_names(file)
    for pair in pairs or ():
        address, equals, host = pair.partition("=")
        if not (address and equals and host):
            raise ProblemError(f"--name must be ADDRESS=HOST, got {pair!r}")
        names[address] = host
    return names or None


def require_at_most_one(options: dict[str, Any]) -> None:
    """Refuse more than one of the options, by name, that are not None."""
    given = [option for option, value in options.items() if value is not None]
    if len(given) > 1:
        raise ProblemError(f"{' and '.join(given)} cannot be combined; give one of them")


def require_one_standard_input(files: dict[str, str]) -> None:
    """Refuse more than one ``-`` among the files, by what they are."""
    if list(files.values()).count("-") > 1:
        *most, last = files
        raise ProblemError(f"only one of {', '.join(most)} and {last} can be standard input")


def require_schedule_name(output: str | None) -> None:
    """Refuse to call a schedule as problems and tables of links are called."""
    if output is not None and output.lower().endswith((".toml", ".csv")):
        raise ProblemError(f"-o must name a schedule, .json or .parquet, got {output!r}")


def require_new(path: str | None, *, force: bool) -> None:
    """Refuse to overwrite a file without --force; devices and pipes are written to."""
    if path is None or force:
        return
    if Path(path).is_dir():
        raise ProblemError(f"{path}: is a folder; name a file")
    if Path(path).is_file() or Path(path).is_symlink():
        raise ProblemError(f"{path}: exists already; --force overwrites it, or name another")
