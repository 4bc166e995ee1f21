"""The commands ``datacollect measure …``."""

from __future__ import annotations

import typer

from datacollect.commands.help_option import Group
from datacollect.commands.measure_tools import add_tools

measure = typer.Typer(
    help="Measure the network between hosts.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)
add_tools(measure)
