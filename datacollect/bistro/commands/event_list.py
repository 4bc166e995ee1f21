"""The commands ``datacollect event list`` and ``event remind``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit, emit_json, emit_table, emit_text, note
from datacollect.commands.options import Force, Json, require_new
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.bistro.destination.people_list import PeopleList

DestinationFile = Annotated[
    str, typer.Argument(metavar="DESTINATION", help="File of the destination, TOML.")
]
Tickets = Annotated[
    str | None,
    typer.Option(
        "--tickets",
        metavar="DIR",
        help="Folder of `event tickets`, if not the one that DESTINATION names.",
    ),
]
People = Annotated[
    str | None,
    typer.Option("--people", metavar="CSV", help="The roster, for groups and e-mail addresses."),
]


def list_people(
    destination: DestinationFile,
    tickets: Tickets = None,
    people: People = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="CSV", help="Write the table to this file."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write the table as an HTML page, too."),
    ] = None,
    links: Annotated[
        str | None,
        typer.Option(
            "--links", metavar="DIR", help="Make DIR/PERSON/NAME, a link to each collected file."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Say who has handed in what, and what became of it: a line for each file and person.

    What is called collected lies on this disk. Exit 0: everybody has a file that is collected, or
    was accepted by hand; 1: somebody has none, or not yet.
    """
    from pathlib import Path

    from datacollect.bistro.destination.people import DONE, counted, link_files
    from datacollect.bistro.destination.people_list import read_list, write_csv, write_html
    from datacollect.files.memory import uncollected

    for path in (output, html):
        if path is not None:
            require_new(path, force=force)
    with uncollected():
        found = read_list(destination, tickets, people)
        if output is not None:
            write_csv(found, Path(output))
        if html is not None:
            write_html(found, Path(html))
    n_links = None
    if links is not None:
        n_links = link_files(found.by_stem, found.folder, Path(links))
    code = 0 if all(each.state in DONE for each in found.people) else 1
    if as_json:
        emit_json(found.to_dict())
        return code
    if output is None and html is None:
        emit_table(("person", "file", "state", "in time"), _rows(found))
    for state, n in counted(found.people).items():
        emit(f"{n:,} {state}")
    if found.unknown:
        emit_text(f"{found.unknown:,} entries belong to tickets that are not in the list")
    _say_when(found)
    for what, path in (("table", output), ("page", html), ("links", links)):
        if path is not None:
            note(f"{what}: {path}" + (f", {n_links:,} files" if what == "links" else ""))
    return code


def remind(
    destination: DestinationFile,
    people: Annotated[
        str,
        typer.Option("--people", metavar="CSV", help="The roster, with e-mail addresses."),
    ],
    tickets: Tickets = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="CSV", help="Write a table of whom to remind, and of what."
        ),
    ] = None,
    smtp: Annotated[
        str | None,
        typer.Option(
            "--smtp",
            metavar="FILE",
            help="Mail the reminders through the server in this file, TOML.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --smtp: show the messages, send none.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Remind who has handed in nothing, or a timestamp whose file was never sent.

    Only while there is time: before the deadline who has nothing, and until collect_until who has
    a timestamp. Mails go one by one; run again after an interruption, nobody gets two of the same.

    Exit 0: all are reminded, or there is nobody; 1: some cannot be, and it says whom; 2: there is
    no time left.
    """
    from pathlib import Path

    from datacollect.bistro.destination.people_list import read_list
    from datacollect.bistro.destination.reminding import (
        SmtpConfig,
        mail,
        reminders_of,
        write_reminders,
    )

    if (output is None) == (smtp is None):
        raise ProblemError("give -o for a table of whom to remind, or --smtp to mail them")
    found = read_list(destination, tickets, people)
    reminders = reminders_of(found)
    if output is not None:
        require_new(output, force=force)
        write_reminders(reminders, Path(output))
        if as_json:
            emit_json({"reminders": [each.to_dict() for each in reminders]})
        else:
            emit(f"{len(reminders):,} to remind: {output}")
        return 0
    assert smtp is not None
    config = SmtpConfig.from_file(smtp)
    if dry_run:
        for each in reminders:
            emit(f"{each.message(config)}\n")
        return 0
    done = mail(reminders, config, found.folder)
    if as_json:
        emit_json(done.to_dict())
    else:
        emit(f"{done.n_sent:,} reminded now, {done.n_before:,} were reminded before")
        for name, why in done.troubles.items():
            emit_text(f"not reminded: {name}: {why}")
    return 1 if done.troubles else 0


def _say_when(found: PeopleList) -> None:
    if found.standing.cancelled is not None:
        emit_text(f"the event was cancelled: {found.standing.cancelled}")
    note(f"as of {found.clock_text(found.time_s)}, when the destination last wrote its state")


def _rows(found: PeopleList) -> Sequence[tuple[str, str, str, str]]:
    from datacollect.bistro.destination.people import BY_HAND, NOT_HERE, REFUSED
    from datacollect.bistro.destination.people_list import in_time_words

    rows = []
    for each in found.people:
        if not each.drafts:
            rows.append((each.person, "", each.state, ""))
        for draft in each.drafts:
            state = (
                f"{draft.state}: {draft.why}"
                if draft.why and draft.state in (REFUSED, BY_HAND, NOT_HERE)
                else draft.state
            )
            if draft.bistros and draft.file is None:
                state += f" (by {', '.join(draft.bistros)})"
            rows.append((each.person, draft.text, state, in_time_words(draft)))
    return rows
