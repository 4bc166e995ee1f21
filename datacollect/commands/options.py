"""Arguments and options of the command line, and what they must fulfil together."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from datacollect.commands.console import emit, note
from datacollect.commands.conversion import number_in
from datacollect.errors import ProblemError
from datacollect.files.choices import Finish, Method, Preference, Solver
from datacollect.files.clock_times import is_clock_time
from datacollect.files.kinds import Number
from datacollect.methods.options.names import COORDINATED, DIRECT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.problem.problem import Problem


# Kinds of files that have a JSON Schema.
FileKind: TypeAlias = Literal[
    "problem", "schedule", "scenario", "experiment", "agent", "collection"
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from datacollect.installation import installed_version

        version = installed_version()
        emit("datacollect, not installed" if version is None else f"datacollect {version}")
        raise typer.Exit


def _positive(value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"must be a finite number > 0, got {value:g}")
    return value


def _not_negative(value: float | None) -> float | None:
    if value is not None and not 0 <= value < math.inf:
        raise typer.BadParameter(f"must be a finite number >= 0, got {value:g}")
    return value


def _part(value: float) -> float:
    if not 0 < value <= 1:
        raise typer.BadParameter(f"must be a number > 0 and at most 1, got {value:g}")
    return value


def _deadline(text: str | None) -> str | None:
    """Refuse what is no time; clock times wait for the problem's start."""
    if text is not None and not is_clock_time(text):
        try:
            Number("seconds", positive=True).read(number_in(text), "S")
        except ProblemError as error:
            raise typer.BadParameter(str(error).removeprefix("S ")) from None
    return text


def deadline_seconds(deadline: str | None, problem: Problem) -> float | None:
    """Return the option --deadline in seconds from the problem's start."""
    if deadline is None:
        return None
    from datacollect.methods.options.arguments import deadline_in_seconds

    return deadline_in_seconds(number_in(deadline), problem, "--deadline")


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
Force = Annotated[bool, typer.Option("--force", help="Overwrite what exists.")]
Slot = Annotated[
    float | None,
    typer.Option(
        "--slot",
        metavar="S",
        callback=_positive,
        help="Store and forward in slots of S seconds; without it, schedules are pipelined.",
    ),
]
Chunk = Annotated[
    float | None,
    typer.Option(
        "--chunk",
        metavar="S",
        callback=_not_negative,
        help="Pipelined: relays forward chunks of S seconds. Default: 1/1000 of the lower bound, "
        "or less where bandwidths change often.",
    ),
]
SolverName = Annotated[
    Solver, typer.Option("--solver", help="Solver; auto takes the fastest that is installed.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="S",
        callback=_positive,
        help="Stop the coordinated method's solvers after S seconds.",
    ),
]


PreferName = Annotated[
    Preference | None,
    typer.Option(
        "--prefer",
        help="coordinated: what to minimise among the fastest plans, or those in time. "
        "Default: relay-bytes; money with --deadline where links have prices.",
    ),
]
Deadline = Annotated[
    str | None,
    typer.Option(
        "--deadline",
        metavar="S",
        callback=_deadline,
        help="coordinated: the cheapest plan that ends within S seconds, instead of the fastest; "
        'also "12 h" or, where the problem has a start, 2026-11-23T08:00 or 08:00.',
    ),
]
Derate = Annotated[
    float,
    typer.Option(
        "--derate",
        metavar="PART",
        callback=_part,
        help="Plan on this part of all links' bandwidths, such as 0.8; the schedule is valid for "
        "all of them.",
    ),
]
MostTransfers = Annotated[
    int | None,
    typer.Option(
        "--most-transfers",
        metavar="N",
        min=1,
        help="coordinated: each host sends and receives at most N transfers at once.",
    ),
]
Connections = Annotated[
    int | None,
    typer.Option(
        "--connections",
        metavar="N",
        min=1,
        help="coordinated: share out N connections at a time, where they bring most.",
    ),
]
FinishName = Annotated[
    Finish | None,
    typer.Option(
        "--finish",
        help="coordinated: sources that do not bind finish as early as capacities allow, or "
        "together with the last. Default: early.",
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="HOST,HOST,...",
        help="direct: hosts in the order in which they send, one after another.",
    ),
]
AtATime = Annotated[
    int | None,
    typer.Option("--at-a-time", metavar="N", min=1, help="direct: N hosts send at once."),
]
TimeSlot = Annotated[
    float | None,
    typer.Option(
        "--time-slot",
        metavar="S",
        callback=_positive,
        help="direct, with --at-a-time: hosts take turns of S seconds.",
    ),
]
ScheduleOutput = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the schedule: .json or .parquet."),
]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write to a file instead."),
]
Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="ADDRESS=HOST", help="iperf3: a host's name; repeatable."),
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


def require_fit(
    method: Method,
    shape: dict[str, Any],
    turns: dict[str, Any],
    wishes: dict[str, Any],
    time_limit_s: float | None,
) -> None:
    """Refuse options, by name, that mean nothing to the method or to each other."""
    require_at_most_one(shape)
    for option, value in wishes.items():
        if value is not None and method != COORDINATED:
            raise ProblemError(f"{option} is for --method coordinated, got --method {method}")
    for option, value in turns.items():
        if value is not None and method != DIRECT:
            raise ProblemError(f"{option} is for --method direct, got --method {method}")
    if turns["--time-slot"] is not None and turns["--at-a-time"] is None:
        raise ProblemError("--time-slot needs --at-a-time: how many hosts send in each")
    if method == DIRECT and any(value is not None for value in shape.values()):
        note("note: --slot and --chunk mean nothing to direct, which has no relays")
    if method != COORDINATED and time_limit_s is not None:
        note(f"note: --time-limit means nothing to {method}, which searches for nothing")


def require_at_most_one(options: dict[str, Any]) -> None:
    """Refuse more than one of the options, by name, that are not None."""
    given = [option for option, value in options.items() if value is not None]
    if len(given) > 1:
        raise ProblemError(f"{' and '.join(given)} exclude each other; give one of them")


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
