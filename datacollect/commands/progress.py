"""The command ``datacollect progress``: what has arrived, for planning the remainder."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from datacollect.commands.console import (
    complain_text,
    emit,
    emit_json,
    emit_table,
    note,
    note_text,
    working,
)
from datacollect.commands.conversion import TIME
from datacollect.commands.inputs import require_kept
from datacollect.commands.options import Force, Json, require_new
from datacollect.commands.reading import write_text
from datacollect.errors import ProblemError


def _not_negative(value: float | None) -> float | None:
    if value is not None and not 0 <= value < float("inf"):
        raise typer.BadParameter(f"must be a finite number >= 0, got {value:g}")
    return value


def progress(
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...", help="Folders in which exported scripts work: destination, relays."
        ),
    ],
    manifest_file: Annotated[
        str,
        typer.Option(
            "--manifest", metavar="FILE", help="CSV of all files: host, path, bytes, sha256."
        ),
    ],
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="The destination's name, if tools other than exported scripts filled DIR.",
        ),
    ] = None,
    at_s: Annotated[
        float | None,
        typer.Option(
            "--at",
            metavar=TIME,
            callback=_not_negative,
            help="Time since the plan's start. Default: the time since the scripts' start.",
        ),
    ] = None,
    is_rechecked: Annotated[
        bool,
        typer.Option(
            "--recheck",
            help="First read all files again, and drop those that were altered, so that they are "
            "fetched again. Exit code 1 if any were.",
        ),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write a progress file: .toml or .json."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Say what has arrived, from the files that are there, for replan.

    Files count by their size. With --json the progress file is printed.
    """
    from datacollect.exports.arrived import progress_toml, progress_tree, read_arrived
    from datacollect.exports.recheck import recheck
    from datacollect.problem.manifest import read_manifest

    if output is not None and not output.lower().endswith((".toml", ".json")):
        raise ProblemError(f"-o must name a progress file, .toml or .json, got {output!r}")
    require_kept(output, manifest_file)
    require_new(output, force=force)
    with working("looking at files"):
        manifest = read_manifest(manifest_file)
        given_up = [
            each
            for folder in (folders if is_rechecked else ())
            for each in recheck(folder, manifest, host)
        ]
        arrived = [read_arrived(folder, manifest, host) for folder in folders]
    tree = progress_tree(arrived, at_s)
    if output is not None:
        is_json = output.lower().endswith(".json")
        text = json.dumps(tree, ensure_ascii=False, indent=1) if is_json else progress_toml(tree)
        write_text(text, output)
    for each in given_up:
        complain_text(
            f"given up at {each.host}: bytes {each.offset_bytes} to "
            f"{each.offset_bytes + each.n_bytes} of {each.path!r} of {each.source!r}: {each.why}"
        )
    if as_json:
        emit_json(tree)
    else:
        _show(tree, {source: files.total_bytes for source, files in manifest.items()})
        _show_unproved(sum(each.unproved_bytes for each in arrived))
        if output is None:
            note("nothing is saved; -o FILE writes the progress for `replan`")
    if given_up:
        raise typer.Exit(1)


def _show(tree: dict[str, object], total_bytes: dict[str, int]) -> None:
    from datacollect.files.units import format_bytes

    held: dict[tuple[str, str], int] = {}
    entries = tree.get("held", [])
    assert isinstance(entries, list)
    for entry in entries:
        key = (entry["source"], entry["host"])
        held[key] = held.get(key, 0) + entry["bytes"]
    rows = [
        (source, host, format_bytes(n_bytes), f"{n_bytes / total_bytes[source]:.1%}")
        for (source, host), n_bytes in sorted(held.items())
    ]
    if rows:
        emit_table(("data of", "at", "bytes", "of its backlog"), rows, "<<>>")
    else:
        emit("nothing has arrived")


def _show_unproved(n_bytes: int) -> None:
    from datacollect.files.units import format_bytes

    if n_bytes:
        note_text(
            f"{format_bytes(n_bytes)} more have arrived of incomplete files whose SHA-256 is not "
            "known: the same scripts continue them, other plans cannot."
        )
