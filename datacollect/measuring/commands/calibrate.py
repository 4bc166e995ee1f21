"""``datacollect host calibrate``: what this machine's processor, memory and disk take."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.brought import CommandSpec


def calibrate(
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="PROFILE.toml", help="File of the profile.")
    ],
) -> None:
    """Measure what bytes cost this machine, into a profile."""
    raise NotImplementedError(output)


COMMAND = CommandSpec("calibrate", calibrate)
