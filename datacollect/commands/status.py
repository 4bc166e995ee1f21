"""The command ``datacollect status``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import (
    amounts_shown,
    emit,
    emit_facts,
    emit_json,
    emit_table,
    emit_text,
    note,
    progress_shown,
    working,
)
from datacollect.commands.options import Force, Json, require_new
from datacollect.files.stages import stage
from datacollect.files.units import counted, format_bytes, format_duration, format_rate

if TYPE_CHECKING:
    from collections.abc import Container

    from datacollect.transfer.store.status import Status
    from datacollect.transfer.store.verifying import Verified, VerifyProgress

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
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Read all that is there again; name what was altered."),
    ] = False,
    as_asked: Annotated[
        bool,
        typer.Option(
            "--as-asked", help="Judge by what the last start asked for, not by the whole."
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Say how far a collection is; exit 0 if every source was listed and all is there, else 1.

    Nothing is written, but with --verify a note of what was read, so that it goes on there.
    """
    from datacollect.transfer.store.status import status_of

    if plot is not None:
        _draw(folder, plot, force=force)
    found = status_of(folder, as_asked=as_asked)
    verified = _verified(folder) if verify else None
    is_sound = verified is None or (verified.is_sound and not verified.unverifiable)
    found = replace(found, complete=found.complete and is_sound)
    code = 0 if found.complete else INCOMPLETE
    if as_json:
        more = {} if verified is None else {"verified": verified.to_dict()}
        emit_json(found.to_dict() | more)
        return code
    _show(found)
    if verified is not None:
        _show_verified(verified, {(entry.source, entry.path) for entry in found.missing})
    return code


def _verified(folder: str) -> Verified:
    """Read all again, and say how far that is."""
    from datacollect.transfer.store.status import verify_of

    with stage(f"reading {folder} again"), progress_shown() as show:
        shown = amounts_shown(show)

        def tell(now: VerifyProgress) -> None:
            shown(now.n_files, now.n_bytes, now.all_files, now.all_bytes)

        return verify_of(folder, tell)


def _show_verified(verified: Verified, shown_as_missing: Container[tuple[str, str]]) -> None:
    """Show what was found; remedies of what is shown as missing are shown with it."""
    n_files = counted(verified.n_files, "file")
    emit(f"read again: {n_files}, {format_bytes(verified.n_bytes)}, unaltered")
    unsound = [*verified.gone, *verified.altered, *verified.unverifiable]
    for each in unsound[:SHOWN_MISSING]:
        emit_text(f"not intact: {each.source}/{each.path}: {each.why}", 2)
    if len(unsound) > SHOWN_MISSING:
        emit(f"and {len(unsound) - SHOWN_MISSING} more; --json lists all")
    if any((each.source, each.path) not in shown_as_missing for each in verified.altered):
        note("`datacollect pull … --verify` fetches them again")


def _complete_words(found: Status) -> str:
    """Return whether all is there, and of what.

    A start that asked for a part has not listed the rest, unless an earlier one had.
    """
    if found.narrowed_to is None:
        return "yes" if found.complete else "no"
    if not found.complete_as_asked:
        return f"no; the last start asked for {found.narrowed_to.options}"
    if found.complete and all(source.listed for source in found.sources if source.wanted):
        return f"yes; the last start asked for {found.narrowed_to.options}"
    is_listed = all(source.listed for source in found.sources if source.wanted)
    rest = "some of the rest is not there" if is_listed else "the rest was not listed"
    return f"of {found.narrowed_to.options}; {rest}"


def _show(found: Status) -> None:
    emit_facts(
        [
            ("complete", _complete_words(found)),
            ("pull", "at work" if found.at_work else "not at work"),
            ("verified", format_bytes(found.recorded_bytes)),
        ]
    )
    if found.sources:
        emit("")
        rows = [
            (
                source.name,
                ("yes" if source.listed else "no") if source.wanted else "not wanted",
                f"{source.done_files}, {format_bytes(source.done_bytes)}",
                f"{source.waiting_files}, {format_bytes(source.waiting_bytes)}",
                str(source.missing_files),
            )
            for source in found.sources
        ]
        emit_table(("source", "listed", "files done", "files to come", "missing"), rows, "<<>>>")
    for source in found.sources:
        if source.wanted and not source.listed:
            why = source.trouble or "not listed to its end"
            emit_text(f"{source.name}: {why}", 2)
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


def _draw(folder: str, path: str, *, force: bool) -> None:
    require_new(path, force=force)
    with working("drawing"):
        from datacollect.pictures.pull import save_history

        save_history(folder, path)
    note(f"saved to {path}")
