"""Quickstart: an event on one host, from a roster and a deadline to a page where people hand in."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.one_host.checks import deadline_of, require_clock, require_free_port
from datacollect.bistro.one_host.places import Places
from datacollect.bistro.one_host.servers import Chosen, chosen_before, write_servers
from datacollect.bistro.one_host.setting_up import (
    Wanted,
    event_of,
    keep_people,
    make_event,
    make_folder,
    make_page,
    make_tickets,
    require_people,
    room_bytes,
    url_of,
)
from datacollect.bistro.one_host.ways import HTTPS, TRIAL_PORT, Ways
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_text
from datacollect.files.kinds import shown
from datacollect.files.locks import take_lock
from datacollect.net.names import host_and_port, host_port_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.bistro.formats.event.event import Event


@dataclass(frozen=True)
class Request:
    """What an organiser asks for; None where he says nothing.

    Attributes
    ----------
    folder : str
        Of all that the event needs.
    timezone : str
        As he says, or of this machine.
    is_timezone_given : bool
    name, deadline, people : str or None
    ways : Ways
    witnesses, authorities : str or None
    most_bytes : int
    """

    folder: str
    timezone: str
    is_timezone_given: bool = False
    name: str | None = None
    deadline: str | None = None
    people: str | None = None
    ways: Ways = field(default_factory=Ways)
    witnesses: str | None = None
    authorities: str | None = None
    most_bytes: int = 100_000_000


@dataclass(frozen=True)
class Prepared:
    """An event that is ready to be run.

    Attributes
    ----------
    places : Places
    event : Event
    chosen : Chosen
    n_new, n_people : int
        Tickets that were made now, and people in all; 0 of both where nobody looked.
    """

    places: Places
    event: Event
    chosen: Chosen
    n_new: int
    n_people: int

    @property
    def url(self) -> str:
        """Where people hand in."""
        return self.event.bistros[0].url

    @property
    def trusted(self) -> Path | None:
        """Whom servers trust, where this host has made the certificate; None: as it always does."""
        return self.places.trusted if self.event.bistros[0].ca is not None else None


@contextmanager
def prepared(request: Request) -> Iterator[Prepared]:
    """Yield an event that is ready to be run; nobody else runs it within.

    Nothing is written before all that is given was looked at. Interrupted anywhere, the same call
    goes on.

    Parameters
    ----------
    request : Request

    Raises
    ------
    ProblemError
        Something that is given, or this host, is not as it must be; the message says what helps.
    NotWrittenError, TransferError
        A file cannot be written, or somebody not be asked.
    """
    places = Places(Path(request.folder).resolve())
    is_made = places.event.exists()
    if is_made:
        _require_same(request, event_of(places))
    else:
        require_enough(request, places)
    make_folder(places)
    with held(places):
        event = event_of(places) if is_made else _made(request, places)
        if places.front_file.exists():
            chosen = chosen_before(places)
            require_clock(is_trusted=chosen.is_clock_trusted)
            require_free_port(chosen.listen)
        else:
            chosen = chosen_now(request.ways, places, address_in(event.bistros[0].url))
        n_new = n_people = 0
        if request.people is not None or not places.sheet.exists():
            keep_people(places, request.people)
            n_new, n_people = make_tickets(places, event.bistros[0].url)
        make_page(places)
        if event.authorities:
            places.stamps.touch()
        write_servers(places, event, chosen)
        yield Prepared(places, event, chosen, n_new, n_people)


def require_enough(request: Request, places: Places) -> None:
    """Raise `ProblemError` where an event cannot be made of what is given."""
    folder = places.folder
    # It may have been killed, or refused a certificate, before there were keys.
    is_begun = places.key("organiser").exists() or places.lock.exists()
    if folder.is_dir() and not is_begun:
        is_begun = all(each == places.logs for each in folder.iterdir())
    if folder.exists() and not is_begun:
        raise ProblemError(
            f"{document_name(request.folder)}: must be a new folder, or one that this command has "
            "begun, and holds something else; name another"
        )
    if request.deadline is None:
        raise ProblemError(
            '--deadline must say until when people can hand in; add --deadline "2027-01-31 18:00"'
        )
    deadline_of(request.deadline, request.timezone, time.time())
    require_people(places, request.people)
    request.ways.require()


def address_in(url: str) -> tuple[str, int]:
    """Return host and port of the URL of an event on one host."""
    return host_and_port(url.removeprefix("https://"), default_port=HTTPS)


def _made(request: Request, places: Places) -> Event:
    """Return the event, which is made."""
    assert request.deadline is not None
    ways, address = request.ways, request.ways.reached
    keep_people(places, request.people)
    certificate = ways.certificate_for(places, address[0])
    wanted = Wanted(
        name=request.name or Path(request.folder).resolve().name,
        deadline=deadline_of(request.deadline, request.timezone, time.time()),
        timezone=request.timezone,
        address=address,
        most_bytes=request.most_bytes,
        certificate=read_text(certificate.chain) if ways.is_trial else None,
        witnesses=request.witnesses,
        authorities=request.authorities,
    )
    return make_event(places, wanted)


def chosen_now(ways: Ways, places: Places, address: tuple[str, int]) -> Chosen:
    """Return what is chosen now: nothing was written yet that says it."""
    ways.require_certificate()
    require_clock(is_trusted=ways.is_clock_trusted)
    require_free_port(ways.listening)
    certificate = ways.certificate_for(places, address[0])
    return Chosen(ways.listening, certificate, room_bytes(places), ways.is_clock_trusted)


def _require_same(request: Request, event: Event) -> None:
    """Raise `ProblemError` where something else is asked for than the event was made with."""
    file = f"{request.folder.rstrip('/')}/event.toml"
    key = f"{request.folder.rstrip('/')}/organiser.key"
    if request.name is not None and request.name != event.name:
        raise _other(file, "--name", event.name, request.name)
    if request.is_timezone_given and request.timezone != event.timezone:
        raise _other(file, "--timezone", event.timezone, request.timezone)
    if request.deadline is not None:
        asked_s = deadline_of(request.deadline, event.timezone, 0.0).timestamp()
        if asked_s != event.deadline_s:
            raise ProblemError(
                f"--deadline must be that of {file}, {event.clock_text(event.deadline_s)}, got "
                f"{shown(request.deadline)}: leave --deadline out; to move the deadline to later, "
                f"run `datacollect event extend {file} --key {key} --deadline TIME`"
            )
    if request.ways.address is not None:
        url = url_of(request.ways.reached)
        # A trial's port, where none is given.
        is_same = event.bistros[0].url in (url, f"{url}:{TRIAL_PORT}")
        if not is_same:
            told = host_port_text(*address_in(event.bistros[0].url))
            raise _other(file, "--address", told, request.ways.address)


def _other(file: str, option: str, made: str, asked: str) -> ProblemError:
    return ProblemError(
        f"{option} must be that of {file}, {shown(made)}, got {shown(asked)}: nobody can change it "
        "any more; leave it out, or name another folder for another event"
    )


@contextmanager
def held(places: Places) -> Iterator[None]:
    """Hold an event's folder within; raise `ProblemError` where another process does."""
    number = os.open(places.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not take_lock(number):
            raise ProblemError(
                f"{places.folder}: another process already runs this event; end that process "
                "first, or let it continue"
            )
        yield
    finally:
        os.close(number)
