"""The commands ``datacollect measure …``."""

from __future__ import annotations

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
from datacollect.measuring.commands.tools import curve, pairs, ping, tcp, trace
from datacollect.measuring.commands.watch import watch

measure = typer.Typer(
    help="Measure the network between hosts.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (hosts, cycle, ping, trace, pairs, tcp, curve, scan, flood, problem, watch):
    measure.command(cls=Command)(at_work(command, steps=next_steps_of))


COMMAND = CommandSpec("measure", measure)
