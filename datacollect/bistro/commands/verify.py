"""The command ``datacollect verify``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import emit, emit_json, emit_text
from datacollect.commands.options import Json

NOT_IN_TIME = 1


def verify(
    receipt: Annotated[str, typer.Argument(metavar="RECEIPT", help="The receipt's file.")],
    event: Annotated[
        str, typer.Option("--event", metavar="EVENT", help="The event's file, as published.")
    ],
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="What was handed in: the file beside its .proof or .keep, or the sealed file.",
        ),
    ] = None,
    proof: Annotated[
        str | None,
        typer.Option(
            "--proof", metavar="FILE", help="The file's .proof, if it is in another folder."
        ),
    ] = None,
    amendments: Annotated[
        str | None,
        typer.Option(
            "--amendments",
            metavar="FILE",
            help="File of amendments: what the organiser has changed since.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show what a receipt proves, offline: which file, by when, and whether it was collected.

    Exit 0: in time; 1: late or not proved.
    """
    from dataclasses import asdict

    from datacollect.bistro.formats.event.file import read_event
    from datacollect.bistro.person.instants import utc_text
    from datacollect.bistro.person.verify_receipt import verify_receipt
    from datacollect.files.documents import document_name, read_bytes

    verdict = verify_receipt(receipt, event, file=file, proof=proof, amendments=amendments)
    code = 0 if verdict.is_in_time else NOT_IN_TIME
    # By the event's own clock, as the reasons have it.
    clock_text = read_event(read_bytes(event), document_name(event)).clock_text
    sentence = verdict.sentence(None if file is None else document_name(file), clock_text)
    if as_json:
        emit_json(
            {
                "sentence": sentence,
                "outcome": verdict.outcome,
                "covers": verdict.covers,
                "among": None if verdict.among is None else asdict(verdict.among),
                "time_s": verdict.time_s,
                "time": utc_text(verdict.time_s),
                "deadline_s": verdict.deadline_s,
                "deadline": utc_text(verdict.deadline_s),
                "collected_s": verdict.collected_s,
                "collected": utc_text(verdict.collected_s),
                "reasons": list(verdict.reasons),
            }
        )
        return code
    emit_text(sentence)
    emit(f"{verdict.outcome}, for {verdict.covers}")
    emit_text(f"deadline {clock_text(verdict.deadline_s)}", 2)
    for reason in verdict.reasons:
        emit_text(reason, 2)
    return code


COMMAND = CommandSpec("verify", verify)
