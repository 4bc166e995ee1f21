"""Amendments: what an organiser may still change, in plain text, for everybody to see.

An amendment is a signed note whose text is TOML. It becomes an entry of every log, whole and
readable: an organiser cannot keep one secret. It can move the deadline later, add bistros, revoke
tickets, name the log that succeeds a log of verdicts which cannot go on, and end the event for
good. It counts once a log has published it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.event import EndedLog
from datacollect.bistro.formats.event.fields import AMENDMENT_FORMAT, BISTROS, SUCCESSOR
from datacollect.bistro.formats.event.file import bistros_of
from datacollect.bistro.formats.event.kinds import Hex
from datacollect.bistro.formats.event.rules import check_event, instant_of, may_succeed
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.log.notes import Note, is_by, parse_note, signed
from datacollect.errors import ProblemError, naming
from datacollect.files.documents import parse_toml
from datacollect.files.fields import Document, Field
from datacollect.files.kinds import ClockTime, ListOf, Text, Whole, shown
from datacollect.files.toml_tables import toml_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from datacollect.bistro.formats.event.event import Bistro, Event
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.net.keys import PrivateKey

# The name in the note; which organiser, the event's file says.
SIGNER = "organiser"
AMEND_PATH = "/amend"
MOST_WHY_CHARACTERS = 300

AMENDMENT = Document(
    "the amendment",
    "What the organiser changes in an event. Everything else stays.",
    (
        Field("format", Text((AMENDMENT_FORMAT,)), "Format and version.", required=True),
        Field("event", Hex(), "The event's id.", required=True),
        Field(
            "number",
            Whole(minimum=1, stop=100_001),
            "Number of this amendment of the event, from 1.",
            required=True,
        ),
        Field("deadline", ClockTime(), "A later deadline, with its offset from UTC."),
        Field("revoked", ListOf(Hex()), "Hashes of tickets that no longer count.", default=()),
        BISTROS,
        SUCCESSOR,
        Field("cancelled", Text(), "Reason why the event was cancelled, for people to read."),
    ),
    remedy="`datacollect event extend EVENT.toml` writes one",
)


@dataclass(frozen=True)
class Amendment:
    """Content of an amendment.

    Attributes
    ----------
    number : int
        From 1.
    deadline_s : int or None
        Seconds since 1970.
    revoked : frozenset of bytes
    bistros : tuple of Bistro
    entry : bytes
        The note as the logs hold it.
    verdicts : VerifierKey or None
        The log of verdicts that succeeds the one before.
    verdicts_url : str or None
        Where that is read.
    published_s : int or None
        By when a log had published it; None: nobody has looked.
    cancelled : str or None
        Why the event has ended for good.
    """

    number: int
    deadline_s: int | None
    revoked: frozenset[bytes]
    bistros: tuple[Bistro, ...]
    entry: bytes
    verdicts: VerifierKey | None = None
    verdicts_url: str | None = None
    published_s: int | None = None
    cancelled: str | None = None


def sign_amendment(event: Event, changes: dict[str, Any], number: int, key: PrivateKey) -> bytes:
    """Return the note of an amendment.

    Parameters
    ----------
    event : Event
        With all earlier amendments.
    changes : dict
        ``deadline`` (a date and time with offset), ``revoked`` (hashes in hexadecimal digits),
        ``bistros`` (rows as in an event's file), ``verdicts`` (``log`` and ``url``),
        ``cancelled`` (why); any of them.
    number : int
        One more than that of the last amendment.
    key : PrivateKey
        The organiser's.

    Raises
    ------
    ProblemError
        It changes what cannot be changed, or the key is another one.
    """
    if key.public != event.organiser:
        raise ProblemError(
            f"the key must be the organiser's, {event.organiser}, got that of {key.public}"
        )
    said = {"format": AMENDMENT_FORMAT, "event": event.id.hex(), "number": number, **changes}
    note = signed(toml_of(AMENDMENT, said), SIGNER, key)
    check_amendment(event, read_amendment(note.data, event))
    return note.data


def read_amendment(entry: bytes, event: Event, place: str = "the amendment") -> Amendment:
    """Return the amendment that a log's entry is.

    Raises
    ------
    ProblemError
        It is none, of another event, or not signed by the organiser.
    """
    note = parse_note(entry, place)
    # Counted first: strangers could have one and the same verified many times.
    if len(note.signatures) > 1 or not is_by(note, log_key(SIGNER, event.organiser)):
        raise ProblemError(f"{place} must be signed by the organiser, {event.organiser}, alone")
    with naming(place):
        return _amendment(note, event)


def _amendment(note: Note, event: Event) -> Amendment:
    values = AMENDMENT.read(parse_toml(note.text, "its text"))
    if values["event"] != event.id:
        raise ProblemError(
            f"event must be {event.id.hex()}, got {values['event'].hex()}: this amendment is for "
            "another event"
        )
    deadline = values["deadline"]
    verdicts = values["verdicts"] or {"log": None, "url": None}
    return Amendment(
        number=values["number"],
        deadline_s=instant_of(deadline, event.timezone, "deadline") if deadline else None,
        revoked=frozenset(values["revoked"]),
        bistros=bistros_of(values["bistros"]),
        entry=note.data,
        verdicts=verdicts["log"],
        verdicts_url=verdicts["url"],
        cancelled=_why(values["cancelled"]),
    )


def _why(text: str | None) -> str | None:
    if text is not None and not (text.isprintable() and len(text) <= MOST_WHY_CHARACTERS):
        raise ProblemError(
            f"cancelled must be a line of at most {MOST_WHY_CHARACTERS} letters, got "
            f"{shown(text)}; say it in fewer words"
        )
    return text


def check_amendment(event: Event, amendment: Amendment) -> None:
    """Raise `ProblemError` where an amendment does not fit an event, earlier ones included."""
    with naming(f"amendment {amendment.number}"):
        if event.cancelled is not None:
            raise ProblemError(
                f"the event was cancelled ({event.cancelled}), and can no longer be changed; "
                "make another one, by `datacollect event new --like`"
            )
        if amendment.deadline_s is not None and amendment.deadline_s <= event.deadline_s:
            raise ProblemError(
                f"deadline must be later than {event.clock_text(event.deadline_s)}, got "
                f"{event.clock_text(amendment.deadline_s)}; a deadline can only move to later"
            )
        if amendment.verdicts is not None and event.verdicts is None:
            raise ProblemError(
                "verdicts must name a log that replaces the event's log of verdicts, but the "
                "event has none; leave verdicts out"
            )
        check_event(_changed(event, amendment))


def amended(event: Event, amendments: Iterable[Amendment]) -> Event:
    """Return an event as amendments change it, given in whichever order.

    The latest deadline counts, and of logs of verdicts that of the highest number. One that cannot
    succeed the others, as the same log again, is skipped: what it proves later would be after
    its own end, and count for nobody.
    """
    for each in sorted(amendments, key=lambda each: (each.number, each.entry)):
        is_new = each.verdicts is None or may_succeed(event, each.verdicts)
        event = _changed(event, each if is_new else replace(each, verdicts=None))
    return event


def _changed(event: Event, amendment: Amendment) -> Event:
    """Return an event as one amendment changes it."""
    published_s, log = amendment.published_s, amendment.verdicts
    since = () if published_s is None else ((each, published_s) for each in amendment.revoked)
    event = replace(
        event,
        revoked_since=event.revoked_since.union(since),
        deadline_s=max(event.deadline_s, amendment.deadline_s or 0),
        revoked=event.revoked | amendment.revoked,
        bistros=event.bistros + amendment.bistros,
        cancelled=event.cancelled or amendment.cancelled,
    )
    if log is None or event.verdicts is None:
        return event
    return replace(
        event,
        verdicts=log,
        verdicts_url=amendment.verdicts_url,
        ended_verdicts=(*event.ended_verdicts, EndedLog(event.verdicts, published_s)),
    )


def missing_numbers(amendments: Sequence[Amendment]) -> list[int]:
    """Return the numbers of amendments that there must be, and that are not among these."""
    numbers = {each.number for each in amendments}
    return sorted(set(range(1, max(numbers, default=0))) - numbers)
