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
        typer.Argument(
            metavar="PERSON", help="The person who handed the files in, as named in tickets.csv."
        ),
    ],
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="The files that arrived; they stay where they are."),
    ],
    when: Annotated[
        str | None,
        typer.Option(
            "--when",
            metavar="TIME",
            help="When the files arrived, such as 2027-01-31T18:20. Default: now.",
        ),
    ] = None,
    how: Annotated[
        str,
        typer.Option(
            "--how", metavar="TEXT", help="How the files arrived, such as by mail or on a stick."
        ),
    ] = "",
    tickets: Tickets = None,
    people: People = None,
    as_json: Json = False,
) -> None:
    """Take files that have come by mail or stick, and mark them as such.

    Each lies with the collected ones, and `event list` names it as accepted by hand. Nothing is
    proved of it: receipts, `event status` and `audit` know nothing of it. Run again with the same
    files it changes nothing.
    """
    from dataclasses import asdict
    from pathlib import Path

    from datacollect.bistro.destination.accepting import accept_file, require_file
    from datacollect.bistro.destination.people_list import event_of, named_people
    from datacollect.bistro.destination.run.standing import read_standing
    from datacollect.bistro.http.config import DestinationConfig
    from datacollect.bistro.organiser.roster import require_named

    config = DestinationConfig.from_file(destination)
    event = event_of(read_standing(config.folder))
    names = named_people(config, destination, tickets, people)
    require_named(person, names, "the tickets' list or the roster")
    came_s = None if when is None else _instant_s(when, event)
    paths = [Path(file) for file in files]
    for path in paths:  # none is taken where one is not there
        require_file(path)
    found = [accept_file(config.folder, person, path, came_s, how) for path in paths]
    if as_json:
        emit_json({"files": [{**asdict(made), "new": is_new} for made, is_new in found]})
        return
    for made, is_new in found:
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
            f"--when must be a time that has passed, got {event.clock_text(at_s)}; leave --when "
            "out if the file arrived just now"
        )
    return at_s
