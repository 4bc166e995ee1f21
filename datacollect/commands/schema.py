"""The command ``datacollect schema``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from datacollect.commands.options import FileKind, Output
from datacollect.commands.reading import write_text


def schema(
    kind: Annotated[
        FileKind, typer.Argument(metavar="KIND", help="Which format.")
    ] = FileKind.problem,
    output: Output = None,
) -> None:
    """Print a file format's JSON Schema.

    Editors complete and check by it.
    """
    from datacollect.commands.json_schemas import SCHEMAS

    write_text(json.dumps(SCHEMAS[kind.value](), indent=2), output)
