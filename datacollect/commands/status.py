"""The command ``datacollect status``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

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

    from datacollect.transfer.store.promises import KeptPulls
    from datacollect.transfer.store.status import Status
    from datacollect.transfer.store.verifying import Verified, VerifyProgress

SHOWN_MISSING, SHOWN_STARTS = 20, 10
INCOMPLETE = 1


def status(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder of a pull, running or ended.")
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
        typer.Option(
            "--verify", help="Read all collected files again; name those that were altered."
        ),
    ] = False,
    as_asked: Annotated[
        bool,
        typer.Option(
            "--as-asked", help="Judge only what the last start asked for, not the whole collection."
        ),
    ] = False,
    promises: Annotated[
        bool,
        typer.Option("--promises", help="Show how often starts ended as promised."),
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
    kept = _kept(folder) if promises else None
    code = 0 if found.complete else INCOMPLETE
    if as_json:
        more = {} if verified is None else {"verified": verified.to_dict()}
        if kept is not None:
            more["promises"] = _promises_tree(kept)
        emit_json(found.to_dict() | more)
        return code
    _show(found)
    if verified is not None:
        _show_verified(verified, {(entry.source, entry.path) for entry in found.missing})
    if kept is not None:
        _show_promises(kept)
    return code


def _kept(folder: str) -> KeptPulls:
    from datacollect.transfer.store.promises import kept_pulls

    return kept_pulls(folder)


def _promises_tree(kept: KeptPulls) -> dict[str, Any]:
    """Return what programs read of promises."""
    from dataclasses import asdict

    return {
        "starts": [asdict(pull) | {"held": pull.held} for pull in kept.pulls],
        "n_judged": len(kept.judged),
        "n_held": kept.n_held,
        "n_damaged": kept.n_damaged,
    }


def _show_promises(kept: KeptPulls) -> None:
    """Say how often the interval held, and show the last starts."""
    emit("")
    n = len(kept.judged)
    if n:
        emit_text(
            f"Of {counted(n, 'start')} with an interval {kept.n_held} ended within it "
            f"({kept.n_held / n:.0%}; promised: 80%)."
        )
    else:
        emit_text(
            "No start that promised an interval has ended yet. For such promises, bandwidths in "
            "the collection file need bandwidth_low_bytes_per_s and bandwidth_high_bytes_per_s."
        )
    if kept.n_damaged:
        emit_text(f"Skipped: {counted(kept.n_damaged, 'incomplete line')} of the record of starts.")
    rows = [
        [
            _ended(pull.ended_s),
            pull.method,
            *(
                "–" if value is None else format_duration(value)
                for value in (pull.p10_s, pull.promised_s, pull.p90_s)
            ),
            format_duration(pull.took_s) + ("" if pull.complete else ", not to its end"),
        ]
        for pull in kept.pulls[-SHOWN_STARTS:]
    ]
    if rows:
        emit_table(("ended, UTC", "method", "p10", "promised", "p90", "took"), rows, "<<>>>>")
    for text in kept.pulls[-1].why if kept.pulls else ():
        emit_text(f"the last start ended later than promised: {text}", 2)


def _ended(time_s: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time_s, UTC).isoformat(sep=" ", timespec="minutes")[:16]


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
