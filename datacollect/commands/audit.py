"""The command ``datacollect audit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit, emit_json, emit_table, emit_text, note, working
from datacollect.commands.options import Force, Json, require_new
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.bistro.audit.audit_event import Audit

SHOWN_RECEIPTS = 20


def audit(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The event's file, as published.")],
    log: Annotated[bool, typer.Option("--log", help="Read the logs of all services.")] = False,
    receipts: Annotated[
        str | None,
        typer.Option("--receipts", metavar="DIR", help="Hold these receipts against the logs."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the amendments, for verify --amendments."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Read an event's logs whole; say what in them, or in receipts, does not fit together.

    Exit 0: all fits; 1: there is evidence of a lie, or a receipt proves no time; 3: a log could not
    be read.
    """
    from datacollect.bistro.audit.audit_event import audit_event

    if not log:
        raise ProblemError("say what to audit: --log reads the logs")
    require_new(output, force=force)
    with working("reading logs"):
        found = audit_event(event, receipts=receipts, amendments=output)
    if as_json:
        emit_json(found.to_dict())
    else:
        _show(found)
    if output is not None:
        note(f"saved to {output}")
    return found.exit_code


def _show(found: Audit) -> None:
    rows = [
        (each.url, str(each.size), str(each.n_checkpoints), str(each.n_witnesses))
        for each in found.logs
    ]
    emit_table(("service", "entries", "checkpoints", "witnesses of the last"), rows, "<>>>")
    for each in found.logs:
        if each.trouble:
            emit_text(f"{each.url} could not be read: {each.trouble}")
    for amendment in found.amendments:
        emit_text(f"amendment {amendment.number}, in {', '.join(amendment.logs)}:")
        for line in amendment.text.splitlines():
            emit_text(line, 2)
    outcomes = [each.outcome for each in found.receipts]
    for outcome in dict.fromkeys(outcomes):
        emit(f"receipts {outcome}: {outcomes.count(outcome)}")
    for receipt in [each for each in found.receipts if not each.is_provable][:SHOWN_RECEIPTS]:
        emit_text(f"{receipt.file}: {receipt.trouble or 'proves no time'}", 2)
    for lie in found.evidence:
        emit_text(f"evidence: {lie.who}: {lie.text}")
    emit("nothing contradicts anything" if not found.evidence else "there is evidence of lies")
