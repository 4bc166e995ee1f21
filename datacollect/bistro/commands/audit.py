"""The command ``datacollect audit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import emit, emit_json, emit_table, emit_text, note, working
from datacollect.commands.options import (
    Dask,
    Force,
    Json,
    Processes,
    require_at_most_one,
    require_new,
)
from datacollect.commands.streams import without_logs
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.bistro.auditor.audit_event import Audit
    from datacollect.bistro.auditor.custody_audit import Custody
    from datacollect.bistro.auditor.stamp_reading import Stamped

SHOWN_RECEIPTS = 20


def audit(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The event's file, as published.")],
    log: Annotated[
        bool, typer.Option("--log", help="Read only the logs of all services, not the verdicts.")
    ] = False,
    batches: Annotated[
        str | None,
        typer.Option("--batches", metavar="DIR", help="Folder of the batches of all bistros."),
    ] = None,
    verdicts: Annotated[
        str | None,
        typer.Option(
            "--verdicts",
            metavar="WHERE",
            help="The destination's log: its address, or a folder with its checkpoint and tiles.",
        ),
    ] = None,
    receipts: Annotated[
        str | None,
        typer.Option("--receipts", metavar="DIR", help="Compare these receipts with the logs."),
    ] = None,
    stamps: Annotated[
        str | None,
        typer.Option(
            "--stamps",
            metavar="WHERE",
            help="File or URL of stamps of outside authorities, to compare times with.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the amendments, for verify --amendments."
        ),
    ] = None,
    workers: Processes = None,
    dask: Dask = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Read all that was signed in an event; report what became of every entry, and who has lied.

    With --log, the logs of the services alone. With --verdicts, every entry in time is collected,
    refused, superseded or missing, exactly once.

    Exit 0: all fits; 1: there is evidence of a lie, something acknowledged has no verdict in the
    end, a receipt proves no time, or authorities saw entries much later than witnesses say; 3:
    something could not be read.
    """
    from datacollect.bistro.auditor.audit_event import audit_event

    if log == (verdicts is not None):
        raise ProblemError(
            "choose what to audit: --log reads only the logs, --verdicts WHERE the whole event"
        )
    require_at_most_one({"--workers": workers, "--dask": dask})
    require_new(output, force=force)
    with working("reading what was signed"), without_logs():
        found = audit_event(
            event,
            receipts=receipts,
            amendments=output,
            batches=batches,
            verdicts=verdicts,
            stamps=stamps,
            workers=workers,
            dask=dask,
        )
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
    if found.custody is not None:
        _show_custody(found.custody)
    if found.stamped is not None:
        _show_stamped(found.stamped)
    if found.caveat:
        emit_text(found.caveat)
    for lie in found.evidence:
        emit_text(f"evidence: {lie.who}: {lie.text}")
    emit("no contradictions found" if not found.evidence else "there is evidence of misbehaviour")


def _show_stamped(stamped: Stamped) -> None:
    from datacollect.files.units import counted, format_duration

    entries = counted(stamped.n_borne_out, "entry", "entries")
    by = "" if stamped.most_after_s is None else f" {format_duration(stamped.most_after_s)}"
    emit_text(
        f"{counted(stamped.n_stamps, 'stamp')} of outside authorities: {entries} existed by the "
        f"time that witnesses say, or at most{by or ' a while'} later"
    )
    if stamped.n_far:
        emit_text(
            f"{counted(stamped.n_far, 'entry', 'entries')} seen by authorities much later than "
            "witnesses say: no outside authority confirms these times"
        )
    if stamped.n_unstamped:
        emit_text(
            f"{counted(stamped.n_unstamped, 'entry', 'entries')} in no stamp: only the witnesses "
            "vouch for their times"
        )


def _show_custody(custody: Custody) -> None:
    counts = custody.counts
    missing = "missing" if custody.is_over else "missing so far"
    rows = [(f"{counts['in_time']:,}", "in time")]
    rows += [(f"{counts[name]:,}", f"  {name}") for name in ("collected", "superseded", "refused")]
    rows += [(f"{n:,}", f"    it {why}") for why, n in sorted(custody.refused.items())]
    rows.append((f"{counts['missing']:,}", f"  {missing}"))
    rows.append((f"{counts['acknowledged']:,}", "    of these held by a bistro, according to it"))
    rows.append((f"{counts['late']:,}", "late"))
    rows.append((f"{counts['unproved']:,}", "without a time that a quorum has signed"))
    if counts["superseded_by_absent"]:
        rows.append(
            (f"{counts['superseded_by_absent']:,}", "superseded by an entry that never arrived")
        )
    emit_table(("entries", ""), rows, "><")
    for entry in custody.unseen:
        emit_text(f"superseded by an entry that never arrived: {entry.hex()}")
    bistros = [
        (name, f"{n_batches:,}", f"{n_rows:,}")
        for name, (n_batches, n_rows) in custody.bistros.items()
    ]
    if bistros:
        emit_table(("bistro", "batches", "rows"), bistros, "<>>")
    for trouble in custody.troubles:
        emit_text(trouble)
    for dispute in custody.disputes:
        emit_text(f"at fault is {' or '.join(dispute.between)}: {dispute.text}")


COMMAND = CommandSpec("audit", audit)
