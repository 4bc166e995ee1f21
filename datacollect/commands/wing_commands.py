"""Commands that wings bring to groups of the core; where a wing is missing, they say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.at_work import at_work
from datacollect.commands.help_option import Command
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.commands.brought import CommandSpec
    from datacollect.files.registry import Registry


def add_brought(
    group: typer.Typer, registry: Registry[CommandSpec], name: str, text: str | None
) -> None:
    """Add a command of a wing; where the wing is not installed, one that says so when called.

    Parameters
    ----------
    group : typer.Typer
    registry : Registry
        Of the commands that may be brought to it.
    name : str
    text : str, optional
        What help says of the command where nothing of it can be imported.
    """
    try:
        spec = registry.get(name)
        command = spec.command if spec.has_own_log else at_work(spec.command)
        group.command(spec.name, cls=Command)(command)
    except ProblemError as error:
        missing = error

        def nothing(_: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
            raise missing

        nothing.__doc__ = text
        anything = {"ignore_unknown_options": True}
        group.command(name, cls=Command, context_settings=anything)(nothing)
