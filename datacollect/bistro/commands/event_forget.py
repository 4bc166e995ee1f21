"""The command ``datacollect event forget``."""

from __future__ import annotations

from typing import Annotated

import typer

from datacollect.bistro.commands.event_list import DestinationFile, Tickets
from datacollect.commands.console import emit_json, emit_text, note_text
from datacollect.commands.options import Json


def forget(
    destination: DestinationFile,
    person: Annotated[
        str, typer.Argument(metavar="PERSON", help="The person to forget, as named in tickets.csv.")
    ],
    tickets: Tickets = None,
    as_json: Json = False,
) -> None:
    """Forget a person once all is over: files, names, links, receipts that were shown.

    Removes them for good on this machine, and says what others still have. Entries, verdicts and
    numbers of tickets stay, and name nobody then. Interrupted, the same call goes on.
    """
    from dataclasses import asdict

    from datacollect.bistro.destination.forgetting import forget as remove
    from datacollect.bistro.destination.people_list import event_of, tickets_folder
    from datacollect.bistro.destination.run.standing import read_standing
    from datacollect.bistro.http.config import DestinationConfig
    from datacollect.files.units import counted

    config = DestinationConfig.from_file(destination)
    folder = tickets_folder(config, destination, tickets)
    standing = read_standing(config.folder)
    done = remove(config, folder, person, standing, event_of(standing))
    if as_json:
        emit_json(asdict(done))
        return
    emit_text(
        f"forgotten: {counted(len(done.files), 'collected file')}, "
        f"{counted(len(done.entries), 'entry', 'entries')} of "
        f"{counted(len(done.tickets), 'ticket')}"
    )
    for each in done.left:
        note_text(f"not here: {each}")
    note_text(
        "you must delete yourself: rosters, tables, pages, links, cards and mails that were made "
        "or sent, copies of this disk, and servers' logs, which name addresses"
    )
