"""Help as an answer like any other: standard output that is closed, full or gone is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

from datacollect.commands.console import emit

if TYPE_CHECKING:
    from typer import Context


def _show(context: Context, _: Any, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        emit(context.get_help())
        context.exit()


class Command(TyperCommand):
    """A command whose help is written by `emit`."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option, which typer itself would let write unjudged."""
        return _judged(super().get_help_option(ctx))


class Group(TyperGroup):
    """Commands whose help is written by `emit`."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option, which typer itself would let write unjudged."""
        return _judged(super().get_help_option(ctx))


def _judged(option: Any) -> Any:
    option.callback = _show
    return option
