"""The shell of a push: sends sealed bytes to the bistro that the core names."""

from __future__ import annotations

import base64
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.statements import GIVE_UP_HEADER, give_up_statement
from datacollect.bistro.formats.receipt.counted_time import proved_time
from datacollect.bistro.formats.receipt.upload_wish import push_metadata
from datacollect.bistro.formats.sealing.keep import ciphertext_of
from datacollect.bistro.person.pushing import Begin, End, Payload, Pushing, Send
from datacollect.errors import TransferError
from datacollect.net.http_asking import Asker
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from datacollect.bistro.formats.event.event import Bistro, Event
    from datacollect.bistro.formats.receipt.receipt import Receipt
    from datacollect.bistro.formats.sealing.keep import Kept
    from datacollect.bistro.person.pushing import Step
    from datacollect.net.http_asking import Answer

PUSH_TYPE = "application/offset+octet-stream"
# How long connecting, an answer, or a block may take.
STALL_S = 30.0


class Sender:
    """Pushes what is sealed to an event's bistros, over a connection to each that is kept.

    Parameters
    ----------
    event : Event
    report : function
        Told in a sentence what is going on.
    """

    def __init__(self, event: Event, report: Callable[[str], None]) -> None:
        self._event, self._report = event, report
        self._askers: dict[int, Asker] = {}
        self._held = ExitStack()
        # Of the file, with the request under way.
        self._sent_bytes = 0

    def close(self) -> None:
        """Close all connections."""
        self._held.close()

    def push(
        self,
        receipt: Receipt,
        order: Sequence[int],
        place: Path,
        kept: Kept,
        payload: Payload,
        save: Callable[[Receipt], None],
    ) -> Pushing:
        """Push what is kept until a bistro holds it, or none takes it; the receipt is saved then.

        Parameters
        ----------
        receipt : Receipt
        order : sequence of int
            The event's bistros, by their index, in which they are tried.
        place : Path
            Where the ciphertext stands.
        kept : Kept
            What is kept there.
        payload : Payload
            That ciphertext.
        save : function
            Has the receipt on the disk when it returns.

        Raises
        ------
        ProblemError
            The ciphertext cannot be read any more.
        NotWrittenError
            The receipt cannot be written.
        """
        core = Pushing(self._event, receipt, order, payload)
        while core.step is not None:
            time.sleep(core.wait_s)
            self._report(f"sending to {self._event.bistros[core.step.bistro].name}")
            self._sent_bytes = 0
            try:
                answer = self._answer(core.step, receipt, place, kept, payload)
                core.take(answer, sent_bytes=self._sent_bytes)
            except TransferError as error:
                core.take(None, str(error), self._sent_bytes)
            if core.receipt != receipt:
                save(core.receipt)
        return core

    def _answer(
        self, step: Step, receipt: Receipt, place: Path, kept: Kept, payload: Payload
    ) -> Answer:
        """Ask a bistro.

        Raises
        ------
        TransferError
            There is no answer.
        """
        size = payload.n_bytes
        headers = {"Tus-Resumable": "1.0.0"}
        asker, bistro = self._asker(step.bistro), self._event.bistros[step.bistro]
        if isinstance(step, Begin):
            headers |= {
                "Upload-Length": str(size),
                "Upload-Metadata": _metadata(self._event, bistro, receipt, kept, payload),
            }
            if not step.n_bytes:
                return asker.ask("POST", "/tus/", headers, (), 0)
            headers["Content-Type"] = PUSH_TYPE
            with ciphertext_of(place, kept) as blocks:
                return asker.ask("POST", "/tus/", headers, self._counted(blocks), size)
        if isinstance(step, Send):
            headers |= {"Upload-Offset": str(step.offset), "Content-Type": PUSH_TYPE}
            with ciphertext_of(place, kept) as blocks:
                left = _from(blocks, step.offset)
                return asker.ask(
                    "PATCH", step.path, headers, self._counted(left), size - step.offset
                )
        if isinstance(step, End):
            upload = step.path.rpartition("/")[2]
            said = give_up_statement(self._event.id, bistro.key, upload)
            headers[GIVE_UP_HEADER] = base64.b64encode(kept.owner.sign(said)).decode()
            return asker.ask("DELETE", step.path, headers)
        return asker.ask("HEAD", step.path, headers)

    def _counted(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self._sent_bytes += len(block)
            yield block

    def _asker(self, number: int) -> Asker:
        if number not in self._askers:
            bistro = self._event.bistros[number]
            tls = web_context(fingerprint=bistro.fingerprint, certificates=bistro.ca)
            asker = Asker(bistro.url, tls, STALL_S, bistro.fingerprint)
            self._askers[number] = self._held.enter_context(asker)
        return self._askers[number]


def _from(blocks: Iterator[bytes], offset: int) -> Iterator[bytes]:
    for block in blocks:
        if offset < len(block):
            yield block[offset:]
        offset = max(offset - len(block), 0)


def _metadata(event: Event, bistro: Bistro, receipt: Receipt, kept: Kept, payload: Payload) -> str:
    """Return what lets the upload begin: the earliest proof counts."""
    found = [(proved_time(proof, receipt.entry, event).time_s, proof) for proof in receipt.proofs]
    times = [(time_s, i) for i, (time_s, _) in enumerate(found) if time_s is not None]
    return push_metadata(
        receipt.commitment,
        found[min(times)[1]][1].data if times else None,
        event=event,
        bistro_key=bistro.key,
        sha256=payload.sha256,
        size=payload.n_bytes,
        owner=kept.owner,
        ticket=kept.ticket,
    )
