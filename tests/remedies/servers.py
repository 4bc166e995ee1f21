"""Remedies about what other servers answer, what relays pass on, and what is noted in folders."""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from unittest import mock

import apsw
from instances.agents import KEY, received, relay_ticket, running, write_agent
from instances.web_answers import manifest
from instances.web_servers import tiny_server
from remedies.transfers import PULL, pulled, rotted
from remedies.trying import Example, call, in_folder, in_new_folder
from transfer.agent.test_greetings import PLAIN
from transfer.pull.test_hours import hours_at, link, tree
from transfer.sources.web.test_core import ETAG, TARGET, asked, http

import datacollect as dc
from datacollect.errors import DatacollectError, TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, open_route
from datacollect.net.keys import write_private_key
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.open_hours import OpenHours
from datacollect.transfer.sources.agent.source import AgentSource
from datacollect.transfer.sources.web.core.core import MOST_PARTS
from datacollect.transfer.sources.web.core.messages import AskRange, Connected
from datacollect.transfer.sources.web.core.versions import Version

DATA = {f"{n}.bin": b"\x93" + bytes([n]) * 99 for n in range(3)}


# Servers -----------------------------------------------------------------------------------------


def from_server(then, options="", again=None, **limits):
    """Pull from a server, change it, and pull again; say what is told, whether or not all came."""

    def run():
        with in_new_folder() as folder, tiny_server(dict(DATA)) as tiny:
            write_private_key(folder / "key", KEY)
            lines = [f"{key} = {value}" for key, value in (limits | {"timeout_s": 5.0}).items()]
            text = (
                'format = "datacollect-collection/1"\ndestination = "D"\nkey = "key"\n'
                f'[servers.W]\nurl = "{tiny.url}"\nplain_http = true\n'
            )
            paths = ", ".join(f'"{name}"' for name in DATA)
            (folder / "c.toml").write_text(
                "\n".join([f"{text}paths = [{paths}]", "[limits]", *lines])
            )
            said = call("pull c.toml --into into")
            for change in then:
                change(tiny)
            if again is not None:
                (folder / "c.toml").write_text(
                    "\n".join([f'{text}manifest = "{again(folder, tiny)}"', "[limits]", *lines])
                )
            try:
                said = call(f"pull c.toml --into into {options}")
            except DatacollectError as error:
                said = str(error)
            return said

    return run


def session_ended(tiny):
    tiny.respond = lambda *_: (403, {}, b'{"message": "session has ended"}')


def now_a_text(tiny):
    tiny.files = DATA | {"0.bin": b"by now a text"}


def first_asked_to_wait(wait_s, patience_s):
    """Pull from a server that is busy for a while once it is asked for more than first bytes."""
    until_s = []

    def busy(path, headers):
        if headers.get("Range") == "bytes=0-0":
            return None
        now_s = time.monotonic()
        until_s.append(now_s + wait_s)
        is_busy = now_s < until_s[0]
        return (503, {"Retry-After": str(wait_s)}, b"") if is_busy else None

    return _asked_first(busy, patience_s)


def busy_at_once(wait_s, patience_s):
    """Pull from a server that is busy, whatever is asked."""
    return _asked_first(lambda *_: (503, {"Retry-After": str(wait_s)}, b""), patience_s)


def well(patience_s):
    """Pull from a server that is busy no longer."""
    return _asked_first(None, patience_s)


def _asked_first(respond, patience_s):
    def run():
        with in_new_folder() as folder, tiny_server(dict(DATA), respond=respond) as tiny:
            write_private_key(folder / "key", KEY)
            collection = {
                "format": "datacollect-collection/1",
                "destination": "D",
                "key": str(folder / "key"),
                "servers": {"W": {"url": tiny.url, "plain_http": True, "paths": [*DATA]}},
                "limits": {"patience_s": patience_s, "timeout_s": 5.0},
            }
            answer = dc.pull(collection, folder / "into")
            return "\n".join(each.why for each in answer.missing)

    return run


def in_ranges(n_bytes):
    """Ask for a range of a server that sends a byte at a time."""

    def run():
        core = asked(AskRange("a", TARGET, 10**6, Version(ETAG), 0, n_bytes))
        said = []
        for at in range(n_bytes):
            head = {"Content-Range": f"bytes {at}-{at}/1000000", "Content-Length": 1}
            *_, last = core.handle(http(206, head, b"x"))
            if hasattr(last, "worth"):
                said.append(str(last.why))
                break
            core.handle(Connected())
        return "\n".join(said)

    return run


# Relays ------------------------------------------------------------------------------------------


@contextmanager
def relayed(knows="T", more=""):
    """Ask a relay for a connection to T, a server without TLS, as its file allows it."""
    with ExitStack() as held:
        folder = held.enter_context(in_new_folder())
        server = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        place = f"127.0.0.1:{server.getsockname()[1]}"
        path = write_agent(folder, "R", connect_to={knows: place}, more=more)
        agent = held.enter_context(running(path))
        hop = RelayHop("R", agent.address, relay_ticket(["R"], "T"))
        near = held.enter_context(open_route([hop], "T", ("unused", 1), deadline=Deadline(10)))
        yield near, held.enter_context(closing(server.accept()[0]))


def greeted_in_plain(more=""):
    def run():
        with relayed(more=more) as (near, far):
            near.sendall(PLAIN["http"])
            if more:
                assert far.recv(100) == PLAIN["http"]
                return ""
            return received(near).decode()

    return run


def towards(knows):
    def run():
        with relayed(knows):
            pass

    return run


def over_a_relay(more=""):
    """Pull from a server without TLS over a relay.

    The server itself is tried, too, and may be sooner: until the relay was asked, again.
    """

    def run():
        with in_new_folder() as folder, tiny_server(dict(DATA)) as tiny:
            write_private_key(folder / "key", KEY)
            place = tiny.url.removeprefix("http://").rstrip("/")
            path = write_agent(folder, "R", connect_to={"W": place}, more=more)
            with running(path) as agent:
                collection = {
                    "format": "datacollect-collection/1",
                    "destination": "D",
                    "key": str(folder / "key"),
                    "agents": {
                        "R": {
                            "url": f"https://{agent.place}",
                            "fingerprint": agent.agent.fingerprint,
                        }
                    },
                    "servers": {"W": {"url": tiny.url, "plain_http": True, "paths": [*DATA]}},
                    "links": [link("W", "R"), link("R", "D")],
                    "sources": {"W": {}},
                    "limits": {"patience_s": 1.0, "timeout_s": 5.0},
                }
                for attempt in range(20):
                    answer = dc.pull(collection, folder / f"into-{attempt}")
                    if answer.missing:
                        return "\n".join(each.why for each in answer.missing)
                    if any("R" in route.hosts for route in answer.routes):
                        return ""
                raise AssertionError("no pull went over the relay")

    return run


# Lists, hours, collections -----------------------------------------------------------------------


def slow_list(patience_s):
    """List an agent whose disk needs 20 s for each of three names, by a clock that is turned."""

    def pages(flow, now_s):
        for _ in range(3):
            with flow.waiting():
                now_s[0] += 20.0
                try:
                    flow.left_s()
                except TimeoutError as error:
                    raise TransferError(str(error)) from None
            flow.named(1)
            yield None

    def run():
        now_s, source = [0.0], AgentSource("S", None, None, patience_s=patience_s)
        with (
            mock.patch("datacollect.net.deadline.time.monotonic", side_effect=lambda: now_s[0]),
            mock.patch.object(AgentSource, "_pages", lambda _, flow: pages(flow, now_s)),
        ):
            return len([*source.list(None)])

    return run


def with_hours(**more):
    def run():
        with in_new_folder() as folder:
            rows = "from,to,bandwidth_bytes_per_s,open\nS,D,1000000,20:00-06:00\n"
            (folder / "grid.csv").write_text(rows)
            said = tree(bandwidth_csv="grid.csv")
            del said["timezone"]
            OpenHours(Collection.from_dict(said | more, folder))

    return run


def by_night(opens):
    """Ask when data of S can come over R, which S reaches from 20:00 to 06:00."""

    def ask():
        links = [link("S", "R", open="20:00-06:00"), link("R", "D", open=opens)]
        hours, ends = hours_at("2026-11-23T12:00", links=links), [("S", "R"), ("R", "D")]
        return hours.why_never("S", ends) if hours.opening_s("S", ends) is None else None

    return ask


LINE_OF_S = f"S https://s.example:7443 sha256:{'ab' * 32}"
ADD = f"collection add {LINE_OF_S}"
INLINE = (
    'format = "datacollect-collection/1"\ndestination = "D"\nkey = "collector.key"\n'
    f'agents = {{ T = {{ url = "https://t:1", fingerprint = "sha256:{"cd" * 32}" }} }}\n'
)
BY_HAND = INLINE.replace(
    "agents = { ",
    f'agents = {{ S = {{ url = "https://s.example:7443", fingerprint = "sha256:{"ab" * 32}" }}, ',
)


def in_place_of_what_is_none():
    with in_new_folder(collection_toml="agents = 3\n"):
        Path("collection.toml").unlink()
        call("collection new")
        return call(ADD)


# What lies in folders ----------------------------------------------------------------------------


@contextmanager
def names_unsynced():
    """Have the file system refuse to sync folders, as some mounts do."""
    real = os.fsync

    def sync(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(fd)

    with mock.patch("os.fsync", sync):
        yield


def without_a_promise():
    with names_unsynced():
        return pulled(PULL)()


def after_a_loss_of_power():
    """Start the same command with --verify: what was lost comes again."""

    def looked_at(folder):
        assert (folder / "into/S/a").read_text() == "a"

    with names_unsynced():
        pulled(PULL, rotted, f"{PULL} --verify", looked_at)()


@contextmanager
def few_names_in(folder):
    """Have the disk of a folder take no more files."""
    real = os.fstatvfs

    def told(fd):
        found = real(fd)
        if Path(f"/proc/self/fd/{fd}").readlink().is_relative_to(folder):
            values = [*found]
            values[5], values[6], values[7] = 1, 0, 0
            return os.statvfs_result(values)
        return found

    with mock.patch("os.fstatvfs", told):
        yield


def into_a_full_disk(line):
    def run():
        with ExitStack() as held:
            return pulled(
                line,
                before=lambda folder: held.enter_context(few_names_in((folder / "into").resolve())),
            )()

    return run


def of_version_99(folder):
    with closing(apsw.Connection(str(folder / "into/.datacollect/state.sqlite"))) as db:
        db.execute("UPDATE facts SET value = 99 WHERE key = 'version'")


def by_its_own(line):
    """Run a command as the datacollect that began it: one whose states are of version 99."""

    def run():
        with ExitStack() as held:

            def become_newer(folder):
                for each in ("snapshot", "state"):
                    place = f"datacollect.transfer.store.state.{each}.VERSION"
                    held.enter_context(mock.patch(place, 99))

            return pulled(PULL, of_version_99, become_newer, line)()

    return run


EXAMPLES = [
    Example(
        "if the kept copies are good enough, start with --keep",
        from_server([session_ended]),
        from_server([session_ended], "--keep"),
    ),
    Example(
        "if what is there now is the right file, start with --overwrite",
        from_server([now_a_text]),
        from_server([now_a_text], "--overwrite"),
    ),
    Example(
        "or give its bytes and sha256 in a manifest",
        from_server([now_a_text]),
        from_server([now_a_text], again=lambda folder, tiny: manifest(folder, tiny.files)),
        module="transfer.sources.web.core.genuine",
    ),
    Example(
        "start again later", busy_at_once(30, 0.5), well(0.5), module="transfer.sources.web.pace"
    ),
    Example(
        "or set a longer patience_s in [limits]",
        first_asked_to_wait(1, 0.5),
        first_asked_to_wait(1, 5.0),
        module="transfer.sources.web.pace",
    ),
    Example("; patience_s is {}: {}", first_asked_to_wait(1, 0.5), first_asked_to_wait(1, 5.0)),
    Example(
        "were asked for; set a smaller piece_bytes in [limits]",
        in_ranges(MOST_PARTS + 1),
        in_ranges(MOST_PARTS - 1),
    ),
    Example(
        "name the next host in `plain_http_to` of the agent's file if it speaks no TLS",
        greeted_in_plain(),
        greeted_in_plain('plain_http_to = ["T"]'),
    ),
    Example(
        "where a relay leads to a server without TLS, name it in `plain_http_to` of its file",
        over_a_relay(),
        over_a_relay('plain_http_to = ["W"]'),
    ),
    Example(
        "this agent may not connect to the requested host; write the host into `connect_to` of the",
        towards("U"),
        towards("T"),
    ),
    Example(
        "if its disk needs more time, set a longer patience_s in [limits]",
        slow_list(30.0),
        slow_list(300.0),
    ),
    Example(
        'add timezone = "Europe/Zurich" at the top of the collection file',
        with_hours(),
        with_hours(timezone="Europe/Zurich"),
        module="transfer.pull.open_hours",
    ),
    Example(
        "a spool and start with --slot, let their hours overlap, or collect at {} first",
        by_night("08:00-18:00"),
        by_night("05:00-18:00"),
    ),
    Example(
        "to which this command cannot add; write by hand: agents.{} with url = {} and fingerprint "
        "= {}",
        in_folder(ADD, collection_toml=INLINE, collector_key=""),
        in_folder(ADD, collection_toml=BY_HAND, collector_key=""),
    ),
    Example(
        "is not a collection file; `datacollect collection new` makes one",
        in_folder(ADD, collection_toml="agents = 3\n"),
        in_place_of_what_is_none,
    ),
    Example(
        "survive a loss of power: after one, start the same command with --verify",
        without_a_promise,
        after_a_loss_of_power,
    ),
    Example(
        "free inodes; remove files, or name another folder with --into",
        into_a_full_disk(PULL),
        into_a_full_disk("pull c.toml --into other"),
    ),
    Example(
        "got {}; use the version of datacollect that began this pull",
        pulled(PULL, of_version_99, "status into"),
        by_its_own("status into"),
    ),
    Example(
        "got {}; continue with the version of datacollect that began this pull",
        pulled(PULL, of_version_99, PULL),
        by_its_own(PULL),
    ),
]
