"""The commands ``datacollect keys new`` and ``datacollect keys show``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import emit, note

keys = typer.Typer(
    help="Make and show the keys that sign tickets.", no_args_is_help=True, rich_markup_mode=None
)

KeyFile = Annotated[str, typer.Argument(metavar="FILE", help="File of the private key.")]


@keys.command()
def new(file: KeyFile) -> None:
    """Make a private key, which only you may read, and print its public half.

    Agents count the public half's tickets once it stands in their files under collectors.
    """
    from datacollect.signing import new_private_key, write_private_key

    key = new_private_key()
    write_private_key(file, key)
    note(f"saved to {file}; keep it to yourself, and write this into the agents' collectors:")
    emit(key.public)


@keys.command()
def show(file: KeyFile) -> None:
    """Print the public half of a private key."""
    from datacollect.signing import read_private_key

    emit(read_private_key(file).public)
