"""The commands ``datacollect agent AGENT``, ``agent init`` and ``agent check``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from datacollect.commands.agent_work import check_agent, init_agent, serve
from datacollect.commands.help_option import Command, Group
from datacollect.commands.options import Address, AgentFile, Collectors, Force, Json, Listen

HELP = ("-h", "--help")
RUN = "run"


class FileOrCommand(Group):
    """Commands, of which the first is meant where none is named: ``agent AGENT`` runs it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the first command before what is no command's name."""
        is_named = bool(args) and (args[0] in self.commands or args[0] in HELP)
        return super().parse_args(ctx, args if is_named else [RUN, *args])


agent = typer.Typer(
    help="Run a host's agent, or set one up: agent AGENT is short for agent run AGENT.",
    cls=FileOrCommand,
    rich_markup_mode=None,
)


@agent.command(RUN, cls=Command)
def run(
    agent_file: Annotated[str, typer.Argument(metavar="AGENT", help="File of the agent, TOML.")],
    as_json: Json = False,
) -> None:
    """Run a host's agent: serve its folder, relay for others.

    Says when it is ready; its log goes to standard error, a JSON object per line. Ends on SIGTERM
    after what is under way, at once if told again; rereads collectors and
    operators on SIGHUP.
    """
    serve(agent_file, as_json=as_json)


@agent.command(cls=Command)
def check(
    agent_file: Annotated[str, typer.Argument(metavar="AGENT", help="File of the agent, TOML.")],
    as_json: Json = False,
) -> None:
    """Check that the agent of this file is running; exit 3 if none answers, or another one.

    On the agent's host: for monitoring, and for containers.
    """
    check_agent(agent_file, as_json=as_json)


@agent.command(cls=Command)
def init(
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The host's name in collections.")
    ],
    collector: Collectors,
    folder: Annotated[
        str | None, typer.Option("--serve", metavar="DIR", help="Folder that is served.")
    ] = None,
    relay_to: Annotated[
        list[str] | None,
        typer.Option(
            "--relay-to", metavar="NAME=HOST:PORT", help="A host to relay to; repeatable."
        ),
    ] = None,
    tunnel: Annotated[
        list[str] | None,
        typer.Option(
            "--tunnel",
            metavar="NAME=HOST:PORT",
            help="A service that the collectors' tunnels lead to; repeatable.",
        ),
    ] = None,
    listen: Listen = None,
    address: Address = None,
    file: AgentFile = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write an agent's file, make its certificate, and print the line that the collector takes.

    On the collector's host: datacollect collection add LINE. The same again changes nothing.
    """
    init_agent(
        name,
        collector,
        serve=folder,
        relay_to=relay_to or (),
        tunnel=tunnel or (),
        listen=listen,
        address=address,
        file=file,
        force=force,
        as_json=as_json,
    )
