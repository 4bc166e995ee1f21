"""A destination after its disk was lost, or restored from an old copy: what is made again of it.

The log of verdicts is made again from mirrors, and from the receipts of people that hold proofs of
it. The register forgets what does not lie here and remembers what the log said of it; then the
next `event run` fetches it from bistros again, as far as they still hold it, and names the rest.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run.kept_files import fault_of
from datacollect.bistro.folder import Held
from datacollect.bistro.formats.custody.collected import collected_verdict
from datacollect.bistro.formats.custody.segments import segment_name
from datacollect.bistro.formats.custody.verdicts import read_verdict
from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import time_in
from datacollect.bistro.formats.receipt.receipt import MOST_BYTES, read_receipt
from datacollect.bistro.formats.receipt.verify import published
from datacollect.bistro.http.config import DestinationConfig
from datacollect.bistro.http.published import Saved, amendments_of
from datacollect.bistro.log_service.store import LogStore
from datacollect.bistro.mirror.rebuilding import rebuild
from datacollect.bistro.person.items import RECEIPT_SUFFIX
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_bytes
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

    from datacollect.bistro.destination.losses import KeptFile
    from datacollect.bistro.formats.custody.verdicts import Verdict
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.bistro.mirror.rebuilding import Rebuilt

# Entries of the log of verdicts that are read together.
MOST_READ = 10_000


@dataclass(frozen=True)
class Recovered:
    """What was made again of a destination.

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
    """

    log: Rebuilt
    n_proved: int
    n_beside: int
    n_forgotten: int
    n_said: int


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
    if event.verdicts is None or event.verdicts.key != config.key.public:
        raise ProblemError(
            f"{document_name(destination_file)}: key must be that of the event's log of verdicts; "
            "without it nobody can go on with that log"
        )
    tls = web_context()
    folder = Path(receipts) if receipts is not None else config.receipts
    proofs = dict(_proofs(folder, event, event.verdicts, report))
    config.folder.mkdir(parents=True, exist_ok=True)
    log = rebuild(event, config.key, config.folder / "verdicts", mirrors, proofs, tls)
    with closing(LogStore(Held(config.folder / "verdicts"), event.verdicts.text)) as store:
        last = _last_words(store, event)
        beside = [entry for entry in proofs if store.index_of(entry) is None]
    for entry in beside:
        verdict = read_verdict(entry, event.id)
        last.setdefault(verdict.entry, verdict)
    now = _amended(event, Path(event_file), config, tls, report)
    with closing(Register(config.register, now, Place.of(config.folder))) as register:
        n_forgotten = register.losses.forget_absent(
            lambda file, kept: _is_here(config.folder, file, kept),
            lambda bistro, n: (config.folder / "segments" / bistro / segment_name(n)).exists(),
        )
        register.losses.take_said(last.values())
    return Recovered(log, len(proofs), len(beside), n_forgotten, len(last))


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
    folder: Path | None, event: Event, log: VerifierKey, report: Callable[[str], None]
) -> Iterator[tuple[bytes, LogProof]]:
    """Yield the verdicts that receipts prove, as the log has them, each with its proof."""
    if folder is None:
        return
    if not folder.is_dir():
        raise ProblemError(f"{document_name(folder)}: no such folder; name that of the receipts")
    for path in sorted(folder.rglob(f"*{RECEIPT_SUFFIX}")):
        try:
            if path.stat().st_size > MOST_BYTES:
                raise ProblemError(f"{document_name(path)}: is too long for a receipt")
            receipt = read_receipt(read_bytes(path), document_name(path))
            if receipt.collected is None:
                continue
            proof = LogProof.parse(receipt.collected.encode(), document_name(path))
        except (OSError, ProblemError) as error:
            report(str(error))
            continue
        verdict = collected_verdict(receipt.collected, event.id, receipt.entry)
        why_not = time_in(log, proof, verdict.data, event).why_not
        if why_not:
            report(f"{document_name(path)}: does not prove that it was collected: {why_not}")
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
