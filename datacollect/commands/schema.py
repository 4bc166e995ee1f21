"""The command ``datacollect schema``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from datacollect.commands.console import emit_json
from datacollect.commands.options import Force, Json, Output, require_new
from datacollect.commands.reading import write_text
from datacollect.wings import FILES as OF_WINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

# Those that `datacollect.commands.json_schemas` has, whose import takes time.
KINDS = (
    "problem",
    "schedule",
    "scenario",
    "experiment",
    "agent",
    "collection",
    "host-profile",
    "host-simulation",
    *OF_WINGS,
)

# What `kind` is annotated with says which names there are: typer reads it for each call.
FileKind: TypeAlias = str


def kinds_in(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of other packages that the command's line names; they are looked for then.

    >>> kinds_in(["schema", "problem", "--json"])
    ()
    """
    others = [each for each in arguments[1:2] if each[:1] != "-" and each not in KINDS]
    if not others:
        return ()
    from datacollect.files.file_kinds import FILE_KINDS

    return tuple(filter(FILE_KINDS.has, others))


def offer(brought: Sequence[str] = ()) -> None:
    """Have the command take our kinds, and some of other packages."""
    names: Any = Literal.__getitem__((*KINDS, *brought))
    argument = typer.Argument(metavar="KIND", help="Which format.")
    schema.__annotations__["kind"] = Annotated[names, argument]


def schema(
    kind: FileKind = "problem",
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


offer()
