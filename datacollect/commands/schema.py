"""The command ``datacollect schema``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from datacollect.commands.console import emit_json
from datacollect.commands.options import Force, Json, Output, require_new
from datacollect.commands.reading import write_text
from datacollect.wings import FILES as OF_WINGS

# Those that `datacollect.commands.json_schemas` has, whose import takes time.
KINDS = ("problem", "schedule", "scenario", "experiment", "agent", "collection", *OF_WINGS)

if TYPE_CHECKING:
    FileKind: TypeAlias = str
else:
    # Help shows a type by its name.
    FileKind = type("|".join(KINDS), (str,), {})


def _kind(text: str) -> str:
    if text not in KINDS:
        from datacollect.commands.json_schemas import FILES

        if not FILES.has(text):
            known = ", ".join(map(repr, KINDS))
            raise typer.BadParameter(f"{text!r} is not one of {known}.")
    return text


def schema(
    kind: Annotated[
        FileKind,
        typer.Argument(
            metavar="KIND",
            help="Which format.",
            parser=_kind,
            autocompletion=lambda: list(KINDS),
        ),
    ] = "problem",
    output: Output = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Print a file format's JSON Schema.

    Editors complete and check by it. It is JSON with and without --json.
    """
    from datacollect.commands.json_schemas import schema_of

    require_new(output, force=force)
    if as_json and output is not None:
        emit_json({"kind": kind, "file": output})
    write_text(json.dumps(schema_of(kind), indent=2), output)
