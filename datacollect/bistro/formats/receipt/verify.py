"""Verifies a receipt: handed in, and in time, without network and without clock."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from datacollect.bistro.formats.custody.collected import collected_text, collected_verdict
from datacollect.bistro.formats.event.amendments import amended, missing_numbers, read_amendment
from datacollect.bistro.formats.event.file import id_advice, read_event
from datacollect.bistro.formats.event.marks import require_mark
from datacollect.bistro.formats.event.strength import alone_words
from datacollect.bistro.formats.log.content import content_digest
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import proved_time, verdict_time
from datacollect.bistro.formats.receipt.receipt import RECEIPT_FORMATS
from datacollect.bistro.formats.receipt.tokens import outside_time
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from datacollect.bistro.formats.event.amendments import Amendment
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.opening import Among, Opening
    from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, Receipt

Outcome: TypeAlias = Literal["in time", "late", "not proved"]

SOME_BYTES, SEALED_FILE, CONTENT = "some bytes", "the sealed file", "the file"
# What a receipt of an event of version 1 does not say: whose it is.
OLDER_KIND = "The event is of an older kind, in which anyone who heard a ticket could use it."


@dataclass(frozen=True)
class Content:
    """A file as it was before it was sealed, and what a person keeps of it alone.

    Attributes
    ----------
    secret, header : bytes
        As `datacollect.bistro.formats.log.content.content_digest` takes them.
    file : iterable of bytes
        In pieces; read once.
    """

    secret: bytes = field(repr=False)
    header: bytes
    file: Iterable[bytes]

    def digest(self) -> bytes:
        """Return what an entry says of it."""
        return content_digest(self.secret, self.header, self.file)


@dataclass(frozen=True)
class ShownContent:
    """A file as it was before it was sealed, and what its owner shows to prove it.

    Attributes
    ----------
    opening : Opening
    file : iterable of bytes
        In pieces; read once.
    """

    opening: Opening
    file: Iterable[bytes]

    def digest(self) -> bytes:
        """Return what an entry says of it."""
        return self.opening.digest(self.file)


@dataclass(frozen=True)
class Verdict:
    """Outcome of verifying a receipt.

    Attributes
    ----------
    outcome : str
        ``"in time"``, ``"late"`` or ``"not proved"``.
    time_s : int or None
        By when it stood in a log, seconds since 1970.
    deadline_s : int
        As amendments have left it.
    covers : str
        Of what: ``"some bytes"`` where no file was given, ``"the sealed file"``, ``"the file"``.
    reasons : tuple of str
        Sentences: what counts and what does not.
    collected_s : int or None
        By when the destination's log said that it was collected; None: nothing here proves that.
    is_the_one : bool or None
        Whether what was given is what was handed in; None: no file was given.
    among : Among or None
        Where the file stands among those that were handed in with it; None: it was alone, or
        nothing here tells.
    """

    outcome: Outcome
    time_s: int | None
    deadline_s: int
    covers: str
    reasons: tuple[str, ...]
    collected_s: int | None = None
    is_the_one: bool | None = None
    among: Among | None = None

    @property
    def is_in_time(self) -> bool:
        """Return whether it proves what it should."""
        return self.outcome == "in time"

    def sentence(self, name: str | None, clock_text: Callable[[float], str]) -> str:
        """Say in a sentence which file, by when, and whether it was collected.

        Parameters
        ----------
        name : str or None
            Of the file that was given.
        clock_text : callable
            Writes an instant as people are to read it.
        """
        what = "what the receipt covers (nobody knows what)" if name is None else name
        if self.among is not None and self.is_the_one:
            what = f"{what} ({self.among.text})"
        if self.is_the_one is False:
            why = "is not what was handed in, or was changed since"
            return f"{what} {why}: nothing is proved of it."
        if self.time_s is None:
            return f"nothing is proved of {what.rstrip(',')}: no time counts."
        when, deadline = clock_text(self.time_s), clock_text(self.deadline_s)
        timely = "in time" if self.is_in_time else f"late: the deadline was {deadline}"
        if self.collected_s is None:
            unsaid = "nothing here proves that it was collected"
            return f"{what} existed by {when}, {timely}; {unsaid}."
        collected = clock_text(self.collected_s)
        return f"{what} was handed in by {when}, {timely}, and collected by {collected}."


def verify(
    event_file: bytes,
    receipt: Receipt,
    *,
    ciphertext: Iterable[bytes] | None = None,
    content: Content | ShownContent | None = None,
    amendments: Sequence[PublishedAmendment] | None = None,
) -> Verdict:
    """Return what a receipt proves of an event.

    Parameters
    ----------
    event_file : bytes
        All bytes of the event's file.
    receipt : Receipt
    ciphertext : iterable of bytes, optional
        The sealed file, in pieces.
    content : Content or ShownContent, optional
        The file before it was sealed.
    amendments : sequence of PublishedAmendment, optional
        None: nobody has looked for any.

    Raises
    ------
    ProblemError
        The receipt is of another event, or what is given as an event or amendment is none.
    """
    event = read_event(event_file)
    require_receipt_of(receipt, event, event_file)
    reasons: list[str] = []
    if not event.is_signed_for and event.admission == "tickets":
        reasons.append(OLDER_KIND)
    event = _with_amendments(event, amendments, reasons)
    if event.cancelled is not None:
        reasons.append(f"The event was cancelled: {event.cancelled}.")
    covers = _covered(receipt, ciphertext, content, reasons)
    time_s = _time(receipt, event, reasons)
    outcome: Outcome = "not proved"
    if time_s is not None and covers:
        outcome = "in time" if time_s <= event.latest_s else "late"
        reasons.append(f"Counted at {event.clock_text(time_s)}.")
    if outcome == "late":
        reasons.append(f"The deadline was {event.clock_text(event.deadline_s)}.")
    if event.alone:
        reasons.extend(alone_words(event))
    collected_s = collected_time(receipt, event, reasons)
    is_the_one = None if ciphertext is None and content is None else bool(covers)
    among = _among(content) if is_the_one else None
    if among is not None:
        reasons.append(f"It is {among.text} that were handed in together.")
    covers, why = covers or SOME_BYTES, tuple(reasons)
    return Verdict(outcome, time_s, event.deadline_s, covers, why, collected_s, is_the_one, among)


def _among(content: Content | ShownContent | None) -> Among | None:
    return content.opening.among if isinstance(content, ShownContent) else None


def require_receipt_of(receipt: Receipt, event: Event, event_file: bytes) -> None:
    """Raise `ProblemError` where a receipt is of another event than the file's, or kind of such."""
    if receipt.commitment.event != event.id:
        raise ProblemError(
            f"the receipt is of event {receipt.commitment.event.hex()}, the event's file has the "
            f"id {event.id.hex()}: {id_advice(event_file, receipt.commitment.event)}"
        )
    if (receipt.commitment.owner is not None) != event.is_signed_for:
        raise ProblemError(
            f"the receipt must have the format {RECEIPT_FORMATS[event.version - 1]}, as all "
            "receipts of this event; take the one that was written for this event"
        )
    require_mark(receipt.commitment, event, "the receipt")


def published(
    event: Event, amendments: Iterable[PublishedAmendment], reasons: list[str]
) -> list[Amendment]:
    """Return the amendments that a log of the event has published; say why others do not count.

    Raises
    ------
    ProblemError
        One is none, or of another event or organiser.
    """
    found: dict[bytes, Amendment] = {}
    for i, each in enumerate(amendments):
        amendment = read_amendment(each.note, event, f"amendments[{i}]")
        proved = [proved_time(proof, each.note, event) for proof in each.proofs]
        times = [found.time_s for found in proved if found.time_s is not None]
        if not times:
            why = next((found.why_not for found in proved), "no proof of a log is given")
            reasons.append(
                f"Amendment {amendment.number} does not count, it is not published: {why}."
            )
        else:
            before = found.get(amendment.entry)
            if before is not None and before.published_s is not None:
                times.append(before.published_s)
            found[amendment.entry] = replace(amendment, published_s=min(times))
    return list(found.values())


def _with_amendments(
    event: Event, amendments: Sequence[PublishedAmendment] | None, reasons: list[str]
) -> Event:
    if amendments is None:
        reasons.append("No amendments were given: a later deadline would not be seen.")
        return event
    found = published(event, amendments, reasons)
    reasons += [f"Amendment {number} is missing." for number in missing_numbers(found)]
    return amended(event, found)


def _covered(
    receipt: Receipt,
    ciphertext: Iterable[bytes] | None,
    content: Content | ShownContent | None,
    reasons: list[str],
) -> str:
    """Return what the receipt is shown to be of; nothing where it is not of what was given."""
    if ciphertext is not None:
        size, digest = 0, hashlib.sha256()
        for piece in ciphertext:
            size += len(piece)
            digest.update(piece)
        if (size, digest.digest()) != (
            receipt.commitment.size,
            receipt.commitment.ciphertext_sha256,
        ):
            reasons.append("The sealed file is not the one that was handed in.")
            return ""
    if content is not None:
        if content.digest() != receipt.commitment.content:
            reasons.append("The file is not the one that was handed in, or was changed since.")
            return ""
        return CONTENT
    if ciphertext is not None:
        return SEALED_FILE
    reasons.append("No file was given: this proves a time for some bytes, nobody knows which.")
    return SOME_BYTES


def collected_time(receipt: Receipt, event: Event, reasons: list[str]) -> int | None:
    """Return by when the destination's log has said that it has collected what was handed in.

    None: nothing in the receipt proves that it has. Sentences about it are added to `reasons`.
    """
    if receipt.collected is None:
        return None
    try:
        proof = LogProof.parse(receipt.collected.encode())
    except ProblemError as error:
        why_not = str(error)
    else:
        said = collected_verdict(receipt.collected, event.id, receipt.entry)
        found = verdict_time(proof, said.data, event)
        # One text for one meaning: no line beside those that the verdict needs.
        is_as_written = collected_text(proof, said) == receipt.collected
        if found.time_s is not None and is_as_written:
            reasons.append(f"Collected by {event.clock_text(found.time_s)}.")
            return found.time_s
        why_not = found.why_not or "its extra line does not belong in such a proof"
    reasons.append(f"The proof that it was collected does not count: {why_not}.")
    return None


def _time(receipt: Receipt, event: Event, reasons: list[str]) -> int | None:
    """Return the least time that a log or the outside authorities prove."""
    for word in receipt.acknowledgements:
        log = event.log_of(word.log)
        if log and word.is_by(log, receipt.entry):
            said = event.clock_text(word.time_s)
            reasons.append(f"Handed in at {said}, according to the service alone.")
        else:
            reasons.append("An acknowledgement does not count: no service of the event gave it.")
    times = []
    for i, proof in enumerate(receipt.proofs):
        found = proved_time(proof, receipt.entry, event)
        if found.time_s is None:
            reasons.append(f"Proof {i + 1} does not count: {found.why_not}.")
        else:
            times.append(found.time_s)
    outside_s, why_not = outside_time(receipt.tokens, receipt.entry, event.authorities)
    reasons += why_not
    if outside_s is not None:
        times.append(outside_s)
    if not times:
        reasons.append("Nothing here proves a time: ask the services for proofs again.")
    return min(times, default=None)
