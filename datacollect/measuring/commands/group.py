"""The commands ``datacollect measure …``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import typer

from datacollect.commands.at_work import at_work
from datacollect.commands.brought import CommandSpec
from datacollect.commands.help_option import Command, Group
from datacollect.measuring.commands.cycle import cycle
from datacollect.measuring.commands.flood import flood
from datacollect.measuring.commands.hosts import hosts
from datacollect.measuring.commands.next_steps import next_steps_of
from datacollect.measuring.commands.problem import problem
from datacollect.measuring.commands.scan import scan
from datacollect.measuring.commands.tools import command_of
from datacollect.measuring.commands.watch import watch
from datacollect.measuring.operator.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

measure = typer.Typer(
    help="Measure the network between hosts.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)
COMMANDS: tuple[Callable[..., Any], ...] = (
    *(hosts, cycle),
    *map(command_of, TOOLS.values()),
    *(scan, flood, problem, watch),
)
for command in COMMANDS:
    # Once: both `at_work` and typer would.
    command.__annotations__ = inspect.get_annotations(command, eval_str=True)
    measure.command(cls=Command)(at_work(command, steps=next_steps_of))


COMMAND = CommandSpec("measure", measure)
