"""The command ``datacollect example``."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from datacollect.commands.console import emit_json, emit_table, note
from datacollect.commands.options import Force, Json
from datacollect.commands.reading import write_text
from datacollect.errors import ProblemError, nearest_hint


def example(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Example; without it, list them.")
    ] = None,
    folder: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="Folder to write to.")
    ] = ".",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a shipped example to start from, or list them all."""
    from datacollect.examples import (
        example_files,
        example_names,
        example_summary,
        host_names,
        program_names,
        scenario_names,
    )

    names = (*example_names(), *scenario_names(), *host_names(), *program_names())
    if name is None:
        rows = [(each, example_summary(each)) for each in names]
        if as_json:
            emit_json({"examples": [{"name": each, "shows": shows} for each, shows in rows]})
            return
        emit_table(("example", "shows"), rows)
        note("write one with: datacollect example NAME")
        return
    if name not in names:
        hint = nearest_hint(name, names) or f"; there are {', '.join(names)}"
        raise ProblemError(f"no example is called {name!r}{hint}")
    paths = {str(Path(folder, file)): text for file, text in example_files(name).items()}
    for path in paths:
        if os.path.lexists(path) and not force:
            raise ProblemError(f"{path}: exists already; --force overwrites, -o DIR avoids it")
    # Where it cannot be made, writing says why.
    with suppress(OSError):
        Path(folder).mkdir(parents=True, exist_ok=True)
    for path, text in paths.items():
        write_text(text.removesuffix("\n"), path)
    if as_json:
        emit_json({"name": name, "files": list(paths)})
    if name in program_names():
        note(f"try: datacollect example alps && python {next(iter(paths))} alps.toml")
        return
    command = "simulate --engine fluid" if name in scenario_names() else "compare"
    command = "host simulate" if name in host_names() else command
    note(f"try: datacollect {command} {next(iter(paths))}")
