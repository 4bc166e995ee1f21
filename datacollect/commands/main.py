"""The command line: ``datacollect plan``, ``compare``, ``check`` and so on.

Exit codes: 0 done; 1 the answer is no; 2 bad input or usage; 3 a solver or simulator failed.
Results go to standard output, all else to standard error. Imports stand inside the commands, so
that help and mistakes in the usage appear at once.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, cast

import typer

from datacollect.commands.advise import advise
from datacollect.commands.agent import agent
from datacollect.commands.at_work import at_work
from datacollect.commands.brought import COMMANDS as BROUGHT
from datacollect.commands.check import check
from datacollect.commands.collection import collection
from datacollect.commands.compare import compare
from datacollect.commands.console import complain, emit
from datacollect.commands.doctor import doctor
from datacollect.commands.ending import exit_code_of, run_and_leave
from datacollect.commands.estimate import estimate
from datacollect.commands.example import example
from datacollect.commands.explain import explain
from datacollect.commands.feed import HELP as FEED_HELP
from datacollect.commands.feed import feed_group
from datacollect.commands.front import front
from datacollect.commands.help_option import Command, Group
from datacollect.commands.host import host, whole_host
from datacollect.commands.keys import keys
from datacollect.commands.manifest import manifest
from datacollect.commands.method_options import (
    NAMING,
    brought_methods,
    method_names,
    why_not,
    with_options,
)
from datacollect.commands.options import Version
from datacollect.commands.plan import plan
from datacollect.commands.plot import plot
from datacollect.commands.progress import progress
from datacollect.commands.pull import pull
from datacollect.commands.pulls import pulls
from datacollect.commands.replan import replan
from datacollect.commands.report import report
from datacollect.commands.schema import kinds_in, offer, schema
from datacollect.commands.simulate import simulate
from datacollect.commands.spool import spool
from datacollect.commands.status import status
from datacollect.commands.streams import CLOSED_PIPE_EXIT_CODE
from datacollect.commands.sweep import sweep
from datacollect.commands.tunnel import tunnel
from datacollect.errors import nearest_hint
from datacollect.leaving import INTERRUPTED
from datacollect.wings import LISTED_COMMANDS, LISTED_GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from datacollect.commands.brought import CommandSpec

PROGRAM = "datacollect"
COMPLETES = "_DATACOLLECT_COMPLETE"
BAD_INPUT = 2


def root(
    context: typer.Context,
    version: Version = False,  # noqa: ARG001 - typer calls its callback
) -> None:
    """Plan the collection of large data from many hosts to one destination.

    Begin with: datacollect example upload, then datacollect compare upload.toml
    """
    if context.invoked_subcommand is None:
        emit(context.get_help())


# In the order in which help lists them; wings' stand behind them.
COMMANDS: tuple[Callable[..., Any], ...] = (
    *(plan, compare, advise, check, pulls, plot, schema, example, estimate, manifest),
    *(progress, replan, explain, front, simulate, sweep, report),
    *(doctor, pull, status, tunnel),
)
GROUPS = {"agent": agent, "collection": collection, "host": host, "keys": keys, "spool": spool}
FEED = "feed"
OWN = frozenset((*GROUPS, FEED, *(command.__name__ for command in COMMANDS)))
# Done at once.
SAY_NOTHING = (schema, example)


def app(names: Collection[str] | None = None, brought: Sequence[str] = ()) -> typer.Typer:
    """Return all commands.

    Parameters
    ----------
    names : collection of str, optional
        Commands that are called: to make the parameters of all takes longer than most of them do.
        Where none is, all of ours are listed.
    brought : sequence of str, optional
        Methods of other packages, whose options commands have, too; or kinds of files.
    """
    every = typer.Typer(
        name=PROGRAM,
        cls=Group,
        rich_markup_mode=None,  # rich would double the time that help takes
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    every.callback(invoke_without_command=True)(root)
    for command in COMMANDS:
        is_called = names is None or command.__name__ in names
        every.command(cls=Command)(
            _made(command, brought) if is_called else _listed(command.__name__, command.__doc__)
        )
    groups = dict(GROUPS)
    if names is None or "host" in names:
        groups["host"] = whole_host()
    is_called = names is None or FEED in names
    groups[FEED] = feed_group(brought) if is_called else typer.Typer(help=FEED_HELP)
    if names is None or names:
        for spec in map(BROUGHT.get, BROUGHT.own if names is None else {*names} - OWN):
            if isinstance(spec.command, typer.Typer):
                groups[spec.name] = spec.command
            else:
                every.command(spec.name, cls=Command)(_brought_made(spec))
    else:
        for name, text in LISTED_COMMANDS.items():
            every.command(cls=Command)(_listed(name, text))
        groups |= {name: typer.Typer(help=text) for name, text in LISTED_GROUPS.items()}
    for name in sorted(groups):
        every.add_typer(groups[name], name=name)
    return every


def _made(command: Callable[..., Any], brought: Sequence[str]) -> Callable[..., Any]:
    if command is schema:
        offer(brought)
    whole = with_options(command, brought)
    return whole if command in SAY_NOTHING else at_work(whole, logs=command is not pull)


def _brought_made(spec: CommandSpec) -> Callable[..., Any]:
    return spec.command if spec.has_own_log else at_work(spec.command)


def _listed(name: str, text: str | None) -> Callable[..., Any]:
    """Return what help of all commands lists one by."""

    def nothing() -> None:
        """Take no parameters."""

    nothing.__name__, nothing.__doc__ = name, text
    return nothing


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    run_and_leave(run)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code.

    Every error ends here as one message on standard error.
    """
    try:
        code = _commands(arguments)(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except typer.Abort:
        return exit_code_of(KeyboardInterrupt())
    except KeyboardInterrupt as error:
        return exit_code_of(error)
    except Exception as error:  # noqa: BLE001 - says which, exit 3
        # typer writes for shells that ask how a word goes on, which may have gone.
        if isinstance(error, BrokenPipeError) and COMPLETES in os.environ:
            return CLOSED_PIPE_EXIT_CODE
        if hasattr(error, "format_message"):  # typer's own, its class depends on typer's version
            return _usage_error(error)
        return exit_code_of(error)
    if code == INTERRUPTED:  # typer made a code of it
        complain("interrupted")
    return code if isinstance(code, int) else 0


def _commands(arguments: Sequence[str]) -> Callable[..., Any]:
    """Return the commands that some arguments call; all, where a shell asks how they go on."""
    if COMPLETES in os.environ:
        return _commands_named(None, ())
    first = arguments[0] if arguments else ""
    called = frozenset({first} if _is_command(first) else ())
    if first == FEED:
        brought = tuple(word for word in arguments[1:2] if word[:1] not in ("", "-"))
    else:
        brought = kinds_in(arguments) if schema.__name__ in called else brought_methods(arguments)
    return _commands_named(called, brought)


def _is_command(word: str) -> bool:
    """Say whether a word is a command's name; packages are looked for where it is none of ours."""
    return word in OWN or (word[:1] not in ("", "-") and BROUGHT.has(word))


@cache
def _commands_named(names: frozenset[str] | None, brought: tuple[str, ...]) -> Callable[..., Any]:
    made: Any = typer.main.get_command(app(names, brought))
    for name in NAMING.keys() & names if brought and names else ():
        method = next(each for each in made.commands[name].params if each.name == "method")
        method.metavar = method_names(name, brought)
    return cast("Callable[..., Any]", made)


def _usage_error(error: Any) -> int:
    message = error.format_message().replace("Value error, ", "")
    given, _, choices = message.partition(" is not one of ")
    # "Invalid value for '--x': 'y' is not one of 'z', ...": the last quoted word was given
    word = given.rpartition(": ")[2].strip("'")
    hint = nearest_hint(word, choices.rstrip(".").replace("'", "").split(", ")) if choices else ""
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", None)
    if context and option and (why := why_not(context.info_name, option)):
        message = f"{option}: {why}"
    complain(f"error: {message.removesuffix('.') if hint else message}{hint}")
    command = context.command_path if context else PROGRAM
    complain(f"try: {command} --help")
    return BAD_INPUT
