"""The command ``datacollect schema``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from datacollect.commands.console import emit_json
from datacollect.commands.options import FileKind, Force, Json, Output, require_new
from datacollect.commands.reading import write_text


def schema(
    kind: Annotated[FileKind, typer.Argument(metavar="KIND", help="Which format.")] = "problem",
    output: Output = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Print a file format's JSON Schema.

    Editors complete and check by it. It is JSON with and without --json.
    """
    from datacollect.commands.json_schemas import SCHEMAS

    require_new(output, force=force)
    if as_json and output is not None:
        emit_json({"kind": kind, "file": output})
    write_text(json.dumps(SCHEMAS[kind](), indent=2), output)
