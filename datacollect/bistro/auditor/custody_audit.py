"""Audit of custody: logs, batches, verdicts and receipts compared for every upload of an event."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.bistro.auditor.batch_reading import BatchHead, chain, read
from datacollect.bistro.auditor.findings import (
    DESTINATION,
    HOLDS_OTHER,
    Dispute,
    Finding,
    finding,
    united,
)
from datacollect.bistro.auditor.tables import HELD, LOGGED, NEVER_S, Spool
from datacollect.bistro.auditor.tally import MOST_MISSING, Rules, tally
from datacollect.bistro.auditor.verdict_reading import VerdictsRead, proved_by_ended, read_verdicts
from datacollect.bistro.auditor.workers import n_processes_for, workers_of
from datacollect.bistro.formats.custody.batches import MOST_BATCH_BYTES
from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt, read_bistro_receipt
from datacollect.bistro.formats.custody.verdicts import reasons_of
from datacollect.bistro.formats.log.checkpoints import cosigned_times
from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tree import tree_root
from datacollect.bistro.formats.receipt.counted_time import kth_smallest
from datacollect.bistro.formats.receipt.evidence import forks_among
from datacollect.errors import DatacollectError, ProblemError
from datacollect.files.documents import document_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from datacollect.bistro.auditor.log_reading import WholeLog
    from datacollect.bistro.auditor.workers import Workers
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint
    from datacollect.bistro.formats.receipt.evidence import Lie
    from datacollect.bistro.formats.receipt.receipt import Receipt

BATCH_SUFFIX = ".batch"
# Entries of a log that become rows at once.
N_TOGETHER = 2**17


@dataclass(frozen=True)
class Sources:
    """Places where an audit finds what bistros and the destination have signed.

    Attributes
    ----------
    batches : Path or None
        Folder; every file ``*.batch`` in it or below is one.
    verdicts : str
        Address of the log of verdicts, or a folder with its checkpoint and tiles.
    workers : int or None
        Processes on this machine; 0: none; None: as many as there are processors, for much.
    dask : str or None
        Address of a Dask scheduler whose workers to use instead.
    """

    batches: Path | None
    verdicts: str
    workers: int | None = None
    dask: str | None = None


@dataclass(frozen=True)
class Custody:
    """Outcome of an event's entries.

    Attributes
    ----------
    is_over : bool
        Whether all verdicts must be there.
    counts : dict of str to int
        Entries: ``in_time``, and of these ``collected``, ``refused``, ``superseded``, ``missing``,
        each exactly once; ``acknowledged``, of the missing, says of how many bistros have signed
        that they hold them; ``late``; ``unproved``, which no quorum has signed. And how many were
        said superseded by an entry that never arrived: ``superseded_by_absent``, in the end.
    refused : dict of str to int
        Refused ones by reason.
    missing : tuple of bytes
        The first entries that are missing, of each partition.
    unseen : tuple of bytes
        The first that were said superseded by an entry that never arrived: only its owner can
        see whether that is of the same ticket.
    bistros : dict of str to (int, int)
        By name: batches that are here, and their rows; all of the event's, where a folder of
        batches was given.
    verdicts : VerdictsRead or None
    disputes : tuple of Dispute
        What one of several has not kept.
    lies : tuple of Lie
        Who has signed what does not fit together.
    troubles : tuple of str
        What could not be read, or is not here.
    """

    is_over: bool
    counts: dict[str, int]
    refused: dict[str, int]
    missing: tuple[bytes, ...]
    unseen: tuple[bytes, ...]
    bistros: dict[str, tuple[int, int]]
    verdicts: VerdictsRead | None
    disputes: tuple[Dispute, ...]
    lies: tuple[Lie, ...]
    troubles: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it, without the lies, which stand with the others."""
        read = self.verdicts
        return {
            "is_over": self.is_over,
            **self.counts,
            "refused_why": self.refused,
            "missing_first": [entry.hex() for entry in self.missing],
            "superseded_by_absent_first": [entry.hex() for entry in self.unseen],
            "bistros": [
                {"name": name, "batches": n_batches, "rows": n_rows}
                for name, (n_batches, n_rows) in self.bistros.items()
            ],
            "verdicts": read
            and {"where": read.where, "size": read.size, "witnesses": read.n_witnesses},
            "disputes": [each.to_dict() for each in self.disputes],
            "troubles": list(self.troubles),
        }


COUNTS = (
    *("in_time", "collected", "refused", "superseded", "missing"),
    *("acknowledged", "late", "unproved", "superseded_by_absent"),
)


def audit_custody(
    event: Event,
    wholes: Mapping[str, WholeLog],
    receipts: Iterable[Receipt],
    sources: Sources,
    *,
    is_over: bool,
    is_whole: bool,
) -> Custody:
    """Say what became of every entry of an event's logs.

    Parameters
    ----------
    event : Event
        With the amendments that its logs have published.
    wholes : mapping of str to WholeLog
        The logs that could be read, by origin.
    receipts : iterable of Receipt
        That people have handed in.
    sources : Sources
    is_over : bool
        Whether all verdicts must be there.
    is_whole : bool
        Whether all logs could be read, and no service has signed what contradicts them.

    Raises
    ------
    ProblemError
        There is no such folder, or nobody to carry it out.
    SimulationError
        A worker has died, or Dask is not installed.
    """
    receipts = list(receipts)
    files = [] if sources.batches is None else batch_files(sources.batches)
    n_processes = n_processes_for(sources.workers, sum(path.stat().st_size for path in files))
    with (
        tempfile.TemporaryDirectory(prefix="datacollect-audit-") as folder,
        workers_of(n_processes, sources.dask) as workers,
    ):
        spool = Spool(Path(folder))
        logs = tuple(service.log.name for service in event.services)
        for origin, whole in wholes.items():
            theirs = (proof.signed for receipt in receipts for proof in receipt.proofs)
            for rows in logged(whole, [*whole.checkpoints, *theirs], event, logs.index(origin)):
                spool.append("logged", rows)
        found = _Found(() if sources.batches is None else [each.name for each in event.bistros])
        promised = _promised(receipts, event, found)
        spool.append("promised", promised)
        _read_batches(files, event, workers, spool, found)
        read = _verdicts(sources.verdicts, event, receipts, spool, found, is_over=is_over)
        rules = Rules(
            event.latest_s,
            # Without the verdicts nobody can be asked where one is.
            is_over and read is not None,
            tuple(each.name for each in event.bistros),
            logs,
            found.numbers(event),
            # While people still hand in, a batch may be younger than what was read of a log.
            is_whole and is_over,
            reasons_of(event),
            event.has_marks,
        )
        return _judged(workers, spool, rules, found, read, is_over=is_over)


class _Found:
    """Findings so far.

    Parameters
    ----------
    bistros : iterable of str
        Those whose batches should be here.
    """

    def __init__(self, bistros: Iterable[str]) -> None:
        self._bistros = sorted(bistros)
        self.heads: set[BatchHead] = set()
        self.findings: list[Finding] = []
        self.lies: list[Lie] = []
        self.troubles: list[str] = []

    def numbers(self, event: Event) -> frozenset[tuple[int, int]]:
        """Return bistro and number of each batch."""
        names = [each.name for each in event.bistros]
        return frozenset((names.index(head.bistro), head.number) for head in self.heads)

    def bistros(self) -> dict[str, tuple[int, int]]:
        """Return batches and rows by bistro."""
        batches: Counter[str] = Counter()
        rows: Counter[str] = Counter()
        for head in self.heads:
            batches[head.bistro] += 1
            rows[head.bistro] += head.n_rows
        return {name: (batches[name], rows[name]) for name in self._bistros}


def _judged(
    workers: Workers,
    spool: Spool,
    rules: Rules,
    found: _Found,
    read: VerdictsRead | None,
    *,
    is_over: bool,
) -> Custody:
    counts: Counter[str] = Counter()
    missing: list[bytes] = []
    unseen: list[bytes] = []
    for each in workers.each(tally, ((spool.read(part), rules) for part in spool.partitions())):
        counts.update(each.counts)
        found.findings += each.findings
        missing += each.missing
        unseen += each.unseen
    lies, absent = chain(found.heads)
    evidence, disputes = united(found.findings)
    return Custody(
        is_over=is_over,
        counts={name: counts[name] for name in COUNTS},
        refused={
            name.removeprefix("refused: "): n
            for name, n in counts.items()
            if n and name.startswith("refused: ")
        },
        missing=tuple(missing[:MOST_MISSING]),
        unseen=tuple(unseen[:MOST_MISSING]),
        bistros=found.bistros(),
        verdicts=read,
        disputes=tuple(disputes),
        lies=(*found.lies, *lies, *evidence),
        troubles=(*found.troubles, *absent),
    )


def logged(
    whole: WholeLog, checkpoints: Iterable[SignedCheckpoint], event: Event, number: int
) -> Iterator[np.ndarray]:
    """Yield the commitments of a log as rows of `LOGGED`, many at a time.

    Parameters
    ----------
    whole : WholeLog
    checkpoints : iterable of SignedCheckpoint
        Those of the log that are no beginning of it prove nothing.
    event : Event
    number : int
        Of the log.
    """
    sizes, least_s = proved_times(whole, checkpoints, event)
    others = np.array(sorted(whole.others), np.int64)
    start = 0
    for piece in whole.commitments.pieces(N_TOGETHER):
        entries = np.frombuffer(piece, f"V{ENTRY_BYTES}")
        indices = start + np.arange(len(entries))
        is_commitment = ~np.isin(indices, others)
        rows = np.zeros(int(is_commitment.sum()), LOGGED)
        rows["entry"] = entries[is_commitment]
        rows["time_s"] = least_s[np.searchsorted(sizes, indices[is_commitment], side="right")]
        rows["log"] = number
        yield rows
        start += len(entries)


def proved_times(
    whole: WholeLog, checkpoints: Iterable[SignedCheckpoint], event: Event
) -> tuple[np.ndarray, np.ndarray]:
    """Return by when entries of a log stood there.

    A checkpoint that a quorum has signed proves the k-th smallest time of its witnesses for all
    entries that it holds: that of an entry is the least that is proved for it.

    Returns
    -------
    numpy.ndarray
        Sizes, rising.
    numpy.ndarray
        One more, seconds since 1970: by when the entries before the first size stood there, those
        from it to before the second, and so on; at the end `NEVER_S`.
    """
    log = whole.log
    proved: dict[int, int] = {}
    for each in {each.note.data: each for each in checkpoints if each.is_of(log.key)}.values():
        size = each.checkpoint.size
        times = cosigned_times(each.note, event.witness_keys).values()
        time_s = kth_smallest(times, event.quorum)
        if time_s is None or size > log.size:
            continue
        if tree_root(size, log.node) == each.checkpoint.root:
            proved[size] = min(time_s, proved.get(size, NEVER_S))
    sizes = sorted(proved)
    times_s = np.array([*(proved[size] for size in sizes), NEVER_S], np.int64)
    return np.array(sizes, np.int64), np.minimum.accumulate(times_s[::-1])[::-1]


def batch_files(folder: Path) -> list[Path]:
    """Return the batches in a folder and below, in the order of their paths.

    Raises
    ------
    ProblemError
        There is no such folder.
    """
    if not folder.is_dir():
        raise ProblemError(f"{document_name(folder)}: no such folder; check the path")
    return sorted(path for path in folder.rglob(f"*{BATCH_SUFFIX}") if path.is_file())


def _read_batches(
    files: Sequence[Path], event: Event, workers: Workers, spool: Spool, found: _Found
) -> None:
    parts = ((_batch_bytes(path), event, document_name(path)) for path in files)
    for each in workers.each(read, parts):
        if each.head is None:
            found.troubles.append(each.trouble)
        elif each.head not in found.heads:
            # One that lies in two places counts once.
            found.heads.add(each.head)
            found.findings += each.findings
            spool.append("held", each.held)


def _batch_bytes(path: Path) -> bytes:
    """Return a batch's bytes; one more than a batch has at most, of a longer one."""
    with path.open("rb") as file:
        return file.read(MOST_BATCH_BYTES + 1)


def _promised(receipts: Iterable[Receipt], event: Event, found: _Found) -> np.ndarray:
    """Return what bistros have signed for people; what they have not signed proves nothing."""
    names = [each.name for each in event.bistros]
    rows: list[tuple[bytes, int, int, int, bytes]] = []
    others: dict[str, list[bytes]] = {}
    for receipt in receipts:
        commitment = receipt.commitment
        for token in receipt.bistro_receipts:
            try:
                said = read_bistro_receipt(token, event)
            except DatacollectError:
                continue
            rows.append(_row(said, names))
            held, committed = (
                (said.size, said.sha256),
                (commitment.size, commitment.ciphertext_sha256),
            )
            if said.entry == receipt.entry and not said.sealed_anew and held != committed:
                others.setdefault(said.bistro, []).append(said.entry)
    for bistro, entries in others.items():
        found.findings += finding(HOLDS_OTHER, (bistro,), sorted(set(entries)))
    return np.array(rows, HELD)


def _row(said: BistroReceipt, names: Sequence[str]) -> tuple[bytes, int, int, int, bytes]:
    return said.entry, names.index(said.bistro), said.batch, said.size, said.sha256


def _verdicts(
    where: str,
    event: Event,
    receipts: Iterable[Receipt],
    spool: Spool,
    found: _Found,
    *,
    is_over: bool,
) -> VerdictsRead | None:
    """Read the log of verdicts; None, with the trouble noted, where that cannot be done."""
    held, receipts = [], [*receipts]
    for receipt in receipts:
        if receipt.collected is not None:
            with suppress(ProblemError):
                proof = LogProof.parse(receipt.collected.encode(), "the statement on a receipt")
                held.append(proof.signed)
    for ended in event.ended_verdicts:
        # Nobody shows that log any more: what it has signed is held together alone.
        forks = forks_among(ended.log, held, event)
        found.lies += [
            replace(lie, who=DESTINATION) if lie.who == ended.log.name else lie for lie in forks
        ]
    try:
        read = read_verdicts(where, event, held, spool.append, is_over=is_over)
    except DatacollectError as error:
        found.troubles.append(f"the log of verdicts could not be read: {error}")
        return None
    spool.append("said", proved_by_ended(event, receipts))
    found.lies += read.lies
    return read
