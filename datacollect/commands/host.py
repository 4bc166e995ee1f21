"""The commands ``datacollect host …``: what a machine can take in and send."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.at_work import at_work
from datacollect.commands.brought import CommandSpec
from datacollect.commands.help_option import Command, Group
from datacollect.errors import ProblemError
from datacollect.files.registry import Registry
from datacollect.wings import HOST_COMMANDS, LISTED_HOST_COMMANDS

host = typer.Typer(
    cls=Group,
    help="Say what a machine can take in and send, and what binds it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

# Commands of this group that wings bring, and other packages.
BROUGHT = Registry("command", "datacollect.host_commands", CommandSpec, HOST_COMMANDS)


def whole_host() -> typer.Typer:
    """Return the group with what wings bring to it, which is imported where the group is called."""
    known = {info.name for info in host.registered_commands}
    for name in BROUGHT.names():
        if name not in known:
            _add(name)
    return host


def _add(name: str) -> None:
    """Add a command of a wing; where the wing is not installed, one that says so when called."""
    try:
        host.command(name, cls=Command)(at_work(BROUGHT.get(name).command))
    except ProblemError as error:
        missing = error

        def nothing(words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
            raise missing

        nothing.__doc__ = LISTED_HOST_COMMANDS.get(name)
        anything = {"ignore_unknown_options": True}
        host.command(name, cls=Command, context_settings=anything)(nothing)
