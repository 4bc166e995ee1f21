"""A destination after its disk was lost, or restored from an old copy: what is made again of it.

The log of verdicts is made again from mirrors, and from the receipts of people that hold proofs of
it; where that log is dead and an amendment names another, the new one begins with what is known of
it. The register forgets what does not lie here and remembers what the log said of it; then the
next `event run` fetches it from bistros again, as far as they still hold it, and names the rest.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.destination.keys import require_key
from datacollect.bistro.destination.place import Place, verdicts_folder
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run.kept_files import fault_of
from datacollect.bistro.formats.custody.collected import collected_verdict
from datacollect.bistro.formats.custody.segments import segment_name
from datacollect.bistro.formats.custody.verdicts import read_verdict
from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import verdict_time
from datacollect.bistro.formats.receipt.verify import published
from datacollect.bistro.http.config import DestinationConfig
from datacollect.bistro.http.published import Saved, amendments_of
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.mirror.mirror import require_mirrors
from datacollect.bistro.mirror.rebuilding import rebuild
from datacollect.bistro.mirror.receipts import receipts_in
from datacollect.bistro.mirror.succeeding import begin, entries_of_ended, holding
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_bytes
from datacollect.files.held_folder import Held
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    from datacollect.bistro.destination.losses import KeptFile
    from datacollect.bistro.formats.custody.verdicts import Verdict
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.mirror.rebuilding import Rebuilt

# Entries of the log of verdicts that are read together.
MOST_READ = 10_000


@dataclass(frozen=True)
class Recovered:
    """Parts of a destination that were made again.

    Attributes
    ----------
    log : Rebuilt
        The log of verdicts.
    n_proved : int
        Verdicts that people's receipts prove.
    n_beside : int
        Of these, verdicts that the log as it is now does not hold: they stand by their proofs.
    n_forgotten : int
        Entries of the register whose files do not lie here: they are fetched again.
    n_said : int
        Entries on which there was a verdict.
    n_taken_over : int
        With how many entries of the log that it replaces the log was begun by this call.
    n_to_say_again : int
        Verdicts that the register knows and the log does not hold: they are logged again.
    """

    log: Rebuilt
    n_proved: int
    n_beside: int
    n_forgotten: int
    n_said: int
    n_taken_over: int = 0
    n_to_say_again: int = 0


def recover_destination(
    event_file: str | PathLike[str],
    destination_file: str | PathLike[str],
    mirrors: Sequence[str],
    receipts: str | PathLike[str] | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Recovered:
    """Make the log of verdicts and the register of a destination again; `event run` goes on then.

    Where nothing was lost nothing changes. Interrupted anywhere, it is done by the same call.

    Parameters
    ----------
    event_file, destination_file : path-like
    mirrors : sequence of str
        Addresses or folders of mirrors; none where the folder of the log is as it was.
    receipts : path-like, optional
        Folder of receipts that people have shown; by default the one that the destination's file
        names.
    report : function
        Takes lines on receipts that do not count, and services that do not answer.

    Raises
    ------
    ProblemError
        A file, a key or a folder is not what it should be, or no mirror holds the log.
    StoreError, NotWrittenError
        The disk or the database fails.
    """
    config = DestinationConfig.from_file(destination_file)
    name = document_name(event_file)
    event = read_event(read_bytes(event_file), name)
    if event.verdicts is None:
        raise ProblemError(f"{name}: has no [verdicts], so the event cannot be collected")
    require_mirrors(mirrors)
    tls = web_context()
    config.folder.mkdir(parents=True, exist_ok=True)
    now = _amended(event, Path(event_file), config, tls, report)
    require_key(now, config, document_name(destination_file))
    assert now.verdicts is not None
    folder = Path(receipts) if receipts is not None else config.receipts
    proofs = dict(_proofs(folder, now, report))
    place = verdicts_folder(config.folder, now.verdicts, now)
    n_taken_over, held_by = 0, mirrors
    if now.ended_verdicts:
        held_by = holding(now.verdicts, mirrors)
        if not place.is_dir() and not held_by:
            said = _said_before(now, config.folder, mirrors, proofs, report)
            begin(now, config.key, place, said)
            n_taken_over = len(said)
    of_log = {entry: proof for entry, proof in proofs.items() if proof.signed.is_of(now.verdicts)}
    log = rebuild(now, config.key, place, held_by, of_log, tls)
    with closing(LogStore(Held(place), now.verdicts.text)) as store:
        last = _last_words(store, event)
        beside = [entry for entry in proofs if store.index_of(entry) is None]
    for entry in beside:
        verdict = read_verdict(entry, event.id)
        last.setdefault(verdict.entry, verdict)
    with closing(Register(config.register, now, Place.of(config.folder))) as register:
        n_forgotten = register.losses.forget_absent(
            lambda file, kept: _is_here(config.folder, file, kept),
            lambda bistro, n: (config.folder / "segments" / bistro / segment_name(n)).exists(),
        )
        register.losses.take_said(last.values())
        n_again = register.losses.log_again(last)
    return Recovered(log, len(proofs), len(beside), n_forgotten, len(last), n_taken_over, n_again)


def _said_before(
    event: Event,
    folder: Path,
    mirrors: Sequence[str],
    proofs: Mapping[bytes, LogProof],
    report: Callable[[str], None],
) -> list[bytes]:
    """Return what the log before that of the event had proved, as far as anybody knows."""
    ended = event.ended_verdicts[-1]
    try:
        said = entries_of_ended(event, ended, verdicts_folder(folder, ended.log, event), mirrors)
    except ProblemError as error:
        if not proofs:
            raise
        report(f"{error}; of this log only what receipts prove is known")
        said = []
    return [*said, *sorted(proofs, key=lambda entry: proofs[entry].index)]


def _is_here(folder: Path, file: str, kept: KeptFile | None) -> bool:
    return fault_of(folder, file, kept) is None


def _last_words(store: LogStore, event: Event) -> dict[bytes, Verdict]:
    """Return the last verdict on each entry of which the log of verdicts says something."""
    found: dict[bytes, Verdict] = {}
    at, stop = 0, store.kept().n_entries
    while at < stop:
        for data in store.entries(at, at + MOST_READ):
            verdict = read_verdict(data, event.id, "an entry of the log of verdicts")
            found[verdict.entry] = verdict
        at += MOST_READ
    return found


def _proofs(
    folder: Path | None, event: Event, report: Callable[[str], None]
) -> Iterator[tuple[bytes, LogProof]]:
    """Yield the verdicts that receipts prove, as their log has them, each with its proof."""
    for name, receipt in () if folder is None else receipts_in(folder, report):
        if receipt.collected is None:
            continue
        try:
            proof = LogProof.parse(receipt.collected.encode(), name)
        except ProblemError as error:
            report(str(error))
            continue
        verdict = collected_verdict(receipt.collected, event.id, receipt.entry)
        why_not = verdict_time(proof, verdict.data, event).why_not
        if why_not:
            report(f"{name}: the receipt does not prove that its file was collected: {why_not}")
        else:
            yield verdict.data, proof


def _amended(
    event: Event,
    event_file: Path,
    config: DestinationConfig,
    tls: ssl.SSLContext,
    report: Callable[[str], None],
) -> Event:
    """Return the event as its logs have it changed by now, and keep their word."""
    saved = Saved(event, event_file, config.folder)
    found = amendments_of(event, [each.url for each in event.services], tls)
    for url, why in found.troubles.items():
        report(f"{url}: {why}")
    if published(event, found.amendments, []):
        saved.add(found.amendments)
    return amended(event, published(event, saved.amendments, []))
