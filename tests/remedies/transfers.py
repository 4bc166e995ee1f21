"""Remedies about real transfers: files of collections and agents, and pulls."""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack
from unittest import mock

from instances.agents import KEY, running, write_agent
from remedies.trying import Example, call, in_new_folder, told

from datacollect.commands.pull import _missing_lines
from datacollect.errors import DatacollectError
from datacollect.net.keys import write_private_key
from datacollect.net.metrics import MetricsServer
from datacollect.pictures.live_page import LivePage
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.sources.web.core.redirects import RedirectRule
from datacollect.transfer.sources.web.core.urls import Origin
from datacollect.transfer.store.promises import kept_pulls
from datacollect.transfer.store.state.state import Missing

AGENT = {"url": "https://127.0.0.1:1", "fingerprint": "sha256:" + "0a" * 32}
LINE_OF_S = f"S https://s.example:7443 sha256:{'ab' * 32}"


def collection(**changes):
    tree = {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "collector.key",
        "agents": {"S1": AGENT},
    }
    return lambda: Collection.from_dict(tree | changes)


def in_folder_of_one():
    """Read a collection that a command has written, and another has added an agent to."""
    with in_new_folder():
        call("collection new")
        call(f"collection add {LINE_OF_S}")
        return Collection.from_file("collection.toml")


def agent(connect_to=None, serve="data", more=""):
    def read():
        with in_new_folder() as folder:
            path = write_agent(folder, "A", serve=serve, connect_to=connect_to, more=more)
            return AgentConfig.from_file(path)

    return read


def web(**more):
    return collection(agents={}, servers={"W": {"paths": ["a"]} | more})


def pulled(*lines, files=("a",), before=None):
    """Run commands where an agent S serves files, which `pull` takes into `into`."""

    def run():
        with in_new_folder() as folder, ExitStack() as held:
            path = write_agent(folder, "S", serve="data")
            for name in files:
                (folder / "data" / name).write_text(name)
            write_private_key(folder / "collector.key", KEY)
            target = held.enter_context(running(path))
            (folder / "c.toml").write_text(
                'format = "datacollect-collection/1"\ndestination = "D"\nkey = "collector.key"\n'
                f'[agents.S]\nurl = "https://{target.place}"\n'
                f'fingerprint = "{target.agent.fingerprint}"\n'
            )
            if before is not None:
                before(folder)
            said = ""
            for line in lines:
                if callable(line):
                    line(folder)
                else:
                    said = call(line)
            return said

    return run


def rotted(folder):
    """Change a file as a disk does, of which nothing else tells."""
    file = folder / "into" / "S" / "a"
    about = file.stat()
    file.write_text("b")
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))


def in_the_way(folder):
    (folder / "into" / "S").mkdir(parents=True)
    (folder / "into" / "S" / "a").write_text("mine")


def few_shown(line):
    """Run a command that shows no more than nothing of the one file that cannot be had."""

    def run():
        name = line.split()[0]
        with mock.patch(f"datacollect.commands.{name}.SHOWN_MISSING", 0):
            return pulled(line, before=in_the_way)()

    return run


def names_all(line):
    def look():
        said = told(few_shown(line))
        assert [each["path"] for each in json.loads(said)["missing"]] == ["a"]

    return look


def few_shown_of_status(option):
    """Ask of a folder into which one file has not come, which is not shown."""

    def run():
        with mock.patch("datacollect.commands.status.SHOWN_MISSING", 0):
            try:
                return pulled(
                    lambda _: told(lambda: call(PULL)), f"status into {option}", before=in_the_way
                )()
            except DatacollectError as error:
                return str(error)

    return run


def lists_all_of_status():
    said = few_shown_of_status("--json")()
    assert [each["path"] for each in json.loads(said)["missing"]] == ["a"]
    return said


PULL = "pull c.toml --into into"


def without_room(folder):
    with (folder / "c.toml").open("a") as file:
        file.write("[limits]\nspare_bytes = 1_000_000_000_000_000_000\n")


class Busy:
    """A port that is in use."""

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        return self.socket.getsockname()[1]

    def __exit__(self, *_):
        self.socket.close()


def page_at(port=None):
    def show():
        with Busy() as busy, LivePage({}, lambda *_: None, busy if port is None else port):
            pass

    return show


def metrics_at(host):
    def tell():
        with MetricsServer((host, 0), list, "metrics.listen"):
            pass

    return tell


EXAMPLES = [
    Example(
        "compares what verify (--verify) has read; ask for both",
        pulled(f"{PULL} --with-source"),
        pulled(PULL, f"{PULL} --verify --with-source"),
    ),
    Example(
        "agents: there is no host to collect from; `datacollect collection add` adds",
        collection(agents={}),
        in_folder_of_one,
    ),
    Example(
        "connect_to.{}: names this agent itself; it would relay in a circle: leave it out",
        agent({"A": "a:1", "B": "b:1"}),
        agent({"B": "b:1"}),
    ),
    Example(
        "serve and connect_to are both missing: the agent would have nothing to do; give one",
        agent(serve=None),
        agent(),
    ),
    Example(
        "serve and connect_to are both missing: the agent would have nothing to do; give one",
        agent(serve=None),
        agent({"B": "b:1"}, serve=None),
    ),
    Example(
        "plain_http_to must name hosts of connect_to",
        agent({"B": "b:1"}, more='plain_http_to = ["C"]'),
        agent({"B": "b:1", "C": "c:1"}, more='plain_http_to = ["C"]'),
    ),
    Example(
        "limits.rate: hours of the day need the zone whose clocks show them; add timezone",
        agent(more='[limits]\nrate = "08:00 1 MB/s, 20:00 2 MB/s"'),
        agent(more='timezone = "Europe/Zurich"\n[limits]\nrate = "08:00 1 MB/s, 20:00 2 MB/s"'),
    ),
    Example(
        "the server redirects to {}; add that host to redirects_to",
        lambda: RedirectRule().why_not(Origin("https", "x", 443), Origin("https", "a.cdn", 443)),
        lambda: RedirectRule(("a.cdn",)).why_not(
            Origin("https", "x", 443), Origin("https", "a.cdn", 443)
        ),
    ),
    Example(
        "Where that does not matter, write plain_http = true",
        web(url="http://w.example/"),
        web(url="http://w.example/", plain_http=True),
    ),
    Example(
        "no pull has written into this folder; name the folder of `datacollect pull --into`",
        pulled(PULL, "status ."),
        pulled(PULL, "status into"),
    ),
    Example(
        "`datacollect pull … --verify` fetches them again",
        pulled(PULL, rotted, "status into --verify"),
        pulled(PULL, rotted, f"{PULL} --verify", "status into --verify"),
    ),
    Example(
        "move it away, or start with --overwrite, which replaces it",
        pulled(PULL, before=in_the_way),
        pulled(f"{PULL} --overwrite", before=in_the_way),
    ),
    Example(
        "move it away, or start with --overwrite",
        pulled(PULL, before=in_the_way),
        pulled(
            lambda folder: (folder / "into/S/a").rename(folder / "moved"), PULL, before=in_the_way
        ),
    ),
    Example(
        "name another with --into",
        pulled("pull c.toml --into c.toml"),
        pulled("pull c.toml --into other"),
    ),
    Example(
        "{}: hours of the day need the zone whose clocks show them; add timezone",
        collection(limits={"rate": "08:00 1 MB/s, 20:00 2 MB/s"}),
        collection(limits={"rate": "08:00 1 MB/s, 20:00 2 MB/s"}, timezone="Europe/Zurich"),
        module="transfer.pull.config.file",
    ),
    Example(
        "must have room for {} more, has {} free; make room",
        pulled(PULL, before=without_room),
        pulled(PULL),
    ),
    Example(
        "that could be drawn; name the folder of `datacollect pull --into`",
        pulled(PULL, "status . --plot new.png"),
        pulled(PULL, "status into --plot new.png"),
    ),
    Example(
        "no pull has ever begun in this folder; name the folder of `datacollect pull --into`",
        lambda: kept_pulls("/nowhere"),
        pulled(PULL, "status into --promises"),
    ),
    Example(
        "{}: {} more, --json lists them: {}",
        lambda: "\n".join(_missing_lines([Missing("S", path, "away") for path in "abcde"])),
        names_all(f"{PULL} --json"),
    ),
    Example("{}: {}; choose another port; 0 is any free one", page_at(), page_at(0)),
    Example(
        "{}: {}; write an address of this host",
        metrics_at("192.0.2.1"),
        metrics_at("127.0.0.2"),
        module="net.few_http",
    ),
    Example(
        "and {} more; --json lists all",
        few_shown(PULL),
        names_all(f"{PULL} --json"),
        module="commands.pull",
    ),
    Example(
        "and {} more; --json lists all",
        few_shown_of_status(""),
        lists_all_of_status,
        module="commands.status",
    ),
]
