"""The commands ``datacollect keys new`` and ``datacollect keys show``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import emit, emit_json, note
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
    from datacollect.net.keys import new_private_key, write_private_key

    key = new_private_key()
    write_private_key(file, key)
    note(f"saved to {file}; keep it to yourself, and write this into the agents' collectors:")
    _show(file, key.public, as_json=as_json)


@keys.command(cls=Command)
def show(file: KeyFile, as_json: Json = False) -> None:
    """Print the public half of a private key."""
    from datacollect.net.keys import read_private_key

    _show(file, read_private_key(file).public, as_json=as_json)


def _show(file: str, public: str, *, as_json: bool) -> None:
    if as_json:
        emit_json({"file": file, "public": public})
    else:
        emit(public)
