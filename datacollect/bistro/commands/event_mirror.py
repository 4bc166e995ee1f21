"""The command ``datacollect event mirror``."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit, emit_json, emit_table, emit_text
from datacollect.commands.ending import Terminated, ending_on_sigterm
from datacollect.commands.options import Json
from datacollect.commands.streams import complain
from datacollect.commands.streams import emit as emit_line
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from datacollect.bistro.mirror.mirror import MirrorStanding

EventFile = Annotated[str, typer.Argument(metavar="EVENT", help="The event's file, as published.")]


def mirror(
    event_file: EventFile,
    into: Annotated[str, typer.Option("--into", metavar="DIR", help="Folder of the copies.")],
    other: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="MIRROR",
            help="Read from this mirror as well, by its address or folder; repeatable.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Copy what is there now, and stop.")] = False,
    as_json: Json = False,
) -> int:
    """Keep copies of all logs of an event, from which a log that is lost is made again.

    What is copied is verified: the signatures of log and witnesses, and that each log has only
    grown. A log that is silent, or lies, is named, and stops no other. Works until SIGTERM; started
    again it goes on. Any web server may serve the folder: others read logs there.

    With --once, exit 0: everything that the logs show has been copied; 1: something is wrong,
    and it says what.
    """
    from datacollect.bistro.mirror.mirror import mirror_on, mirror_once

    if once:
        found = mirror_once(event_file, into, other or (), _say)
        if as_json:
            emit_json(found.to_dict())
        else:
            _show(found)
        return found.exit_code

    def ready() -> None:
        emit_line(json.dumps({"folder": into}) if as_json else f"copying logs into {into}")

    try:
        with ending_on_sigterm():
            mirror_on(event_file, into, other or (), ready, _say)
    except Terminated:
        pass
    return 0


def _show(found: MirrorStanding) -> None:
    emit_table(
        ("log", "entries"), [(each.log, f"{max(each.size, 0):,}") for each in found.logs], "<>"
    )
    for each in found.logs:
        for source, why in each.troubles.items():
            emit_text(f"{each.log}: {source}: {why}")
        for line in each.forks:
            emit_text(f"evidence: {line}")
    if not found.exit_code:
        emit("the mirror has copied everything that the logs show")


def _say(text: str) -> None:
    # As agents write theirs.
    complain(json.dumps({"time_s": round(time.time(), 3), "what": "note", "why": safe_text(text)}))
