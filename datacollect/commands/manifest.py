"""The command ``datacollect manifest``: which files a folder holds, for problems and exports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit, emit_json, note, note_text, progress_shown
from datacollect.commands.options import Force, Json, require_new
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.files.units import counted, format_bytes

if TYPE_CHECKING:
    from datacollect.exports.inventory import Inventory

SHOWN_NOT_LISTED = 20
INCOMPLETE = 1


def manifest(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of one host's files.")],
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="HOST", help="Whose files they are. Default: DIR's name."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write it to a file; started again it goes on."
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
        raise ProblemError("--json: needs -o FILE, standard output is the manifest's own")
    require_new(output, force=force)
    host = host or Path(folder).resolve().name
    if not host:
        raise ProblemError("--host is missing: DIR has no name; say whose files they are")
    if output is None:
        from datacollect.exports.inventory import tell_manifest

        made = tell_manifest(folder, host, lambda row: emit(row.removesuffix("\n")))
    else:
        made = _saved(folder, host, output)
    if as_json:
        emit_json(_tree(made))
    _note(made, output)
    return INCOMPLETE if made.not_listed else 0


def _saved(folder: str, host: str, output: str) -> Inventory:
    from datacollect.exports.inventory import save_manifest

    with progress_shown() as show:
        try:
            return save_manifest(
                folder,
                host,
                output,
                lambda n_files, n_bytes: show(
                    f"{counted(n_files, 'file')}, {format_bytes(n_bytes)} listed"
                ),
            )
        except KeyboardInterrupt:
            note("started again it goes on")
            raise


def _tree(made: Inventory) -> dict[str, object]:
    return {
        "files": made.n_files,
        "bytes": made.n_bytes,
        "known_files": made.n_known_files,
        "not_listed": [{"path": shown(path), "why": why} for path, why in made.not_listed],
    }


def _note(made: Inventory, output: str | None) -> None:
    for path, why in made.not_listed[:SHOWN_NOT_LISTED]:
        note_text(f"not listed: {shown(path)}: {why}")
    if len(made.not_listed) > SHOWN_NOT_LISTED:
        note(f"and {len(made.not_listed) - SHOWN_NOT_LISTED} more; --json lists all")
    if output is not None:
        known = f", {counted(made.n_known_files, 'file')} of an earlier start"
        note(
            f"{counted(made.n_files, 'file')}, {format_bytes(made.n_bytes)}"
            + (known if made.n_known_files else "")
        )
        note(f"saved to {output}")
