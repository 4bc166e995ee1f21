"""Fills in a draft of an event: what nobody should have to write by hand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.fields import EVENT, EVENT_FORMAT, LIMITS
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.kinds import PEM, Url
from datacollect.bistro.formats.event.rules import instant_of
from datacollect.bistro.formats.event.strength import default_quorum
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.log.content import CONTENT_FORMATS
from datacollect.bistro.formats.log.file_list import MOST_FILES
from datacollect.errors import ProblemError
from datacollect.files.clock import local_instant, parsed, zone_of
from datacollect.files.clock_times import CLOCK_TIME, as_text
from datacollect.files.kinds import shown
from datacollect.files.toml_tables import toml_of
from datacollect.net.kinds import PublicKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, tzinfo

    from datacollect.bistro.formats.log.notes import VerifierKey

ORIGIN_BYTES = 8
_REMEDY = "leave the offset out, which the time zone determines, or correct one of them"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
TIMES = ("opens", "deadline", "collect_until", "keep_until")


def complete(
    draft: Mapping[str, Any],
    organiser: str,
    random_bytes: Callable[[int], bytes],
    certificates: Mapping[str, str],
) -> bytes:
    """Return the bytes of the event's file that a draft becomes.

    A draft is an event's file that leaves out what has a default, gives the public `key` of each
    service and of the log of verdicts instead of a `log`, and names files where the event holds
    certificates. Its times may be local ones of its time zone.

    Parameters
    ----------
    draft : mapping
        The draft's tree.
    organiser : str
        Public key of who signs tickets and amendments.
    random_bytes : function
        Returns so many random bytes, for the origins of the logs.
    certificates : mapping of str to str
        What stands in the files that `certificate_files` names.

    Raises
    ------
    ProblemError
        The draft is none, or the event breaks a rule.
    """
    tree = {"format": EVENT_FORMAT, **draft}
    if tree.setdefault("organiser", organiser) != organiser:
        raise ProblemError(
            f"organiser must be the key given beside the draft, {organiser}, got "
            f"{shown(tree['organiser'])}; leave organiser out of the draft"
        )
    # What an event leaves out is of the first kind: so older ones stay as they were.
    tree.setdefault("content", CONTENT_FORMATS[-1])
    for field in EVENT.fields:
        if field.name in ("lag_s", "admission", "counts"):
            tree.setdefault(field.name, field.default)
    given = tree.get("limits", {})
    if isinstance(given, dict):
        defaults = {f.name: f.default for f in LIMITS.fields if f.default is not None}
        # Older events take one file each, which is what leaving it out means.
        files = {"files": MOST_FILES} if tree["content"] != CONTENT_FORMATS[0] else {}
        tree["limits"] = defaults | files | given
    tree.setdefault("quorum", default_quorum(len(_rows(tree, "witnesses"))))
    for i, row in enumerate(_rows(tree, "services")):
        if "key" in row:
            _give_log(row, f"services[{i}]", random_bytes)
    verdicts = tree.get("verdicts")
    if isinstance(verdicts, dict) and "key" in verdicts:
        _give_log(verdicts, "verdicts", random_bytes)
    for row, key in _named_files(tree):
        row[key] = certificates.get(row[key], row[key])
    tree = {key: as_text(value) for key, value in tree.items()}
    tree = _with_offsets(tree)
    data = toml_of(EVENT, tree).encode()
    read_event(data, "the event")
    return data


def _with_offsets(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a tree whose local times have the offsets that its time zone determines.

    All that is wrong with times is said at once.
    """
    zone_name = tree.get("timezone")
    if not isinstance(zone_name, str):
        return tree  # refused later, by what it is
    zone = zone_of(zone_name)
    faults = []
    for key in TIMES:
        text = tree.get(key)
        if not isinstance(text, str):
            continue
        try:
            if _DAY.fullmatch(text) or re.fullmatch(CLOCK_TIME, text):
                text = as_instant(text, key, zone).isoformat()
                instant_of(text, zone_name, key, _REMEDY)
        except ProblemError as error:
            faults.append(str(error))
        tree = tree | {key: text}
    if faults:
        raise ProblemError(".\n".join(faults))
    return tree


def as_instant(text: str, key: str, zone: tzinfo) -> datetime:
    """Return the instant that a draft means by one of its times.

    A day without a time is that day's end, or the beginning of the day on which the event opens.

    Raises
    ------
    ProblemError
        It is no time, or clocks of the zone skip it, or show it twice.
    """
    if _DAY.fullmatch(text):
        text = f"{text}T{'00:00:00' if key == 'opens' else '23:59:59'}"
    instant = parsed(text, key)
    return local_instant(instant, zone, key) if instant.tzinfo is None else instant


def certificate_files(draft: Mapping[str, Any]) -> list[str]:
    """Return the files that a draft names where the event holds certificates."""
    return [row[key] for row, key in _named_files(draft)]


def _named_files(tree: Mapping[str, Any]) -> list[tuple[dict[str, Any], str]]:
    keys = (("authorities", "certificate"), ("bistros", "ca"))
    return [
        (row, key)
        for rows, key in keys
        for row in _rows(tree, rows)
        if isinstance(row.get(key), str) and not PEM.fullmatch(row[key])
    ]


def _rows(tree: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    rows = tree.get(key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _give_log(row: dict[str, Any], place: str, random_bytes: Callable[[int], bytes]) -> None:
    url = Url().read(row.get("url", ""), f"{place}.url")
    key = PublicKey().read(row.pop("key"), f"{place}.key")
    row["log"] = fresh_log(url.split("/")[2], key, random_bytes).text


def fresh_log(host: str, key: str, random_bytes: Callable[[int], bytes]) -> VerifierKey:
    """Return the verifier key of a log with an origin of its own, below a host's name.

    The log of one event must never be taken for that of another.
    """
    return log_key(f"{host}/{random_bytes(ORIGIN_BYTES).hex()}", key)
