"""Keys that a destination goes by: its own, and those of tickets, which say whose all is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.tickets import TICKET_SUFFIX, read_owned
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Admitted
    from datacollect.bistro.http.config import DestinationConfig


def require_key(event: Event, config: DestinationConfig, name: str) -> None:
    """Raise `ProblemError` where a destination has another key than the log of verdicts.

    Parameters
    ----------
    event : Event
        With its amendments: the log may have been succeeded.
    config : DestinationConfig
    name : str
        Of its file.
    """
    assert event.verdicts is not None
    if config.key.public == event.verdicts.key:
        return
    if any(config.key.public == ended.log.key for ended in event.ended_verdicts):
        raise ProblemError(
            f"{name}: key is that of a log of verdicts that has ended: an amendment has named "
            f"{event.verdicts.text}; take the file of its private key, and run `datacollect event "
            "recover` before `event run`"
        )
    raise ProblemError(
        f"{name}: key must be that of the event's log of verdicts, {event.verdicts.text}; take the "
        "file of its private key. If an amendment has named another log, no service that "
        "answers knows of it: run this again once one does"
    )


def read_tickets(folder: str | PathLike[str], event: Event) -> dict[str, Admitted]:
    """Return what all tickets say, by number, from the organiser's folder.

    Tickets that were revoked are among them: what was committed to before still counts.

    Raises
    ------
    ProblemError
        There is none, or one is of another event, or damaged.
    """
    unrevoked = replace(event, revoked=frozenset())
    found = {}
    for path in sorted(Path(folder).glob(f"*{TICKET_SUFFIX}")):
        _, ticket = read_owned(path, unrevoked)
        found[ticket.id] = ticket
    if not found:
        raise ProblemError(
            f"{document_name(folder)}: must hold everybody's tickets, as written by `datacollect "
            "event tickets`"
        )
    return found


def ticket_keys(tickets: Mapping[str, Admitted]) -> dict[str, str]:
    """Return the public keys of tickets, by number."""
    return {number: ticket.key for number, ticket in tickets.items()}


def revoked_tickets(tickets: Mapping[str, Admitted], event: Event) -> dict[str, int]:
    """Return by when tickets were revoked, by number, of those that were.

    Parameters
    ----------
    tickets : mapping of str to Admitted
    event : Event
        With the amendments that are known.
    """
    found = {number: event.revoked_s(each.token_sha256) for number, each in tickets.items()}
    return {number: time_s for number, time_s in found.items() if time_s is not None}
