"""The commands ``datacollect event``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from datacollect.bistro.commands.event_accept import accept
from datacollect.bistro.commands.event_forget import forget
from datacollect.bistro.commands.event_list import list_people, remind
from datacollect.bistro.commands.event_mirror import mirror
from datacollect.bistro.commands.event_open import init, invite, open_
from datacollect.bistro.commands.event_page import page
from datacollect.bistro.commands.event_quickstart import quickstart
from datacollect.bistro.commands.event_recover import recover
from datacollect.bistro.commands.event_run import run, status
from datacollect.commands.brought import CommandSpec
from datacollect.commands.console import emit, emit_json, emit_text, note, note_text
from datacollect.commands.help_option import Command, Group
from datacollect.commands.options import Force, Json, require_new

if TYPE_CHECKING:
    from datacollect.bistro.organiser.extend import Extended

event = typer.Typer(
    help="Make an event, give people tickets, collect what they hand in.",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
)

EventFile = Annotated[str, typer.Argument(metavar="EVENT", help="The event's file, as published.")]
OrganiserKey = Annotated[
    str, typer.Option("--key", metavar="KEY", help="File of the organiser's private key.")
]


@event.command(cls=Command)
def new(
    draft: Annotated[str, typer.Argument(metavar="DRAFT", help="Draft of the event, TOML.")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="EVENT", help="The event's file.")
    ],
    identity: Annotated[
        list[str] | None,
        typer.Option(
            "--identity",
            metavar="FILE",
            help="Check that this identity can open what people seal; repeatable.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="OTHER",
            help="File of another event, for everything that DRAFT leaves out.",
        ),
    ] = None,
    ports_up: Annotated[
        int,
        typer.Option(
            "--ports-up",
            metavar="N",
            help="With --like: add this number to the ports of that event's servers.",
        ),
    ] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Complete and check the draft of an event; print its id, and what it withstands.

    Publish the file unchanged: any change makes it another event.
    """
    from datacollect.bistro.organiser.new_event import new_event
    from datacollect.errors import ProblemError
    from datacollect.files.documents import toml_text

    if ports_up and like is None:
        raise ProblemError(
            "--ports-up counts from the ports of another event; name that event with --like"
        )
    require_new(output, force=force)
    made = new_event(draft, output, identity or (), like, ports_up)
    logs = [key.text for key in made.event.log_keys]
    if as_json:
        emit_json(
            {
                "file": output,
                "event": made.event.id.hex(),
                "withstands": list(made.withstands),
                "cautions": list(made.cautions),
                "opened": list(made.opened),
                "logs": logs,
            }
        )
        return
    emit(f"event {made.event.id.hex()}")
    for sentence in made.withstands:
        emit_text(sentence, 2)
    for sentence in made.cautions:
        note_text(f"caution: {sentence}")
    note("the files of the witnesses need this line:")
    emit(f"logs = {toml_text(logs)}")
    note_text(f"publish {output} unchanged: any change makes it another event")


@event.command(cls=Command)
def tickets(
    event_file: EventFile,
    key: OrganiserKey,
    into: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="Folder of the tickets.")
    ],
    people: Annotated[
        str | None,
        typer.Option(
            "--people",
            metavar="CSV",
            help="Table of names: a column person, or first and last names as schools export them.",
        ),
    ] = None,
    page_url: Annotated[
        str | None,
        typer.Option("--page", metavar="URL", help="Write links to this page, too: PERSON.link."),
    ] = None,
    sheet: Annotated[
        str | None,
        typer.Option(
            "--sheet", metavar="HTML", help="With --page: a page to print, links as QR codes."
        ),
    ] = None,
    lost: Annotated[
        str | None,
        typer.Option(
            "--lost", metavar="PERSON", help="Revoke this person's ticket and write another."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Write a ticket for each person; run again, the command continues and overwrites nothing.

    Give each person PERSON.ticket, PERSON.link or the card of the sheet, over a channel that
    nobody else reads: each is a password. Keep tickets.csv: it tells whose ticket is which, and by
    which hash it is revoked. With --lost one ticket is replaced; exit codes are then those of
    `event extend`.
    """
    from datacollect.bistro.organiser.ticket_files import replace_ticket, write_tickets
    from datacollect.errors import ProblemError

    if (people is None) == (lost is None):
        raise ProblemError("give --people for everybody's tickets, or --lost for one person's")
    if lost is not None:
        replaced = replace_ticket(event_file, lost, key, into, page_url)
        if as_json:
            emit_json({"ticket": replaced.file, **_amended(replaced.revocation)})
        else:
            emit_text(f"the new ticket: {replaced.file}")
            _show_amended(replaced.revocation)
        return replaced.revocation.exit_code
    assert people is not None
    done = write_tickets(event_file, people, key, into, page_url, sheet)
    if as_json:
        tree = {"new": done.n_new, "kept": done.n_kept, "list": done.list_file}
        emit_json({**tree, "sheet": done.sheet_file})
    else:
        emit(f"{done.n_new} new tickets, {done.n_kept} were there already")
        note(f"who has which ticket: {done.list_file}")
        if done.sheet_file is not None:
            note(f"to print, one card a person: {done.sheet_file}")
    return 0


@event.command(cls=Command)
def extend(
    event_file: EventFile,
    key: OrganiserKey,
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline",
            metavar="TIME",
            help="A later deadline, such as 2027-04-16T23:59:59-04:00.",
        ),
    ] = None,
    revoke: Annotated[
        list[str] | None,
        typer.Option(
            "--revoke", metavar="TICKET", help="A ticket's file or token_sha256; repeatable."
        ),
    ] = None,
    bistros: Annotated[
        str | None,
        typer.Option("--bistros", metavar="FILE", help="TOML file with [[bistros]] to add."),
    ] = None,
    verdicts: Annotated[
        str | None,
        typer.Option(
            "--verdicts",
            metavar="KEY",
            help="Public key of the log that replaces a log of verdicts that cannot continue.",
        ),
    ] = None,
    verdicts_url: Annotated[
        str | None,
        typer.Option(
            "--verdicts-url",
            metavar="URL",
            help="Address of that log, if it differs from the old log's.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Move the deadline later, revoke tickets, add bistros, replace a log of verdicts, openly.

    Exit 0: all logs have published it; 1: some have, and it counts; 3: none has. Run again it goes
    on.
    """
    from datacollect.bistro.organiser.extend import extend as amend

    done = amend(
        event_file,
        key,
        deadline=deadline,
        revoke=revoke or (),
        bistros=bistros,
        verdicts=verdicts,
        verdicts_url=verdicts_url,
    )
    if as_json:
        emit_json(_amended(done))
    else:
        _show_amended(done)
    return done.exit_code


@event.command(cls=Command)
def cancel(
    event_file: EventFile,
    key: OrganiserKey,
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="Reason in a line, for people to read.")
    ],
    as_json: Json = False,
) -> int:
    """End an event at once and for good, for everybody to see.

    From then on nothing more is timestamped, taken or collected; what was collected stays, and
    receipts prove what they did. It cannot be taken back. Exit codes are those of `event extend`.
    """
    from datacollect.bistro.organiser.extend import extend as amend

    done = amend(event_file, key, cancelled=why)
    if as_json:
        emit_json(_amended(done))
    else:
        _show_amended(done)
    return done.exit_code


def _amended(done: Extended) -> dict[str, Any]:
    return {
        "number": done.number,
        "note": done.note_file,
        "published": list(done.published),
        "troubles": done.troubles,
        "amendments": done.amendments,
        "logs": list(done.logs),
    }


def _show_amended(done: Extended) -> None:
    from datacollect.files.documents import toml_text

    where = ", ".join(done.published) or "nowhere yet"
    emit_text(f"amendment {done.number}: published by {where}")
    for url, why in done.troubles.items():
        note_text(f"{url}: {why}")
    if done.amendments is not None:
        note(f"people who verify receipts need this file: {done.amendments}")
    if done.logs:
        note("the files of the witnesses need this line; each witness must then start again:")
        emit(f"logs = {toml_text(list(done.logs))}")


event.command(cls=Command)(accept)
event.command(cls=Command)(forget)
event.command("list", cls=Command)(list_people)
event.command(cls=Command)(init)
event.command(cls=Command)(invite)
event.command(cls=Command)(mirror)
event.command("open", cls=Command)(open_)
event.command(cls=Command)(page)
event.command(cls=Command)(quickstart)
event.command(cls=Command)(recover)
event.command(cls=Command)(remind)
event.command(cls=Command)(run)
event.command(cls=Command)(status)

COMMAND = CommandSpec("event", event)
