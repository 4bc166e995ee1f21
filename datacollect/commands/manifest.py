"""The command ``datacollect manifest``: which files a folder holds, for problems and exports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import (
    amounts_shown,
    complain,
    complain_text,
    emit,
    emit_json,
    is_watched,
    note,
    on_terminal,
    progress_shown,
    working,
)
from datacollect.commands.options import Force, Json, require_new
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.files.stages import stage
from datacollect.files.units import counted, format_bytes

if TYPE_CHECKING:
    from datacollect.exports.inventory import Inventory

SHOWN_NOT_LISTED = 20
INCOMPLETE = 1


def manifest(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of one host's files.")],
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="HOST", help="Host that has these files. Default: DIR's name."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the manifest to this file; the same command continues it.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """List the files of DIR as a manifest: host, path, bytes, sha256.

    It is what problem files, pull and pulls read. With -o, what is hashed is noted beside FILE
    until it is whole. Exit code 1 where something in DIR cannot be listed: links, files that cannot
    be read, that change while they are read, or whose names a manifest cannot hold. --json tells
    what came of it, and needs -o.
    """
    if as_json and output is None:
        raise ProblemError("--json: needs -o FILE, since standard output is for the manifest")
    require_new(output, force=force)
    host = host or Path(folder).resolve().name
    if not host:
        raise ProblemError("--host is missing: DIR has no name; say whose files they are")
    made = _made(folder, host, output)
    if as_json:
        emit_json(_tree(made))
    _note(made, output)
    return INCOMPLETE if made.not_listed else 0


def _made(folder: str, host: str, output: str | None) -> Inventory:
    """Write the manifest, and say how far that is."""
    from datacollect.exports.inventory import save_manifest, size_of_folder, stream_manifest

    all_files = all_bytes = 0
    # On a terminal its rows say so themselves.
    is_told = is_watched() and not (output is None and on_terminal(sys.stdout))
    if is_told:
        with working(f"looking at what {folder} holds"):
            all_files, all_bytes = size_of_folder(folder)
    with stage(f"hashing {folder}"), progress_shown() as show:
        far = amounts_shown(show)

        def report(n_files: int, n_bytes: int) -> None:
            if is_told:
                far(n_files, n_bytes, all_files, all_bytes)

        if output is not None:
            return save_manifest(folder, host, output, report)
        return stream_manifest(folder, host, lambda row: emit(row.removesuffix("\n")), report)


def _tree(made: Inventory) -> dict[str, object]:
    return {
        "files": made.n_files,
        "bytes": made.n_bytes,
        "known_files": made.n_known_files,
        "not_listed": [{"path": shown(path), "why": why} for path, why in made.not_listed],
    }


def _note(made: Inventory, output: str | None) -> None:
    for path, why in made.not_listed[:SHOWN_NOT_LISTED]:
        complain_text(f"not listed: {shown(path)}: {why}")
    if len(made.not_listed) > SHOWN_NOT_LISTED:
        complain(f"and {len(made.not_listed) - SHOWN_NOT_LISTED} more; --json lists all")
    if output is not None:
        known = f", {counted(made.n_known_files, 'file')} of an earlier start"
        note(
            f"{counted(made.n_files, 'file')}, {format_bytes(made.n_bytes)}"
            + (known if made.n_known_files else "")
        )
        note(f"saved to {output}")
