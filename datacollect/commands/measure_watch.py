"""The command ``datacollect measure watch``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import emit, emit_json, note_text, working
from datacollect.commands.measure_problem import stored_samples
from datacollect.commands.options import Force, Json, require_new


def watch(
    samples: Annotated[
        str, typer.Argument(metavar="SAMPLES", help="Folder that tests have written into.")
    ],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The page, .html.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show measurements on one page that needs no network: rates, round trips, routers, failures.

    It holds the names of hosts and the addresses of routers: send it to those who may know them.
    """
    from pathlib import Path

    from datacollect.files.documents import write_atomically
    from datacollect.pictures.watch import watch_html

    require_new(output, force=force)
    with working("reading samples"):
        stored = stored_samples(Path(samples))
    with working("drawing"):
        page = watch_html(f"Measurements: {Path(samples).resolve().name}", stored.frame)
    write_atomically(output, page.encode())
    if as_json:
        emit_json({"file": output, "n_tests": len(stored.frame), "damaged": list(stored.damaged)})
    else:
        emit(f"saved to {output}")
    for file in stored.damaged:
        note_text(f"note: {samples}/{file} is damaged and left out")
