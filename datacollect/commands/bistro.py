"""The command ``datacollect bistro status``."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from datacollect.commands.console import emit, emit_json
from datacollect.commands.help_option import Command, Group
from datacollect.commands.options import Json

bistro = typer.Typer(
    help="Look after an upload server.", cls=Group, no_args_is_help=True, rich_markup_mode=None
)


@bistro.callback()
def _of_several() -> None:
    """Look after an upload server."""


@bistro.command(cls=Command)
def status(
    where: Annotated[
        str, typer.Argument(metavar="URL|AGENT", help="Its URL, or its agent's file on its host.")
    ],
    fingerprint: Annotated[
        str | None,
        typer.Option("--fingerprint", metavar="SHA256", help="Of its certificate, if it is own."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say how much room a bistro has, what waits to be collected, and since when."""
    from datacollect.bistro.taking.asking import facts_of
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
