"""The command ``datacollect event quickstart``: an event on one host."""

from __future__ import annotations

import json
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
from datacollect.commands.console import emit, emit_text, note, note_text
from datacollect.commands.ending import Terminated, ending_on_sigterm
from datacollect.commands.options import Json
from datacollect.commands.streams import emit as emit_line

if TYPE_CHECKING:
    from datacollect.bistro.one_host.quickstart import Prepared


def quickstart(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER", help="Folder for all that the event needs; new, or begun."
        ),
    ],
    deadline: Deadline = None,
    people: People = None,
    name: EventName = None,
    timezone: Timezone = None,
    address: HostAddress = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    acme: Acme = None,
    is_trial: Annotated[
        bool,
        typer.Option(
            "--try", help="A trial on port 8443 with a certificate of its own: browsers warn."
        ),
    ] = False,
    listen: ListenAt = None,
    most: Most = "100 MB",
    witnesses: Annotated[
        str | None,
        typer.Option(
            "--witnesses",
            metavar="LIST",
            help="File or URL of a policy that lists outside witnesses.",
        ),
    ] = None,
    authorities: Annotated[
        str | None,
        typer.Option(
            "--authorities",
            metavar="TOML",
            help="TOML file with two or more [[authorities]] (RFC 3161).",
        ),
    ] = None,
    trust_clock: TrustClock = False,
    as_json: Json = False,
) -> int:
    """Hold an event on this host alone: one command, one port, one tree of processes.

    Makes all keys, the event, a ticket for each person, cards to print and the page; serves until
    a minute after files are collected, a week after the deadline, or until SIGTERM. Started again
    with the folder alone it goes on; with --people it adds tickets for who is new.

    Such an event proves nothing against whoever keeps it: it says so when it starts, on the page
    and in each receipt that is verified. SIGHUP rereads the certificate.

    Exit 0: all is collected, or it was ended; 1: something is lacking, as `event status` says.
    """
    from datacollect.bistro.one_host.quickstart import prepared
    from datacollect.bistro.one_host.running import run_servers
    from datacollect.bistro.one_host.ways import Ways

    ways = Ways(address, listen, certificate, certificate_key, acme, is_trial, vouches=trust_clock)
    outside = {"witnesses": witnesses, "authorities": authorities}
    request = request_of(
        folder, timezone, most, ways, name=name, deadline=deadline, people=people, **outside
    )
    try:
        with ending_on_sigterm(), prepared(request) as found:

            def ready() -> None:
                if as_json:
                    emit_line(json.dumps(_facts(found)))
                else:
                    _show(found, folder)

            return run_servers(found, ready, note_text)
    except (KeyboardInterrupt, Terminated):
        return 0


def _facts(found: Prepared) -> dict[str, object]:
    return {
        "url": found.url,
        "event": found.event.id.hex(),
        "folder": str(found.places.folder),
        "cards": str(found.places.sheet),
        "new_tickets": found.n_new,
        "alone": found.event.alone,
    }


def _show(found: Prepared, folder: str) -> None:
    from datacollect.bistro.formats.event.strength import ONE_HOST, withstands
    from datacollect.files.documents import toml_text

    event, places = found.event, found.places
    short = folder.rstrip("/")
    emit_text(f"{event.name}: hand in until {event.clock_text(event.deadline_s)}")
    emit(f"the page: {found.url}")
    emit("")
    for sentence in (*withstands(event), *(() if event.alone else ONE_HOST)):
        emit_text(sentence)
    emit("")
    if found.n_people:
        note(f"{found.n_new} new tickets, for {found.n_people} people in all")
    note_text(
        f"next: print {short}/{places.sheet.name} in a browser; each card is a password, for one "
        "person alone"
    )
    note_text(
        f"move {short}/{places.offline_identity.name} elsewhere, as to a stick: it can open all "
        "files, even if this disk is lost"
    )
    note_text(
        f"who has handed in what: datacollect event list {short}/{places.destination_file.name} "
        f"--people {short}/{places.people.name}"
    )
    note_text(
        f"Ctrl-C stops the event's servers, and datacollect event quickstart {short} starts them "
        "again"
    )
    if event.bistros[0].ca is not None:
        note_text(
            "this is a trial. Browsers warn of its certificate, and phones may refuse it. Programs "
            f"trust it by SSL_CERT_FILE={short}/{places.own_certificate[0].name}"
        )
    if not event.alone:
        note_text(
            f"nothing is proved before {event.quorum} of {len(event.witnesses)} witnesses sign; "
            "the operators of the outside witnesses must add these logs to their witness's file:"
        )
        note(f"logs = {toml_text([key.text for key in event.log_keys])}")
