"""The command ``datacollect report``: pictures, tables, claims and a page from sweeps."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import (
    emit_facts,
    emit_json,
    emit_table,
    emit_text,
    note,
    working,
)
from datacollect.commands.options import Force, Json, require_new

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


def report(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder of a sweep, or of several sweeps.")
    ],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="OUT", help="Folder to write to: DIR/report."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw a sweep's figures, write its tables, judge the paper's claims by it.

    The page index.html has it all, interactive, and needs no network.
    """
    from datacollect.study.report.report import report as write_report
    from datacollect.study.report.verdicts import NOT_RUN

    # Below the sweep itself is the report's own place: what was there before is written anew.
    if output is not None:
        require_new(str(Path(output, "index.html")), force=force)
    with working("reading, drawing"):
        found = write_report(directory, output)
    if as_json:
        emit_json(
            {
                "runs": found.n_runs,
                "unreadable": found.n_unreadable,
                "folder": str(found.folder),
                "page": str(found.page),
                "files": list(found.files),
                "claims": found.claims.to_dict("records"),
            }
        )
        return
    rows = [
        [claim["claim"], claim["part"], claim["paper"], _ours(claim), _verdict(claim)]
        for claim in found.claims.to_dict("records")
        if claim["verdict"] != NOT_RUN
    ]
    emit_table(("claim", "part", "paper", "ours", "verdict"), rows)
    counts = Counter(found.claims["verdict"])
    emit_text(", ".join(f"{n} × {word}" for word, n in counts.items()))
    if (~found.claims["is_settled"] & (found.claims["verdict"] != NOT_RUN)).any():
        emit_text("open: more seeds may still decide otherwise")
    if found.n_unreadable:
        note(f"note: {found.n_unreadable} files of runs are cut short, and left out")
    emit_facts(
        [
            ("runs", str(found.n_runs)),
            ("page", str(found.page)),
            ("besides", f"{len(found.files) - 1} pictures and tables in {found.folder}"),
        ]
    )


def _verdict(claim: Mapping[Hashable, Any]) -> str:
    return f"{claim['verdict']}{'' if claim['is_settled'] else ', open'}"


def _ours(claim: Mapping[Hashable, Any]) -> str:
    value, low, high = claim["value"], claim["low"], claim["high"]
    if math.isnan(value):
        return ""
    return f"{value:.3g}" if math.isnan(low) else f"{value:.3g} [{low:.3g}, {high:.3g}]"
