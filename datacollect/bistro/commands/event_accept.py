"""The command ``datacollect event accept``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.bistro.commands.event_list import DestinationFile, People, Tickets
from datacollect.commands.console import emit_json, emit_text
from datacollect.commands.options import Json

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event


def accept(
    destination: DestinationFile,
    person: Annotated[
        str,
        typer.Argument(metavar="PERSON", help="The person who handed it in, as in tickets.csv."),
    ],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file that arrived; it stays where it is.")
    ],
    when: Annotated[
        str | None,
        typer.Option(
            "--when",
            metavar="TIME",
            help="When it arrived, such as 2027-01-31T18:20. Default: now.",
        ),
    ] = None,
    how: Annotated[
        str, typer.Option("--how", metavar="TEXT", help="How it arrived: by mail, on a stick.")
    ] = "",
    tickets: Tickets = None,
    people: People = None,
    as_json: Json = False,
) -> None:
    """Take a file that has come by mail or stick, and mark it as such.

    It lies with the collected ones, and `event list` names it as accepted by hand. Nothing is
    proved of it: receipts, `event status` and `audit` know nothing of it. Run again with the same
    file it changes nothing.
    """
    from dataclasses import asdict
    from pathlib import Path

    from datacollect.bistro.destination.accepting import accept_file
    from datacollect.bistro.destination.people_list import event_of, named_people
    from datacollect.bistro.destination.run.standing import read_standing
    from datacollect.bistro.http.config import DestinationConfig
    from datacollect.bistro.organiser.roster import require_named

    config = DestinationConfig.from_file(destination)
    event = event_of(read_standing(config.folder))
    names = named_people(config, destination, tickets, people)
    require_named(person, names, "the tickets' list or the roster")
    came_s = None if when is None else _instant_s(when, event)
    made, is_new = accept_file(config.folder, person, Path(file), came_s, how)
    if as_json:
        emit_json({**asdict(made), "new": is_new})
        return
    said = "accepted by hand" if is_new else "was accepted before"
    emit_text(f"{made.name} of {made.person}: {said}, {config.folder / 'files' / made.file}")


def _instant_s(text: str, event: Event) -> int:
    """Return an instant, seconds since 1970, by the event's clock where it says no offset."""
    import time

    from datacollect.errors import ProblemError
    from datacollect.files.clock import local_instant, parsed, zone_of

    instant = parsed(text, "--when")
    if instant.tzinfo is None:
        instant = local_instant(instant, zone_of(event.timezone), "--when")
    at_s = int(instant.timestamp())
    if at_s > time.time():
        raise ProblemError(
            f"--when must be a time that has passed, got {event.clock_text(at_s)}; leave it out "
            "if the file arrived just now"
        )
    return at_s
