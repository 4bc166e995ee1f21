"""Files of tickets, one for each person, and the organiser's list of whose is which."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from datacollect.bistro.formats.event.file import read_event, require_current
from datacollect.bistro.formats.event.tickets import (
    TICKET_SUFFIX,
    new_ticket,
    number_of,
    owned,
    read_owned,
)
from datacollect.bistro.organiser.extend import extend
from datacollect.bistro.organiser.roster import COLUMN, file_stem, read_people
from datacollect.bistro.organiser.sheet import Card, sheet_html
from datacollect.bistro.organiser.spreadsheets import text_of_cell, write_table
from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.documents import (
    document_name,
    read_bytes,
    text_of,
    write_owned,
    written_durably,
)
from datacollect.files.durability import synchronise
from datacollect.files.kinds import shown
from datacollect.files.refusals import refusal_of
from datacollect.files.tables import open_table
from datacollect.net.keys import KEY_BYTES, PrivateKey, read_private_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Admitted, Ticket
    from datacollect.bistro.organiser.extend import Extended

COLUMNS = (COLUMN, "ticket", "token_sha256", "token")
# Lists of older versions: names as they are, and no tokens.
OLDER_COLUMNS = COLUMNS[:3]
LINK_SUFFIX = ".link"
LIST = "tickets.csv"
MODE = 0o600
# What a forgotten person is called in the list, before the ticket's number.
FORGOTTEN = "forgotten-"
_REMEDY = "; move it elsewhere, or name another folder with -o"


class Listed(NamedTuple):
    """A row of the list: whose a ticket is, and what others may know of it.

    Attributes
    ----------
    person : str
    number : str
    token_sha256 : str
        The hash by which it is revoked.
    token : str
        Who has it alone can hand in nothing; empty where an older version has written the row.
    """

    person: str
    number: str
    token_sha256: str
    token: str = ""


@dataclass(frozen=True)
class TicketFiles:
    """Files that were written: new tickets, those that were there already, and the list of all."""

    n_new: int
    n_kept: int
    list_file: str
    sheet_file: str | None = None


@dataclass(frozen=True)
class Replaced:
    """Replacement of a lost ticket: a file; who has published that the lost one is revoked."""

    file: str
    revocation: Extended


def write_tickets(
    event: str | PathLike[str],
    people: str | PathLike[str],
    key: str | PathLike[str],
    into: str | PathLike[str],
    page: str | None = None,
    sheet: str | PathLike[str] | None = None,
) -> TicketFiles:
    """Write a ticket for each person, for its owner's eyes alone; started again it goes on.

    Nothing is overwritten. ``tickets.csv`` tells whose number is which, the hash by which a
    ticket is revoked, and its token, by which others know it; it keeps whoever stands there
    already.

    Parameters
    ----------
    event : path-like
    people : path-like
        CSV with a name for each, as `read_people` reads it.
    key : path-like
        The organiser's private key.
    into : path-like
        Folder; made where it is absent.
    page : str, optional
        URL of the page to hand in: beside each ticket goes ``PERSON.link``, which opens the page
        with the ticket.
    sheet : path-like, optional
        With `page`: a page to print with everybody's link as a QR code, a class after the other.

    Raises
    ------
    ProblemError
        A person is named twice, or a ticket that is there is another's.
    NotWrittenError
        A file cannot be written.
    """
    found = read_event(read_bytes(event), document_name(event))
    require_current(found, document_name(event))
    everybody = read_people(people)
    if sheet is not None and page is None:
        raise ProblemError("--sheet prints links to a page: give its address by --page")
    private = read_private_key(key)
    folder = Path(into)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(folder, error) from None
    # By their hashes, in their order: who was given a second ticket keeps both lines.
    rows = _by_hash(folder / LIST)
    n_new = 0
    cards = []
    try:
        for person in everybody:
            path = folder / f"{person.stem}{TICKET_SUFFIX}"
            is_new = not path.exists()
            if is_new:
                ticket = _written(path, found, private)
                told = owned(ticket, found)
            else:
                ticket, told = read_owned(path, found, _REMEDY)
            n_new += is_new
            _add(rows, person.name, ticket, told)
            if page is not None:
                link = _write_link(folder / f"{person.stem}{LINK_SUFFIX}", page, ticket)
                cards.append(Card(person.name, person.group, link))
    finally:
        # Interrupted, too: whoever has a ticket by now must be found.
        if rows:
            write_ticket_list(folder / LIST, rows.values())
    if sheet is not None:
        _write_sheet(Path(sheet), found, cards)
    return TicketFiles(
        n_new, len(everybody) - n_new, str(folder / LIST), None if sheet is None else str(sheet)
    )


def replace_ticket(
    event: str | PathLike[str],
    person: str,
    key: str | PathLike[str],
    into: str | PathLike[str],
    page: str | None = None,
) -> Replaced:
    """Revoke the ticket that a person has lost, for everybody to see, and write another.

    The new one is there whatever services answer: until the revocation is published both count.

    Parameters
    ----------
    event, key, into, page
        As `write_tickets` takes them.
    person : str
        A name as ``tickets.csv`` has it.

    Raises
    ------
    ProblemError
        Nobody of that name has a ticket.
    NotWrittenError
        A file cannot be written.
    """
    found = read_event(read_bytes(event), document_name(event))
    require_current(found, document_name(event))
    private = read_private_key(key)
    folder = Path(into)
    rows = _by_hash(folder / LIST)
    lost = [row.token_sha256 for row in rows.values() if row.person == person]
    if not lost:
        known = get_close_matches(person, [row.person for row in rows.values()], 1)
        hint = f"; did you mean {known[0]!r}?" if known else ""
        raise ProblemError(
            f"{document_name(folder / LIST)}: must name {shown(person)}, whose ticket is lost, "
            f"but names nobody of that name{hint}"
        )
    path = folder / f"{file_stem(person)}{TICKET_SUFFIX}"
    _put_aside(path, lost[-1])
    ticket = _written(path, found, private)
    _add(rows, person, ticket, owned(ticket, found))
    write_ticket_list(folder / LIST, rows.values())
    if page is not None:
        _write_link(path.with_name(f"{file_stem(person)}{LINK_SUFFIX}"), page, ticket)
    return Replaced(str(path), extend(event, key, revoke=lost))


def _by_hash(path: Path) -> dict[str, Listed]:
    return {row.token_sha256: row for row in read_ticket_list(path)}


def _add(rows: dict[str, Listed], person: str, ticket: Ticket, told: Admitted) -> None:
    token_sha256 = told.token_sha256.hex()
    rows[token_sha256] = Listed(person, told.id, token_sha256, ticket.token)


def _put_aside(path: Path, token_sha256: str) -> None:
    """Keep a ticket that is revoked beside: what was committed to before still counts."""
    aside = path.with_name(f"{path.stem}.revoked-{token_sha256[:8]}{TICKET_SUFFIX}")
    try:
        if path.exists():
            path.rename(aside)
            synchronise(path.parent)
    except OSError as error:
        raise _not_written(aside, error) from None


def _written(path: Path, event: Event, key: PrivateKey) -> Ticket:
    seed = secrets.token_bytes(KEY_BYTES)
    ticket = new_ticket(event, number_of(PrivateKey(seed).public), seed, key)
    beside = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.tmp")
    try:
        write_owned(beside, ticket.text.encode(), mode=MODE, new=True)
        try:
            # Whole or not at all, and over nothing that is there.
            os.link(beside, path)
        finally:
            beside.unlink(missing_ok=True)
        synchronise(path.parent)
    except OSError as error:
        raise _not_written(path, error) from None
    return ticket


def _write_link(path: Path, page: str, ticket: Ticket) -> str:
    """Write a link that opens the page with a ticket, which no server sees behind its ``#``."""
    link = f"{page.rstrip('/')}/{ticket.link}"
    with written_durably(path) as beside:
        write_owned(beside, f"{link}\n".encode(), mode=MODE)
    return link


def _write_sheet(path: Path, event: Event, cards: Sequence[Card]) -> None:
    with written_durably(path) as beside:
        write_owned(beside, sheet_html(event, cards).encode(), mode=MODE)


def read_ticket_list(path: Path) -> list[Listed]:
    """Return the rows of the list that is there; none where there is no list."""
    if not path.exists():
        return []
    name = document_name(path)
    table = open_table(text_of(read_bytes(path), name), name, COLUMN)
    if table.header == OLDER_COLUMNS:
        return [Listed(*row) for _, row in table.rows()]
    if table.header != COLUMNS:
        raise ProblemError(
            f"{name}: must have the columns {', '.join(COLUMNS)} alone, got "
            f"{shown(', '.join(table.header))}; move it elsewhere, since this command writes it "
            "again"
        )
    return [Listed(text_of_cell(row[0]), *row[1:]) for _, row in table.rows()]


def write_ticket_list(path: Path, rows: Iterable[Listed]) -> None:
    """Write the list anew.

    Raises
    ------
    NotWrittenError
        It cannot be written.
    """
    write_table(path, COLUMNS, rows)


def _not_written(path: Path, error: OSError) -> NotWrittenError:
    reason, remedy = refusal_of(error)
    return NotWrittenError(
        f"{document_name(path)}: cannot be written: {reason}; "
        f"{remedy or 'name another folder with -o'}",
        error.errno,
    )
