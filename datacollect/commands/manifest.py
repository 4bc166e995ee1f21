"""The command ``datacollect manifest``: the files of folders, as a CSV file."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.commands.console import emit, emit_json, note, note_text, progress_shown
from datacollect.commands.options import Force, Json, require_new
from datacollect.errors import ProblemError
from datacollect.units import counted, format_bytes

SHOWN = 20
INCOMPLETE = 1


def manifest(
    folders: Annotated[
        list[str],
        typer.Argument(metavar="HOST=DIR...", help="Whose files lie in which folder."),
    ],
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="The manifest to write, CSV."),
    ],
    include: Annotated[
        list[str] | None,
        typer.Option("--include", metavar="PATTERN", help="Only files like 'run7/**'; repeat it."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="PATTERN", help="No files like '**/*.tmp'; repeat it."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """List all files with sizes and SHA-256, for pull, pulls and progress.

    Interrupted, it goes on when it is started again. Exit code 1 if anything is left out.
    """
    from datacollect.transfer.manifests import totals, write_manifest

    require_new(output, force=force)
    hosts = _hosts(folders)
    with progress_shown() as show:
        found = write_manifest(
            output,
            hosts,
            include=tuple(include or ()),
            exclude=tuple(exclude or ()),
            on_read=lambda done, total: show(
                f"reading {format_bytes(done)} of {format_bytes(total)} "
                f"({done / total if total else 1:.0%})"
            ),
        )
    code = INCOMPLETE if found.left_out else 0
    if as_json:
        emit_json(totals(found))
        return code
    files = f"{counted(found.n_files, 'file')}, {format_bytes(found.n_bytes)}"
    kept = found.n_bytes - found.n_read_bytes
    emit(f"{files} listed in {output}" + (f"; {format_bytes(kept)} had been read" if kept else ""))
    for one in found.left_out[:SHOWN]:
        note(f"left out: {one.host}: {one.path}: {one.why}")
    if found.left_out:
        note_text(f"{counted(len(found.left_out), 'name')} left out, exit code {INCOMPLETE}")
    return code


def _hosts(folders: list[str]) -> dict[str, str]:
    """Return the folder of each host."""
    hosts: dict[str, str] = {}
    for text in folders:
        host, equals, folder = text.partition("=")
        if not equals or not host or not folder:
            raise ProblemError(f"{text!r}: must be HOST=DIR; write S1={text.strip('=')}")
        if host in hosts:
            raise ProblemError(f"host {host!r} is given twice; its files lie in one folder")
        hosts[host] = folder
    return hosts
