"""The command ``datacollect report``: own results, pictures, tables, claims, a page from sweeps."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import (
    emit,
    emit_facts,
    emit_json,
    emit_table,
    emit_text,
    note,
    working,
)
from datacollect.commands.options import Force, Json, require_new
from datacollect.errors import ProblemError
from datacollect.files.units import counted, format_significant

# Damaged files that are named, at most.
MOST_NAMED = 5

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from datacollect.study.report.own import SweepReport
    from datacollect.study.report.report import Report
    from datacollect.study.report.verdicts import Verdicts


def report(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder of a sweep, or of several sweeps.")
    ],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="OUT", help="Folder to write to: DIR/report."),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="AXIS=LABEL",
            help="Label of a paired axis whose makespans the others are compared with. Default: "
            "direct.",
        ),
    ] = None,
    verdicts: Annotated[
        str | None,
        typer.Option(
            "--verdicts",
            metavar="HOOK",
            help="Folder, file or module whose function judge decides about claims; add :NAME for "
            "a function of that name.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Print a sweep's own results, draw its figures, write its tables.

    The page index.html has it all, interactive, and needs no network; it is left out where plotly
    is not installed. Claims are judged by the code that --verdicts names, which is run.
    """
    from datacollect.study.report.hooks import load_hook
    from datacollect.study.report.report import PAGE
    from datacollect.study.report.report import report as write_report

    def require_free(path: Path) -> None:
        # Below the sweep itself is the report's own place: what was there is written again.
        if output is not None:
            require_new(str(path), force=force)

    labels = label_by_axis(over or ())
    require_free(Path(output or "", PAGE))
    hook = None if verdicts is None else load_hook(verdicts)
    with working("reading, drawing"):
        found = write_report(
            directory, output, over=labels, verdicts=hook, before_writing=require_free
        )
    if as_json:
        emit_json(_tree(found))
        return
    for sweep in found.sweeps:
        _show_own(sweep)
    if len(found.claims):
        _show_claims(found.verdicts)
    if found.n_unreadable:
        names = ", ".join(found.unreadable[:MOST_NAMED])
        note(f"note: {found.n_unreadable} files of runs are cut short, and left out: {names}")
    if found.page is None:
        from datacollect.installation import command_for_extra

        page = f"none; for one: {command_for_extra('report')}"
    else:
        page = str(found.page)
    n_besides = len(found.files) - (found.page is not None)
    emit_facts(
        [
            ("page", page),
            ("besides", f"{n_besides} pictures and tables in {found.folder}"),
            *([("verdicts", _command_for_verdicts(directory, found))] if found.known_hook else []),
        ]
    )


def _command_for_verdicts(directory: str, found: Report) -> str:
    command = shlex.join(["datacollect", "report", directory, "--verdicts", found.known_hook])
    return f"in a clone of datacollect: {command}"


def label_by_axis(parts: Sequence[str]) -> dict[str, str]:
    """Split each AXIS=LABEL.

    >>> label_by_axis(["method=direct", "timing=asap"])
    {'method': 'direct', 'timing': 'asap'}
    """
    found: dict[str, str] = {}
    for part in parts:
        axis, equals, label = part.partition("=")
        if not (axis and equals and label):
            raise ProblemError(f"--over must be AXIS=LABEL, got {part!r}")
        if axis in found:
            raise ProblemError(f"--over names the axis {axis!r} twice; name one label of it")
        found[axis] = label
    return found


def _tree(found: Report) -> dict[str, Any]:
    return {
        "runs": found.n_runs,
        "unreadable": found.n_unreadable,
        "folder": str(found.folder),
        "page": None if found.page is None else str(found.page),
        "files": list(found.files),
        "sweeps": [sweep.to_dict() for sweep in found.sweeps],
        "results": [row for sweep in found.sweeps for row in sweep.rows()],
        "claims": found.claims.to_dict("records"),
        "known_hook": found.known_hook or None,
    }


# Own results ------------------------------------------------------------------------------------


def _show_own(sweep: SweepReport) -> None:
    own, chance = sweep.own, sweep.chance
    emit_facts(
        [
            ("sweep", f"{sweep.name}: {sweep.n_runs} runs, {sweep.engine} engine"),
            ("time", sweep.cpu_cost.words),
        ]
    )
    if chance.words:
        emit_text(chance.words)
    emit("")
    rows = own.table.to_dict("records")
    is_compared = any(row["base"] for row in rows)
    headings = [*(sweep.headings[axis] for axis in own.axes), "seeds", "makespan, s"]
    if is_compared:
        headings.append(f"over {own.base}" if own.base else "over the base")
    right = "<" * len(own.axes) + ">" + "<" * (1 + is_compared)
    cells = [
        [
            *(str(row[axis]) for axis in own.axes),
            _seeds(row),
            _interval(row, "makespan_s"),
            *([_ratio(row)] if is_compared else []),
        ]
        for row in rows
    ]
    emit_table(headings, cells, right)
    if any(row["seeds"] > 1 for row in rows) and not chance.has_no_part:
        emit_text(
            "[low, high]: 95 % interval of the mean over seeds; ratios are taken seed by seed"
        )
        if any(row["makespan_s_low"] == 0 for row in rows):
            emit_text("[0, …: seeds too few or too far apart to bound it from below; add --seeds")
    emit("")


def _seeds(row: Mapping[Hashable, Any]) -> str:
    ended = "" if not row["incomplete"] else f" + {row['incomplete']} incomplete"
    return f"{row['seeds']}{ended}"


def _ratio(row: Mapping[Hashable, Any]) -> str:
    """A ratio, and the pairs that made it where they are fewer than the seeds beside them."""
    found = _interval(row, "over_base")
    is_fewer = 0 < row["pairs"] < row["seeds"]
    return f"{found} ({counted(row['pairs'], 'pair')})" if is_fewer else found


def _interval(row: Mapping[Hashable, Any], name: str) -> str:
    """A mean with its interval, where that says more."""
    mean, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if math.isnan(mean):
        return "–"
    shown, bounds = format_significant(mean), [format_significant(low), format_significant(high)]
    if math.isnan(low) or bounds == [shown, shown]:
        return shown
    return f"{shown} [{', '.join(bounds)}]"


# Claims -----------------------------------------------------------------------------------------


def _show_claims(verdicts: Verdicts) -> None:
    from datacollect.study.report.verdicts import NOT_RUN

    judged = verdicts.claims[verdicts.claims["verdict"] != NOT_RUN]
    for where, claims in judged.groupby("where", sort=False):
        rows = [
            [_claim_cell(claim, column) for column in verdicts.printed]
            for claim in claims.to_dict("records")
        ]
        if where:
            emit_text(f"{where!s}:")
        emit_table(tuple(verdicts.printed.values()), rows)
        emit("")
    counts = Counter(verdicts.claims["verdict"])
    emit_text(", ".join(f"{n} × {word}" for word, n in counts.items()))
    if (~judged["is_settled"].astype(bool)).any():
        emit_text("undecided: with more seeds the answer may change")


def _claim_cell(claim: Mapping[Hashable, Any], column: str) -> str:
    """Return what is said of a claim in one column.

    Of a text with a colon only what stands before it.
    """
    if column == "value":
        return _found(claim)
    if column == "verdict":
        return f"{claim['verdict']}{'' if claim['is_settled'] else ', open'}"
    return str(claim[column]).partition(": ")[0]


def _found(claim: Mapping[Hashable, Any]) -> str:
    value, low, high = claim["value"], claim["low"], claim["high"]
    if math.isnan(value):
        return ""
    return f"{value:.3g}" if math.isnan(low) else f"{value:.3g} [{low:.3g}, {high:.3g}]"
