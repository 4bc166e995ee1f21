"""The command line: ``datacollect plan``, ``compare``, ``check`` and so on.

Exit codes: 0 done; 1 the answer is no; 2 bad input or usage; 3 a solver or simulator failed.
Results go to standard output, all else to standard error. Imports stand inside the commands, so
that help and mistakes in the usage appear at once.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from datacollect.console import emit, emit_json, emit_table, note, working
from datacollect.errors import DatacollectError, ProblemError, ScheduleError, nearest_hint
from datacollect.explain_command import explain
from datacollect.front_command import front
from datacollect.options import (
    AtATime,
    Chunk,
    Deadline,
    FileKind,
    How,
    Json,
    Method,
    Names,
    Order,
    Output,
    PreferName,
    ProblemFile,
    ScheduleFile,
    ScheduleOutput,
    Slot,
    Solver,
    SolverName,
    TimeLimit,
    TimeSlot,
    Version,
    names_by_address,
    require_at_most_one,
    require_fit,
    require_other_file,
    require_schedule_name,
    split_names,
)
from datacollect.replan_command import replan
from datacollect.report_command import report
from datacollect.simulate_command import simulate
from datacollect.sweep_command import sweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.problem import Problem
    from datacollect.schedule import Schedule

PROGRAM = "datacollect"
BAD_INPUT, FAILED, INTERRUPTED = 2, 3, 130

app = typer.Typer(
    name=PROGRAM,
    rich_markup_mode=None,  # rich would double the time that help takes
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Version = False,  # noqa: ARG001
) -> None:
    """Plan the collection of large data from many hosts to one destination.

    Begin with: datacollect example upload, then datacollect compare upload.toml
    """
    if context.invoked_subcommand is None:
        emit(context.get_help())


@app.command()
def plan(
    problem_file: ProblemFile,
    method: Annotated[Method, typer.Option("--method", help="Planning method.")] = (
        Method.coordinated
    ),
    slot_s: Slot = None,
    chunk_s: Chunk = None,
    solver: SolverName = Solver.auto,
    prefer: PreferName = None,
    deadline_s: Deadline = None,
    time_limit_s: TimeLimit = None,
    order: Order = None,
    at_a_time: AtATime = None,
    time_slot_s: TimeSlot = None,
    output: ScheduleOutput = None,
    as_json: Json = False,
) -> None:
    """Plan: print how long it takes and why, write the schedule."""
    turns = {"--order": order, "--at-a-time": at_a_time, "--time-slot": time_slot_s}
    shape, wishes = (
        {"--slot": slot_s, "--chunk": chunk_s},
        {"--prefer": prefer, "--deadline": deadline_s},
    )
    require_fit(method, shape, turns, wishes, time_limit_s)
    require_schedule_name(output, problem_file)
    problem = _read_problem(problem_file)
    with working("planning"):
        # Each method is imported where it is used: the others' solvers need not load.
        if method is Method.direct:
            from datacollect.methods.direct import direct

            schedule = direct(
                problem,
                order=split_names(order),
                at_a_time=at_a_time,
                time_slot_s=time_slot_s,
                solver=solver.value,
            )
        elif method is Method.best_path:
            from datacollect.methods.best_path import best_path

            schedule = best_path(problem, slot_s=slot_s, chunk_s=chunk_s, solver=solver.value)
        else:
            from datacollect.methods.coordinated import coordinated

            schedule = coordinated(
                problem,
                slot_s=slot_s,
                chunk_s=chunk_s,
                prefer=None if prefer is None else prefer.value,
                deadline_s=deadline_s,
                solver=solver.value,
                time_limit_s=time_limit_s,
            )
    if output is not None:
        schedule.to_file(output)
    from datacollect.comparison import summary
    from datacollect.measures import plan_money

    money = plan_money(problem, schedule)
    if as_json:
        emit_json(summary(schedule, money))
    else:
        from datacollect.answers import show_plan

        show_plan(schedule, problem_file, output, money)


@app.command()
def compare(
    problem_file: ProblemFile,
    slot_s: Slot = None,
    chunk_s: Chunk = None,
    solver: SolverName = Solver.auto,
    time_limit_s: TimeLimit = None,
    as_json: Json = False,
) -> None:
    """Compare all methods and the lower bound, and say what binds."""
    from datacollect.comparison import compare as compare_methods

    require_at_most_one({"--slot": slot_s, "--chunk": chunk_s})
    problem = _read_problem(problem_file)
    with working("planning with every method"):
        found = compare_methods(
            problem, slot_s=slot_s, chunk_s=chunk_s, solver=solver.value, time_limit_s=time_limit_s
        )
    if as_json:
        emit_json(found.to_dict())
    else:
        from datacollect.answers import show_comparison

        show_comparison(found)


@app.command()
def check(problem_file: ProblemFile, schedule_file: ScheduleFile) -> None:
    """Check a schedule.

    Exit code 0 if it is valid; else 1, and the first rule that it breaks: what, where, when and
    by how much.
    """
    from datacollect.answers import bound_ratio
    from datacollect.units import format_duration

    problem, schedule = _read_both(problem_file, schedule_file)
    with working("checking"):
        try:
            schedule.check(problem)
        except ScheduleError as error:
            raise ScheduleError(f"{schedule_file}: invalid: {error}") from error
    emit(
        f"valid: {schedule.method}, makespan {format_duration(schedule.makespan_s)}"
        f" ({bound_ratio(schedule.makespan_s, schedule.lower_bound_s)})"
    )


@app.command()
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
    from datacollect.pulls import pull_list

    problem, schedule = _read_both(problem_file, schedule_file)
    if host is not None and host not in problem.names:
        hint = nearest_hint(host, problem.names)
        raise ProblemError(f"--host: {problem_file} has no host {host!r}{hint}")
    table = pull_list(schedule, host, hosts=problem.names)
    from datacollect.answers import pull_rows, show_pulls

    if as_json:
        totals = {"destination": schedule.destination, "makespan_s": schedule.makespan_s}
        emit_json({**totals, "pulls": pull_rows(table)})
    else:
        show_pulls(table, host)


@app.command()
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
    problem, schedule = _read_both(problem_file, schedule_file)
    with working("drawing"):
        from datacollect.plot import save_plot

        save_plot(problem, schedule, output)
    note(f"saved to {output}")


@app.command()
def schema(
    kind: Annotated[
        FileKind, typer.Argument(metavar="KIND", help="Which format.")
    ] = FileKind.problem,
    output: Output = None,
) -> None:
    """Print a file format's JSON Schema.

    Editors complete and check by it.
    """
    import json

    from datacollect.schema import SCHEMAS

    _write(json.dumps(SCHEMAS[kind.value](), indent=2), output)


@app.command()
def example(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Example; without it, list them.")
    ] = None,
    folder: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="Folder to write to.")
    ] = ".",
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
) -> None:
    """Write a shipped example to start from, or list them all."""
    from pathlib import Path

    from datacollect.examples import (
        example_files,
        example_names,
        example_summary,
        scenario_names,
    )

    names = (*example_names(), *scenario_names())
    if name is None:
        emit_table(("example", "shows"), [(each, example_summary(each)) for each in names])
        note(f"write one with: {PROGRAM} example NAME")
        return
    if name not in names:
        hint = nearest_hint(name, names) or f"; there are {', '.join(names)}"
        raise ProblemError(f"no example is called {name!r}{hint}")
    paths = {str(Path(folder, file)): text for file, text in example_files(name).items()}
    for path in paths:
        if os.path.lexists(path) and not force:
            raise ProblemError(f"{path}: exists already; --force overwrites, -o DIR avoids it")
    for path, text in paths.items():
        _write(text.removesuffix("\n"), path)
    command = "simulate --engine fluid" if name in scenario_names() else "compare"
    note(f"try: {PROGRAM} {command} {next(iter(paths))}")


@app.command()
def estimate(
    samples: Annotated[
        str,
        typer.Argument(
            metavar="SAMPLES",
            help="CSV of samples, or iperf3 -J output: a .json file or a folder of them.",
        ),
    ],
    how: Annotated[How, typer.Option("--how", help="Way to estimate.")] = How.ewma,
    a: Annotated[float, typer.Option("--a", help="ewma: weight of the past.")] = 0.9,
    quantile: Annotated[float, typer.Option("--quantile", help="quantile: which one.")] = 0.25,
    name: Names = None,
    output: Output = None,
) -> None:
    """Turn measurements into a CSV of bandwidths, for bandwidth_csv."""
    from pathlib import Path

    from datacollect.answers import bandwidth_csv
    from datacollect.estimates import estimate as estimate_bandwidths
    from datacollect.estimates import read_samples, samples_from_iperf3

    names = names_by_address(name)
    require_other_file(output, samples)
    if Path(samples).is_dir() or samples.lower().endswith(".json"):
        table = samples_from_iperf3(samples, names)
    elif names is None:
        table = read_samples(samples)
    else:
        raise ProblemError("--name is for iperf3's output; a CSV of samples names its hosts")
    found = estimate_bandwidths(table, how.value, a=a, quantile=quantile)
    _write(bandwidth_csv(found), output)
    note(f"{len(found)} links from {len(table)} samples")


app.command()(replan)
app.command()(explain)
app.command()(front)
app.command()(simulate)
app.command()(sweep)
app.command()(report)


# What the commands share --------------------------------------------------------------------


def _read_problem(path: str) -> Problem:
    from datacollect.files import read_problem

    with working("reading"):
        return read_problem(path)


def _read_both(problem_file: str, schedule_file: str) -> tuple[Problem, Schedule]:
    from datacollect.files import read_schedule

    if problem_file == schedule_file == "-":
        raise ProblemError("only one of PROBLEM and SCHEDULE can be standard input")
    problem = _read_problem(problem_file)
    with working("reading"):
        schedule = read_schedule(schedule_file)
    if schedule.problem_sha256 != problem.sha256:
        note("note: this schedule was made for another problem, or the problem has changed since")
    return problem, schedule


def _write(text: str, path: str | None) -> None:
    if path is None:
        emit(text)
        return
    from datacollect.documents import write_atomically

    write_atomically(path, f"{text}\n".encode())
    note(f"saved to {path}")


# The frame ----------------------------------------------------------------------------------


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # File names and hosts may hold what the terminal's encoding lacks.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code.

    Every error ends here as one message on standard error.
    """
    try:
        code = typer.main.get_command(app)(
            list(arguments), prog_name=PROGRAM, standalone_mode=False
        )
    except DatacollectError as error:
        note(f"error: {error}")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        note("interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001
        if hasattr(error, "format_message"):  # typer's own, its class depends on typer's version
            return _usage_error(error)
        return _internal_error(error)
    return code if isinstance(code, int) else 0


def _usage_error(error: Any) -> int:
    message = error.format_message().replace("Value error, ", "")
    given, _, choices = message.partition(" is not one of ")
    # "Invalid value for '--x': 'y' is not one of 'z', ...": the last quoted word was given
    word = given.rpartition(": ")[2].strip("'")
    hint = nearest_hint(word, choices.rstrip(".").replace("'", "").split(", ")) if choices else ""
    note(f"error: {message.removesuffix('.') if hint else message}{hint}")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else PROGRAM
    note(f"try: {command} --help")
    return BAD_INPUT


def _internal_error(error: Exception) -> int:
    if os.environ.get("DATACOLLECT_DEBUG"):
        import traceback

        traceback.print_exception(error)
    note(
        f"error: internal error: {type(error).__name__}: {error}; please report it with the "
        "command and its files (DATACOLLECT_DEBUG=1 shows where it happened)"
    )
    return FAILED


if __name__ == "__main__":
    main()
