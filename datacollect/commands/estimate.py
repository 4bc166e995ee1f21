"""The command ``datacollect estimate``."""

from __future__ import annotations

import csv
import io
import json
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import emit_json, emit_table, note, note_text, working
from datacollect.commands.conversion import number_in
from datacollect.commands.inputs import require_kept
from datacollect.commands.instants import start_text
from datacollect.commands.named_entries import listing
from datacollect.commands.options import Force, Json, Names, Output, names_by_address, require_new
from datacollect.commands.problem_options import (
    MOST_NAMED,
    Backlogs,
    Start,
    backlogs_by_host,
)
from datacollect.commands.reading import write_text
from datacollect.errors import DatacollectWarning, ProblemError, nearest_hint
from datacollect.files.choices import Estimator
from datacollect.files.kinds import Number
from datacollect.measurement.readers import READERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


# Endings of problem files.
PROBLEMS = (".toml", ".json")


def _plain(text: str) -> str:
    number_in(text)
    return text


def estimate(
    samples: Annotated[
        list[str],
        typer.Argument(
            metavar="SAMPLES...",
            callback=listing(READERS),
            help="Files of measurements, or folders of them; several count together. Each is a CSV "
            "of samples, or the output of a program named below.",
        ),
    ],
    how: Annotated[
        Estimator | None, typer.Option("--how", help="Estimator.  [default: recent]")
    ] = None,
    half_life: Annotated[
        str,
        typer.Option(
            "--half-life",
            metavar="TIME",
            callback=_plain,
            help="For the estimator recent: age at which a sample weighs half.",
        ),
    ] = "1 d",
    a: Annotated[
        float | None,
        typer.Option("--a", help="Weight of the past; chooses the estimator ewma.  [default: 0.9]"),
    ] = None,
    quantile: Annotated[
        float, typer.Option("--quantile", help="For the estimator quantile: which quantile.")
    ] = 0.25,
    streams: Annotated[
        int | None,
        typer.Option(
            "--streams",
            min=1,
            metavar="N",
            help="Count only tests with N connections. Default: for each link the kind of test "
            "that most links have.",
        ),
    ] = None,
    name: Names = None,
    names_file: Annotated[
        str | None,
        typer.Option(
            "--names",
            metavar="FILE",
            help="CSV of hosts' names: address,host; names.csv in a folder of results is one.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="THEIRS=OURS",
            help="Which column a CSV's column is here, such as src=from; repeatable.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="COLUMN=VALUE",
            help="Rows of a CSV that count, such as src_tier=PREMIUM; repeatable.",
        ),
    ] = None,
    no_times: Annotated[
        bool,
        typer.Option(
            "--no-times", help="Treat samples as equally old, in their order; none needs a time."
        ),
    ] = False,
    skip_failed: Annotated[
        bool,
        typer.Option(
            "--skip-failed", help="Skip tests that failed, were cut off or measured nothing."
        ),
    ] = False,
    destination: Annotated[
        str | None,
        typer.Option(
            "--destination",
            metavar="NAME",
            help="Host where all data go: writes a problem file, .toml or .json, instead of a CSV.",
        ),
    ] = None,
    backlog: Backlogs = None,
    start: Start = None,
    output: Output = None,
    force: Force = False,
    times: Annotated[
        bool,
        typer.Option(
            "--times",
            help="Also write when each link was measured: plans warn when that is long ago.",
        ),
    ] = False,
    daily: Annotated[
        str | None,
        typer.Option(
            "--daily",
            metavar="HH:MM,…",
            help="Hours of the day at which periods start, such as 08:00,20:00: a bandwidth for "
            "each, for a problem with these daily_periods; needs --timezone.",
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone", metavar="ZONE", help="Time zone of --daily and --start, as Europe/Zurich."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Turn measurements into a CSV of bandwidths, for bandwidth_csv, or into a problem file.

    With --destination it writes a problem, which compare and plan read.
    """
    from datacollect.files.units import counted
    from datacollect.measurement.estimates import estimate as estimate_bandwidths
    from datacollect.measurement.reading import read_measurements
    from datacollect.measurement.unlike import of_one_kind

    for file in samples:
        require_kept(output, file)
    require_new(output, force=force)
    _require_fit(destination, output, backlog=backlog, start=start, times=times)
    if timezone is None and (daily or start) is not None:
        which = "--start" if daily is None else "--daily"
        raise ProblemError(
            f"{which} and --timezone go together: hours are shown by the clocks of a time zone"
        )
    if timezone is not None and (daily or start) is None:
        raise ProblemError(
            "--timezone belongs to --daily and --start; leave --timezone out, or give one of "
            "these two"
        )
    hours = None if daily is None else [hour.strip() for hour in daily.split(",")]
    with working("reading samples"):
        measured = read_measurements(
            samples,
            names=names_by_address(name, names_file),
            columns=columns_by_name(column),
            only=rows_by_column(only),
            times=not no_times,
            skip_failed=skip_failed,
        )
    alike = of_one_kind(measured.samples, streams)
    table, notes = alike.samples, [*measured.notes, *alike.notes]
    with working("estimating"), warnings.catch_warnings():
        # Reported below, beside what reading left out.
        warnings.simplefilter("ignore", DatacollectWarning)
        found = estimate_bandwidths(
            table,
            how,
            half_life_s=_half_life_s(half_life),
            a=a,
            quantile=quantile,
            daily=hours,
            timezone=None if hours is None else timezone,
        )
    notes = list(dict.fromkeys([*notes, *found.attrs["notes"]]))
    tree: dict[str, Any] | None = None
    if destination is not None:
        tree = _problem_tree(found, destination, backlog, hours, timezone, start)
    if output is not None or not as_json:
        is_json = (output or "").lower().endswith(".json")
        text = _bandwidth_csv(found, times=times) if tree is None else _problem_text(tree, is_json)
        write_text(text, output)
    if as_json:
        answer = {"links": found.to_dict("records"), "n_samples": len(table), "notes": notes}
        emit_json(answer if tree is None else {**answer, "problem": tree})
    elif output is not None:
        _emit_estimates(found, hours)
    for text in notes:
        note_text(f"note: {text}")
    if tree is not None and not any(host.get("backlog_bytes") for host in tree["hosts"].values()):
        note_text('note: no host has anything to send; --backlog HOST="6 TB" says what one holds')
    if hours is not None and tree is None:
        listed = ", ".join(f'"{hour}"' for hour in hours)
        note(f'for a problem with daily_periods = [{listed}], timezone = "{timezone}"')
    n_links = len(found) // (1 if hours is None else len(hours))
    note(f"{counted(n_links, 'link')} from {counted(len(table), 'sample')}")


def _require_fit(
    destination: str | None, output: str | None, *, times: bool, **of_problems: object
) -> None:
    """Refuse what does not fit a problem, or a CSV."""
    ending = "" if output is None else Path(output).suffix.lower()
    if destination is None:
        given = [f"--{name}" for name, value in of_problems.items() if value is not None]
        why = f"-o {output}" if ending in PROBLEMS else given[0] if given else None
        if why is not None:
            raise ProblemError(
                f"{why} asks for a problem file; say with --destination where all data go"
            )
        return
    if ending not in ("", *PROBLEMS):
        raise ProblemError(
            f"with --destination a problem file is written: -o must end in .toml or .json, got "
            f"{output!r}"
        )
    if times:
        raise ProblemError(
            "--times is for CSV files, but problem files hold no times of measurements; leave "
            "--times out, or write a CSV without --destination"
        )


def _problem_tree(
    found: pd.DataFrame,
    destination: str,
    backlog: Sequence[str] | None,
    hours: Sequence[str] | None,
    timezone: str | None,
    start: str | None,
) -> dict[str, Any]:
    """Return the problem of some estimates as its file holds it."""
    from datacollect.files.documents import PROBLEM_FORMAT
    from datacollect.measurement.outcomes import listed
    from datacollect.problem.link_table import LAST_SINCE_1970_S, SINCE_1970_S
    from datacollect.problem.problem import Problem

    names = sorted({*found["from"], *found["to"]})
    if destination not in names:
        raise ProblemError(
            f"--destination: no host is called {destination!r}; there are "
            f"{listed(names, MOST_NAMED)}" + nearest_hint(destination, names)
        )
    held = backlogs_by_host(backlog, names)
    rates: dict[tuple[str, str], list[float]] = {}
    for row in found.to_dict("records"):
        rates.setdefault((row["from"], row["to"]), []).append(row["bandwidth_bytes_per_s"])
    tree: dict[str, Any] = {"format": PROBLEM_FORMAT, "destination": destination}
    if timezone is not None:
        tree |= {"timezone": timezone, "start": start_text(start, timezone)}
    if hours is not None:
        tree["daily_periods"] = list(hours)
    tree["hosts"] = {name: {"backlog_bytes": held[name]} if name in held else {} for name in names}
    tree["links"] = [
        {"from": tail, "to": head, "bandwidth_bytes_per_s": each if hours else each[0]}
        for (tail, head), each in rates.items()
    ]
    oldest_s = float(found["newest_s"].min())
    if SINCE_1970_S <= oldest_s <= LAST_SINCE_1970_S:
        tree["measured_at"] = datetime.fromtimestamp(oldest_s, UTC).isoformat()
    Problem.from_dict(tree)
    return tree


def _problem_text(tree: dict[str, Any], is_json: bool) -> str:
    from datacollect.files.toml_tables import toml_of
    from datacollect.problem.fields import PROBLEM

    if is_json:
        return json.dumps(tree, ensure_ascii=False, indent=1)
    return toml_of(PROBLEM, tree).rstrip("\n")


def _half_life_s(text: str) -> float:
    """Read the option --half-life: seconds, or a time with its unit."""
    seconds: float = Number("seconds", positive=True).read(number_in(text), "--half-life")
    return seconds


def _emit_estimates(found: pd.DataFrame, hours: Sequence[str] | None) -> None:
    """Show each estimate beside the raw mean and the last sample."""
    from datacollect.files.units import format_rate

    headings, right = ["link", "estimate", "mean", "last", "samples"], "<>>>>"
    rows = [
        [
            f"{row['from']} → {row['to']}",
            *(
                format_rate(row[f"{column}_bytes_per_s"])
                for column in ("bandwidth", "mean", "last")
            ),
            str(row["n_samples"]),
        ]
        for row in found.to_dict("records")
    ]
    columns = []
    if hours is not None:
        columns.append(("from", [hours[period] for period in found["period"]]))
    if (found["kind"] != "").any():
        columns.append(("kind", found["kind"].tolist()))
    for heading, texts in columns:
        headings.append(heading)
        rows = [[*row, text] for row, text in zip(rows, texts, strict=True)]
    emit_table(headings, rows, right)


def columns_by_name(given: Sequence[str] | None) -> dict[str, str] | None:
    """Read the options --column."""
    if not given:
        return None
    columns: dict[str, str] = {}
    for text in given:
        theirs, _, ours = text.rpartition("=")
        if not theirs or not ours:
            raise ProblemError(
                f"--column must be THEIRS=OURS, got {text!r}; write it like src=from"
            )
        if theirs in columns:
            raise ProblemError(f"--column names {theirs!r} twice; keep one")
        columns[theirs] = ours
    return columns


def rows_by_column(given: Sequence[str] | None) -> dict[str, str] | None:
    """Read the options --only."""
    if not given:
        return None
    rows: dict[str, str] = {}
    for text in given:
        column, equals, value = text.partition("=")
        if not column or not equals:
            raise ProblemError(
                f"--only must be COLUMN=VALUE, got {text!r}; write it like src_tier=PREMIUM"
            )
        if column in rows:
            raise ProblemError(f"--only names {column!r} twice; keep one")
        rows[column] = value
    return rows


def _bandwidth_csv(estimates: pd.DataFrame, *, times: bool) -> str:
    """Return estimates as the text of a file for ``bandwidth_csv``."""
    from datacollect.problem.link_table import LAST_SINCE_1970_S, SINCE_1970_S

    period = ["period"] if "period" in estimates else []
    columns = ["from", "to", *period, "bandwidth_bytes_per_s"]
    if times:
        for newest_s in estimates["newest_s"]:
            if not SINCE_1970_S <= newest_s <= LAST_SINCE_1970_S:
                raise ProblemError(
                    "--times needs samples whose times are seconds since 1970, got "
                    f"{newest_s:g}; leave --times out"
                )
        columns.append("newest_s")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(estimates[column].tolist() for column in columns), strict=True))
    return text.getvalue().removesuffix("\n")
