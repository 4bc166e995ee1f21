"""Drafts that say only what differs from another event, such as for who has longer time."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from datacollect.bistro.formats.event.draft import TIMES, as_instant, fresh_log
from datacollect.bistro.formats.event.file import read_event, require_current
from datacollect.errors import ProblemError
from datacollect.files.clock import zone_of
from datacollect.files.clock_times import as_text
from datacollect.files.documents import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from datacollect.bistro.formats.event.event import Event

DEADLINE, AFTER_IT = "deadline", ("collect_until", "keep_until")
# Of the tables of servers that can serve one event alone; witnesses sign for many logs.
OF_ONE_EVENT = ("services", "bistros")
MOST_PORT = 65_535


def like(draft: Mapping[str, Any], other: bytes, name: str, ports_up: int = 0) -> dict[str, Any]:
    """Return a draft with all that it leaves out as another event has it.

    Logs are new ones, by the same keys. What comes after the deadline keeps its distance from it.

    Parameters
    ----------
    draft : mapping
    other : bytes
        The other event's file.
    name : str
        Of that file.
    ports_up : int
        By how much ports are higher of servers that serve one event alone, unless the draft names
        them.

    Raises
    ------
    ProblemError
        The other event is none, or of an older kind; a time is none; a port would be too high.
    """
    event = read_event(other, name)
    require_current(event, name)
    tree: dict[str, Any] = parse_toml(other.decode(), name)
    tree = {key: as_text(value) for key, value in tree.items()}
    del tree["format"]
    for row, service in zip(tree["services"], event.services, strict=True):
        del row["log"]
        row["key"] = service.log.key
    if event.verdicts is not None:
        host = event.verdicts.name.partition("/")[0]
        tree["verdicts"]["log"] = fresh_log(host, event.verdicts.key, os.urandom).text
    for row in _of_one_event(tree):
        row["url"] = _moved(row["url"], ports_up)
    said = {key: as_text(value) for key, value in draft.items()}
    if "witnesses" in said and "quorum" not in said:
        del tree["quorum"]
    found = tree | said
    return found | _times(found, said, event)


def same_addresses(made: Event, other: bytes, name: str) -> list[str]:
    """Return the addresses of servers that both events name, and that can serve one of them."""
    theirs = {row["url"] for row in _of_one_event(parse_toml(other.decode(), name))}
    ours = [*(each.url for each in made.services), *(each.url for each in made.bistros)]
    return [url for url in (*ours, made.verdicts_url) if url is not None and url in theirs]


def _of_one_event(tree: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in OF_ONE_EVENT:
        yield from tree.get(key, ())
    if "url" in tree.get("verdicts", {}):
        yield tree["verdicts"]


def _moved(url: str, ports_up: int) -> str:
    if not ports_up:
        return url
    parts = urlsplit(url)
    port = (parts.port or 443) + ports_up
    if not 0 < port <= MOST_PORT:
        raise ProblemError(
            f"--ports-up would give {url} the port {port}, which does not exist; give another "
            "number"
        )
    host = parts.netloc.rpartition("@")[2]
    host = host[: -len(f":{parts.port}")] if parts.port is not None else host
    return urlunsplit(parts._replace(netloc=f"{host}:{port}"))


def _times(tree: dict[str, Any], said: Mapping[str, Any], event: Event) -> dict[str, str]:
    """Return the other event's times by the clocks of this one's zone, moved with its deadline."""
    if not isinstance(tree["timezone"], str):
        return {}  # refused later, by what it is
    zone = zone_of(tree["timezone"])
    times_s = {key: getattr(event, f"{key}_s") for key in TIMES if key in tree}
    clocks = {key: datetime.fromtimestamp(at_s, zone) for key, at_s in times_s.items()}
    if isinstance(said.get(DEADLINE), str):
        deadline = as_instant(said[DEADLINE], DEADLINE, zone)
        # By what clocks show: the end of a day stays one when summer time ends.
        later = deadline.astimezone(zone).replace(tzinfo=None) - clocks[DEADLINE].replace(
            tzinfo=None
        )
        for key in AFTER_IT:
            clocks[key] = clocks[key].replace(tzinfo=None) + later
    return {key: each.isoformat() for key, each in clocks.items() if key not in said}
