"""The commands ``datacollect collection new`` and ``datacollect collection add``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import emit, emit_json, note
from datacollect.commands.help_option import Command, Group
from datacollect.commands.options import Json

collection = typer.Typer(
    help="Make a collection file, and add agents to it.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@collection.command(cls=Command)
def new(
    file: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="The collection file.")
    ] = "collection.toml",
    destination: Annotated[
        str, typer.Option("--destination", metavar="NAME", help="This host's name in the plan.")
    ] = "D",
    key: Annotated[
        str,
        typer.Option(
            "--key", metavar="KEY", help="File of the key, in the folder of the collection file."
        ),
    ] = "collector.key",
    as_json: Json = False,
) -> None:
    """Make a collection file and the key that signs its tickets; print the public key.

    A key that is there is taken. Where both are there already, nothing changes.
    """
    from datacollect.transfer.pull.config.editing import new_collection

    public = new_collection(file, destination, key)
    note(
        f"{file} is written; on each host that has data run, with its name for NAME and its "
        "folder for DIR:"
    )
    note(f"  datacollect agent init --name NAME --serve DIR --collector {public}")
    if as_json:
        emit_json({"file": file, "public": public})
    else:
        emit(public)


@collection.command(cls=Command)
def add(
    line: Annotated[
        list[str],
        typer.Argument(
            metavar="LINE",
            help="The line that `agent init` printed; - reads such lines from a pipe.",
        ),
    ],
    file: Annotated[
        str, typer.Option("--to", metavar="FILE", help="The collection file.")
    ] = "collection.toml",
    force: Annotated[
        bool, typer.Option("--force", help="Replace an agent's address and fingerprint.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add an agent to a collection file; one that is in it already stays as it is."""
    from datacollect.files.documents import read_text
    from datacollect.transfer.protocol.introduction import introductions_of
    from datacollect.transfer.pull.config.editing import add_agents

    text = read_text("-") if line == ["-"] else " ".join(line)
    added = add_agents(file, introductions_of(text), force=force)
    if as_json:
        emit_json({"file": file, "added": [each.name for each in added if each.is_new]})
    for each in added:
        if not as_json:
            emit(f"{each.name} {'added to' if each.is_new else 'was already in'} {file}")
        if not each.is_collected:
            note(f"{each.name} only relays: [sources] of {file} does not name it")
