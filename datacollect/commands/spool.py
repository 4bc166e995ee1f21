"""The commands ``datacollect spool list`` and ``datacollect spool drop``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.help_option import Command, Group
from datacollect.commands.options import Json
from datacollect.commands.spool_work import drop_spool, list_spool

spool = typer.Typer(
    cls=Group,
    help="Manage an agent's spool: its room for pieces that wait.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

AgentWithSpool = Annotated[
    str, typer.Argument(metavar="AGENT", help="File of the agent, TOML, with a table spool.")
]
OneCollection = Annotated[
    str | None,
    typer.Option(
        "--collection", metavar="C", help="Only this collection, named as `spool list` shows it."
    ),
]


@spool.command("list", cls=Command)
def list_(
    agent_file: AgentWithSpool, collection: OneCollection = None, as_json: Json = False
) -> None:
    """Say what waits here, by collection: pieces, bytes, since and until when.

    The agent may run meanwhile.
    """
    list_spool(agent_file, collection, as_json=as_json)


@spool.command(cls=Command)
def drop(
    agent_file: AgentWithSpool, collection: OneCollection = None, as_json: Json = False
) -> None:
    """Delete what waits here, of one collection or of all.

    Its collector is told, and fetches it from its source again. The agent may run meanwhile.
    """
    drop_spool(agent_file, collection, as_json=as_json)
