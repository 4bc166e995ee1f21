"""Commands and groups of them as typer makes them, with two exceptions.

Help is an answer like any other: standard output that is closed, full or gone is reported. And
values are converted only where they have to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

from datacollect.commands.console import emit
from datacollect.commands.conversion import convert_what_needs_it
from datacollect.commands.named_entries import describing_entries, take_own_options

if TYPE_CHECKING:
    from typer import Context


def _show(context: Context, _: Any, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        emit(context.get_help())
        context.exit()


class Command(TyperCommand):
    """A command whose help is written by `emit`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command's arguments and options."""
        parameters = self.get_params(ctx)
        convert_what_needs_it(parameters)
        return super().parse_args(ctx, take_own_options(ctx, parameters, args))

    def get_help(self, ctx: Any) -> str:
        """Return the help, which lists the entries that options may name."""
        with describing_entries(self.params):
            return super().get_help(ctx)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option, which typer itself would let write unjudged."""
        return _judged(super().get_help_option(ctx))


class Group(TyperGroup):
    """Commands whose help is written by `emit`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the command's name."""
        convert_what_needs_it(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option, which typer itself would let write unjudged."""
        return _judged(super().get_help_option(ctx))


def _judged(option: Any) -> Any:
    option.callback = _show
    return option
