"""Event files: read, checked, and known by the hash of their bytes."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

from datacollect.bistro.formats.event.event import Authority, Bistro, Event, Service, Witness
from datacollect.bistro.formats.event.fields import EVENT, EVENT_FORMAT, EVENT_FORMATS, LIMITS
from datacollect.bistro.formats.event.rules import check_event, instant_of
from datacollect.errors import ProblemError, naming
from datacollect.files.documents import parse_toml

# Ten thousand bistros with their certificates would fit.
MOST_EVENT_BYTES = 16 * 2**20

_AS_WRITTEN = (
    "name",
    "timezone",
    "lag_s",
    "organiser",
    "admission",
    "counts",
    "alone",
    "quorum",
    "never_came",
    "content",
)


@lru_cache(maxsize=8)  # whoever judges many receipts gives the same bytes each time
def read_event(data: bytes, name: str = "the event") -> Event:
    """Return the event that the bytes of a file are.

    Parameters
    ----------
    data : bytes
        All bytes of the file: their SHA-256 is the event's id.
    name : str
        Of the file, for messages.

    Raises
    ------
    ProblemError
        They are no event, or break a rule; the message says where.
    """
    if len(data) > MOST_EVENT_BYTES:
        raise ProblemError(f"{name}: must have at most {MOST_EVENT_BYTES} bytes, got {len(data)}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ProblemError(f"{name}: must be UTF-8, but byte {error.start} is not") from None
    tree = parse_toml(text, name)
    with naming(name):
        return _event(EVENT.read(tree), hashlib.sha256(data).digest())


def require_current(event: Event, name: str) -> None:
    """Raise `ProblemError` where an event is of an older kind, which can only be read.

    Parameters
    ----------
    event : Event
    name : str
        Of its file, for the message.
    """
    if not event.is_signed_for:
        raise ProblemError(
            f"{name}: format must be {EVENT_FORMAT}, got {EVENT_FORMATS[event.version - 1]}: in "
            "such an event anyone who hears a ticket can use it; verify and audit read it, and "
            "`datacollect event new` makes one of today's"
        )


def bistros_of(rows: list[dict[str, Any]]) -> tuple[Bistro, ...]:
    """Return the bistros that rows of a file describe."""
    return tuple(Bistro(**row) for row in rows)


def _event(values: dict[str, Any], event_id: bytes) -> Event:
    limits = values["limits"] or LIMITS.read({}, "limits")
    verdicts = values["verdicts"] or {"log": None, "url": None}
    zone = values["timezone"]
    opens = values["opens"]
    event = Event(
        id=event_id,
        opens_s=instant_of(opens, zone, "opens") if opens else 0,
        deadline_s=instant_of(values["deadline"], zone, "deadline"),
        collect_until_s=instant_of(values["collect_until"], zone, "collect_until"),
        keep_until_s=instant_of(values["keep_until"], zone, "keep_until"),
        most_bytes=limits["bytes"],
        commitments_per_ticket=limits["commitments_per_ticket"],
        most_files=limits["files"],
        recipients=tuple(values["recipients"]),
        services=tuple(Service(**row) for row in values["services"]),
        witnesses=tuple(Witness(**row) for row in values["witnesses"]),
        verdicts=verdicts["log"],
        verdicts_url=verdicts["url"],
        version=EVENT_FORMATS.index(values["format"]) + 1,
        bistros=bistros_of(values["bistros"]),
        authorities=tuple(Authority(**row) for row in values["authorities"]),
        **{key: values[key] for key in _AS_WRITTEN},
    )
    check_event(event)
    return event


def id_advice(data: bytes, expected: bytes) -> str:
    """Say why an event's file may not be the one that somebody else has.

    Parameters
    ----------
    data : bytes
        Of the file.
    expected : bytes
        The id that the other one says.
    """
    unix, dos = data.replace(b"\r\n", b"\n"), data.replace(b"\n", b"\r\n")
    if expected in (hashlib.sha256(unix).digest(), hashlib.sha256(dos).digest()):
        return (
            "the file's line ends were changed (CRLF for LF, or back), which makes it another "
            "event; use the file as it was published, byte by byte"
        )
    return "it is another event, or another version of its file: use the one that was published"
