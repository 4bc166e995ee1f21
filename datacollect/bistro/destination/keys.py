"""Tickets of an event: by their keys the destination knows whose something is, and until when."""

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
            f"{document_name(folder)}: must hold the tickets of all people, as `datacollect event "
            "tickets` has written them"
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
