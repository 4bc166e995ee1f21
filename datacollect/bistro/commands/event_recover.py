"""The command ``datacollect event recover``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.commands.console import emit, emit_json, emit_text, note_text
from datacollect.commands.options import Json
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.bistro.destination.recovering import Recovered
    from datacollect.bistro.mirror.rebuilding import Rebuilt

EventFile = Annotated[str, typer.Argument(metavar="EVENT", help="The event's file, as published.")]


def recover(
    event_file: EventFile,
    destination: Annotated[
        str | None,
        typer.Option("--destination", metavar="FILE", help="File of the destination, TOML."),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(
            "--service", metavar="FILE", help="File of a service, TOML, instead of a destination."
        ),
    ] = None,
    mirrors: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="MIRROR",
            help="Address or folder of a mirror; repeatable: what any of them holds counts.",
        ),
    ] = None,
    receipts: Annotated[
        str | None,
        typer.Option(
            "--receipts",
            metavar="DIR",
            help="Receipts of people, which show entries that no mirror has.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Make a log again whose disk is lost, or was restored from an old copy; and a register.

    Takes from mirrors what its folder lacks, and has each witness sign the log as it is then: that
    shows whether it goes on. Of a destination, what does not lie here is fetched again by the next
    `event run`, as far as bistros still hold it; the rest is named. Again it changes nothing.

    Exit 0: the log goes on; 1: it says why not: too few witnesses answer now, or too many have
    signed what nobody holds.
    """
    if (destination is None) == (service is None):
        raise ProblemError("name one file: --destination, or --service")
    if destination is not None:
        from datacollect.bistro.destination.recovering import recover_destination

        found = recover_destination(event_file, destination, mirrors or (), receipts, note_text)
        if as_json:
            emit_json({**asdict(found), "log": _tree(found.log)})
        else:
            _show(found.log, SUCCESSOR)
            _show_register(found)
        return 0 if found.log.goes_on else 1
    assert service is not None
    log = _service(event_file, service, mirrors or (), receipts)
    if as_json:
        emit_json({"log": _tree(log)})
    else:
        _show(log, OTHER_SERVICE)
        note_text(
            "what was handed in with each ticket is no longer known: the service's quotas start "
            "again"
        )
    return 0 if log.goes_on else 1


def _service(
    event_file: str,
    service_file: str,
    mirrors: list[str] | tuple[str, ...],
    receipts: str | None,
) -> Rebuilt:
    from datacollect.bistro.http.config import ServiceConfig
    from datacollect.bistro.log_service.core import log_of
    from datacollect.bistro.mirror.rebuilding import rebuild
    from datacollect.bistro.mirror.receipts import ShownEntries, shown_entries
    from datacollect.files.documents import read_bytes

    config = ServiceConfig.from_file(service_file)
    if config.event_data != read_bytes(event_file):
        raise ProblemError(f"{service_file}: is of another event than {event_file}")
    shown = ShownEntries()
    if receipts is not None:
        log = log_of(config.event, config.key)
        shown = shown_entries(log, config.event, receipts, note_text)
    return rebuild(
        *(config.event, config.key, config.folder, mirrors, shown.proofs), words=shown.words
    )


def _tree(log: Rebuilt) -> dict[str, Any]:
    return {**asdict(log), "goes_on": log.goes_on, "is_dead": log.is_dead}


# What is left where a log is dead, and no other mirror is to be had.
OTHER_SERVICE = (
    "or give with --receipts a folder of receipts of those who handed in last; otherwise people "
    "continue with another service"
)
SUCCESSOR = (
    "or make a key for another log with `datacollect keys new`, have the organiser name it with "
    "`datacollect event extend --verdicts`, and run this again with that key"
)


def _show(log: Rebuilt, remedy: str) -> None:
    emit_text(
        f"{log.log}: {log.size:,} entries; {log.n_before:,} were here, {log.n_filled:,} come from "
        "receipts"
    )
    for each in log.witnesses:
        emit_text(f"{each.witness} {each.text}", 2)
    if log.goes_on:
        emit("the log can continue: start its server")
    elif log.is_dead:
        emit_text(
            "the log cannot continue: too many witnesses have signed entries that nobody holds. "
            f"Name another mirror; {remedy}. What the log has proved stays valid, and people can "
            "read it"
        )
    else:
        emit_text(
            f"whether the log can continue is not known yet: {log.quorum} witnesses must answer; "
            "run this again"
        )


def _show_register(found: Recovered) -> None:
    emit_text(f"{found.n_said:,} entries had a verdict, {found.n_proved:,} are proved by receipts")
    if found.n_taken_over:
        emit_text(
            f"the new log begins with {found.n_taken_over:,} entries of the log that it replaces"
        )
    if found.n_to_say_again:
        emit_text(
            f"{found.n_to_say_again:,} verdicts are missing in the log: they are logged again"
        )
    if found.n_beside:
        emit_text(
            f"{found.n_beside:,} verdicts rest on these proofs alone: the log does not have them"
        )
    emit_text(
        f"{found.n_forgotten:,} files in the register are missing here: they are fetched again "
        "from bistros that still hold them"
    )
