"""The command ``datacollect event page``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import emit, emit_json, emit_text, note, note_text
from datacollect.commands.options import Force, Json
from datacollect.errors import ProblemError

EventFile = Annotated[str, typer.Argument(metavar="EVENT", help="The event's file, as published.")]


def page(
    event_file: EventFile,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="DIR", help="Folder of the page.")
    ] = None,
    amendments: Annotated[
        str | None,
        typer.Option(
            "--amendments",
            metavar="FILE",
            help="File of amendments: what the organiser has changed since.",
        ),
    ] = None,
    privacy: Annotated[
        str | None,
        typer.Option("--privacy", metavar="FILE", help="Text file with your privacy notice."),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="PLACE",
            help="Compare the page in this folder or at this URL with the right one.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Write the page on which people hand in, in a browser; serve its files as they are.

    Whoever serves it could read what is handed in: serve it yourself, never from a bistro.
    With --check nothing is written: exit 0 where the page there is the event's, 1 where it differs.
    """
    from datacollect.bistro.page.writing import check_page, write_page

    if (output is None) == (check is None):
        raise ProblemError(
            "name the folder to write with -o, or the folder or URL to compare with --check"
        )
    if check is not None:
        differences = check_page(event_file, check, amendments, privacy=privacy)
        if as_json:
            emit_json({"place": check, "differences": differences})
        else:
            emit("differs" if differences else "the page matches the event's, byte by byte")
            for sentence in differences:
                emit_text(sentence, 2)
        return 1 if differences else 0
    assert output is not None
    written = write_page(event_file, output, amendments, privacy=privacy, force=force)
    if as_json:
        emit_json({"folder": output, "files": written.n_files, "cautions": list(written.cautions)})
        return 0
    emit(f"{written.n_files} files in {output}")
    for sentence in written.cautions:
        note_text(f"caution: {sentence}")
    note("serve these files over https, with the headers of headers.conf")
    return 0
