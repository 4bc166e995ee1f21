"""The commands ``datacollect measure …``."""

from __future__ import annotations

import typer

from datacollect.commands.at_work import at_work
from datacollect.commands.help_option import Command, Group
from datacollect.commands.measure_cycle import cycle
from datacollect.commands.measure_flood import flood
from datacollect.commands.measure_hosts import hosts
from datacollect.commands.measure_problem import problem
from datacollect.commands.measure_scan import scan
from datacollect.commands.measure_tools import curve, pairs, ping, tcp, trace
from datacollect.commands.measure_watch import watch

measure = typer.Typer(
    help="Measure the network between hosts.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (hosts, cycle, ping, trace, pairs, tcp, curve, scan, flood, problem, watch):
    measure.command(cls=Command)(at_work(command))
