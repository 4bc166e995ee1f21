"""An audit of what everybody shows in the end, without network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from instances.custody import Answering

from datacollect.bistro.auditor import audit_event as auditing
from datacollect.bistro.auditor.custody_audit import Custody, Sources, audit_custody
from datacollect.bistro.auditor.log_reading import read_log
from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.receipt.receipt import Receipt


def audited(
    event: Event,
    logs: Sequence[Answering],
    receipts: Mapping[str, Receipt],
    batches: Path,
    verdicts: Path,
    *,
    is_over: bool,
) -> tuple[Custody, set[str]]:
    """Return what an audit finds, and whom it accuses alone."""
    wholes = {}
    for service, log in zip(event.services, logs, strict=True):
        whole = read_log(service, event, log, is_over=is_over)
        if whole is not None:
            wholes[service.log.name] = whole
    hidden = {service.log.name for service in event.services} - wholes.keys()
    lies = auditing._lies(event, wholes, dict(receipts), hidden, is_over=is_over)
    found = audit_custody(
        *(event, wholes, receipts.values(), Sources(batches, str(verdicts), workers=0)),
        is_over=is_over,
        is_whole=auditing.are_whole(event, lies),
    )
    return found, {lie.who for lie in (*lies, *found.lies)}
