"""The shell of a push: sends a ``.keep``'s ciphertext to the bistro that the core names."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from datacollect.bistro.accepting.admission import commitment_json, metadata_text
from datacollect.bistro.assignment.assigning import by_rendezvous
from datacollect.bistro.client.pushing import Begin, Pushing, Send
from datacollect.bistro.receipt.counted_time import proved_time
from datacollect.bistro.sealing.keep import ciphertext_of
from datacollect.errors import TransferError
from datacollect.net.http_asking import Asker
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from datacollect.bistro.client.pushing import Step
    from datacollect.bistro.event.event import Bistro, Event
    from datacollect.bistro.receipt.receipt import Receipt
    from datacollect.bistro.sealing.keep import Kept
    from datacollect.net.http_asking import Answer

PUSH_TYPE = "application/offset+octet-stream"
# How long connecting, an answer, or a block may take.
STALL_S = 30.0


def pushed(
    event: Event,
    receipt: Receipt,
    keep: Path,
    kept: Kept,
    save: Callable[[Receipt], None],
    say: Callable[[str], None],
) -> Pushing:
    """Push what is kept until a bistro holds it, or none takes it; the receipt is saved then.

    Raises
    ------
    ProblemError
        The ``.keep`` cannot be read any more.
    NotWrittenError
        The receipt cannot be written.
    """
    names = [each.name for each in event.bistros]
    order = [names.index(name) for name in by_rendezvous(receipt.entry, names)]
    core = Pushing(event, receipt, order)
    while core.step is not None:
        time.sleep(core.wait_s)
        say(f"sending to {names[core.step.bistro]}")
        try:
            core.take(_answer(core.step, event, receipt, keep, kept))
        except TransferError as error:
            core.take(None, str(error))
        if core.receipt != receipt:
            save(core.receipt)
    return core


def _answer(step: Step, event: Event, receipt: Receipt, keep: Path, kept: Kept) -> Answer:
    """Ask a bistro.

    Raises
    ------
    TransferError
        There is no answer.
    """
    size = kept.sealed.n_bytes
    headers = {"Tus-Resumable": "1.0.0"}
    with closing(_asker(event.bistros[step.bistro])) as asker:
        if isinstance(step, Begin):
            headers |= {
                "Upload-Length": str(size),
                "Upload-Metadata": _metadata(event, receipt, kept),
            }
            if not step.n_bytes:
                return asker.ask("POST", "/tus/", headers, (), 0)
            headers["Content-Type"] = PUSH_TYPE
            with ciphertext_of(keep, kept) as blocks:
                return asker.ask("POST", "/tus/", headers, blocks, size)
        if isinstance(step, Send):
            headers |= {"Upload-Offset": str(step.offset), "Content-Type": PUSH_TYPE}
            with ciphertext_of(keep, kept) as blocks:
                left = _from(blocks, step.offset)
                return asker.ask("PATCH", step.path, headers, left, size - step.offset)
        return asker.ask("HEAD", step.path, headers)


def _asker(bistro: Bistro) -> Asker:
    tls = web_context(fingerprint=bistro.fingerprint, certificates=bistro.ca)
    return Asker(bistro.url, tls, STALL_S, bistro.fingerprint)


def _from(blocks: Iterator[bytes], offset: int) -> Iterator[bytes]:
    for block in blocks:
        if offset < len(block):
            yield block[offset:]
        offset = max(offset - len(block), 0)


def _metadata(event: Event, receipt: Receipt, kept: Kept) -> str:
    """Return what lets the upload begin: the earliest proof counts."""
    found = [(proved_time(proof, receipt.entry, event).time_s, proof) for proof in receipt.proofs]
    times = [(time_s, i) for i, (time_s, _) in enumerate(found) if time_s is not None]
    values = {"commitment": commitment_json(receipt.commitment)}
    if times:
        values["proof"] = found[min(times)[1]][1].data
    if kept.ticket is not None:
        values["ticket"] = kept.ticket.encode()
    return metadata_text(values)
