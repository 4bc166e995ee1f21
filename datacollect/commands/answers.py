"""The command line's answers for people: plans, comparisons, pull lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.commands.certainty import show_certainty, show_compared
from datacollect.commands.console import emit, emit_facts, emit_table, emit_text
from datacollect.files.clock import duration_or_instant
from datacollect.files.units import counted, format_bytes, format_duration, format_rate
from datacollect.methods.warnings import plan_warnings
from datacollect.problem.recurring_hours import are_of_days
from datacollect.schedule.data.contents import TIME_LIMIT
from datacollect.schedule.data.transfers import UNKNOWN
from datacollect.schedule.data.use import arrived_bytes, connections_by_link, streams_by_hop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from datacollect.files.clock import Clock
    from datacollect.methods.comparison import Comparison
    from datacollect.methods.prediction import Prediction
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.uncertainty.certainty import Certainty, ComparedCertainty

# Of longer lists the first few are shown.
SHOWN_ROUTES, SHOWN_HOSTS, SHOWN_FILES = 8, 3, 3
NOTHING = "–"


def show_plan(
    schedule: Schedule,
    output: str | None,
    money: float | None,
    problem: Problem,
    predictions: Mapping[str, Prediction] | None = None,
    certainty: Certainty | None = None,
) -> None:
    """Show what was planned, what it costs, and where it is."""
    facts = [
        ("method", _method(schedule)),
        ("makespan", _until(format_duration(schedule.makespan_s), problem, schedule.makespan_s)),
        ("lower bound", _bound(schedule)),
        ("routes", f"{schedule.n_routes}, in {counted(schedule.n_transfers, 'transfer')}"),
        ("peak storage", _peak_storage(schedule)),
        ("planned in", f"{_quick(schedule.plan_time_s)} ({schedule.solver})"),
    ]
    if schedule.deadline_s is not None:
        facts.insert(2, ("deadline", duration_or_instant(schedule.deadline_s, problem.clock)))
    if schedule.most_by_s is not None:
        there = format_bytes(arrived_bytes(schedule, schedule.most_by_s))
        total = format_bytes(problem.total_bytes)
        by = duration_or_instant(schedule.most_by_s, problem.clock)
        facts.insert(2, ("by then", f"{there} of {total}, by {by}"))
    if money is not None:
        facts.insert(-1, ("money", f"{money:.4g}, the price of all links"))
    if schedule.connections is not None:
        most = f"{sum(connections_by_link(schedule).values())} of {schedule.connections}"
        facts.insert(4, ("connections", most))
    if schedule.status == TIME_LIMIT:
        facts.append(("status", "complete, but the time limit ended the search for a better one"))
    if problem.manifest is not None:
        facts.append(("files", files_text(problem, schedule)))
    recurring = _recurring_note(problem)
    if recurring is not None:
        facts.append(("periods", recurring))
    if schedule.bottleneck != UNKNOWN:
        facts.append(("binds", schedule.bottleneck.text))
    for name, found in (predictions or {}).items():
        facts.insert(2, (f"{name} runs", _predicted(found)))
    facts.append(("saved to", output or "nowhere; -o FILE saves it"))
    emit_facts(facts)
    show_assumptions(schedule)
    if certainty is not None:
        show_certainty(certainty)
    _show_missing(plan_warnings(problem, schedule))
    _show_routes(schedule)


def _predicted(found: Prediction) -> str:
    """Say when runs are likely to end."""
    low, high = format_duration(found.low_s), format_duration(found.high_s)
    return f"likely {format_duration(found.makespan_s)}, nine of ten {low} to {high}"


def show_comparison(
    found: Comparison, problem: Problem, certainty: ComparedCertainty | None = None
) -> None:
    """Show all methods side by side, and what binds."""
    headings = (
        "method",
        "makespan",
        "× bound",
        "vs direct",
        "routes",
        "peak storage",
        "plan time",
    )
    direct = found.schedules.get("direct")
    rows = []
    for name in (*found.schedules, *found.errors):
        schedule = found.schedules.get(name)
        if schedule is None:
            rows.append([name, *[NOTHING] * 6])
            continue
        peak = max(schedule.peak_storage_bytes.values(), default=0)
        rows.append(
            [
                name,
                format_duration(schedule.makespan_s),
                _quotient(schedule.makespan_s, found.lower_bound_s),
                NOTHING if direct is None else _faster(direct.makespan_s, schedule.makespan_s),
                str(schedule.n_routes),
                format_bytes(peak) if peak else "none",
                _quick(schedule.plan_time_s),
            ]
        )
    rows.append(["lower bound", format_duration(found.lower_bound_s), *[NOTHING] * 5])
    emit_table(headings, rows, "<>>>>>>")
    if problem.clock is not None:
        emit_text(f"It starts {problem.clock.text(0)}.")
        for name, schedule in found.schedules.items():
            emit_text(f"{name} ends {problem.clock.text(schedule.makespan_s)}.")
    for name, reason in found.errors.items():
        emit_text(f"{name}: {reason.removeprefix(f'{name}: ')}")
    emit_text(found.bottleneck.text)
    for schedule in found.schedules.values():
        show_assumptions(schedule)
    if certainty is not None:
        show_compared(certainty)
    _show_missing(plan_warnings(problem, found.advised))


def show_assumptions(schedule: Schedule) -> None:
    """Say what a plan leans on, and what it is worth without that: two numbers side by side."""
    found = schedule.assumptions
    if found is not None and found.matter:
        emit_text(" ".join(found.lines))


def _show_missing(missing: list[str]) -> None:
    """Name assumptions of the answer that no input states."""
    for text in missing:
        emit_text(f"Note: {text}.")


def show_pulls(table: pd.DataFrame, host: str | None, clock: Clock | None) -> None:
    """Show what each host requests."""
    if table.empty:
        emit(f"{host} requests nothing" if host else "there is nothing to move")
        return
    headings = ("from", "source", "first byte", "bytes", "start", "finish", "rate")
    for i, (name, rows) in enumerate(table.groupby("host", sort=False)):
        if i:
            emit("")
        emit_text(f"{name} requests")
        listed = pull_rows(rows)
        cells = [
            (
                row["request_from"],
                row["source"],
                str(row["offset_bytes"]),
                format_bytes(row["bytes"]),
                format_duration(row["start_s"]),
                format_duration(row["finish_s"]),
                format_rate(row["rate_bytes_per_s"]),
            )
            for row in listed
        ]
        emit_table(headings, cells, "<<>>>>>")
        if clock is not None:
            emit("")
            times = [
                (
                    row["source"],
                    str(row["offset_bytes"]),
                    # Without the day of the week, so that two fit beside the other words.
                    clock.text(row["start_s"]).partition(" ")[2],
                    clock.text(row["finish_s"]).partition(" ")[2],
                )
                for row in listed
            ]
            emit_table(("source", "first byte", "starts", "finishes"), times, "<><<")
        if "files" in table:
            emit("")
            named = [
                (row["source"], str(row["offset_bytes"]), parts_text(row["files"]))
                for row in listed
            ]
            emit_table(("source", "first byte", "files"), named, "<><")


def parts_text(parts: list[dict[str, Any]]) -> str:
    """Name the first files of a range and the last, which are those that it may cut."""
    names = []
    for part in parts if len(parts) <= SHOWN_FILES else (parts[0], parts[-1]):
        begin = f" from byte {part['offset_bytes']}" if part["offset_bytes"] else ""
        names.append(f"{part['path']} ({format_bytes(part['bytes'])}{begin})")
    if len(parts) > SHOWN_FILES:
        names.insert(1, f"{len(parts) - 2} more")
    return ", ".join(names)


def pull_rows(table: pd.DataFrame, clock: Clock | None = None) -> list[dict[str, Any]]:
    """Return a pull list as plain rows, what is missing None; with what clocks show then."""
    columns = {}
    for name in table.columns:
        values = table[name].astype(object).where(table[name].notna(), None).tolist()
        columns[name] = [
            value.item() if isinstance(value, np.generic) else value for value in values
        ]
    if clock is not None:
        columns["starts_at"] = [clock.iso(at_s) for at_s in columns["start_s"]]
        columns["finishes_at"] = [clock.iso(at_s) for at_s in columns["finish_s"]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def files_text(problem: Problem, schedule: Schedule) -> str:
    """Say how many files a plan splits."""
    from datacollect.methods.finishing.file_cuts import files_split

    n_files = sum(len(files.paths) for files in (problem.manifest or {}).values())
    n_split, n_ranges = files_split(problem, schedule)
    if not n_split:
        return f"{n_files}, each whole on one route"
    return f"{n_files}, of which {n_split} split into {n_ranges} ranges, the others whole"


def bound_ratio(makespan_s: float, lower_bound_s: float) -> str:
    """Say how far a makespan is from the lower bound."""
    if lower_bound_s <= 0 or makespan_s <= lower_bound_s:
        return "the lower bound"
    return f"{makespan_s / lower_bound_s:.4g} × the lower bound"


def _until(duration: str, problem: Problem, end_s: float) -> str:
    """Write how long it takes and, where a clock is known, when it ends."""
    clock = problem.clock
    return duration if clock is None else f"{duration}, until {clock.text(end_s)}"


def _recurring_note(problem: Problem) -> str | None:
    """Say how far bandwidths that recur every day are listed."""
    if problem.daily is None:
        return None
    n_days = problem.daily.until_s / 86_400
    days = "one day" if n_days == 1 else f"{n_days:g} days"
    hours = [_hours_text(problem.daily.hours)] if problem.daily.hours else []
    said = "; ".join([*hours, *(["windows"] if problem.daily.windows else [])])
    return f"{said}; listed for {days}, until the plan ends"


def _hours_text(hours: Sequence[str]) -> str:
    """Name hours that recur; those of a week are too many to be listed."""
    if are_of_days(hours):
        return "hours of the days of the week"
    return f"{', '.join(hours)} every day"


def _method(schedule: Schedule) -> str:
    if schedule.slot_s is not None:
        return (
            f"{schedule.method}, store-and-forward in slots of {format_duration(schedule.slot_s)}"
        )
    if schedule.chunk_s and any(route.n_hops > 1 for route in schedule.routes):
        return f"{schedule.method}, relays forward chunks of {format_duration(schedule.chunk_s)}"
    return schedule.method


def _bound(schedule: Schedule) -> str:
    ratio = bound_ratio(schedule.makespan_s, schedule.lower_bound_s)
    return f"{format_duration(schedule.lower_bound_s)} (the makespan is {ratio})"


def _peak_storage(schedule: Schedule) -> str:
    peaks = sorted(schedule.peak_storage_bytes.items(), key=lambda item: -item[1])
    parts = [f"{format_bytes(size)} at {host}" for host, size in peaks[:SHOWN_HOSTS]]
    if len(peaks) > SHOWN_HOSTS:
        parts.append(f"less at {counted(len(peaks) - SHOWN_HOSTS, 'other host')}")
    return ", ".join(parts) or "none: no relays"


def _show_routes(schedule: Schedule) -> None:
    columns = schedule.columns
    first = columns.hop == 0
    by_hop = streams_by_hop(schedule)
    moved = np.bincount(columns.route[first], columns.n_bytes[first], minlength=schedule.n_routes)
    order = np.argsort(-moved, kind="stable")[:SHOWN_ROUTES].tolist()
    if not order:
        return
    rows = [
        (
            " → ".join(schedule.routes[i].hosts),
            schedule.routes[i].source,
            format_bytes(float(moved[i])),
            ", ".join(str(by_hop[i, hop]) for hop in range(schedule.routes[i].n_hops)),
        )
        for i in order
    ]
    emit("")
    if schedule.connections is None:
        emit_table(("route", "data of", "bytes"), [row[:3] for row in rows], "<<>")
    else:
        emit_table(("route", "data of", "bytes", "connections"), rows, "<<>>")
    if schedule.n_routes > SHOWN_ROUTES:
        emit(f"and {counted(schedule.n_routes - SHOWN_ROUTES, 'more route')}")


def _quick(duration_s: float) -> str:
    if duration_s < 1:
        return f"{max(duration_s * 1000, 1):.0f} ms"
    return format_duration(duration_s)


def _quotient(value: float, reference: float) -> str:
    return f"{value / reference:.3f}" if reference > 0 else NOTHING


def _faster(direct_s: float, makespan_s: float) -> str:
    return f"{direct_s / makespan_s:.2f}×" if makespan_s > 0 else NOTHING
