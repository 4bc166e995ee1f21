"""The command ``datacollect upload``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import emit, emit_json, emit_text, note_text
from datacollect.commands.ending import ending_on_sigterm, saying_next
from datacollect.commands.options import Json, require_at_most_one

if TYPE_CHECKING:
    from datacollect.bistro.person.upload import HandedIn, Uploaded

# Of the files of one draft, so many are named on the screen.
MOST_SHOWN = 20


def upload(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Files and folders to hand in as one, or a .keep to continue."
        ),
    ],
    event: Annotated[
        str, typer.Option("--event", metavar="EVENT", help="The event's file, as published.")
    ],
    ticket: Annotated[
        str | None, typer.Option("--ticket", metavar="FILE", help="Your ticket.")
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="Keep seals and receipts here, not beside FILE."
        ),
    ] = None,
    commit_only: Annotated[
        bool, typer.Option("--commit-only", help="Stop after the timestamp; send nothing.")
    ] = False,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere",
            help="Send to another bistro, too, because the first one has lost the files.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Hand files in: seal and timestamp them, keep a receipt, send them to a bistro.

    Several files are one draft: all of them count, or none. Keep NAME.receipt.json and NAME.proof
    (of several the folder NAME.proofs) for ever, NAME.keep until it is collected. Run again it goes
    on, hands nothing in twice, and asks whether it was collected. Exit 0: all in time and
    sent; 1: late, not proved, not sent yet, or another one is to count that did not come; 2:
    refused for what was given; 3: no service answers.
    """
    from datacollect.bistro.person.upload import kept_words
    from datacollect.bistro.person.upload import upload as hand_in

    require_at_most_one({"--commit-only": commit_only or None, "--elsewhere": elsewhere or None})
    with ending_on_sigterm(), saying_next(lambda: kept_words(files, event, into)):
        done = hand_in(
            files,
            event,
            ticket=ticket,
            into=into,
            commit_only=commit_only,
            elsewhere=elsewhere,
            tell=note_text,
        )
    if as_json:
        emit_json(done.to_dict())
    else:
        _show(done)
    return done.exit_code


def _show(done: Uploaded) -> None:
    from datacollect.files.units import format_bytes

    said: set[str] = set()
    for each in done.files:
        emit(f"{each.file}: {each.outcome}")
        for part in each.parts[:MOST_SHOWN]:
            emit_text(f"{part.name} ({format_bytes(part.bytes)})", 2)
        if len(each.parts) > MOST_SHOWN:
            emit_text(f"and {len(each.parts) - MOST_SHOWN} more files, which --json names", 2)
        emit_text(each.times_text, 2)
        emit_text(each.proved, 2)
        for trouble in each.troubles:
            # Where all went well in the end, who failed for several files is named once.
            if each.exit_code or trouble not in said:
                note_text(trouble)
        said.update(each.troubles)
        if each.keep is not None:
            note_text(_what_to_keep(each))
    if done.amendments is not None:
        note_text(f"the event was changed since it was published: {done.amendments} proves how")


def _what_to_keep(each: HandedIn) -> str:
    """Say what is to be kept, and until when: without a proof the seal alone shows which file."""
    seals = " and ".join(filter(None, [each.keep, each.sealed_anew]))
    if each.receipt is None or each.proof is None:
        return f"keep {' and '.join(filter(None, [seals, each.receipt, each.proof]))}"
    kept = f"keep {each.receipt} and {each.proof} for ever"
    return kept if each.collected_s is not None else f"{kept}, {seals} until it is collected"


COMMAND = CommandSpec("upload", upload)
