"""Delivers a file once its time is proved: sends, asks after it, seals it again where need be."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from datacollect.bistro.formats.custody.collected import collected_text
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    LATE,
    NEVER_CAME,
    OTHER_CONTENT,
    OTHER_FILES,
    OTHER_MARK,
    OTHER_TICKET,
    REFUSED,
    SUPERSEDED,
)
from datacollect.bistro.formats.event.marks import own_mark_key
from datacollect.bistro.formats.receipt.verify import collected_time
from datacollect.bistro.person.choosing import Chooser
from datacollect.bistro.person.items import sealed_anew
from datacollect.bistro.person.pushing import Payload, words_of
from datacollect.bistro.person.sending import Sender
from datacollect.bistro.person.verdicts import asked_verdict
from datacollect.errors import DatacollectError, NotWrittenError, ProblemError, TransferError
from datacollect.files.documents import document_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
    from datacollect.bistro.formats.custody.verdicts import Verdict
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.receipt.receipt import Receipt
    from datacollect.bistro.formats.sealing.keep import Kept
    from datacollect.bistro.person.items import Item
    from datacollect.bistro.person.verdicts import Told
    from datacollect.net.http_asking import Askers


NOT_SENT = "it has not been sent anywhere yet"
BY_LOG = "proved by the destination's log"
# What supersedes may be superseded itself, and so on: no honest log says more of it.
MOST_INSTEAD = 20
# Exit code, and what a person can do about what the destination has refused for good.
_AGAIN = "hand it in again, with another folder (-o), as long as there is time; otherwise"
ADVICE = {
    OTHER_CONTENT: (2, f"{_AGAIN} show the organiser your receipt and the file"),
    OTHER_FILES: (2, "hand it in again, packed into one file by tar or zip, while there is time"),
    OTHER_TICKET: (2, f"{_AGAIN} show the organiser your receipt and your ticket"),
    OTHER_MARK: (2, f"{_AGAIN} show the organiser your receipt and your ticket"),
    NEVER_CAME: (1, "it was not sent while there was time: show the organiser your receipt"),
    LATE: (1, "your receipt proves another time: show it to the organiser"),
}


class Standing(NamedTuple):
    """Status of a file: the exit code that it makes, a sentence, what a person can do, if any."""

    exit_code: int
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Delivered:
    """Progress of a file's delivery.

    Attributes
    ----------
    held : BistroReceipt or None
        The word of the bistro that holds it, sealed anew where there is such.
    collected_s : int or None
        By when the destination's log said that it has it, as the receipt proves.
    verdict : Verdict or None
        The last one of the destination's log, where it was asked and has proved it.
    anew : Path or None
        What else is to be kept, where it was sealed anew.
    troubles : tuple of str
        What gave no help.
    instead : Verdict or None
        The last one on what counts instead; None: nothing does, or nothing is known of that.
    strangers : bytes or None
        The entry that counts instead, and has not the mark of its ticket.
    """

    held: BistroReceipt | None = None
    collected_s: int | None = None
    verdict: Verdict | None = None
    anew: Path | None = None
    troubles: tuple[str, ...] = ()
    instead: Verdict | None = None
    strangers: bytes | None = None

    @property
    def standing(self) -> Standing:
        """Return how far that is, in words."""
        verdict, held = self.verdict, self.held
        if verdict is not None and verdict.word == SUPERSEDED:
            return self._superseded(verdict.why)
        if self.collected_s is not None:
            return Standing(0, f"collected: {BY_LOG}")
        if verdict is not None and verdict.why in ADVICE:
            code, advice = ADVICE[verdict.why]
            return Standing(code, f"refused, because it {verdict.why}: {BY_LOG}", advice)
        first = "the destination could not open what was sent; " if verdict is not None else ""
        if held is None or (first and not held.sealed_anew):
            return Standing(1, f"{first}{NOT_SENT}")
        anew = ", sealed again" if held.sealed_anew else ""
        return Standing(0, f"{first}{held.bistro} says that it holds it{anew}")

    def _superseded(self, by: str) -> Standing:
        """Say what counts instead, and whether that counts: it does if it was collected.

        It must be of the same ticket. Who has that alone can see it, besides the destination.
        """
        if self.strangers is not None:
            text = (
                f"it does not count: {self.strangers.hex()} counts instead, but does not have the "
                "mark of your ticket"
            )
            advice = "no file of yours has it: show the organiser your receipt, and say so"
            return Standing(1, text, advice)
        if self.instead is None or self.instead.word not in (COLLECTED, REFUSED):
            text = f"it does not count: {by} counts instead, about which nothing is proved"
            return Standing(1, text, "run it again later; else show the organiser your receipts")
        stands = f"{self.instead.entry.hex()} counts instead"
        if self.instead.word == COLLECTED:
            return Standing(0, f"{stands}: {BY_LOG}")
        refused = f"{stands}, and was refused, because it {self.instead.why}"
        text = f"it does not count: {refused}: {BY_LOG}"
        return Standing(1, text, "neither of them counts: show the organiser your receipts")


class Delivery:
    """Sends files, and asks what became of them; connections are kept from one to the next.

    Parameters
    ----------
    event : Event
        With the amendments that are known.
    askers : Askers
        For services and the log of verdicts.
    report : function
        Told in a sentence what is going on.
    """

    def __init__(self, event: Event, askers: Askers, report: Callable[[str], None]) -> None:
        self._event, self._askers, self._report = event, askers, report
        self._chooser = Chooser(event, askers)
        self._sender = Sender(event, report)
        # Of a log of verdicts that does not answer: it is not waited for with each file.
        self._away: TransferError | None = None

    def __enter__(self) -> Delivery:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close connections to bistros."""
        self._sender.close()

    def deliver(
        self, item: Item, kept: Kept, receipt: Receipt, *, elsewhere: bool = False
    ) -> Delivered:
        """Bring a file that is in time as far as it goes now; each step is kept durably.

        Parameters
        ----------
        item, kept, receipt
        elsewhere : bool
            Whether another bistro is to hold it, too, unless it was collected.

        Raises
        ------
        NotWrittenError
            The receipt cannot be written.
        """
        try:
            return self._delivered(item, kept, receipt, elsewhere=elsewhere)
        except NotWrittenError:
            raise
        except ProblemError as error:
            # Other files are still to be sent.
            return self.known(item, receipt, troubles=[str(error)])

    def _delivered(self, item: Item, kept: Kept, receipt: Receipt, *, elsewhere: bool) -> Delivered:
        troubles: list[str] = []
        if self._held(receipt) is None and kept.is_whole and not item.is_sealed_anew:
            payload = Payload.committed(receipt.commitment)
            receipt = self._pushed(item, item.keep, kept, receipt, payload, troubles)
        told = self._told(receipt.entry, troubles)
        is_known = collected_time(receipt, self._event, []) is not None
        if told is not None and told.verdict.word == COLLECTED and not is_known:
            receipt = replace(receipt, collected=collected_text(told.proof, told.verdict))
            item.save(receipt)
        held = self._held(receipt)
        is_collected = collected_time(receipt, self._event, []) is not None
        if elsewhere and is_collected:
            troubles.append("nothing is sent elsewhere: it was collected")
        if self._is_to_be_sealed_anew(item, kept, receipt, told):
            receipt = self._pushed_anew(item, kept, receipt, troubles)
        elif elsewhere and held is not None and not is_collected:
            if kept.is_whole or held.sealed_anew:
                receipt = self._pushed_elsewhere(item, kept, receipt, held, troubles)
            else:
                receipt = self._pushed_anew(item, kept, receipt, troubles)
        instead, strangers = self._instead_of(told, kept, troubles)
        found = self.known(item, receipt, told, troubles)
        return replace(found, instead=instead and instead.verdict, strangers=strangers)

    def known(
        self,
        item: Item,
        receipt: Receipt,
        told: Told | None = None,
        troubles: Sequence[str] = (),
    ) -> Delivered:
        """Return how far a file is by what is here, and by what was told."""
        return Delivered(
            self._held(receipt),
            collected_time(receipt, self._event, []),
            None if told is None else told.verdict,
            item.anew if item.is_sealed_anew else None,
            tuple(troubles),
        )

    def _held(self, receipt: Receipt) -> BistroReceipt | None:
        """Return the word of the bistro that holds what counts last."""
        commitment = receipt.commitment
        committed = (commitment.size, commitment.ciphertext_sha256)
        words = words_of(receipt, receipt.bistro_receipts, self._event)
        anew = [word for word in words if word.sealed_anew]
        first = [word for word in words if (word.size, word.sha256) == committed]
        return next(reversed(anew or first), None)

    def _instead_of(
        self, told: Told | None, kept: Kept, troubles: list[str]
    ) -> tuple[Told | None, bytes | None]:
        """Return what became of what stands in a draft's place; that may be superseded, too.

        And the entry there that is not of the same ticket, if one is not.
        """
        key = None if kept.ticket is None else own_mark_key(self._event, kept.ticket.key)
        n_asked, instead = 0, None
        while told is not None and told.verdict.word == SUPERSEDED and n_asked < MOST_INSTEAD:
            entry = bytes.fromhex(told.verdict.why)
            if key is not None and not key.has_marked(entry):
                return None, entry
            n_asked += 1
            instead = told = self._told(entry, troubles)
        return instead, None

    def _told(self, entry: bytes, troubles: list[str]) -> Told | None:
        if self._event.verdicts_url is None:
            return None
        self._report("asking what became of it")
        try:
            if self._away is not None:
                raise self._away
            return asked_verdict(self._event, entry, self._askers)
        except DatacollectError as error:
            if isinstance(error, TransferError):
                self._away = error
            troubles.append(str(error))
            return None

    def _is_to_be_sealed_anew(
        self, item: Item, kept: Kept, receipt: Receipt, told: Told | None
    ) -> bool:
        held = self._held(receipt)
        if collected_time(receipt, self._event, []) or (held is not None and held.sealed_anew):
            return False
        if told is not None:
            return told.verdict.why == DOES_NOT_OPEN
        # Begun before; or the bistro is to have at once what it could not have otherwise.
        return item.is_sealed_anew or (held is None and not kept.is_whole)

    def _pushed_anew(
        self, item: Item, kept: Kept, receipt: Receipt, troubles: list[str]
    ) -> Receipt:
        until_s = self._event.collect_until_s
        if time.time() >= until_s:
            until = self._event.clock_text(until_s)
            troubles.append(f"it could be sent again until {until}; show the organiser the receipt")
            return receipt
        was_sealed = item.is_sealed_anew
        if not was_sealed:
            self._report(f"sealing {item.name} anew")
        try:
            made, is_new = sealed_anew(item, kept, self._event)
        except ProblemError as error:
            troubles.append(str(error))
            return receipt
        if was_sealed and is_new:
            troubles.append(f"{document_name(item.anew)}: was damaged, and was sealed again")
        payload = Payload(made.sealed.n_bytes, made.sealed.sha256, sealed_anew=True, is_new=is_new)
        return self._pushed(item, item.anew, made, receipt, payload, troubles)

    def _pushed_elsewhere(
        self,
        item: Item,
        kept: Kept,
        receipt: Receipt,
        held: BistroReceipt,
        troubles: list[str],
    ) -> Receipt:
        """Push to a bistro that has not signed for it what another one should hold."""
        place, payload = item.keep, Payload.committed(receipt.commitment)
        if held.sealed_anew:
            place = item.anew
            kept, _ = sealed_anew(item, kept, self._event)
            payload = Payload(kept.sealed.n_bytes, kept.sealed.sha256, sealed_anew=True)
        words = words_of(receipt, receipt.bistro_receipts, self._event)
        signed = {word.bistro for word in words}
        order = [
            i
            for i in self._chooser.order(receipt, payload.n_bytes)
            if self._event.bistros[i].name not in signed
        ]
        if not order:
            troubles.append("all bistros of the event have signed already that they hold it")

        def save(pushed: Receipt) -> None:
            item.save(receipt.with_more(bistro_receipts=pushed.bistro_receipts))

        without = replace(receipt, bistro_receipts=())
        core = self._sender.push(without, order, place, kept, payload, save)
        troubles += core.troubles
        return receipt.with_more(bistro_receipts=core.receipt.bistro_receipts)

    def _pushed(
        self,
        item: Item,
        place: Path,
        kept: Kept,
        receipt: Receipt,
        payload: Payload,
        troubles: list[str],
    ) -> Receipt:
        order = self._chooser.order(receipt, payload.n_bytes)
        core = self._sender.push(receipt, order, place, kept, payload, item.save)
        troubles += core.troubles
        return core.receipt
