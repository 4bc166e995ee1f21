"""Handing files in: ``dc.upload``."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.event.file import read_event, require_current
from datacollect.bistro.formats.event.tickets import Ticket, read_ticket
from datacollect.bistro.formats.receipt.content_proof import proof_of_content
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.bistro.formats.receipt.verify import published
from datacollect.bistro.http.published import Saved, amendments_of
from datacollect.bistro.person.core import HandingIn
from datacollect.bistro.person.delivering import NOT_SENT, Delivery
from datacollect.bistro.person.driving import Driver
from datacollect.bistro.person.instants import both_clocks, utc_text
from datacollect.bistro.person.items import Item, Refused, items_of, kept_item, require_ticket
from datacollect.bistro.person.showing import proof_place, what_it_shows
from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.documents import document_name, read_bytes
from datacollect.files.units import counted, format_duration
from datacollect.net.http_asking import Askers
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.sealing.keep import Kept
    from datacollect.bistro.person.delivering import Delivered

T = TypeVar("T")

# A proof comes within seconds; so long services that are down are asked again and again.
PATIENCE_S = 60.0
# How long the next file waits for the first answer to the one before it.
TURN_S = 10.0

NOTHING_PROVED = "Nothing is proved yet."

# What refusals say of the request itself, and that the event is over.
BAD_INPUT_STATUSES, OVER_STATUS = (400, 403, 413), 410


class HandedInFile(NamedTuple):
    """One of several files that are handed in together: its name there, its bytes, its proof."""

    name: str
    bytes: int
    proof: str


@dataclass(frozen=True)
class HandedIn:
    """What has become of one draft: of a file, or of several that are handed in together.

    Attributes
    ----------
    file : str
        As it was named; of several what their ``.keep`` is called after.
    keep, receipt : str or None
        What is to be kept; None: the file could not be taken, `troubles` says why. There is a
        receipt once somebody has answered.
    proof : str or None
        What shows which file it was, to be kept for ever; of several the folder with a proof for
        each. None where the event is of an older kind, whose ``.keep`` alone shows it.
    entry : str or None
        What stands in the logs: 64 hexadecimal digits.
    outcome : str
        ``"in time"``, ``"late"``, ``"not proved"`` (a service holds it, no proof came yet),
        ``"refused"`` or ``"no service"``.
    handed_in_s : int or None
        By the clock of the first service that acknowledged, seconds since 1970.
    counted_s : int or None
        The time that the receipt proves.
    proved : str
        A sentence: what is proved so far.
    troubles : tuple of str
        What services, authorities and bistros said that gave no help, and what else went wrong on
        the way; or why the file was not taken.
    exit_code : int
        0 in time, 1 late, not proved, held by no bistro or superseded by what is not proved to be
        collected, 2 refused for what was given (by the destination as well), 3 no service.
    held_by : str or None
        The bistro that has signed that it holds all of it.
    held_since_s : int or None
        Since when, by its own clock.
    collected_s : int or None
        By when the destination's log said that it has collected it, as the receipt proves.
    verdict : str or None
        The destination's last word, as its log proves: ``"collected"``, ``"refused: …"`` or
        ``"superseded: …"``; None: there is none yet, or it could not be asked for.
    sealed_anew : str or None
        What else is to be kept, where it had to be sealed anew.
    parts : tuple of HandedInFile
        All of several files that were handed in together; one alone is not in it.
    """

    file: str
    keep: str | None
    receipt: str | None
    entry: str | None
    outcome: str
    handed_in_s: int | None
    counted_s: int | None
    proved: str
    troubles: tuple[str, ...]
    exit_code: int
    held_by: str | None = None
    held_since_s: int | None = None
    collected_s: int | None = None
    verdict: str | None = None
    sealed_anew: str | None = None
    proof: str | None = None
    parts: tuple[HandedInFile, ...] = ()

    @property
    def is_in_time(self) -> bool:
        """Whether the receipt proves that it was handed in in time."""
        return self.outcome == "in time"

    @property
    def times_text(self) -> str:
        """When it was handed in and counted, by the reader's clock and in UTC."""
        handed_in = "nowhere" if self.handed_in_s is None else f"at {both_clocks(self.handed_in_s)}"
        count = "not yet" if self.counted_s is None else f"at {both_clocks(self.counted_s)}"
        text = f"handed in {handed_in}, counted {count}"
        if self.held_since_s is not None:
            text += f", held by {self.held_by} since {both_clocks(self.held_since_s)}"
        if self.collected_s is not None:
            text += f", collected by {both_clocks(self.collected_s)}"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "file": self.file,
            "keep": self.keep,
            "receipt": self.receipt,
            "proof": self.proof,
            "entry": self.entry,
            "outcome": self.outcome,
            "handed_in_s": self.handed_in_s,
            "handed_in": utc_text(self.handed_in_s),
            "counted_s": self.counted_s,
            "counted": utc_text(self.counted_s),
            "held_by": self.held_by,
            "held_since_s": self.held_since_s,
            "held_since": utc_text(self.held_since_s),
            "collected_s": self.collected_s,
            "collected": utc_text(self.collected_s),
            "verdict": self.verdict,
            "sealed_anew": self.sealed_anew,
            "proved": self.proved,
            "troubles": list(self.troubles),
            "parts": [each._asdict() for each in self.parts],
        }


@dataclass(frozen=True)
class Uploaded:
    """What has become of all drafts; `amendments` names the file of what was changed, if any."""

    event: str
    files: tuple[HandedIn, ...]
    amendments: str | None

    @property
    def exit_code(self) -> int:
        """0 where all are in time; else the gravest of the files' own."""
        return max(each.exit_code for each in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "event": self.event,
            "complete": self.exit_code == 0,
            "files": [each.to_dict() for each in self.files],
            "amendments": self.amendments,
        }


def upload(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    event: str | PathLike[str],
    *,
    ticket: Ticket | str | PathLike[str] | None = None,
    into: str | PathLike[str] | None = None,
    commit_only: bool = False,
    elsewhere: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Uploaded:
    """Hand files in: seal them, have them timestamped, keep a receipt.

    Files and folders that are named together are one draft, with one receipt: they come and count
    together, or not at all. Where the event takes one file at a time, each is a draft of its own.

    A draft is sealed for the event's recipients as ``NAME.keep``, before anybody hears of it, and
    ``NAME.proof`` is written, which shows beside the receipt which file it was. Then 32 bytes that
    commit to it are logged, and ``NAME.receipt.json`` grows until it proves a time. Then it is sent
    to one of the event's bistros, where there are any, which signs that it holds it. Started again
    it goes on: what is sealed stays as it is, and is handed in once; where the event has a log of
    verdicts to ask, the receipt gets the proof that it was collected, and what the destination
    could not open is sealed anew. Receipt and proof are to be kept for ever, ``NAME.keep`` until
    the file is collected.

    Parameters
    ----------
    files : path-like, or sequence of path-like
        A ``.keep`` goes on with what was sealed, whatever has become of the file.
    event : path-like
        The event's file, as it was published.
    ticket : Ticket or path-like, optional
        The person's, where the event asks for one.
    into : path-like, optional
        Folder of what is kept; by default beside each file.
    commit_only : bool
        End after the timestamp; send nothing.
    elsewhere : bool
        Send what a bistro holds to another one, too, unless it was collected: where the first has
        lost it. Not with `commit_only`.
    tell : callable, optional
        Told in a sentence what is going on.

    Returns
    -------
    Uploaded
        What is proved of each file; whatever services say, nothing is raised for it. Of several
        files those that can be taken are handed in.

    Raises
    ------
    ProblemError
        The event or the ticket cannot be taken, or none of the files; the message says why.
    NotWrittenError
        What is to be kept cannot be written.

    Examples
    --------
    >>> import datacollect as dc
    >>> dc.upload("return.pdf", "tax.toml", ticket="my.ticket")  # doctest: +SKIP
    Uploaded(event='9f86d08…', files=(HandedIn(file='return.pdf', …, outcome='in time', …),), …)
    """
    if commit_only and elsewhere:
        raise ProblemError(
            "commit_only sends nothing, and elsewhere sends to one more bistro; give one of them"
        )
    report = tell or (lambda _: None)
    event_data = read_bytes(event)
    found = read_event(event_data, document_name(event))
    require_current(found, document_name(event))
    own = ticket if isinstance(ticket, Ticket | None) else read_ticket(ticket, found)
    if own is not None:
        require_ticket(own, event_data, found)
    if into is not None:
        _make_folder(Path(into))
    named = [files] if isinstance(files, str | PathLike) else files
    items = items_of(named, into, found.most_files)
    if any(isinstance(item, Item) and not item.is_kept for item in items):
        report(_until(found))
    folder = _first_taken(items).keep.parent if into is None else into
    saved = Saved(found, event, folder)
    tls = web_context()
    askers = Askers(tls)
    driver = Driver(found, askers)
    with ExitStack() as held:
        held.callback(askers.close)
        rows = [_begun(item, found, event_data, own, driver, report, held) for item in items]
        _first_taken(rows)
        if not driver.are_all_settled:
            report("waiting for witnesses")
        driver.run(lambda core: core.wake_s is None)
        now_event, amendments = _amended(found, saved, tls)
        if now_event.cancelled_text is not None:
            report(now_event.cancelled_text)
        delivery = held.enter_context(Delivery(now_event, askers, report))
        deliver = None if commit_only else partial(delivery.deliver, elsewhere=elsewhere)
        done = tuple(
            _become(row, now_event, delivery.known, deliver, elsewhere=elsewhere) for row in rows
        )
    return Uploaded(found.id.hex(), done, amendments)


def _make_folder(folder: Path) -> None:
    """Make the folder of what is kept, before anything is sealed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWrittenError(
            f"{document_name(folder)}: the folder cannot be made: {error.strerror}; name another "
            "one with -o",
            error.errno,
        ) from None


def _until(event: Event) -> str:
    """Say until when something can be handed in, by the event's clock."""
    left_s = event.deadline_s - time.time()
    when = event.clock_text(event.deadline_s)
    if left_s < 0:
        return f"the deadline was {when}; what is handed in now is late, unless it was moved"
    return f"hand in until {when}: {format_duration(left_s)} are left"


def _begun(
    item: Item | Refused,
    event: Event,
    event_data: bytes,
    ticket: Ticket | None,
    driver: Driver,
    report: Callable[[str], None],
    held: ExitStack,
) -> tuple[Item, Kept, HandingIn] | Refused:
    """Seal a file, and wait for a moment until a service holds it."""
    if isinstance(item, Refused):
        return item
    with ExitStack() as own:
        # What was done by an earlier start is not said again.
        if not item.is_kept:
            report(f"sealing {item.name}")
        had_proof = item.has_proof
        try:
            kept, receipt = own.enter_context(kept_item(item, event, event_data, ticket))
        except ProblemError as error:
            return Refused(item.name, error)
        if not had_proof and item.has_proof:
            n_files = len(kept.files) or 1
            report(what_it_shows(item.proof if n_files == 1 else item.proofs, n_files))
        order = random.sample(range(len(event.services)), len(event.services))
        now_s = time.monotonic()
        core = HandingIn(event, receipt, order, now_s, PATIENCE_S)
        # Near a deadline the first must not wait for the seals of the others; but where no service
        # answers, all wait together.
        end_s = now_s + TURN_S if driver.are_all_acknowledged else now_s
        driver.add(core, kept.ticket, item.save)
        if not core.is_acknowledged:
            report(f"handing in {item.name}")
        driver.run(lambda core: core.is_acknowledged or time.monotonic() >= end_s)
        # Nobody else hands it in until all is done.
        held.push(own.pop_all())
    return item, kept, core


def _become(
    row: tuple[Item, Kept, HandingIn] | Refused,
    event: Event,
    known: Callable[[Item, Receipt], Delivered],
    deliver: Callable[[Item, Kept, Receipt], Delivered] | None,
    *,
    elsewhere: bool,
) -> HandedIn:
    """Say what has become of a file; send it, where it is in time and there are bistros."""
    if isinstance(row, Refused):
        return _not_taken(row)
    item, kept, core = row
    done = _handed_in(item, kept, core, event)
    if not event.bistros or not done.is_in_time:
        if not elsewhere:
            return done
        why = "it is not in time" if event.bistros else "the event has no bistros"
        return replace(done, troubles=(*done.troubles, f"nothing is sent elsewhere: {why}"))
    if deliver is None:
        return replace(_with(done, known(item, core.receipt)), exit_code=0)
    return _with(done, deliver(item, kept, core.receipt))


def _with(done: HandedIn, found: Delivered) -> HandedIn:
    """Return what has become of a file, with how far it was sent."""
    code, text, advice = found.standing
    held = found.held
    return replace(
        done,
        exit_code=code,
        proved=done.proved.replace(NOT_SENT, text),
        troubles=(*done.troubles, *found.troubles, *filter(None, [advice])),
        held_by=None if held is None else held.bistro,
        held_since_s=None if held is None else held.time_s,
        collected_s=found.collected_s,
        verdict=None if found.verdict is None else found.verdict.text,
        sealed_anew=None if found.anew is None else str(found.anew),
    )


def _first_taken(rows: Sequence[T | Refused]) -> T:
    """Return the first that can be taken; raise why the first of all cannot, if none can."""
    for row in rows:
        if not isinstance(row, Refused):
            return row
    first = rows[0]
    assert isinstance(first, Refused)
    raise first.error


def _not_taken(refused: Refused) -> HandedIn:
    return HandedIn(
        file=refused.name,
        keep=None,
        receipt=None,
        entry=None,
        outcome="refused",
        handed_in_s=None,
        counted_s=None,
        proved=NOTHING_PROVED,
        troubles=(str(refused.error),),
        exit_code=refused.error.exit_code,
    )


def _amended(event: Event, saved: Saved, tls: ssl.SSLContext) -> tuple[Event, str | None]:
    """Return the event as the logs have it changed by now, and the file that proves it.

    All services are asked: the one that took a file may not have taken a later deadline.
    """
    found = amendments_of(event, [each.url for each in event.services], tls).amendments
    if published(event, found, []):
        saved.add(found)
    counting = published(event, saved.amendments, [])
    return amended(event, counting), str(saved.path) if counting else None


def _handed_in(item: Item, kept: Kept, core: HandingIn, event: Event) -> HandedIn:
    receipt, time_s = core.receipt, core.time_s
    damage = [] if kept.is_whole else [item.damage]
    outcome, exit_code = _outcome(core, event)
    has_proof = kept.files or proof_of_content(receipt.entry, kept.inner) is not None
    place = item.proofs if kept.files else item.proof
    return HandedIn(
        file=str(item.file or (item.joint if item.several else item.keep)),
        keep=str(item.keep),
        receipt=str(item.receipt) if receipt != Receipt(receipt.commitment) else None,
        proof=str(place) if has_proof else None,
        parts=tuple(
            HandedInFile(each.name, each.version.n_bytes, str(proof_place(place, each.name)))
            for each in kept.files
        ),
        entry=receipt.entry.hex(),
        outcome=outcome,
        handed_in_s=min((word.time_s for word in receipt.acknowledgements), default=None),
        counted_s=time_s,
        proved=_proved(core, event),
        troubles=(
            *damage,
            *(
                f"{url}: {why}" if status is None else f"{url} ({status}): {why}"
                for url, status, why in core.refusals
            ),
        ),
        exit_code=exit_code,
    )


def _outcome(core: HandingIn, event: Event) -> tuple[str, int]:
    if core.time_s is not None:
        return ("in time", 0) if core.time_s <= event.latest_s else ("late", 1)
    if core.is_acknowledged:
        return "not proved", 1
    statuses = [status for _, status, _ in core.refusals]
    if core.state == "refused":
        if OVER_STATUS in statuses:
            return "late", 1
        return "refused", 2 if any(each in BAD_INPUT_STATUSES for each in statuses) else 3
    return "no service", 3


def _proved(core: HandingIn, event: Event) -> str:
    """Say in a sentence what the receipt proves so far."""
    receipt = core.receipt
    if core.time_s is None:
        if core.is_acknowledged:
            return "A service says that it holds it; no witness has signed yet."
        return NOTHING_PROVED
    n_logs = len({proof.signed.checkpoint.origin for proof in receipt.proofs})
    by = (
        f"by {counted(n_logs, 'log')} and {event.quorum} of {len(event.witnesses)} witnesses"
        if n_logs
        else f"by {counted(len(receipt.tokens), 'outside authority', 'outside authorities')}"
    )
    when = "before the deadline" if core.time_s <= event.latest_s else "after the deadline"
    return f"Proved {by}: it was ready {when}; {NOT_SENT}."


def kept_words(
    items: Sequence[str | PathLike[str]],
    event: str | PathLike[str],
    into: str | PathLike[str] | None,
) -> str:
    """Say after an interruption what is kept, and what to do next."""
    try:
        most_files = read_event(read_bytes(event), document_name(event)).most_files
        found = [each for each in items_of(items, into, most_files) if isinstance(each, Item)]
        names = [document_name(item.keep) for item in found if item.keep.exists()]
    except (ProblemError, OSError):
        names = []
    kept = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} kept; " if names else ""
    return f"{kept}the same command continues"
