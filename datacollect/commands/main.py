"""The command line: ``datacollect plan``, ``compare``, ``check`` and so on.

Exit codes: 0 done; 1 the answer is no; 2 bad input or usage; 3 a solver or simulator failed.
Results go to standard output, all else to standard error. Imports stand inside the commands, so
that help and mistakes in the usage appear at once.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from datacollect.commands.agent import agent
from datacollect.commands.check import check
from datacollect.commands.collection import collection
from datacollect.commands.compare import compare
from datacollect.commands.console import emit, note
from datacollect.commands.estimate import estimate
from datacollect.commands.example import example
from datacollect.commands.explain import explain
from datacollect.commands.front import front
from datacollect.commands.help_option import Command, Group
from datacollect.commands.keys import keys
from datacollect.commands.options import Version
from datacollect.commands.plan import plan
from datacollect.commands.plot import plot
from datacollect.commands.progress import progress
from datacollect.commands.pull import pull
from datacollect.commands.pulls import pulls
from datacollect.commands.replan import replan
from datacollect.commands.report import report
from datacollect.commands.schema import schema
from datacollect.commands.simulate import simulate
from datacollect.commands.status import status
from datacollect.commands.streams import CLOSED_PIPE_EXIT_CODE
from datacollect.commands.sweep import sweep
from datacollect.errors import FULL, DatacollectError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "datacollect"
COMPLETES = "_DATACOLLECT_COMPLETE"
STDERR = 2
BAD_INPUT, FAILED, INTERRUPTED = 2, 3, 130

app = typer.Typer(
    name=PROGRAM,
    cls=Group,
    rich_markup_mode=None,  # rich would double the time that help takes
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Version = False,  # noqa: ARG001 - typer calls its callback
) -> None:
    """Plan the collection of large data from many hosts to one destination.

    Begin with: datacollect example upload, then datacollect compare upload.toml
    """
    if context.invoked_subcommand is None:
        emit(context.get_help())


# In the order in which help lists them.
for command in (
    *(plan, compare, check, pulls, plot, schema, example, estimate),
    *(progress, replan, explain, front, simulate, sweep, report),
    *(pull, status),
):
    app.command(cls=Command)(command)
app.add_typer(agent, name="agent")
app.add_typer(collection, name="collection")
app.add_typer(keys, name="keys")


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    _keep_first_descriptors()
    for stream in (sys.stdout, sys.stderr):
        # File names and hosts may hold what the terminal's encoding lacks.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    # From here on an interruption would only disturb what is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _keep_first_descriptors() -> None:
    """Have no file opened as standard input, output or error, where one of these is closed.

    Whatever a library or the system writes to standard error would be written into it. Where this
    host has no room for that, the command will say so by itself.
    """
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= STDERR:
            pass
        os.close(number)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit code.

    Every error ends here as one message on standard error.
    """
    try:
        code = typer.main.get_command(app)(
            list(arguments), prog_name=PROGRAM, standalone_mode=False
        )
    except DatacollectError as error:
        note(f"error: {error}")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        note("interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - says which, exit 3
        # typer writes for shells that ask how a word goes on, which may have gone.
        if isinstance(error, BrokenPipeError) and COMPLETES in os.environ:
            return CLOSED_PIPE_EXIT_CODE
        if hasattr(error, "format_message"):  # typer's own, its class depends on typer's version
            return _usage_error(error)
        # Loading a library may turn an interruption into an error of its own.
        if _stems_from_interruption(error):
            note("interrupted")
            return INTERRUPTED
        return _refused_by_system(error) or _internal_error(error)
    if code == INTERRUPTED:  # typer made a code of it
        note("interrupted")
    return code if isinstance(code, int) else 0


def _stems_from_interruption(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _usage_error(error: Any) -> int:
    message = error.format_message().replace("Value error, ", "")
    given, _, choices = message.partition(" is not one of ")
    # "Invalid value for '--x': 'y' is not one of 'z', ...": the last quoted word was given
    word = given.rpartition(": ")[2].strip("'")
    hint = nearest_hint(word, choices.rstrip(".").replace("'", "").split(", ")) if choices else ""
    note(f"error: {message.removesuffix('.') if hint else message}{hint}")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else PROGRAM
    note(f"try: {command} --help")
    return BAD_INPUT


def _refused_by_system(error: Exception) -> int | None:
    """Say what this host refuses, where that is all; None: the error is another."""
    # The last two are what file systems over a network say.
    refusals = (*FULL, errno.EACCES, errno.ETIMEDOUT, errno.ESTALE)
    is_refused = isinstance(error, OSError) and error.errno in refusals
    if not is_refused and not isinstance(error, ImportError | MemoryError):
        return None
    _print_in_full(error)
    note(f"error: this host refuses: {type(error).__name__}: {error}; mend that, and try again")
    return FAILED


def _print_in_full(error: Exception) -> None:
    if os.environ.get("DATACOLLECT_DEBUG"):
        import traceback

        note("".join(traceback.format_exception(error)).rstrip())


def _internal_error(error: Exception) -> int:
    _print_in_full(error)
    note(
        f"error: internal error: {type(error).__name__}: {error}; please report it with the "
        "command and its files (DATACOLLECT_DEBUG=1 shows where it happened)"
    )
    return FAILED
