"""Audit of an event: its logs read whole, held against each other and against receipts."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.bistro.auditor.custody_audit import (
    BATCH_SUFFIX,
    Custody,
    Sources,
    audit_custody,
    batch_files,
)
from datacollect.bistro.auditor.log_reading import WholeLog, read_log
from datacollect.bistro.auditor.stamp_reading import Stamped, held_against, stamps_at
from datacollect.bistro.formats.event.amendments import amended, missing_numbers, read_amendment
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.checkpoints import cosigned_times
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tree import inclusion_proof, leaf_hash
from datacollect.bistro.formats.receipt.evidence import (
    Lie,
    broken_words,
    clocks_set_back,
    contradictions,
    forks_among,
    hidden_log,
    two_heads,
)
from datacollect.bistro.formats.receipt.receipt import (
    PublishedAmendment,
    amendments_data,
    read_receipt,
)
from datacollect.bistro.formats.receipt.verify import published as published_amendments
from datacollect.bistro.formats.receipt.verify import require_receipt_of, verify
from datacollect.bistro.person.items import RECEIPT_SUFFIX
from datacollect.errors import DatacollectError, ProblemError
from datacollect.files.documents import document_name, read_bytes, write_atomically
from datacollect.files.with_units import in_whole
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import Asker
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from os import PathLike

    from datacollect.bistro.formats.event.amendments import Amendment
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.receipt.receipt import Receipt


# Services log what they have acknowledged within seconds; clocks may differ by so much.
OVER_AFTER_S = 600
# Of an event of version 1.
HEARD_TICKETS = (
    "an event of this older kind does not show who has handed something in: anyone who heard a "
    "ticket could use it"
)


@dataclass(frozen=True)
class AuditedLog:
    """Outcome of reading a service's log; `trouble`: why it could not be read."""

    url: str
    log: str
    size: int = 0
    n_checkpoints: int = 0
    n_witnesses: int = 0
    trouble: str = ""


@dataclass(frozen=True)
class AuditedReceipt:
    """Outcome of a receipt with the logs' proofs and amendments; `trouble`: why it is none."""

    file: str
    outcome: str
    time_s: int | None
    trouble: str = ""

    @property
    def is_provable(self) -> bool:
        """Return whether it proves a time."""
        return self.time_s is not None


@dataclass(frozen=True)
class AuditedAmendment:
    """An amendment, and the origins of the logs that hold it."""

    number: int
    text: str
    logs: tuple[str, ...]


@dataclass(frozen=True)
class Audit:
    """Findings of an audit.

    Attributes
    ----------
    event : str
        The event's id.
    logs : tuple of AuditedLog
    amendments : tuple of AuditedAmendment
    receipts : tuple of AuditedReceipt
    evidence : tuple of Lie
        Who has signed what does not fit together.
    custody : Custody or None
        What became of the uploads; None where only the logs were audited.
    caveat : str
        What an event of this kind cannot show; empty where there is nothing to say.
    stamped : Stamped or None
        What outside authorities bear out of the logs' times; None where nobody has asked.
    """

    event: str
    logs: tuple[AuditedLog, ...]
    amendments: tuple[AuditedAmendment, ...]
    receipts: tuple[AuditedReceipt, ...]
    evidence: tuple[Lie, ...]
    custody: Custody | None = None
    caveat: str = ""
    stamped: Stamped | None = None

    @property
    def exit_code(self) -> int:
        """1 with evidence, disputes, far times or a receipt for nothing; 3 without all to read."""
        disputes = self.custody.disputes if self.custody else ()
        is_far = self.stamped is not None and self.stamped.n_far > 0
        if self.evidence or disputes or not all(each.is_provable for each in self.receipts):
            return 1
        if is_far:
            return 1
        return 0 if self.is_complete else 3

    @property
    def is_complete(self) -> bool:
        """Return whether all could be read."""
        troubles = self.custody.troubles if self.custody else ()
        return not troubles and not any(each.trouble for each in self.logs)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "event": self.event,
            "complete": self.is_complete,
            "logs": [
                {
                    "url": each.url,
                    "log": each.log,
                    "size": each.size,
                    "checkpoints": each.n_checkpoints,
                    "witnesses": each.n_witnesses,
                    "trouble": each.trouble or None,
                }
                for each in self.logs
            ],
            "amendments": [
                {"number": each.number, "text": each.text, "logs": list(each.logs)}
                for each in self.amendments
            ],
            "receipts": [
                {
                    "file": each.file,
                    "outcome": each.outcome,
                    "time_s": each.time_s,
                    "trouble": each.trouble or None,
                }
                for each in self.receipts
            ],
            "evidence": [{"who": each.who, "text": each.text} for each in self.evidence],
            "custody": self.custody and self.custody.to_dict(),
            "caveat": self.caveat or None,
            "stamped": None if self.stamped is None else self.stamped.to_dict(),
        }


def audit_event(
    event: str | PathLike[str],
    *,
    receipts: str | PathLike[str] | None = None,
    amendments: str | PathLike[str] | None = None,
    batches: str | PathLike[str] | None = None,
    verdicts: str | PathLike[str] | None = None,
    stamps: str | None = None,
    workers: int | None = None,
    dask: str | None = None,
) -> Audit:
    """Read all that was signed in an event, and say what does not fit together.

    Entries must make the roots that were signed, every published checkpoint must be a beginning of
    the log, and so must be those that receipts hold; services must have logged what they have
    acknowledged. What contradicts that is evidence, for its signatures cannot be denied. With
    `verdicts`, every entry in time is collected, refused, superseded or missing, exactly once.

    Parameters
    ----------
    event : path-like
    receipts : path-like, optional
        Folder of receipts that people have handed to the auditor, ``NAME.receipt.json``.
    amendments : path-like, optional
        Where to write the amendments with their proofs, for who verifies receipts offline.
    batches : path-like, optional
        Folder in or below which the batches of all bistros lie, ``*.batch``.
    verdicts : str or path-like, optional
        Address of the destination's log of verdicts, or a folder with its checkpoint and tiles.
        None: only the logs are audited.
    stamps : str, optional
        File or URL of stamps of outside authorities, against which the logs' times are held.
    workers : int, optional
        Processes on this machine; by default one for each processor where there is much to read.
        0: none, this one does all.
    dask : str, optional
        Address of a Dask scheduler whose workers to use instead.

    Returns
    -------
    datacollect.bistro.auditor.audit_event.Audit
        Its `evidence` says who has signed what does not fit together; a log or a receipt that could
        not be read is named with its trouble.

    Raises
    ------
    ProblemError
        The event cannot be read, a folder is absent, or holds nothing of what it should.
    NotWrittenError
        The amendments cannot be written.
    SimulationError
        A worker has died, or Dask is not installed.

    Notes
    -----
    Processes are spawned: a script that calls this needs ``if __name__ == "__main__":``.

    Examples
    --------
    >>> import datacollect as dc
    >>> dc.audit_event("tax.toml", receipts="receipts").evidence  # doctest: +SKIP
    ()
    """
    sources = _sources(batches, verdicts, in_whole(workers, "workers"), dask)
    event_data = read_bytes(event)
    found = read_event(event_data, document_name(event))
    # By this host's clock: it decides of nothing but what may still come.
    is_over = time.time() >= found.collect_until_s + OVER_AFTER_S
    held, judged = ({}, []) if receipts is None else _receipts(Path(receipts), found, event_data)
    logs, wholes = _logs(found, is_over=is_over)
    published, listed, lies = _amendments(found, wholes)
    if amendments is not None:
        write_atomically(amendments, amendments_data(found.id, published))
    hidden = {each.log for each in logs if not each.trouble} - wholes.keys()
    lies += _lies(found, wholes, held, hidden, is_over=is_over)
    stamped = None
    if stamps is not None:
        stamped, others = held_against(stamps_at(stamps), wholes, found)
        lies += others
    for name, receipt in held.items():
        whole = _with_proofs(receipt, wholes, found)
        verdict = verify(event_data, whole, amendments=published)
        judged.append(AuditedReceipt(name, verdict.outcome, verdict.time_s))
    judged.sort(key=lambda each: each.file)
    custody = None
    if sources is not None:
        now = amended(found, published_amendments(found, published, []))
        custody = audit_custody(
            now,
            wholes,
            held.values(),
            sources,
            # Of what was cancelled nothing more is said: nobody has failed by that.
            is_over=is_over and now.cancelled is None,
            is_whole=are_whole(found, lies) and not any(each.trouble for each in logs),
        )
        lies += custody.lies
    evidence = tuple(dict.fromkeys(lies))
    caveat = "" if found.is_signed_for else HEARD_TICKETS
    return Audit(
        found.id.hex(),
        tuple(logs),
        tuple(listed),
        tuple(judged),
        evidence,
        custody,
        caveat,
        stamped,
    )


def _sources(
    batches: str | PathLike[str] | None,
    verdicts: str | PathLike[str] | None,
    workers: int | None,
    dask: str | None,
) -> Sources | None:
    if workers is not None and dask is not None:
        raise ProblemError("workers and dask cannot be combined; give one of them")
    if verdicts is None:
        if batches is not None:
            raise ProblemError(
                "batches are compared with verdicts; give verdicts, the address of their log or a "
                "folder"
            )
        return None
    folder = None if batches is None else Path(batches)
    if folder is not None and not batch_files(folder):
        raise ProblemError(
            f"{document_name(folder)}: holds no batches, *{BATCH_SUFFIX}; check the path, or audit "
            "without batches"
        )
    return Sources(folder, os.fspath(verdicts), workers, dask)


def _receipts(
    folder: Path, event: Event, event_data: bytes
) -> tuple[dict[str, Receipt], list[AuditedReceipt]]:
    """Return the receipts of a folder by file, and the files that are none of the event's."""
    if not folder.is_dir():
        raise ProblemError(f"{document_name(folder)}: no such folder; check the path")
    found = sorted(folder.rglob(f"*{RECEIPT_SUFFIX}"))
    if not found:
        raise ProblemError(f"{document_name(folder)}: holds no receipts, *{RECEIPT_SUFFIX}")
    held, others = {}, []
    for path in found:
        name = str(path.relative_to(folder))
        try:
            receipt = read_receipt(read_bytes(path), document_name(path))
            require_receipt_of(receipt, event, event_data)
        except ProblemError as error:
            others.append(AuditedReceipt(name, "not read", None, str(error)))
        else:
            held[name] = receipt
    return held, others


def _logs(event: Event, *, is_over: bool) -> tuple[list[AuditedLog], dict[str, WholeLog]]:
    """Read all logs at once; return what was read of each, and the logs by their origin."""
    tls = web_context()
    services = {each.url: each for each in event.services}

    def read(url: str) -> WholeLog | None:
        with Asker(url, tls) as asker:
            return read_log(services[url], event, asker, is_over=is_over)

    rows, wholes = [], {}
    for url, outcome in fan_out(services, read).items():
        service = services[url]
        row = AuditedLog(url, service.log.name)
        if outcome.error is not None:
            if not isinstance(outcome.error, DatacollectError):
                raise outcome.error
            rows.append(replace(row, trouble=str(outcome.error)))
        elif outcome.value is None:
            rows.append(row)
        else:
            whole = outcome.value
            wholes[service.log.name] = whole
            head = whole.log.head
            n_witnesses = len(cosigned_times(head.note, event.witness_keys))
            rows.append(
                replace(
                    row,
                    size=whole.log.size,
                    n_checkpoints=len(whole.checkpoints),
                    n_witnesses=n_witnesses,
                )
            )
    return sorted(rows, key=lambda row: row.url), wholes


def _amendments(
    event: Event, wholes: dict[str, WholeLog]
) -> tuple[list[PublishedAmendment], list[AuditedAmendment], list[Lie]]:
    """Return the amendments that stand in the logs, each with a proof of its own making."""
    amendments: dict[bytes, Amendment] = {}
    where: dict[bytes, list[str]] = {}
    proofs: dict[bytes, list[LogProof]] = {}
    lies: list[Lie] = []
    for origin, whole in wholes.items():
        for index, entry in whole.others.items():
            try:
                amendment = read_amendment(entry, event)
            except ProblemError:
                lies.append(
                    Lie(origin, f"Its entry {index} is neither a commitment nor an amendment.")
                )
                continue
            amendments[entry] = amendment
            where.setdefault(entry, []).append(origin)
            proofs.setdefault(entry, []).extend(_proofs_at(whole, index, event))
    found = sorted(amendments.values(), key=lambda each: each.number)
    lies += contradictions(found)
    lies += [
        Lie("organiser", f"Amendment {number} is in no log, though a later one is.")
        for number in missing_numbers(found)
    ]
    published = [
        PublishedAmendment(each.entry, tuple(proofs.get(each.entry, ()))) for each in found
    ]
    listed = [
        AuditedAmendment(each.number, _text(each.entry), tuple(where[each.entry])) for each in found
    ]
    return published, listed, lies


def _proofs_at(whole: WholeLog, index: int, event: Event) -> list[LogProof]:
    """Return the proof of an entry by the first checkpoint that a quorum has signed, if any has."""
    holding = [
        each
        for each in whole.checkpoints
        if each.checkpoint.size > index
        and len(cosigned_times(each.note, event.witness_keys)) >= event.quorum
    ]
    first = min(holding, key=lambda each: each.checkpoint.size, default=None)
    if first is None:
        return []
    hashes = inclusion_proof(index, first.checkpoint.size, whole.log.node)
    return [LogProof(index, tuple(hashes), first)]


def _with_proofs(receipt: Receipt, wholes: dict[str, WholeLog], event: Event) -> Receipt:
    """Add the proofs that logs give by now: a person may have only a service's word."""
    leaf = leaf_hash(receipt.entry)
    return receipt.with_more(
        proofs=[
            proof
            for word in receipt.acknowledgements
            if (whole := wholes.get(word.log)) is not None
            and word.index < whole.log.size
            and whole.log.node(0, word.index) == leaf
            for proof in _proofs_at(whole, word.index, event)
        ]
    )


def are_whole(event: Event, lies: Iterable[Lie]) -> bool:
    """Return whether no service has signed what its log does not keep.

    What witnesses have signed against each other, or the organiser, takes nothing out of logs.
    """
    return {service.log.name for service in event.services}.isdisjoint(lie.who for lie in lies)


def _text(entry: bytes) -> str:
    return entry.decode().rpartition("\n\n")[0]


def _lies(
    event: Event,
    wholes: dict[str, WholeLog],
    held: dict[str, Receipt],
    hidden: Collection[str] = (),
    *,
    is_over: bool = False,
) -> list[Lie]:
    """Hold receipts against each other and against logs; `hidden`: of logs that show nothing."""
    lies: list[Lie] = []
    for log in (service.log for service in event.services):
        theirs = [
            proof.signed
            for receipt in held.values()
            for proof in receipt.proofs
            if proof.signed.is_of(log)
        ]
        words = [
            (receipt.entry, word)
            for receipt in held.values()
            for word in receipt.acknowledgements
            if word.log == log.name
        ]
        whole = wholes.get(log.name)
        shown = [] if whole is None else [each for each in whole.checkpoints if each.is_of(log)]
        if whole is not None:
            lies += whole.lies
            lies += two_heads(whole.log, [*shown, *theirs], event)
            lies += broken_words(whole.log, words)
        elif log.name in hidden:
            lies += hidden_log(log, theirs, words, is_over=is_over)
        lies += forks_among(log, theirs, event)
        lies += clocks_set_back([*shown, *theirs], event)
    return lies
