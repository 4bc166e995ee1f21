"""The command ``datacollect status``."""

from __future__ import annotations

from typing import Annotated

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
from datacollect.units import format_bytes, format_duration, format_rate

SHOWN_MISSING = 20
INCOMPLETE = 1


def status(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder of a pull, at work or ended.")
    ],
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw the last start: rates by route beside the plan."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Say how far a collection is; exit 0 if it is complete, else 1."""
    from datacollect.transfer.store.status import status_of

    if plot is not None:
        _draw(folder, plot, force=force)
    found = status_of(folder)
    if as_json:
        emit_json(found.to_dict())
        return 0 if found.complete else INCOMPLETE
    emit_facts(
        [
            ("complete", "yes" if found.complete else "no"),
            ("pull", "at work" if found.at_work else "not at work"),
            ("verified", format_bytes(found.recorded_bytes)),
        ]
    )
    if found.sources:
        emit("")
        rows = [
            (
                source.name,
                f"{source.done_files}, {format_bytes(source.done_bytes)}",
                f"{source.waiting_files}, {format_bytes(source.waiting_bytes)}",
                str(source.missing_files),
            )
            for source in found.sources
        ]
        emit_table(("source", "files done", "files to come", "missing"), rows, "<>>>")
    if found.rates:
        emit("")
        routes = [
            (" → ".join(hosts), format_rate(rate), format_duration(age_s))
            for hosts, (rate, age_s) in found.rates.items()
        ]
        emit_table(("route", "rate observed", "ago"), routes, "<>>")
    for entry in found.missing[:SHOWN_MISSING]:
        emit_text(f"missing: {entry.source}{entry.path and '/'}{entry.path}: {entry.why}", 2)
    if len(found.missing) > SHOWN_MISSING:
        emit(f"and {len(found.missing) - SHOWN_MISSING} more; --json lists all")
    return 0 if found.complete else INCOMPLETE


def _draw(folder: str, path: str, *, force: bool) -> None:
    require_new(path, force=force)
    with working("drawing"):
        from datacollect.pictures.pull import save_history

        save_history(folder, path)
    note(f"saved to {path}")
