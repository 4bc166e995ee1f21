"""The commands ``datacollect bistro init`` and ``bistro status``."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import emit, emit_json, note, note_text
from datacollect.commands.help_option import Command, Group
from datacollect.commands.options import Address, AgentFile, Collectors, Force, Json, Listen

bistro = typer.Typer(
    help="Set up an upload server, and manage it.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@bistro.command(cls=Command)
def init(
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The bistro's name in the event.")
    ],
    collector: Collectors,
    event: Annotated[
        str,
        typer.Option("--event", metavar="EVENT", help="Where the event's file is, or will be."),
    ],
    room: Annotated[
        str, typer.Option("--bytes", metavar="SIZE", help='Room for uploads, as "2 TB".')
    ],
    folder: Annotated[
        str, typer.Option("--folder", metavar="DIR", help="Folder where uploads are kept.")
    ] = "uploads",
    listen: Listen = None,
    address: Address = None,
    file: AgentFile = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a bistro's file, make its key and certificate; print what the event's file must name.

    The organiser writes that table into the draft of the event, which need not be there yet. The
    same again changes nothing.
    """
    from datacollect.bistro.upload_server.setting_up import bistros_table, set_up_bistro
    from datacollect.transfer.agent.config.setting_up import DEFAULT_LISTEN, AgentSetting

    setting = AgentSetting(name, collector, listen=listen or DEFAULT_LISTEN, address=address)
    path, row = set_up_bistro(setting, event, room, folder, file, force=force)
    if as_json:
        emit_json({**row, "file": str(path)})
        return
    note_text(
        f"{path} is written; once {event} exists, start the bistro with: datacollect agent {path}"
    )
    note("the draft of the event, or the file for `event extend --bistros`, needs this table:")
    emit(bistros_table(row))


@bistro.command(cls=Command)
def status(
    where: Annotated[
        str,
        typer.Argument(
            metavar="URL|AGENT", help="The bistro's URL, or on its own host the file of its agent."
        ),
    ],
    fingerprint: Annotated[
        str | None,
        typer.Option(
            "--fingerprint",
            metavar="SHA256",
            help="Fingerprint of the bistro's certificate, if self-signed.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say how much room a bistro has, what waits to be collected, and since when."""
    from datacollect.bistro.upload_server.standing import facts_of
    from datacollect.files.units import format_bytes, format_duration

    facts: dict[str, Any] = facts_of(where, fingerprint)
    if as_json:
        emit_json(facts)
        return
    emit(f"{facts['bistro']}, of event {facts['event'][:16]}…")
    for name, key in (("room", "free"), ("promised", "reserved"), ("stored", "stored")):
        emit(f"{name}: {format_bytes(facts[f'{key}_bytes'])}")
    for name, key in (("oldest uncollected", "oldest_s"), ("last contact", "last_contact_s")):
        at_s = facts[key]
        ago_s = None if at_s is None else max(time.time() - at_s, 0.0)
        emit(f"{name}: {'none' if ago_s is None else f'{format_duration(ago_s)} ago'}")


COMMAND = CommandSpec("bistro", bistro)
