"""The commands ``datacollect keys new`` and ``datacollect keys show``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.agent_work import new_key, show_key
from datacollect.commands.help_option import Command, Group
from datacollect.commands.options import Json

keys = typer.Typer(
    cls=Group,
    help="Make and show the keys that sign tickets.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

KeyFile = Annotated[str, typer.Argument(metavar="FILE", help="File of the private key.")]


@keys.command(cls=Command)
def new(file: KeyFile, as_json: Json = False) -> None:
    """Make a private key, which only you may read, and print its public half.

    Agents count the public half's tickets once it stands in their files under collectors. A file
    that is there is never overwritten: its key would be lost.
    """
    new_key(file, as_json=as_json)


@keys.command(cls=Command)
def show(file: KeyFile, as_json: Json = False) -> None:
    """Print the public half of a private key."""
    show_key(file, as_json=as_json)
