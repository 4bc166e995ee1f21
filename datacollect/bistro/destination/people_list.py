"""The organiser's table, read from a destination, and written as a table or a page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.bistro.destination.accepting import read_accepted
from datacollect.bistro.destination.keys import listed_keys
from datacollect.bistro.destination.marking import mark_keys
from datacollect.bistro.destination.people import (
    DONE,
    HandedIn,
    handed_in,
    with_accepted,
)
from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register_reading import reading
from datacollect.bistro.destination.run.standing import MISSING_FILE, read_missing, read_standing
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.http.config import DestinationConfig
from datacollect.bistro.organiser.roster import file_stem, read_people
from datacollect.bistro.organiser.spreadsheets import write_table
from datacollect.bistro.organiser.ticket_files import FORGOTTEN, LIST, read_ticket_list
from datacollect.errors import ProblemError
from datacollect.files.documents import (
    document_name,
    read_bytes,
    write_owned,
    written_durably,
)
from datacollect.files.units import format_bytes, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacollect.bistro.destination.people import Draft, DraftFile
    from datacollect.bistro.destination.run.standing import Standing
    from datacollect.bistro.formats.event.event import Event

COLUMNS = (
    "person",
    "group",
    "email",
    "state",
    "file_name",
    "file",
    "bytes",
    "files",
    "time",
    "late_s",
    "bistros",
    "why",
    "entry",
)
_STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; margin: 1rem; color: #1b1b1b; background: #fff; }
.wide { overflow-x: auto; } table { border-collapse: collapse; min-width: 30rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; }
th, td { border-bottom: 1px solid #ccc; }
td { overflow-wrap: anywhere; } tr.lacks td:nth-child(3) { font-weight: 700; }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #181818; }
  a { color: #9cf; } th, td { border-color: #555; } }
"""


@dataclass(frozen=True)
class PeopleList:
    """List of people and what they have handed in.

    Attributes
    ----------
    event : Event
        As its file says.
    standing : Standing
        What the destination has left, and when.
    people : tuple of HandedIn
    folder : Path
        Of the destination.
    unknown : int
        Entries of tickets that the list of tickets does not name.
    """

    event: Event
    standing: Standing
    people: tuple[HandedIn, ...]
    folder: Path
    unknown: int = 0

    @property
    def time_s(self) -> int:
        """Return when this was so, seconds since 1970."""
        return self.standing.time_s

    @property
    def by_stem(self) -> list[HandedIn]:
        """The people by what their folders are called."""
        return [replace(each, person=file_stem(each.person)) for each in self.people]

    def clock_text(self, time_s: float) -> str:
        """Write an instant by the event's clock."""
        return self.event.clock_text(time_s)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "event": self.event.id.hex(),
            "time_s": self.time_s,
            "people": [each.to_dict() for each in self.people],
            "unknown": self.unknown,
        }


def read_list(
    destination: str, tickets: str | None = None, people: str | None = None
) -> PeopleList:
    """Return who has handed in what, as far as a destination knows.

    Parameters
    ----------
    destination : str
        The destination's file.
    tickets : str, optional
        Folder of the tickets and their list; by default the one that the file names.
    people : str, optional
        The roster: groups and addresses. Who has no ticket is among the people, too.

    Raises
    ------
    ProblemError
        Nothing was begun, or the list of tickets is not there.
    StoreError
        The disk or the database fails.
    """
    config = DestinationConfig.from_file(destination)
    folder = tickets_folder(config, destination, tickets)
    standing = read_standing(config.folder)
    event = event_of(standing)
    listed = read_ticket_list(folder / LIST)
    whose = {each.number: each.person for each in listed}
    everybody = _people(people, whose.values())
    keys = listed_keys(listed, folder, event) if event.has_marks else {}
    missing = read_missing(config.folder)
    if missing is None:
        raise ProblemError(
            f"{document_name(config.folder / MISSING_FILE)}: is missing or damaged, and it alone "
            "tells who has only a timestamp; `datacollect event run` writes it again"
        )
    latest_s = standing.deadline_s if standing.latest_s is None else standing.latest_s
    n_unknown = 0
    with reading(config.register, standing.event) as rows:

        def counting() -> Any:
            nonlocal n_unknown
            for row in rows:
                n_unknown += bool(row.ticket) and row.ticket not in whose
                yield row

        found = handed_in(
            everybody,
            whose,
            counting(),
            missing,
            Place.of(config.folder),
            config.folder,
            latest_s=latest_s,
            marks=mark_keys(event, config, document_name(destination)),
            ticket_keys=keys,
        )
    by_hand = read_accepted(config.folder)
    if by_hand:
        found = with_accepted(found, by_hand, config.folder, latest_s)
    # Who is forgotten is asked for nothing.
    found = [each for each in found if each.drafts or not each.person.startswith(FORGOTTEN)]
    return PeopleList(event, standing, tuple(found), config.folder, n_unknown)


def named_people(
    config: DestinationConfig, destination: str, tickets: str | None, people: str | None
) -> list[str]:
    """Return the names of all people: who has a ticket, and who stands in the roster.

    Parameters
    ----------
    config : DestinationConfig
    destination : str
        Its file.
    tickets, people : str, optional
        As `read_list` takes them.

    Raises
    ------
    ProblemError
        There is no list of tickets.
    """
    folder = tickets_folder(config, destination, tickets)
    names = (each.person for each in read_ticket_list(folder / LIST))
    return [each.person for each in _people(people, names)]


def tickets_folder(config: DestinationConfig, destination: str, tickets: str | None) -> Path:
    """Return the folder of the tickets and their list; raise `ProblemError` where there is none."""
    folder = Path(tickets) if tickets is not None else config.tickets
    if folder is None:
        raise ProblemError(
            f"{document_name(destination)}: names no folder of tickets; give it with --tickets DIR"
        )
    if not (folder / LIST).exists():
        raise ProblemError(
            f"{document_name(folder)}: must hold {LIST}, which has the names of tickets; "
            "`datacollect event tickets` wrote it where the tickets were made: copy it here, or "
            "name that folder with --tickets"
        )
    return folder


def event_of(standing: Standing) -> Event:
    """Return the event of which a destination has left how far it is.

    Raises
    ------
    ProblemError
        Its file is not where it was, or is another's.
    """
    path = standing.event_file
    if path is None or not Path(path).exists():
        raise ProblemError(
            f"{path or 'the event'}: the event's file is no longer where `event run` read it; put "
            "it back, or run `datacollect event run` again with where it is now"
        )
    event = read_event(read_bytes(path), document_name(path))
    if event.id.hex() != standing.event:
        raise ProblemError(
            f"{document_name(path)}: must be the file of event {standing.event}, but is that of "
            f"{event.id.hex()}; put the right file back"
        )
    return event


def _people(roster: str | None, with_tickets: Any) -> list[HandedIn]:
    """Return the people of the roster, then whoever has a ticket and is not there."""
    found = {}
    if roster is not None:
        for each in read_people(roster):
            found[each.name] = HandedIn(each.name, each.group, each.email)
    for name in with_tickets:
        found.setdefault(name, HandedIn(name))
    return list(found.values())


def in_time_words(draft: Draft) -> str:
    """Say whether a draft is in time, or by how much it is late; nothing where nobody knows."""
    if draft.late_s is not None:
        return f"late by {format_duration(draft.late_s)}"
    return "" if draft.time_s is None else "in time"


def write_csv(found: PeopleList, path: Path) -> None:
    """Write a row for each file, and for whoever has none, for its owner's eyes alone."""
    write_table(path, COLUMNS, _csv_rows(found))


def _csv_rows(found: PeopleList) -> Iterator[Sequence[str | int]]:
    for each in found.people:
        person = (each.person, each.group, each.email)
        if not each.drafts:
            yield (*person, each.state, *[""] * (len(COLUMNS) - 4))
        for draft in each.drafts:
            about = (
                "" if draft.time_s is None else _utc(draft.time_s),
                "" if draft.late_s is None else draft.late_s,
                " ".join(draft.bistros),
                draft.why,
                draft.entry.hex(),
            )
            for file in _file_cells(draft):
                yield (*person, draft.state, *file, *about)


def _file_cells(draft: Draft) -> list[tuple[Any, ...]]:
    """Return name, place, bytes and how many came as one, of each file of a draft."""
    if draft.file is None:
        return [(draft.name, "", "", "")]
    if draft.parts:
        return [
            (name, f"files/{file}", n_bytes, len(draft.parts))
            for name, file, n_bytes in draft.parts
        ]
    n_bytes = "" if draft.n_bytes is None else draft.n_bytes
    return [(draft.name, f"files/{draft.file}", n_bytes, 1)]


def _utc(time_s: int) -> str:
    minute, second = divmod(time_s, 60)
    return f"{_utc_minute(minute)}:{second:02}Z"


@cache
def _utc_minute(minute: int) -> str:
    # Thousands of files share a minute.
    return datetime.fromtimestamp(60 * minute, UTC).strftime("%Y-%m-%dT%H:%M")


def write_html(found: PeopleList, path: Path) -> None:
    """Write a page that needs nothing else, for its owner's eyes alone."""
    with written_durably(path) as beside:
        write_owned(beside, _html(found).encode(), mode=0o600)


def _html(found: PeopleList) -> str:
    rows = []
    for each in found.people:
        cells = [_cells(draft, found) for draft in each.drafts] or [("", each.state, "")]
        lacks = ' class="lacks"' if each.state not in DONE else ""
        person = escape(each.person) + (f" ({escape(each.group)})" if each.group else "")
        for i, some in enumerate(cells):
            name = f'<th scope="row">{person if i == 0 else ""}</th>'
            rows.append(f"<tr{lacks}>{name}{''.join(f'<td>{cell}</td>' for cell in some)}</tr>")
    title = escape(found.event.name)
    heads = "".join(f'<th scope="col">{word}</th>' for word in ("person", "file", "state", "time"))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{title}</h1>\n"
        f"<p>As of {escape(found.clock_text(found.time_s))}; deadline "
        f"{escape(found.clock_text(found.standing.deadline_s))}.</p>\n"
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>\n</html>\n"
    )


def _cells(draft: Draft, found: PeopleList) -> Sequence[str]:
    name = "<br>".join(_file_link(each, found) for each in draft.files) or escape(draft.name)
    if len(draft.parts) > 1:
        name = f"<details><summary>{escape(draft.text)}</summary>{name}</details>"
    elif draft.n_bytes is not None:
        name += f" ({format_bytes(draft.n_bytes)})"
    state = escape(f"{draft.state}: {draft.why}" if draft.why else draft.state)
    time = "" if draft.time_s is None else escape(found.clock_text(draft.time_s))
    words = in_time_words(draft)
    return name, state, f"{time}, {words}" if words else time


def _file_link(file: DraftFile, found: PeopleList) -> str:
    address = (found.folder / "files" / file.file).absolute().as_uri()
    return f'<a href="{escape(address)}">{escape(file.name)}</a>'
