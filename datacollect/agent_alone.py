"""The program ``datacollect-agent``: agents and keys, without what collectors and planners need.

It reads its arguments with the standard library alone, so that a host that only serves and relays
has three packages to install and what these need. The same commands are ``datacollect agent`` and
``datacollect keys``.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from datacollect.commands.agent_work import check_agent, init_agent, new_key, serve, show_key
from datacollect.commands.ending import exit_code_of, run_and_leave
from datacollect.commands.spool_work import drop_spool, list_spool
from datacollect.commands.streams import emit, note
from datacollect.leaving import leave_with

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.handlers import Started

PROGRAM = "datacollect-agent"
COMMANDS = ("run", "check", "init", "keys", "spool")


def main() -> NoReturn:
    """Run the program and leave with its exit code."""
    leave_with(lambda: partial(run_and_leave, run))


def run(arguments: Sequence[str]) -> int:
    """Run the program; return the exit code. Every error ends as one message."""
    is_named = bool(arguments) and arguments[0] in (*COMMANDS, "-h", "--help")
    try:
        given = _parser().parse_args(arguments if is_named else ["run", *arguments])
        given.act(given)
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - says which, exit 3
        return exit_code_of(error)
    return 0


class _Parser(argparse.ArgumentParser):
    """Writes help and usage as commands write, and takes options by their whole names alone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "allow_abbrev": False})

    def _print_message(self, message: str, file: Any = None) -> None:
        write = emit if file is sys.stdout else note
        write(message.rstrip("\n"))


def _parser() -> _Parser:
    parser = _Parser(
        PROGRAM,
        description=f"A host's agent. `{PROGRAM} AGENT` is short for `{PROGRAM} run AGENT`.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run_parser = commands.add_parser("run", help="serve a host's folder, relay for others")
    run_parser.add_argument("agent", metavar="AGENT", help="file of the agent, TOML")
    run_parser.set_defaults(act=_run)
    check = commands.add_parser("check", help="ask the running agent of a file who it is")
    check.add_argument("agent", metavar="AGENT", help="file of the agent, TOML")
    check.set_defaults(act=lambda given: check_agent(given.agent, as_json=given.json))
    init = commands.add_parser("init", help="write an agent's file and print what introduces it")
    _add_init(init)
    keys = commands.add_parser("keys", help="make and show keys that sign tickets")
    of_keys = keys.add_subparsers(required=True, metavar="COMMAND")
    new = of_keys.add_parser("new", help="make a private key and print its public half")
    new.set_defaults(act=lambda given: new_key(given.file, as_json=given.json))
    show = of_keys.add_parser("show", help="print the public half of a private key")
    show.set_defaults(act=lambda given: show_key(given.file, as_json=given.json))
    for each in (new, show):
        each.add_argument("file", metavar="FILE", help="file of the private key")
    spool = commands.add_parser("spool", help="manage the room for pieces that wait")
    of_spool = spool.add_subparsers(required=True, metavar="COMMAND")
    listing = of_spool.add_parser("list", help="list what waits here, by collection")
    listing.set_defaults(
        act=lambda given: list_spool(given.agent, given.collection, as_json=given.json)
    )
    drop = of_spool.add_parser("drop", help="drop what waits here")
    drop.set_defaults(
        act=lambda given: drop_spool(given.agent, given.collection, as_json=given.json)
    )
    for each in (listing, drop):
        each.add_argument("agent", metavar="AGENT", help="file of the agent, TOML")
        each.add_argument("--collection", metavar="C", help="only this collection")
    for each in (run_parser, check, init, new, show, listing, drop):
        each.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _run(given: argparse.Namespace) -> None:
    from datacollect.transfer.agent.handlers import AgentHandlers

    measuring = AgentHandlers("measure", _start_measuring)
    serve(given.agent, as_json=given.json, handlers=[measuring])


def _start_measuring(config: AgentConfig, log: Callable[[str], None]) -> Started:
    """Begin to answer for tests; loaded where the agent's file has the table alone."""
    # Named, not looked up: what this program imports is all that its wheel has.
    from datacollect.measuring.agent.handlers import MEASURE_HANDLERS

    return MEASURE_HANDLERS.start(config, log)


def _add_init(init: argparse.ArgumentParser) -> None:
    """Add the options of ``init``, as `datacollect.commands.agent` has them."""
    init.add_argument("--name", required=True, help="the host's name in collections")
    init.add_argument(
        "--collector",
        metavar="KEY",
        action="append",
        required=True,
        help="public key of a collector; repeatable",
    )
    init.add_argument("--serve", metavar="DIR", help="folder that is served")
    init.add_argument(
        "--relay-to",
        metavar="NAME=HOST:PORT",
        action="append",
        default=[],
        help="a host to relay to; repeatable",
    )
    init.add_argument(
        "--listen", metavar="HOST:PORT", help="where it listens, by default 0.0.0.0:7443"
    )
    init.add_argument(
        "--address",
        metavar="HOST",
        help="how collectors reach it, by default this host's name",
    )
    init.add_argument("-o", "--output", metavar="FILE", help="its file, by default NAME.toml")
    init.add_argument("--force", action="store_true", help="overwrite what exists")
    init.set_defaults(act=_init)


def _init(given: argparse.Namespace) -> None:
    init_agent(
        given.name,
        given.collector,
        serve=given.serve,
        relay_to=given.relay_to,
        listen=given.listen,
        address=given.address,
        file=given.output,
        force=given.force,
        as_json=given.json,
        start=PROGRAM,
    )


if __name__ == "__main__":
    main()
