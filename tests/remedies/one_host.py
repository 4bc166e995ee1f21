"""Remedies about events that one host keeps, or several that join: what is given to begin them."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from unittest import mock

from instances.events import event_bytes, event_of, key_of
from instances.ports import free_port
from remedies.trying import Example, call, in_new_folder

from datacollect.bistro.auditor.stamp_reading import stamps_at
from datacollect.bistro.formats.event.policy import policy_of
from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.bistro.joining.guests import JOIN, OPENED, Guests
from datacollect.bistro.joining.invitation import Invitation
from datacollect.bistro.joining.joining import joined
from datacollect.bistro.joining.opening import _whole_draft, begin_event, guests_of, invite
from datacollect.bistro.one_host import certificates, checks
from datacollect.bistro.one_host.front import page_handlers
from datacollect.bistro.one_host.places import Places
from datacollect.bistro.one_host.quickstart import Request, _require_same, require_enough
from datacollect.bistro.one_host.servers import chosen_before
from datacollect.bistro.one_host.setting_up import _listed
from datacollect.bistro.one_host.ways import Ways
from datacollect.net.tls import make_certificate

TIME, HOST, MAIL = "2090-01-31 18:00", "hand-in.example", "a@x.example"


@contextmanager
def folder_with_a_certificate(*names):
    """Work where a roster lies, and a certificate for a host."""
    # Ports are none of it: other tests may take any.
    ports = mock.patch("datacollect.bistro.one_host.ways.require_free_port")
    with in_new_folder(people_csv="person\nAnn\n") as folder, ports:
        host = names[0] if names else HOST
        chain, key = make_certificate(host, names[-1] if names else HOST)
        (folder / "c.pem").write_bytes(chain)
        (folder / "k.pem").write_bytes(key)
        yield folder


def ways(**changes):
    listen = f"127.0.0.1:{free_port()}"
    given = {"certificate": "c.pem", "certificate_key": "k.pem", "vouches": True}
    return Ways(**({"listen": listen} | given | changes))


def wanted(*, is_synchronised=False, names=(), with_ways=None, **changes):
    """Look at what an organiser asks for, before anything is written."""

    def run():
        given = {"deadline": TIME, "people": "people.csv"} | changes
        clock = mock.patch.object(checks, "is_synchronised", return_value=is_synchronised)
        with folder_with_a_certificate(*names), clock:
            asked = Request("essay", "UTC", ways=ways(**(with_ways or {})), **given)
            require_enough(asked, Places(Path("essay").resolve()))

    return run


def taken(*, is_other):
    """Ask for a port that another program has, or for another one."""

    def run():
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = free_port() if is_other else other.getsockname()[1]
            checks.require_free_port(("127.0.0.1", port))

    return run


def low(*, is_root):
    """Ask for a port below 1024, without being root; or, in its place, for another one."""

    def run():
        refused = mock.patch.object(
            socket.socket, "bind", side_effect=PermissionError(13, "Permission denied")
        )
        if is_root:
            checks.require_free_port(("127.0.0.1", free_port()))
            return
        with refused:
            checks.require_free_port(("127.0.0.1", 443))

    return run


def certbot(script, *, is_installed=True):
    """Have certbot, played by a script, get a certificate."""

    def run():
        with folder_with_a_certificate() as folder, mock.patch.dict("os.environ") as there:
            program = folder / "bin" / "certbot"
            program.parent.mkdir()
            if is_installed:
                program.write_text(f"#!/bin/sh\n{script}\n")
                program.chmod(0o700)
            there["PATH"] = f"{program.parent}:/bin:/usr/bin" if is_installed else "/nowhere"
            places = Places(folder)
            certificates.certbots_certificate(places, HOST, MAIL)

    return run


GETS = (
    f"mkdir -p acme/live/{HOST}; cp c.pem acme/live/{HOST}/fullchain.pem; "
    f"cp k.pem acme/live/{HOST}/privkey.pem"
)


def made(**changes):
    """Start an event again that was made, with other wishes, or with the same."""

    def run():
        request = Request("essay", "America/New_York", **changes)
        _require_same(request, event_of(bistros=[BISTRO]))

    return run


BISTRO = {"name": "b", "url": f"https://{HOST}", "key": key_of("b").public}


def front(*, is_written):
    def run():
        with in_new_folder(e_toml=event_bytes()):
            if is_written:
                call("event page e.toml -o page")
            page_handlers(Path("page"))

    return run


def servers(text):
    """Read again what was chosen when the event was made."""

    def run():
        with in_new_folder(bistro_toml=text, witness_toml='clock = "trusted"\n') as folder:
            chosen_before(Places(folder))

    return run


CHOSEN = 'listen = "0.0.0.0:443"\n[tls]\ncertificate = "c"\nkey = "k"\n[accept]\nbytes = 1\n'


@contextmanager
def web(content):
    """Serve a text at one path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_there = self.path == "/list"
            body = content if is_there else b""
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def read_at(read, path, content=b""):
    def run():
        with web(content) as url:
            read(f"{url}/{path}")

    return run


def half(host, role="witness"):
    if role == "witness":
        key = witness_key(host, key_of(host).public).text
        return {"role": role, "url": f"https://{host}", "vkey": key}
    more = {"name": host} if role == "bistro" else {}
    return {"role": role, "url": f"https://{host}", "key": key_of(host).public, **more}


def joining(*hosts, lines=2, now_s=0.0, is_forged=False):
    """Have hosts join, each by the line of its number, or all by the last one there is."""

    def run():
        with in_new_folder() as folder:
            guests = Guests(folder / "guests", HOST)
            made = [guests.invite(f"https://{HOST}", key_of("o").public, 7) for _ in range(lines)]
            for i, host in enumerate(hosts):
                line = made[min(i, lines - 1)]
                text = json.dumps(half(host))
                mac = "0" if is_forged else line.mac(JOIN + text.encode())
                guests.join(line.number, text, mac, now_s)

    return run


def coming_late(*, is_late):
    """Have a host join after the organiser was asked, or in time."""

    def run():
        with in_new_folder() as folder:
            guests = Guests(folder / "guests", HOST)
            line = guests.invite(f"https://{HOST}", key_of("o").public, 7)
            if is_late:
                guests.settled()
            text = json.dumps(half("a.x"))
            guests.join(line.number, text, line.mac(JOIN + text.encode()), 0.0)

    return run


def asking(signer):
    """Have a host that has joined ask for the event, signed by a key."""

    def run():
        with in_new_folder() as folder:
            guests = Guests(folder / "guests", HOST)
            line = guests.invite(f"https://{HOST}", key_of("o").public, 7)
            text = json.dumps(half("a.x"))
            guests.join(line.number, text, line.mac(JOIN + text.encode()), 0.0)
            asked = OPENED + line.number.encode()
            guests.require_joined(line.number, line.mac(asked), key_of(signer).sign(asked))

    return run


def guests_file(text):
    def run():
        with in_new_folder() as folder:
            (folder / "guests").mkdir()
            guests = Guests(folder / "guests", HOST)
            guests.invite(f"https://{HOST}", key_of("o").public, 7)
            if text:
                (folder / "guests/00.json").write_text(text)
            Guests(folder / "guests", HOST)

    return run


def begun(*then):
    """Begin an event, and go on; return what is said."""

    def run():
        with folder_with_a_certificate() as folder:
            places = Places(folder / "essay")
            request = Request("essay", "UTC", deadline=TIME, people="people.csv", ways=ways())
            begin_event(request, places, 4, 7)
            for each in then:
                each(places, request)

    return run


def opened(places, _):
    places.event.write_bytes(event_bytes())


def again(places, request):
    begin_event(request, places, 4, 7)


def later(**changes):
    """Begin it again, with another deadline, or without one."""

    def run(places, _):
        begin_event(Request("essay", "UTC", **changes), places, 4, 7)

    return run


def invite_one(places, _):
    invite(places, guests_of(places), 7)


def listen(places, _):
    guests_of(places)


def elsewhere(places, _):
    guests_of(Places(places.folder.parent))


def completed(*roles):
    """Make the event of those who have joined."""

    def run(places, _):
        guests = guests_of(places)
        for i, role in enumerate(roles):
            line = invite(places, guests, 7)
            text = json.dumps(half(f"h{i}.example", role))
            guests.join(line.number, text, line.mac(JOIN + text.encode()), 0.0)
        _whole_draft(places, guests.joined)

    return run


class Asked(Exception):
    """All that is given was taken: the organiser would be asked now."""


def invited(*, folder, expires_s=4_000_000_000):
    """Join by a line, up to where the organiser is asked."""

    def run():
        line = Invitation(f"https://{HOST}", key_of("o").public, "00" * 8, bytes(16), expires_s)
        asked = mock.patch("datacollect.bistro.joining.joining._post", side_effect=Asked)
        with folder_with_a_certificate(), asked:
            Path("taken").mkdir()
            Path("taken/thesis.tex").write_text("mine")
            with suppress(Asked):
                joined(line.text, "witness", folder, ways(), None, print)

    return run


def opening(line):
    def run():
        with in_new_folder():
            try:
                call(line)
            except Exception as error:
                # It goes on to what else is missing.
                if "event init" not in str(error):
                    raise

    return run


POLICY = policy_of(event_of()).encode()

EXAMPLES = (
    # Given to begin with
    Example("--deadline must lie in the future", wanted(deadline="2020-01-31"), wanted()),
    Example("--deadline must say until when", wanted(deadline=None), wanted()),
    Example("--people must name the table of all", wanted(people=None), wanted()),
    Example(
        "the clock of this host must be synchronised",
        wanted(with_ways={"vouches": False}),
        wanted(with_ways={"vouches": False}, is_synchronised=True),
    ),
    Example(
        "browsers must trust this host: one way to a certificate is needed",
        wanted(with_ways={"certificate": None, "certificate_key": None}),
        wanted(),
    ),
    Example(
        "--certificate and --certificate-key belong together",
        wanted(with_ways={"certificate_key": None}),
        wanted(),
    ),
    Example(
        "--address must say for which name the certificate is made",
        wanted(with_ways={"certificate": None, "certificate_key": None, "acme": MAIL}),
        wanted(
            with_ways={
                "certificate": None,
                "certificate_key": None,
                "acme": MAIL,
                "address": HOST,
            }
        ),
    ),
    Example(
        "--address must say how people reach this host, since the certificate {} is for",
        wanted(names=("a.example", "b.example")),
        wanted(names=("a.example", "b.example"), with_ways={"address": "b.example"}),
    ),
    Example(
        "--address must be a name that the certificate {} is for",
        wanted(with_ways={"address": "other.example"}),
        wanted(with_ways={"address": HOST}),
    ),
    Example("another program listens there", taken(is_other=False), taken(is_other=True)),
    Example("ports below 1024 need root", low(is_root=False), low(is_root=True)),
    Example("--acme needs the program certbot", certbot("", is_installed=False), certbot(GETS)),
    Example("certbot got no certificate: {}", certbot("exit 1"), certbot(GETS)),
    # Made before
    Example(
        "--deadline must be that of {}",
        made(deadline=TIME),
        made(deadline="2027-04-15 23:59:59"),
        "bistro.one_host.quickstart",
    ),
    Example(
        "must be the folder of an event's page", front(is_written=False), front(is_written=True)
    ),
    Example("must have listen, tls and accept.bytes", servers("x = 1\n"), servers(CHOSEN)),
    Example(
        "must be a list of witnesses, but the server answers {}",
        read_at(_listed, "none"),
        read_at(_listed, "list", POLICY),
    ),
    Example(
        "must be a file of stamps, but the server answers {}",
        read_at(stamps_at, "none"),
        read_at(stamps_at, "list"),
    ),
    # Hosts that join
    Example("the invitation was used by {}", joining("a.x", "b.x", lines=1), joining("a.x", "b.x")),
    Example(
        "the invitation has expired",
        joining("a.x", now_s=4_000_000_000.0),
        joining("a.x"),
        "bistro.joining.invitation",
    ),
    Example("the invitation is not for this event", joining("a.x", is_forged=True), joining("a.x")),
    Example("{} is the organiser's own host", joining(HOST), joining("a.x")),
    Example(
        "must be an invitation as `datacollect event invite` has written it",
        guests_file("{}"),
        guests_file(""),
    ),
    Example(
        "must be a new folder, or one where this invitation was begun",
        invited(folder="taken"),
        invited(folder="new"),
    ),
    Example(
        "an event needs {} {}{} at least, and {} have joined",
        begun(completed("witness", "witness", "service")),
        begun(completed("witness", "witness", "service", "bistro")),
    ),
    Example(
        "this event has all its hosts, and accepts no more",
        coming_late(is_late=True),
        coming_late(is_late=False),
    ),
    Example("the request is not signed by the key of this host", asking("thief"), asking("a.x")),
    Example("exists, and nobody can join any longer", begun(opened, invite_one), begun(invite_one)),
    Example(
        "--deadline must be that of {}",
        begun(later(deadline="2091-01-31 18:00")),
        begun(later()),
        "bistro.joining.opening",
    ),
    Example("is open already; `datacollect event open`", begun(opened, again), begun(again)),
    Example(
        "must be the folder of an event that `datacollect event init` has begun",
        begun(elsewhere),
        begun(listen),
    ),
    Example(
        "this command needs a terminal to ask you; compare the fingerprints",
        opening("event open essay"),
        opening("event open essay --yes"),
    ),
)
