"""The commands ``datacollect event init``, ``event invite`` and ``event open``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.bistro.commands.reaching import (
    Acme,
    Certificate,
    CertificateKey,
    Deadline,
    EventName,
    HostAddress,
    ListenAt,
    Most,
    People,
    Timezone,
    TrustClock,
    request_of,
)
from datacollect.commands.console import complain_text, emit, emit_json, emit_text, note, note_text
from datacollect.commands.ending import Terminated, ending_on_sigterm
from datacollect.commands.options import Json
from datacollect.commands.streams import emit as emit_line
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.bistro.joining.guests import Guest
    from datacollect.bistro.joining.opening import Opened

EventFolder = Annotated[
    str, typer.Argument(metavar="FOLDER", help="Folder of the event, made by `event init`.")
]
Days = Annotated[
    float, typer.Option("--days", metavar="N", min=0.01, help="How long invitations are valid.")
]


def init(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="New folder for all that the organiser keeps.")
    ],
    deadline: Deadline = None,
    people: People = None,
    name: EventName = None,
    timezone: Timezone = None,
    address: HostAddress = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    acme: Acme = None,
    listen: ListenAt = None,
    most: Most = "100 MB",
    hosts: Annotated[
        int,
        typer.Option(
            "--hosts",
            metavar="N",
            min=4,
            help="How many hosts to invite; each gets a line of its own.",
        ),
    ] = 6,
    days: Days = 7.0,
    trust_clock: TrustClock = False,
    as_json: Json = False,
) -> None:
    """Begin an event that other hosts keep: make all keys, and an invitation for each of them.

    Each line is for one host and expires; who runs `datacollect join LINE --as ROLE` with it is
    part of the event, so send it to that person alone. Then `event open FOLDER`. The same again
    prints the lines that nobody has used.
    """
    from datacollect.bistro.joining.opening import begin_event
    from datacollect.bistro.one_host.places import Places
    from datacollect.bistro.one_host.ways import Ways

    ways = Ways(address, listen, certificate, certificate_key, acme, vouches=trust_clock)
    request = request_of(folder, timezone, most, ways, name=name, deadline=deadline, people=people)
    lines = begin_event(request, Places(Path(folder).resolve()), hosts, days)
    if as_json:
        emit_json({"folder": folder, "invitations": lines})
        return
    for line in lines:
        emit(line)
    note_text(
        f"{len(lines)} invitations, each for one host (4 witnesses, a service and a bistro are a "
        f"good choice). Now run datacollect event open {folder}: it waits for hosts to join"
    )


def invite(folder: EventFolder, days: Days = 7.0, as_json: Json = False) -> None:
    """Make one more invitation to keep a part of an event; also while `event open` listens."""
    from datacollect.bistro.joining.opening import guests_of
    from datacollect.bistro.joining.opening import invite as invited
    from datacollect.bistro.one_host.places import Places

    places = Places(Path(folder).resolve())
    line = invited(places, guests_of(places), days).text
    if as_json:
        emit_json({"invitation": line})
    else:
        emit(line)


def open_(
    folder: EventFolder,
    hosts: Annotated[
        int | None,
        typer.Option(
            "--hosts", metavar="N", min=4, help="Open once this many have joined. Default: all."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Open without asking: you have compared the fingerprints.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Listen for hosts that join; make the event, tickets and the page, tell the hosts, collect.

    Shows the fingerprint of each: compare it with what that host shows, by telephone, before you
    say yes, for whoever has the line could have joined. Started again it goes on; SIGTERM ends it.
    The destination runs here, unless a host has joined as such. Exit codes are those of
    `event run`.
    """
    from datacollect.bistro.joining.invitation import fingerprint_of_half
    from datacollect.bistro.joining.opening import open_event
    from datacollect.bistro.one_host.places import Places

    if not yes and not sys.stdin.isatty():
        raise ProblemError(
            "this command needs a terminal to ask you; compare the fingerprints yourself, and "
            "give --yes"
        )
    shown: set[str] = set()

    def came(guest: Guest) -> None:
        if guest.half is not None and guest.number not in shown:
            shown.add(guest.number)
            fingerprint = fingerprint_of_half(guest.half)
            note(f"{fingerprint}  {guest.half['role']} {guest.half['url']}")

    def may_open(guests: Sequence[Guest]) -> bool:
        for guest in guests:
            came(guest)
        return yes or typer.confirm("Do all fingerprints agree? Then the event is made", err=True)

    def ready(opened: Opened) -> None:
        if as_json:
            facts = {"url": opened.page, "event": opened.event.id.hex()}
            emit_line(json.dumps({**facts, "people": opened.n_people}))
        else:
            _show(opened, folder.rstrip("/"))

    try:
        with ending_on_sigterm():
            places = Places(Path(folder).resolve())
            return open_event(places, hosts, came, may_open, ready, complain_text)
    except (KeyboardInterrupt, Terminated):
        return 0


def _show(opened: Opened, folder: str) -> None:
    from datacollect.bistro.formats.event.strength import withstands

    event = opened.event
    emit_text(f"{event.name}: hand in until {event.clock_text(event.deadline_s)}")
    emit(f"the page: {opened.page}")
    for sentence in withstands(event):
        emit_text(sentence)
    note_text(
        f"{opened.n_people} people have tickets; next: print {folder}/cards.html in a browser; "
        "each card is a password, for one person alone"
    )
    note_text(
        f"move {folder}/kept-offline.identity elsewhere, as to a stick: it can open all files, "
        "even if this disk is lost"
    )
    note_text(
        f"Ctrl-C stops this host's part of the event, and datacollect event open {folder} starts "
        "it again"
    )
