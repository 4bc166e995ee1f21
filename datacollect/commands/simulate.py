"""The command ``datacollect simulate``: options, progress, the answer for people."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from datacollect.commands.console import (
    complain,
    emit,
    emit_facts,
    emit_json,
    emit_table,
    note,
    progress_shown,
)
from datacollect.commands.conversion import TIME
from datacollect.commands.inputs import require_kept
from datacollect.commands.method_options import SimulateMethod
from datacollect.commands.options import Force, Json, require_at_most_one, require_new
from datacollect.files.choices import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.numbers.pace import Pace
    from datacollect.scenario.outcome import Outcome
    from datacollect.scenario.scenario import Scenario
    from datacollect.simulation.run import Run

NOT_COMPLETE = 1


def simulate(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO", help="Scenario file, TOML or JSON; - is standard input."
        ),
    ],
    method: SimulateMethod = None,
    engine: Annotated[
        Literal[Engine, "auto"],
        typer.Option(
            "--engine",
            help="ns3: packet by packet. fluid: rates alone. auto: fluid for a problem file, and "
            "where ns-3 is not installed; else ns3.",
        ),
    ] = "ns3",
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed, instead of the scenario's run.seed.")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option("--schedule", metavar="FILE", help="Carry out this schedule, plan nothing."),
    ] = None,
    time_limit_s: Annotated[
        float | None,
        typer.Option("--time-limit", metavar=TIME, help="End after this much simulated time."),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            help="Folder for measurements in ns-3. Default: the user's cache folder.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Folder to write run.json and tables to."
        ),
    ] = None,
    tables: Annotated[
        Literal["csv", "parquet"], typer.Option("--tables", help="Format of the tables in DIR.")
    ] = "csv",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Simulate a scenario: measure, plan, collect, and compare with the plan.

    Exit code 1, with what had been collected, where the time limit ended the run.
    """
    from datacollect.scenario.carry_out import carry_out
    from datacollect.scenario.outcome_files import outcome_files
    from datacollect.scenario.probe_cache import cache_folder
    from datacollect.scenario.scenario import Scenario
    from datacollect.schedule.schedule import Schedule

    require_at_most_one({"--schedule": schedule, "--method": method})
    for file in () if output is None else outcome_files(tables):
        path = str(Path(output or "", file))
        require_kept(path, scenario, *filter(None, [schedule]))
        require_new(path, force=force)
    given = None if schedule is None else Schedule.from_file(schedule)
    fallback = None
    chosen: Engine = "fluid" if engine == "fluid" else "ns3"
    setting: str | Scenario = scenario
    if engine == "auto":
        setting = Scenario.from_file(scenario)
        fallback = why_not_ns3(setting)
        chosen = "ns3" if fallback is None else "fluid"
    if fallback is not None:
        note(f"note: the fluid engine is used: {fallback}")
    with showing_progress() as (stage, progress):
        outcome = carry_out(
            setting,
            engine=chosen,
            method=method,
            seed=seed,
            schedule=given,
            time_limit_s=time_limit_s,
            progress=progress,
            cache_dir=cache or cache_folder(),
            stage=stage,
        )
    for text in outcome.setting.warnings:
        complain(f"warning: {text}")
    if output is not None:
        from datacollect.scenario.outcome_files import write_outcome

        write_outcome(outcome, output, tables)
    if as_json:
        from datacollect.scenario.outcome_files import outcome_to_dict

        tree = outcome_to_dict(outcome)
        emit_json(tree if fallback is None else tree | {"fallback": fallback})
    else:
        show_outcome(outcome, output)
    if not outcome.run.complete:
        complain(_why_incomplete(outcome))
        raise typer.Exit(NOT_COMPLETE)


def why_not_ns3(scenario: Scenario) -> str | None:
    """Say why a scenario cannot be simulated packet by packet here; None where it can."""
    from datacollect.errors import SimulationError
    from datacollect.scenario.carry_out import require_ns3

    if not scenario.has_topology:
        return f"scenario {scenario.name!r} names a problem, whose links are rates, not wires"
    try:
        require_ns3(scenario)
    except SimulationError as error:
        return str(error).partition("; or use")[0]
    return None


@contextmanager
def showing_progress() -> Iterator[tuple[Callable[[str, int], None], Callable[[float, int], None]]]:
    """Show on standard error what is going on: stage, simulated time, bytes of all, time left.

    On a terminal at once; elsewhere by a line now and then.
    """
    from datacollect.numbers.pace import Pace

    now, all_bytes, pace = "reading", 0, Pace()
    with progress_shown() as show:

        def stage(what: str, collected_in_it: int = 0) -> None:
            nonlocal now, all_bytes, pace
            now, all_bytes, pace = what, collected_in_it, Pace()
            show(f"{now} …")

        def progress(time_s: float, collected_bytes: int) -> None:
            pace.note(time.monotonic(), collected_bytes)
            show(words_of(now, time_s, collected_bytes, all_bytes, pace))

        show("reading …")
        yield stage, progress


def words_of(what: str, time_s: float, n_bytes: int, all_bytes: int, pace: Pace) -> str:
    """Return how far a stage is; how long the remainder takes is wall-clock time."""
    from datacollect.numbers.pace import about_bytes, about_duration, left_words, percent_words

    parts = [f"{what} … {about_duration(time_s)} simulated"]
    if all_bytes:
        amounts = f"{about_bytes(n_bytes)} of {about_bytes(all_bytes)} collected"
        parts += [f"{percent_words(n_bytes, all_bytes)}: {amounts}"]
        parts += filter(None, [left_words(pace.left_s(all_bytes - n_bytes))])
    elif n_bytes:
        parts.append(f"{about_bytes(n_bytes)} collected")
    return ", ".join(parts)


def show_outcome(outcome: Outcome, output: str | None) -> None:
    """Show a run next to its plan: makespan, sources, storage, what others lost."""
    from datacollect.files.units import counted, format_bytes

    run, scenario = outcome.run, outcome.setting.scenario
    emit_facts(
        [
            ("scenario", f"{scenario.name}, seed {scenario.section('run')['seed']}"),
            ("method", f"{outcome.schedule.method}, {_streams(outcome)}"),
            *_replanned(outcome),
            ("engine", f"{run.engine}, {counted(run.events, 'event')} in {run.cpu_s:.3g} s"),
            ("makespan", _makespan(outcome)),
            ("collected", _collected(outcome)),
            ("measured", _measured(outcome)),
            ("saved to", output or "nowhere; -o DIR saves it"),
        ]
    )
    emit("")
    rows = [
        (source, format_bytes(outcome.setting.backlog_bytes[source]), _time(finish_s))
        for source, finish_s in run.source_finish_s.items()
    ]
    emit_table(("source", "bytes", "finished"), rows, "<>>")
    peaks = run.peak_storage_bytes()
    held = peaks[peaks["others_bytes"] >= 1].drop(outcome.setting.destination, errors="ignore")
    if len(held):
        emit("")
        cells = zip(held.index, held["own_bytes"], held["others_bytes"], strict=True)
        rows = [(str(h), format_bytes(own), format_bytes(others)) for h, own, others in cells]
        emit_table(("relay", "own at most", "others' at most"), rows, "<>>")
    _show_background(run)


def _show_background(run: Run) -> None:
    from datacollect.files.units import format_rate
    from datacollect.scenario.outcome_files import background_by_kind

    totals = background_by_kind(run)
    if not totals:
        return
    flows = run.background.groupby("kind")["flow"].nunique()
    rows = []
    for kind, phases in totals.items():
        before, during = phases.get("before", 0.0), phases.get("during", 0.0)
        change = f"{during / before - 1:+.1%}" if before > 0 else "–"
        rows.append(
            (kind.upper(), str(flows[kind]), format_rate(before), format_rate(during), change)
        )
    emit("")
    emit_table(("background", "flows", "before", "during", "change"), rows, "<>>>>")


def _streams(outcome: Outcome) -> str:
    from datacollect.files.units import counted

    n = len(outcome.run.connections)
    opened = counted(n, "connection")
    if n == outcome.connections or outcome.replanning is not None:
        return opened
    return f"{opened}, at most {outcome.connections} at a time"


def _replanned(outcome: Outcome) -> list[tuple[str, str]]:
    """Return how often the remainder was planned again, where the scenario asks for it."""
    from datacollect.files.units import format_duration

    if outcome.replanning is None:
        return []
    times = [format_duration(at_s) for at_s in outcome.replanning.at_s]
    shown = [*times[:3], "…"] if len(times) > 4 else times
    when = f", at {', '.join(shown)}" if times else ""
    n = len(times)
    often = "never" if n == 0 else f"{n} time{'s' * (n > 1)}"
    return [("re-planned", f"{often}{when}; at most {outcome.connections} open at once")]


def _time(time_s: float) -> str:
    from datacollect.files.units import format_duration

    return "not" if math.isnan(time_s) else format_duration(time_s)


def _makespan(outcome: Outcome) -> str:
    from datacollect.files.units import format_duration

    run, predicted = outcome.run, outcome.schedule.makespan_s
    plan = f"predicted {format_duration(predicted)}"
    if not run.complete:
        return f"incomplete ({plan})"
    ratio = f", measured/predicted {run.makespan_s / predicted:.2f}" if predicted > 0 else ""
    return f"{format_duration(run.makespan_s)} ({plan}{ratio})"


def _collected(outcome: Outcome) -> str:
    from datacollect.files.units import format_bytes

    total = sum(outcome.setting.backlog_bytes.values())
    return f"{format_bytes(outcome.run.collected_bytes)} of {format_bytes(total)}"


def _measured(outcome: Outcome) -> str:
    from datacollect.files.units import counted, format_bytes, format_duration

    if outcome.measurement is None:
        return "nothing: bandwidths were given"
    cost = outcome.measurement.cost
    known = ", known from before" if cost["from_cache"] else ""
    return (
        f"{counted(cost['probes'], 'probe')} ({cost['engine']}), {format_bytes(cost['bytes'])} in "
        f"{format_duration(cost['simulated_s'])} of simulated time{known}"
    )


def _why_incomplete(outcome: Outcome) -> str:
    limit_s = outcome.setting.scenario.section("run")["time_limit_s"]
    return (
        f"incomplete: {_collected(outcome)} collected within {limit_s:g} s of simulated time; "
        "allow more with --time-limit, or, if nothing moves any longer, look for stuck connections "
        "with -o DIR"
    )
