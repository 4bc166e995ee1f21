"""The organiser's side: an event whose parts other hosts keep, made once these have joined."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.fields import EVENT
from datacollect.bistro.joining.guests import Guests
from datacollect.bistro.joining.halves import BISTRO, DESTINATION, SERVICE, WITNESS
from datacollect.bistro.joining.invitation import Invitation
from datacollect.bistro.joining.reception import Reception, receiving
from datacollect.bistro.one_host.certificates import Certificate
from datacollect.bistro.one_host.checks import deadline_of, free_ports, require_free_port
from datacollect.bistro.one_host.places import VERDICTS
from datacollect.bistro.one_host.processes import Server
from datacollect.bistro.one_host.quickstart import held, require_enough
from datacollect.bistro.one_host.running import rereading, watched
from datacollect.bistro.one_host.servers import (
    LOOPBACK,
    agent_text,
    commands,
    destination_text,
    front_table,
)
from datacollect.bistro.one_host.setting_up import (
    Wanted,
    completed,
    draft_of,
    event_of,
    keep_people,
    make_folder,
    make_keys,
    make_page,
    make_tickets,
    name_of,
    recipient_of,
)
from datacollect.bistro.organiser.ticket_files import LIST
from datacollect.bistro.page.files import HEADERS, PAGE
from datacollect.errors import ProblemError
from datacollect.files.documents import (
    document_name,
    parse_toml,
    read_text,
    write_atomically,
    written_durably,
)
from datacollect.files.kinds import shown
from datacollect.files.toml_tables import toml_of
from datacollect.net.keys import read_private_key
from datacollect.net.names import host_and_port

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.joining.guests import Guest
    from datacollect.bistro.one_host.places import Places
    from datacollect.bistro.one_host.quickstart import Request

JOIN, FRONT = "join", "front"
KEYS = ("organiser", "verdicts", "collector")
LOOK_S = 0.2
# What is shown at the page's address before there is an event.
WAITING = "<!doctype html><meta charset=utf-8><title>Soon</title><p>This event is not open yet."
WAITING_HEADERS = "add_header Content-Security-Policy \"default-src 'none'\" always;\n"


@dataclass(frozen=True)
class Opened:
    """An event that is open: its guests, its page, how many have tickets."""

    event: Event
    guests: tuple[Guest, ...]
    page: str
    n_people: int


def begin_event(request: Request, places: Places, n_hosts: int, days: float) -> list[str]:
    """Make the organiser's keys, the draft, and invitations; return those that nobody has used.

    The same again changes nothing; another roster is taken.

    Raises
    ------
    ProblemError
        Something that is given, or this host, is not as it must be.
    NotWrittenError
        A file cannot be written.
    """
    if places.event.exists():
        raise ProblemError(
            f"{document_name(places.event)}: is open already; `datacollect event open` continues"
        )
    if not _front_file(places).exists():
        require_enough(request, places)
    make_folder(places)
    with held(places):
        if not _front_file(places).exists():
            _begin(request, places)
        else:
            _require_same(request, places)
            keep_people(places, request.people)
        guests = guests_of(places)
        for _ in range(n_hosts - len(guests.all)):
            invite(places, guests, days)
    return [_invitation(places, each).text for each in guests.all if each.half is None]


def _begin(request: Request, places: Places) -> None:
    make_keys(places, KEYS)
    keep_people(places, request.people)
    assert request.deadline is not None
    address = request.ways.reached
    wanted = Wanted(
        name=request.name or places.folder.name,
        deadline=deadline_of(request.deadline, request.timezone, time.time()),
        timezone=request.timezone,
        address=address,
        most_bytes=request.most_bytes,
    )
    certificate = request.ways.certificate_for(places, address[0])
    write_atomically(places.draft, toml_of(EVENT, draft_of(places, wanted)).encode())
    with written_durably(places.folder / "address") as beside:
        beside.write_text(f"{wanted.url}\n")
    tls = {"certificate": str(certificate.chain), "key": str(certificate.key)}
    _write_front(places, request.ways.listening, tls, "waiting", {JOIN: 1})


def _require_same(request: Request, places: Places) -> None:
    """Raise `ProblemError` where another deadline is asked for than the draft has."""
    if request.deadline is None:
        return
    draft = parse_toml(read_text(places.draft), document_name(places.draft))
    timezone = request.timezone if request.is_timezone_given else str(draft["timezone"])
    asked = deadline_of(request.deadline, timezone, 0.0)
    kept = deadline_of(str(draft["deadline"]), str(draft["timezone"]), 0.0)
    if asked != kept:
        raise ProblemError(
            f"--deadline must be that of {document_name(places.draft)}, {draft['deadline']}, got "
            f"{shown(request.deadline)}; leave --deadline out, or name another folder for another "
            "event"
        )


def guests_of(places: Places) -> Guests:
    """Return the guests of an event.

    Raises
    ------
    ProblemError
        Nobody has begun it.
    """
    if not _front_file(places).exists():
        raise ProblemError(
            f"{document_name(places.folder)}: must be the folder of an event that `datacollect "
            "event init` has begun"
        )
    host = host_and_port(_url(places).removeprefix("https://"), default_port=443)[0]
    return Guests(places.folder / "guests", host)


def invite(places: Places, guests: Guests, days: float) -> Invitation:
    """Return one more invitation.

    Raises
    ------
    ProblemError
        The event is made: nobody joins any more.
    """
    if places.event.exists():
        raise ProblemError(
            f"{document_name(places.event)}: exists, and nobody can join any longer; begin another "
            "event by `datacollect event init`"
        )
    organiser = read_private_key(places.key("organiser")).public
    return guests.invite(f"{_url(places)}/{JOIN}", organiser, days)


def _invitation(places: Places, guest: Guest) -> Invitation:
    organiser = read_private_key(places.key("organiser")).public
    url = f"{_url(places)}/{JOIN}"
    return Invitation(url, organiser, guest.number, guest.secret, guest.expires_s)


def _url(places: Places) -> str:
    return read_text(places.folder / "address").strip()


def _front_file(places: Places) -> Path:
    return places.folder / f"{FRONT}.toml"


def _write_front(
    places: Places,
    listen: tuple[str, int],
    tls: dict[str, str],
    page: str,
    to: dict[str, int],
) -> None:
    """Write the file of the agent that shows the page, and passes on to servers of this host."""
    collector = read_private_key(places.key("collector")).public
    waiting = places.folder / "waiting"
    for folder in (waiting, places.folder / "state"):
        folder.mkdir(mode=0o700, exist_ok=True)
    (waiting / PAGE).write_text(f"{WAITING}\n")
    (waiting / HEADERS).write_text(WAITING_HEADERS)
    name = name_of(host_and_port(_url(places).removeprefix("https://"), default_port=443)[0])
    certificate = Certificate(Path(tls["certificate"]), Path(tls["key"]))
    places_of = {part: f"{LOOPBACK}:{port}" for part, port in to.items()}
    text = agent_text(name, collector, listen, certificate, front_table(page, places_of))
    write_atomically(_front_file(places), text.encode())


def open_event(
    places: Places,
    n_hosts: int | None,
    came: Callable[[Guest], None],
    may_open: Callable[[Sequence[Guest]], bool],
    ready: Callable[[Opened], None],
    say: Callable[[str], None],
) -> int:
    """Receive hosts that join; once all have, make the event, tell them, and run what is here.

    Parameters
    ----------
    places : Places
    n_hosts : int or None
        How many are waited for; None: all who were invited.
    came : function
        Told of each host that joins, also of one that says the same again; from another thread.
    may_open : function
        Asked, with all who have joined, whether the event is to be made.
    ready : function
        Told once it is open.
    say : function
        Takes lines on what happens.

    Returns
    -------
    int
        0 or 1, as `event run` ends; 0 where it was not to be opened.

    Raises
    ------
    ProblemError
        Nobody has begun it, this host is not as it must be, or a part of the event is missing.
    StoreError
        A server does not start.
    """
    guests = guests_of(places)
    front = parse_toml(read_text(_front_file(places)), document_name(_front_file(places)))
    listen, tls = host_and_port(front["listen"]), front["tls"]
    require_free_port(listen)
    join, verdicts = free_ports(2)
    to = {JOIN: join, VERDICTS: verdicts}
    command = commands(places)["destination"]
    agent = [*command[:3], "agent", str(_front_file(places)), "--json"]
    servers = {FRONT: Server(FRONT, agent, places.logs / f"{FRONT}.log", {})}
    reception = Reception(guests, read_private_key(places.key("organiser")), came)
    if places.event.exists():
        guests.settled()
    with held(places), receiving(reception, join), ExitStack() as ending:
        ending.enter_context(rereading(servers[FRONT]))
        ending.callback(servers[FRONT].end)
        n_people = 0
        if not places.event.exists():
            _write_front(places, listen, tls, "waiting", to)
            servers[FRONT].start()
            servers[FRONT].await_ready()
            while len(guests.joined) < (n_hosts or len(guests.all)):
                time.sleep(LOOK_S)
            joined = guests.settled()
            if not may_open(joined):
                return 0
            completed(places, _whole_draft(places, joined))
            servers[FRONT].end()
        event = event_of(places)
        _, n_people = make_tickets(places, _url(places))
        make_page(places)
        _write_front(places, listen, tls, places.page.name, to)
        servers[FRONT].start()
        servers[FRONT].await_ready()
        reception.open(lambda guest: _told(places, event, guests.joined, guest))
        if _of(guests.joined, DESTINATION) is None:
            listening = f'listen = "{LOOPBACK}:{verdicts}"\nbehind = ["{LOOPBACK}"]\n'
            text = destination_text(places, listening)
            write_atomically(places.destination_file, text.encode())
            servers["destination"] = Server(
                "destination", command, places.logs / "destination.log", {}
            )
            ending.callback(servers["destination"].end)
            servers["destination"].start()
        ready(Opened(event, tuple(guests.joined), _url(places), n_people))
        return watched(places, servers, say, FRONT)


def _of(guests: Sequence[Guest], role: str) -> dict[str, str] | None:
    halves = [each.half for each in guests if each.half is not None and each.half["role"] == role]
    return halves[0] if halves else None


def _whole_draft(places: Places, guests: Sequence[Guest]) -> dict[str, Any]:
    """Return the draft with all who have joined.

    Raises
    ------
    ProblemError
        A part has nobody, or too many.
    """
    halves = [each.half for each in guests if each.half is not None]
    by_role: dict[str, list[dict[str, Any]]] = {}
    for half in halves:
        row = {key: value for key, value in half.items() if key != "role"}
        by_role.setdefault(half["role"], []).append(row)
    for role, least in ((SERVICE, 1), (WITNESS, 2), (BISTRO, 1)):
        n = len(by_role.get(role, ()))
        if n < least:
            raise ProblemError(
                f"an event needs {least} {role}{'' if least == 1 else 'es'} at least, and {n} have "
                "joined; make an invitation by `datacollect event invite`, have one more host join "
                "with it, and open again: those who have joined stay"
            )
    if len(by_role.get(DESTINATION, ())) > 1:
        raise ProblemError(
            "an event has one destination, and several hosts have joined as such; remove the file "
            "of one of them in the folder guests, and open again"
        )
    tree = parse_toml(read_text(places.draft), document_name(places.draft))
    destination = _of(guests, DESTINATION)
    if destination is None:
        own = read_private_key(places.key("verdicts")).public
        tree["verdicts"] = {"key": own, "url": f"{_url(places)}/{VERDICTS}"}
        # A draft that was completed before may name a destination whose file was removed.
        identities = (places.identity, places.offline_identity)
        tree["recipients"] = [recipient_of(each) for each in identities]
    else:
        tree["verdicts"] = {"key": destination["key"], "url": destination["url"]}
        tree["recipients"] = [destination["recipient"], recipient_of(places.offline_identity)]
        # What this host could open by is kept elsewhere; the destination has its own.
        places.identity.unlink(missing_ok=True)
    rows = {"services": SERVICE, "witnesses": WITNESS, "bistros": BISTRO}
    # Times are those of the file, which are read with their offsets.
    return {**tree, **{key: by_role[role] for key, role in rows.items()}}


def _told(places: Places, event: Event, guests: Sequence[Guest], guest: Guest) -> dict[str, Any]:
    """Return what a host that has joined needs."""
    destination = _of(guests, DESTINATION)
    own = read_private_key(places.key("collector")).public
    told: dict[str, Any] = {
        "event": read_text(places.event),
        "logs": [key.text for key in event.log_keys],
        "collector": own if destination is None else destination["collector"],
    }
    if guest.half is not None and guest.half["role"] == DESTINATION:
        # No tickets: who breaks in there, or runs it, could hand in for anybody by them.
        told["list"] = read_text(places.tickets / LIST)
    return told
