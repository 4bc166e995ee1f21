"""Keys that a destination goes by: its own, and those of tickets, which say whose all is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.tickets import (
    TICKET_SUFFIX,
    admitted,
    key_of_token,
    read_owned,
)
from datacollect.bistro.organiser.ticket_files import LIST, read_ticket_list
from datacollect.errors import ProblemError, TicketError
from datacollect.files.documents import document_name
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Admitted
    from datacollect.bistro.http.config import DestinationConfig
    from datacollect.bistro.organiser.ticket_files import Listed


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
    """Return what all tickets say, by number, from the organiser's folder, or its list alone.

    The list has their tokens: who has no more than that cannot hand in by them. Tickets that were
    revoked are among them: what was committed to before still counts.

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
    for row in read_ticket_list(Path(folder) / LIST):
        if row.token and row.number not in found:
            found[row.number] = _listed(row, unrevoked, Path(folder) / LIST)
    if not found:
        raise ProblemError(
            f"{document_name(folder)}: must hold everybody's tickets, as written by `datacollect "
            "event tickets`"
        )
    return found


def _listed(row: Listed, event: Event, path: Path) -> Admitted:
    """Return what a token of the list says; raise `ProblemError` where it is none of this event."""
    try:
        ticket = admitted(row.token, event, 0)
        if ticket.id != row.number:
            raise TicketError("the ticket's token has another number")
    except TicketError as error:
        raise ProblemError(
            f"{document_name(path)}: the row of {shown(row.person)}: {error}; have the organiser "
            "copy the list again, as `datacollect event tickets` has written it"
        ) from None
    return ticket


def ticket_keys(tickets: Mapping[str, Admitted]) -> dict[str, str]:
    """Return the public keys of tickets, by number."""
    return {number: ticket.key for number, ticket in tickets.items()}


class ListedKeys(Mapping[str, str]):
    """Public keys of tickets, by number, as a list has them; each is read when it is wanted.

    Parameters
    ----------
    rows : iterable of Listed
        With tokens.
    """

    def __init__(self, rows: Iterable[Listed]) -> None:
        self._tokens = {row.number: row.token for row in rows}

    def __getitem__(self, number: str) -> str:
        """Return the key of a ticket; raise `TicketError` where the list has none for it."""
        return key_of_token(self._tokens[number])

    def __iter__(self) -> Iterator[str]:
        """Yield the numbers, in the list's order."""
        return iter(self._tokens)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._tokens)


def listed_keys(
    rows: Sequence[Listed], folder: str | PathLike[str], event: Event
) -> Mapping[str, str]:
    """Return the public keys of tickets, by number: of a list, or where that is older of the files.

    Raises
    ------
    ProblemError
        A ticket is of another event, or damaged.
    """
    if all(row.token for row in rows):
        return ListedKeys(rows)
    return ticket_keys(read_tickets(folder, event))


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
