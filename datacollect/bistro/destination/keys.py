"""Public keys of tickets, by which the destination knows whose something is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.tickets import TICKET_SUFFIX, read_owned
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name

if TYPE_CHECKING:
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event


def ticket_keys(folder: str | PathLike[str], event: Event) -> dict[str, str]:
    """Return the public keys of all tickets, by number, from the organiser's folder.

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
        found[ticket.id] = ticket.key
    if not found:
        raise ProblemError(
            f"{document_name(folder)}: must hold the tickets of all people, as `datacollect event "
            "tickets` has written them"
        )
    return found
