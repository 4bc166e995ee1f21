"""Rules of an event that bind several of its keys: times, quorum, one key for one purpose."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.certificates import public_keys, read_certificates
from datacollect.bistro.formats.log.checkpoints import TIME_STOP
from datacollect.bistro.formats.log.content import CONTENT_FORMATS
from datacollect.errors import ProblemError
from datacollect.files.clock import Clock, local_instant, parsed, zone_of
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.notes import VerifierKey

_ORIGIN = re.compile(r"[^/\s]+/[0-9a-f]{16}")


def instant_of(text: str, timezone: str, place: str, remedy: str = "correct one of them") -> int:
    """Return the instant of a date and time, whole seconds since 1970.

    It has an offset, which is that of the time zone then, and no clock of the zone shows it twice:
    people read the clock, not the offset. `remedy` ends what is said of another offset.

    >>> instant_of("2027-04-15T23:59:59-04:00", "America/New_York", "deadline")
    1807847999
    """
    instant = parsed(text, place)
    if instant.tzinfo is None:
        raise ProblemError(
            f"{place} must have an offset from UTC, got {shown(text)}; write it like "
            f"{text}{_offset_in(text, timezone, place)}"
        )
    there = instant.astimezone(zone_of(timezone))
    if there.utcoffset() != instant.utcoffset():
        raise ProblemError(
            f"{place} must have the offset of timezone, got {shown(text)}, when clocks in "
            f"{timezone} show {there.isoformat()}; {remedy}"
        )
    clock = Clock.of(instant, timezone, place)
    naive = instant.replace(tzinfo=None)
    try:
        local_instant(naive, clock.zone, place)
    except ProblemError:
        hour_later = (naive + timedelta(hours=1)).isoformat(timespec="minutes")
        raise ProblemError(
            f"{place} must not lie in the hour that clocks in {timezone} show twice, got "
            f"{shown(text)}: people would mistake it for the other one; choose {hour_later} or "
            "later"
        ) from None
    if instant.microsecond:
        raise ProblemError(f"{place} must be in whole seconds, got {shown(text)}; round it")
    if instant.timestamp() >= TIME_STOP:
        raise ProblemError(f"{place} must lie before the year 2514, got {shown(text)}")
    return int(instant.timestamp())


def _offset_in(text: str, timezone: str, place: str) -> str:
    return Clock.of(text, timezone, place).iso(0)[-6:]


def check_event(event: Event) -> None:
    """Raise `ProblemError` where what an event says does not fit together."""
    _check_times(event)
    _check_quorum(event)
    _check_keys(event)
    _check_names(event)
    _check_files(event)


def _check_files(event: Event) -> None:
    if event.most_files > 1 and not event.has_proofs:
        raise ProblemError(
            f"limits.files must be 1 where content is {event.content}, got {event.most_files}: "
            f"several files need {CONTENT_FORMATS[1]}; write content so"
        )


def _check_times(event: Event) -> None:
    order = ["opens", "deadline", "collect_until", "keep_until"]
    times = [getattr(event, f"{key}_s") for key in order]
    for i in range(3):
        if times[i] >= times[i + 1] and not (i == 2 and times[2] == times[3]):
            raise ProblemError(
                f"{order[i + 1]} must lie after {order[i]}, {event.clock_text(times[i])}, got "
                f"{event.clock_text(times[i + 1])}; correct one of them"
            )


def _check_quorum(event: Event) -> None:
    k, n = event.quorum, len(event.witnesses)
    if event.alone:
        if (k, n) != (1, 1):
            raise ProblemError(
                f"alone must be left out where there are several witnesses, got a quorum of {k} "
                f"of {n}: alone says that the event's host is the only witness; leave alone out"
            )
        return
    if k > n:
        raise ProblemError(
            f"quorum must be at most the number of witnesses, {n}, got {k}; otherwise no time "
            "could ever count"
        )
    if k < 2 or 2 * k <= n:
        why = "one witness could backdate alone" if k < 2 else "a service alone could show two logs"
        raise ProblemError(
            f"quorum must be at least {max(2, n // 2 + 1)} of {max(n, 2)} witnesses, got {k} of "
            f"{n}: {why}; 3 of 4 is a good choice"
        )


def _check_keys(event: Event) -> None:
    """One key serves one purpose: a signature for one must never count as one for another."""
    seen: dict[str, str] = {}
    for key, place in _keys(event):
        first = seen.setdefault(key, place)
        if first is place:
            continue
        if first.startswith("witnesses") and place.startswith("witnesses"):
            raise ProblemError(
                f"{place} must be another key than {first}: one witness under two names would "
                "count twice; leave one out"
            )
        if first.startswith("authorities"):
            raise ProblemError(
                f"{place} must be another key than {first}: one authority under two certificates "
                "would count twice; leave one out"
            )
        raise ProblemError(
            f"{place} must be another key than {first}: one key serves one purpose; make another "
            "with `datacollect keys new`"
        )


def _keys(event: Event) -> Iterator[tuple[str, str]]:
    yield event.organiser, "organiser"
    for i, service in enumerate(event.services):
        yield service.log.key, f"services[{i}].log"
    for i, witness in enumerate(event.witnesses):
        yield witness.vkey.key, f"witnesses[{i}].vkey"
    for i, ended in enumerate(event.ended_verdicts):
        yield ended.log.key, "the log of verdicts" if i == 0 else f"its successor {i}"
    if event.verdicts:
        yield event.verdicts.key, "verdicts.log"
    for i, bistro in enumerate(event.bistros):
        yield bistro.key, f"bistros[{i}].key"
    for i, recipient in enumerate(event.recipients):
        yield recipient, f"recipients[{i}]"
    for i, authority in enumerate(event.authorities):
        place = f"authorities[{i}].certificate"
        # Not their texts: one key may have many certificates, and one certificate many texts.
        for key in public_keys(read_certificates(authority.certificate, place)):
            yield key.hex(), place


def _check_names(event: Event) -> None:
    if not event.services:
        raise ProblemError("services must name at least one service; write [[services]]")
    for i, service in enumerate(event.services):
        if not _ORIGIN.fullmatch(service.log.name):
            raise ProblemError(
                f"services[{i}].log must have an origin of a host and 16 random hexadecimal "
                f"digits, got {shown(service.log.name)}; `datacollect event new` makes one"
            )
    _check_unlike([each.log.name for each in event.services], "services", "log")
    urls = [each.url.lower() for each in event.services]
    _check_unlike(urls, "services", "url")
    of_verdicts = (event.verdicts_url or "").lower()
    if of_verdicts in urls:
        raise ProblemError(
            f"verdicts.url must be another than that of services[{urls.index(of_verdicts)}], got "
            f"{shown(event.verdicts_url)}: each log is asked at an address of its own; choose "
            "another"
        )
    _check_successor(event)
    _check_unlike([each.name for each in event.bistros], "bistros", "name")
    for i, bistro in enumerate(event.bistros):
        if bistro.fingerprint is not None and bistro.ca is not None:
            raise ProblemError(
                f"bistros[{i}] must have a fingerprint or a ca, not both; leave one of them out, "
                "or both if everybody trusts the authority that signed its certificate"
            )


def may_succeed(event: Event, log: VerifierKey) -> bool:
    """Return whether a log is none that an event has had, neither by its origin nor by its key."""
    verdicts = [] if event.verdicts is None else [event.verdicts.name]
    is_known_key = any(log.key == key for key, _ in _keys(event))
    return not is_known_key and log.name not in [*_origins_before(event), *verdicts]


def _origins_before(event: Event) -> list[str]:
    """Return the origins of services' logs, and of logs of verdicts that have ended."""
    others = [each.log.name for each in event.services]
    return others + [each.log.name for each in event.ended_verdicts]


def _check_successor(event: Event) -> None:
    """A witness knows a log by its origin: that of a successor is another than any before."""
    if not event.ended_verdicts or event.verdicts is None:
        return
    if event.verdicts.name in _origins_before(event):
        raise ProblemError(
            "verdicts.log must have an origin that no log of the event has had, got "
            f"{shown(event.verdicts.name)}; `datacollect event extend --verdicts` makes one"
        )


def _check_unlike(names: list[str], place: str, key: str) -> None:
    for i, name in enumerate(names):
        if names.index(name) < i:
            first = f"{place}[{names.index(name)}]"
            raise ProblemError(
                f"{place}[{i}].{key} must be another than that of {first}, got {shown(name)}; "
                "choose another"
            )
