"""Remedies about events with a deadline: their files, tickets, uploads and amendments."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from unittest import mock

import pyrage
from instances.agents import KEY, write_agent
from instances.bistro_folders import event_file
from instances.bistros import bistro_event
from instances.collected import EVENT, Collected
from instances.events import draft_text, event_bytes, key_of, ticket_of
from instances.timestamping import World
from remedies.trying import Example, call, in_folder, in_new_folder, told, until

import datacollect as dc
from datacollect.bistro.destination.keys import read_tickets
from datacollect.bistro.destination.missing import WITHOUT_DATA, WITHOUT_UPLOAD, Missing
from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.run.event_run import _given
from datacollect.bistro.destination.run.kept_files import fault_of
from datacollect.bistro.formats.event.amendments import (
    AMENDMENT_FORMAT,
    SIGNER,
    read_amendment,
)
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.log.notes import parse_note, signed
from datacollect.bistro.formats.sealing.keep import MAGIC, OLDER_MAGIC
from datacollect.bistro.http.config import DestinationConfig
from datacollect.bistro.upload_server.amending import Amending
from datacollect.bistro.upload_server.server import Bistro
from datacollect.bistro.upload_server.table import accept_of
from datacollect.files.held_folder import Held
from datacollect.net.keys import write_private_key
from datacollect.transfer.agent.config.file import AgentConfig

CLOSED = [{"url": f"https://127.0.0.1:{i + 1}", "key": key_of(f"s{i}").public} for i in range(2)]
NEW = "event new d.toml -o e.toml"
OLDER = event_bytes().replace(b"datacollect-event/2", b"datacollect-event/1")


def new(line=NEW, **changes):
    return in_folder(line, d_toml=draft_text(**changes))


def with_a_made_key():
    """Write an event with the key that a command has made."""

    def run():
        with in_new_folder() as folder:
            call("keys new organiser.key")
            key = call("keys show organiser.key").split()[0]
            (folder / "d.toml").write_text(draft_text(organiser=key))
            return call(NEW)

    return run


def with_an_identity():
    """Write an event whose one recipient's identity is tried."""
    identity = pyrage.x25519.Identity.generate()
    with in_new_folder() as folder:
        (folder / "own.txt").write_text(f"{identity}\n")
        (folder / "d.toml").write_text(draft_text(recipients=[str(identity.to_public())]))
        return call(f"{NEW} --identity own.txt")


def audited(option=""):
    """Audit an event whose services do not answer."""

    def run():
        with in_new_folder() as folder:
            (folder / "e.toml").write_bytes(event_bytes(services=CLOSED))
            return call(f"audit e.toml {option}")

    return until("cannot be reached|cannot be read", run) if option else run


def of_two_services(second):
    row = {"url": "https://s1.example", "key": second}
    return new(services=[{"url": "https://s0.example", "key": key_of("s0").public}, row])


def page(*lines):
    """Write pages of one event or another, with one privacy notice or another."""

    def run():
        with in_new_folder() as folder:
            (folder / "e.toml").write_bytes(event_bytes())
            (folder / "f.toml").write_bytes(event_bytes(name="Another"))
            (folder / "long.txt").write_text("We keep files. " * 2000)
            (folder / "short.txt").write_text("See https://school.example/privacy.")
            for line in lines:
                said = call(line)
            return said

    return run


def extended(options=""):
    """Extend an event whose services do not answer."""

    def run():
        with in_new_folder() as folder:
            (folder / "e.toml").write_bytes(event_bytes(services=CLOSED))
            write_private_key(folder / "o.key", key_of("organiser"))
            return call(f"event extend e.toml --key o.key {options}")

    return run


# Those who hand in -------------------------------------------------------------------------------


@contextmanager
def open_event():
    """Lend a folder with an event, which a service and three witnesses of it watch, and a ticket.

    Its organiser's key, and a file to hand in, are there, too.
    """
    with in_new_folder() as folder, ExitStack() as held:
        (folder / "world").mkdir()
        world = held.enter_context(World(folder / "world", **FAR))
        world.start_witnesses(0, 1, 2)
        world.start()
        shutil.copy(folder / "world/event.toml", folder / "e.toml")
        (folder / "my.ticket").write_text(ticket_of(world.event).text)
        write_private_key(folder / "o.key", key_of("organiser"))
        (folder / "a.txt").write_text("mine")
        with mock.patch.dict(os.environ, SSL_CERT_FILE=str(world.authority)):
            yield folder


# Whenever the tests run it is open.
FAR = {
    "deadline": "2097-04-15T23:59:59-04:00",
    "collect_until": "2097-04-30T23:59:59-04:00",
    "keep_until": "2107-04-30T23:59:59-04:00",
}
UPLOAD = "upload a.txt --event e.toml --ticket my.ticket"
VERIFY = "verify a.txt.receipt.json --event e.toml"


@cache
def handed_in():
    """Hand a file in, extend the event, and audit it; return what files there are by then."""
    with open_event() as folder:
        call(UPLOAD)
        call("event extend e.toml --key o.key --deadline 2097-04-16T23:59:59-04:00")
        call("audit e.toml --log -o amendments.json")
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def with_files(line, **changes):
    """Run a command among the files of who has handed in; None: such a file is not there."""

    def run():
        files = {**handed_in(), **{_named(name): data for name, data in changes.items()}}
        with in_new_folder() as folder:
            for name, data in files.items():
                if data is not None:
                    (folder / name).write_bytes(data)
            return call(line)

    return run


def with_an_older_keep(line):
    """Run a command beside what an older version has kept: its end says so."""

    def run():
        kept = handed_in()["a.txt.keep"].removesuffix(MAGIC) + OLDER_MAGIC
        return with_files(line, a__txt__keep=kept)()

    return run


def _named(name):
    return name.replace("__", ".")


def amendment(is_extended):
    """Read what the organiser has signed: something else, or what a command has written."""

    def read():
        event = read_event(handed_in()["e.toml"])
        data = handed_in()["e.amendment-1.txt"]
        if not is_extended:
            text = parse_note(data, "it").text.replace(AMENDMENT_FORMAT, "datacollect-receipt/1")
            data = signed(text, SIGNER, key_of("organiser")).data
        read_amendment(data, event)

    return read


# Who runs an event -------------------------------------------------------------------------------

DESTINATION = (
    'format = "datacollect-destination/1"\nkey = "own.key"\nidentities = ["own.txt"]\n'
    'folder = "into"\n'
)


def destination(line, *before, more="", event=None, **files):
    """Run a command of a destination, whose event's log of verdicts has the key that is there."""

    def run():
        with in_new_folder(d_toml=DESTINATION + more, **files) as folder:
            write_private_key(folder / "own.key", key_of("verdicts"))
            identity = pyrage.x25519.Identity.generate()
            (folder / "own.txt").write_text(f"{identity}\n")
            data = event_file(recipients=[str(identity.to_public())], **(event or {}))
            (folder / "e.toml").write_bytes(data)
            (folder / "none").mkdir()
            write_private_key(folder / "o.key", key_of("organiser"))
            (folder / "people.csv").write_text("person\nAnn\n")
            for each in before:
                each(folder) if callable(each) else call(each)
            return line(folder) if callable(line) else call(line)

    return run


def given(_):
    """Read all that a destination is given, and collect nothing."""
    _given("e.toml", "d.toml")


def secrets(folder):
    """Read the tickets of all people, as a destination does before it collects."""
    config = DestinationConfig.from_file(folder / "d.toml")
    read_tickets(config.tickets, read_event((folder / "e.toml").read_bytes()))


RUN = "event run e.toml --destination d.toml --once"
COLLECTOR = 'collector = "own.key"\n'
TICKETS = 'tickets = "tickets"\n'
TICKETED = "event tickets e.toml --people people.csv --key o.key -o tickets"


def begun(folder, listed=(), here=None, *, is_logged=True, **changes):
    """Leave what one who collects leaves, now, after all is over and is collected, but for that."""
    shutil.rmtree(folder / "into", ignore_errors=True)
    made = Collected(folder / "into", here=here, is_logged=is_logged, times_s={1: 50, 2: 50})
    now_s = int(time.time())
    over = {"deadline_s": 100, "latest_s": 100, "collect_until_s": 200}
    made.leave(listed, **{"time_s": now_s, "contacts": {"north": now_s}, **over, **changes})
    return made


LIE = "It has signed what cannot be. " * 200


def lied_about(folder):
    begun(folder, lies=(("north", LIE),))


def left(*listed, **changes):
    """Leave that something is lacking."""
    return lambda folder: begun(folder, listed, **changes)


def asked(before):
    """Ask how far an event is, of which that was left."""
    return destination("event status d.toml", before, more=COLLECTOR)


def status_of_lies(option=""):
    """Ask how far an event is in which somebody has lied, and for this much is to be said."""

    def run():
        return told(destination(f"event status d.toml {option}", lied_about, more=COLLECTOR))

    return run


def all_of_a_lie():
    said = status_of_lies("--json")()
    assert LIE.strip() in said
    return said


NOT_SENT = Missing(bytes(32), WITHOUT_UPLOAD)
LOST = Missing(bytes(32), WITHOUT_DATA, ("north",))


def removed(folder):
    path = begun(folder).file(1)
    shutil.move(path, folder / "copy")
    return path


def put_back(folder):
    shutil.move(folder / "copy", removed(folder))


def collected_elsewhere(folder):
    return begun(folder, here=Place("far", "", "/srv"))


def taken_over(folder):
    """Begin with a folder that was brought here, as a destination does."""
    into = folder / "into"
    made = collected_elsewhere(folder)
    with closing(Register(made.place, EVENT, Place.of(into))) as register:
        register.take_over(lambda file: fault_of(into, file.file, file) is None)


def damaged(folder):
    file = folder / "into/status.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"logs": 1}))


def at_work(folder):
    """Collect: hold the lock of who does."""
    _held.append(Held(folder / "into/verdicts"))


_held: list[Held] = []


def status_at_work():
    try:
        return destination("event status d.toml", left(time_s=1), at_work, more=COLLECTOR)()
    finally:
        _held.pop().close()


# Bistros -----------------------------------------------------------------------------------------

INIT = (
    f"bistro init --name north --collector {KEY.public} --event e.toml --bytes '1 GB' "
    "--address b.example"
)


def as_it_says():
    """Write the event with the table that was printed, and start what the agent starts of it."""
    with in_new_folder() as folder:
        said = call(INIT)
        (agent,) = re.findall(r"datacollect agent (\S+)", said)
        row = json.loads(call(f"{INIT} --json"))
        event = event_bytes(bistros=[{key: row[key] for key in ROW}])
        (folder / "e.toml").write_bytes(event)
        with closing(Bistro(accept_of(AgentConfig.from_file(agent)), lambda _: None)) as bistro:
            assert bistro.name == "north"


ROW = ("name", "url", "key", "fingerprint")


def bistro_of(name):
    """Begin a bistro of an event whose bistros are north and south, and which nobody amends."""

    def run():
        with in_new_folder() as folder:
            event = bistro_event(folder)
            write_private_key(folder / "r.key", key_of(name))
            accept = (
                '[accept]\nevent = "event.toml"\nfolder = "up"\nbytes = 1000000\n'
                'receipt_key = "r.key"\n'
            )
            path = write_agent(folder, "B", more=accept)
            config = accept_of(AgentConfig.from_file(path))
            with (
                mock.patch.object(Amending, "ask", return_value=(event, {})),
                closing(Bistro(config, lambda _: None)),
            ):
                pass

    return run


def page_with_log(origin):
    """Write the page of an event, of whose services the first has a log of some origin."""
    data = event_bytes()
    log = log_key(origin, key_of("s0").public).text
    changed = data.decode().replace(read_event(data).services[0].log.text, log)
    return in_folder("event page e.toml -o out", e_toml=changed)


EXAMPLES = [
    Example(
        "organiser must be the public key of the one who signs tickets and amendments; "
        "`datacollect keys",
        new(organiser=None),
        with_a_made_key(),
    ),
    Example(
        "one key serves one purpose; make another with `datacollect keys new`",
        of_two_services(key_of("s0").public),
        of_two_services(key_of("s1").public),
    ),
    Example("not tried: give the identity with --identity", new(), with_an_identity),
    Example(
        "choose what to audit: --log reads only the logs",
        audited(),
        audited("--log"),
    ),
    Example(
        "exists already, and differs from what would be written; --force overwrites it",
        page("event page e.toml -o out", "event page f.toml -o out"),
        page("event page e.toml -o out", "event page f.toml -o out --force"),
    ),
    Example(
        "put the rest on a page of its own, and its address here",
        page("event page e.toml -o out --privacy long.txt"),
        page("event page e.toml -o out --privacy short.txt"),
    ),
    Example(
        "--force overwrites it, or name another folder",
        page("event page e.toml -o out", "event page f.toml -o out"),
        page("event page e.toml -o out", "event page f.toml -o other"),
    ),
    Example(
        "say what changes: --deadline, --revoke, --bistros or --verdicts",
        extended(),
        until("published by nowhere yet", extended("--revoke " + "ab" * 32)),
    ),
    Example(
        "--revoke must be the file of a ticket, or 64 hexadecimal digits of its token_sha256",
        extended("--revoke mine"),
        until("published by nowhere yet", extended("--revoke " + "ab" * 32)),
    ),
    Example(
        "commit_only sends nothing, and elsewhere sends to one more bistro; give one of them",
        lambda: dc.upload("f", "e.toml", commit_only=True, elsewhere=True),
        until("no such file", lambda: dc.upload("f", "e.toml", commit_only=True)),
    ),
    Example(
        "a ticket is needed to hand in: give its file with --ticket",
        in_folder("upload a.txt --event e.toml", e_toml=event_bytes(services=CLOSED), a_txt="mine"),
        handed_in,
    ),
    Example(
        "verify and audit read it, and `datacollect event new` makes one of today's",
        in_folder("upload a.txt --event e.toml", e_toml=OLDER, a_txt="mine"),
        new(),
    ),
    Example(
        "verify and audit read it, and `datacollect event new` makes one of today's",
        in_folder(
            "event extend e.toml --key organiser.key --deadline 2027-04-16T23:59:59-04:00",
            e_toml=OLDER,
        ),
        new(),
    ),
    Example(
        "be used to hand in; `datacollect verify` reads it, and to hand the file in",
        with_an_older_keep("upload a.txt.keep --event e.toml"),
        with_an_older_keep(f"{VERIFY} --file a.txt.keep"),
    ),
    Example(
        "; `datacollect upload` writes one",
        with_files(VERIFY, a__txt__receipt__json=b"[]"),
        with_files(VERIFY),
    ),
    Example(
        "beside it, which `datacollect upload` has written, or name the first with --proof",
        with_files(f"{VERIFY} --file a.txt", a__txt__keep=None, a__txt__proof=None),
        with_files(f"{VERIFY} --file a.txt", a__txt__keep=None),
    ),
    Example(
        "`datacollect upload` has written one beside the receipt",
        with_files(f"{VERIFY} --file a.txt --proof a.txt.proof", a__txt__proof=b"[]"),
        with_files(f"{VERIFY} --file a.txt --proof a.txt.proof"),
    ),
    Example(
        "; `datacollect audit EVENT.toml --log` writes one",
        with_files(f"{VERIFY} --amendments amendments.json", amendments__json=b"[]"),
        with_files(f"{VERIFY} --amendments amendments.json"),
    ),
    Example(
        "; `datacollect event extend EVENT.toml` writes one",
        amendment(False),
        amendment(True),
    ),
    Example(
        "16 random hexadecimal digits, got {}; `datacollect event new` makes one",
        page_with_log("s0"),
        new(),
    ),
    Example(
        "collector must be the file of the key by which bistros know who collects; `datacollect",
        destination(RUN),
        until(
            "tickets must be",
            destination(RUN, "keys new collector.key", more='collector = "collector.key"\n'),
        ),
    ),
    Example(
        "tickets must be the folder of everybody's tickets, since the event asks for them",
        destination(RUN, more=COLLECTOR),
        destination(given, TICKETED, more=COLLECTOR + TICKETS),
    ),
    Example(
        "must hold everybody's tickets, as written by `datacollect event tickets`",
        destination(secrets, more=f'{COLLECTOR}tickets = "none"\n'),
        destination(secrets, TICKETED, more=COLLECTOR + TICKETS),
    ),
    Example(
        "nothing was collected there yet; `datacollect event run` starts collecting",
        destination("event status d.toml", more=COLLECTOR),
        destination("event status d.toml", begun, more=COLLECTOR),
    ),
    Example(
        "must be what `datacollect event run` has written, {}; run it once more",
        destination("event status d.toml", begun, damaged, more=COLLECTOR),
        destination("event status d.toml", begun, damaged, begun, more=COLLECTOR),
    ),
    Example("`datacollect event run` continues", asked(left(time_s=1)), status_at_work),
    Example("put them back from a copy of the folder", asked(removed), asked(put_back)),
    Example("files that were copied here", asked(collected_elsewhere), asked(taken_over)),
    Example(
        "upload` again, while", asked(left(NOT_SENT, missing={WITHOUT_UPLOAD: 1})), asked(begun)
    ),
    Example(
        "stop `datacollect event run`, let `datacollect event recover` make it, and start again",
        asked(left(is_logged=False, log_lacks="w1 has signed 4 entries of this log")),
        asked(begun),
    ),
    Example("upload --elsewhere`", asked(left(LOST, missing={WITHOUT_DATA: 1})), asked(begun)),
    Example(
        "is written; once {} exists, start the bistro with: datacollect agent {}",
        in_folder(INIT),
        as_it_says,
    ),
    Example(
        "must name a bistro with the key {}, which belongs to receipt_key, but neither that "
        "file nor an amendment",
        bistro_of("east"),
        bistro_of("north"),
    ),
    Example("{}… (all: --json)", status_of_lies(), all_of_a_lie),
]
