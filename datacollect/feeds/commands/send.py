"""The command ``datacollect feed send``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import emit_facts, emit_json, note
from datacollect.commands.conversion import TIME, number_in
from datacollect.commands.options import Json
from datacollect.errors import ProblemError

SOMETHING_MISSING = 1


def send(
    feed_file: Annotated[str, typer.Argument(metavar="FEED", help="File of the feed, TOML.")],
    source: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="What is sent, at its rate. Default: standard input."),
    ] = None,
    generate: Annotated[
        str | None,
        typer.Option(
            "--generate", metavar=TIME, help="Instead of FILE: make data up for this long."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Bring what a source makes to another host while it is made; say what is missing.

    Exit code 1: something is missing. A connection that breaks is opened again; with a spill the
    same command goes on where it was killed.
    """
    from datacollect.feeds.commands.sending import FeedRun
    from datacollect.feeds.formats.feed_file import FeedFile

    feed = FeedFile.from_file(feed_file)
    run = FeedRun(feed, *_input(source, generate), tell=note)
    run.run()
    if as_json:
        emit_json(run.to_dict())
    else:
        emit_facts(run.facts())
    return 0 if run.is_whole else SOMETHING_MISSING


def _input(source: str | None, generate: str | None) -> tuple[Path | None, float | None]:
    """Return the file that is read, None for standard input; or how long data are made up."""
    from datacollect.files.with_units import DURATION

    if source is not None and generate is not None:
        raise ProblemError("give either FILE or --generate, got both")
    if generate is not None:
        return None, DURATION.read(number_in(generate), "--generate")
    return None if source in (None, "-") else Path(source or ""), None


SEND_COMMAND = CommandSpec("send", send)
