"""Files of tickets, one for each person, and the organiser's list of whose is which."""

from __future__ import annotations

import base64
import csv
import io
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.file import read_event, require_current
from datacollect.bistro.formats.event.tickets import (
    ID_BYTES,
    TICKET_SUFFIX,
    new_ticket,
    owned,
    read_owned,
)
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
from datacollect.net.keys import KEY_BYTES, read_private_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Ticket
    from datacollect.net.keys import PrivateKey

COLUMN = "person"
COLUMNS = (COLUMN, "ticket", "token_sha256")
LINK_SUFFIX = ".link"
LIST = "tickets.csv"
MODE = 0o600
_REMEDY = "; move it elsewhere, or name another folder with -o"
# What names files on every system: no separators, nothing hidden, nothing too long.
_NAME = re.compile(r"[^\W_][\w.@+ -]{0,99}")


@dataclass(frozen=True)
class TicketFiles:
    """What was written: new tickets, those that were there already, and the list of all."""

    n_new: int
    n_kept: int
    list_file: str


def write_tickets(
    event: str | PathLike[str],
    people: str | PathLike[str],
    key: str | PathLike[str],
    into: str | PathLike[str],
    page: str | None = None,
) -> TicketFiles:
    """Write a ticket for each person, for its owner's eyes alone; started again it goes on.

    Nothing is overwritten. ``tickets.csv`` tells whose number is which, and the hash by which a
    ticket is revoked; it keeps whoever stands there already.

    Parameters
    ----------
    event : path-like
    people : path-like
        CSV with the column ``person``: a name for each, as files may have it; others are ignored.
    key : path-like
        The organiser's private key.
    into : path-like
        Folder; made where it is absent.
    page : str, optional
        URL of the page to hand in: beside each ticket goes ``PERSON.link``, which opens the page
        with the ticket.

    Raises
    ------
    ProblemError
        A person is named twice, a name names no file, or a ticket that is there is another's.
    NotWrittenError
        A file cannot be written.
    """
    found = read_event(read_bytes(event), document_name(event))
    require_current(found, document_name(event))
    names = read_people(people)
    private = read_private_key(key)
    folder = Path(into)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(folder, error) from None
    # As keys, in their order: who was given a second ticket keeps both lines.
    rows = dict.fromkeys(_listed(folder / LIST))
    n_new = 0
    try:
        for name in names:
            path = folder / f"{name}{TICKET_SUFFIX}"
            is_new = not path.exists()
            if is_new:
                ticket = _written(path, found, private)
                told = owned(ticket, found)
            else:
                ticket, told = read_owned(path, found, _REMEDY)
            n_new += is_new
            rows[name, told.id, told.token_sha256.hex()] = None
            if page is not None:
                _write_link(folder / f"{name}{LINK_SUFFIX}", page, ticket)
    finally:
        # Interrupted, too: whoever has a ticket by now must be found.
        if rows:
            _write_list(folder / LIST, rows)
    return TicketFiles(n_new, len(names) - n_new, str(folder / LIST))


def read_people(path: str | PathLike[str]) -> list[str]:
    """Return the people of a table; raise `ProblemError` where one stands there twice."""
    name = document_name(path)
    table = open_table(text_of(read_bytes(path), name), name, COLUMN)
    if COLUMN not in table.header:
        raise ProblemError(
            f"{name}, line {1 + table.skipped_lines}: must have the column {COLUMN}, got "
            f"{shown(', '.join(table.header))}; it holds a name or number for each person"
        )
    at = list(table.header).index(COLUMN)
    lines: dict[str, tuple[int, str]] = {}
    doubles = []
    for line, row in table.rows():
        person = row[at].strip()
        if not _NAME.fullmatch(person) or person.endswith((".", " ")):
            raise ProblemError(
                f"{name}, line {line}: {COLUMN} must be letters, digits, '.', '-', '@', '+' and "
                f"spaces, at most 100, that begin with a letter or digit, got {shown(person)}: it "
                "becomes a file's name; choose another, such as a number"
            )
        # Some file systems take capitals for the same.
        first = lines.setdefault(person.casefold(), (line, person))
        if first[0] != line:
            doubles.append(f"{first[1]!r} in lines {first[0]} and {line}")
    if doubles:
        more = f" and {len(doubles) - 5} more" if len(doubles) > 5 else ""
        raise ProblemError(
            f"{name}: each person must stand there once, got {', '.join(doubles[:5])}{more}; leave "
            "one of each out, or tell them apart"
        )
    return [person for _, person in lines.values()]


def _written(path: Path, event: Event, key: PrivateKey) -> Ticket:
    number, seed = secrets.token_bytes(ID_BYTES), secrets.token_bytes(KEY_BYTES)
    ticket = new_ticket(event, number, seed, key)
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


def _write_link(path: Path, page: str, ticket: Ticket) -> None:
    """Write a link that opens the page with a ticket, which no server sees behind its ``#``."""
    told = base64.urlsafe_b64encode(ticket.text.encode()).rstrip(b"=").decode()
    with written_durably(path) as beside:
        write_owned(beside, f"{page.rstrip('/')}/#ticket={told}\n".encode(), mode=MODE)


def _listed(path: Path) -> list[tuple[str, ...]]:
    """Return the rows of the list that is there."""
    if not path.exists():
        return []
    name = document_name(path)
    table = open_table(text_of(read_bytes(path), name), name, COLUMN)
    if table.header != COLUMNS:
        raise ProblemError(
            f"{name}: must have the columns {', '.join(COLUMNS)} alone, got "
            f"{shown(', '.join(table.header))}; move it elsewhere, for it is written anew"
        )
    return [tuple(row) for _, row in table.rows()]


def _write_list(path: Path, rows: Iterable[tuple[str, ...]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *rows])
    with written_durably(path) as beside:
        write_owned(beside, text.getvalue().encode(), mode=MODE)


def _not_written(path: Path, error: OSError) -> NotWrittenError:
    reason, remedy = refusal_of(error)
    return NotWrittenError(
        f"{document_name(path)}: cannot be written: {reason}; "
        f"{remedy or 'name another folder with -o'}",
        error.errno,
    )
