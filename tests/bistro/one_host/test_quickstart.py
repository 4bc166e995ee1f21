"""An event on one host, by the command: from an empty folder to files that are proved to be in."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import REPOSITORY
from instances.children import command_of
from instances.ports import free_port

import datacollect as dc
from datacollect.bistro.destination.run.standing import read_standing
from datacollect.bistro.formats.event.file import read_event
from datacollect.commands.main import run
from datacollect.net.http_asking import Asker
from datacollect.net.tls import web_context

PEOPLE = ("Ann Lee", "Müller, Jan", "O'Neil", "Zoë", "Li Wei")
COLLECTED_S = 300
FIRST_PAGE = REPOSITORY / "docs/bistro.md"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux")


def soon() -> str:
    """Return a deadline as an organiser types it."""
    return f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d} 18:00"


class Quickstart:
    """The command as a process, in a folder where a roster lies."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        rows = "".join(f'"{name}"\n' for name in PEOPLE)
        (folder / "people.csv").write_text(f"person\n{rows}", encoding="utf-8")
        self.process: subprocess.Popen[str] | None = None

    @property
    def first(self) -> list[str]:
        """Arguments of the first start."""
        address = ("--address", f"127.0.0.1:{self.port}", "--listen", f"127.0.0.1:{self.port}")
        given = ("--deadline", soon(), "--timezone", "Europe/Zurich", "--people", "people.csv")
        return ["essay", *given, "--try", *address]

    def start(self, *arguments: str) -> dict:
        """Start it; return what it says once it is ready."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "datacollect", "event", "quickstart", *arguments, "--json"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return json.loads(line)

    def servers(self) -> list[int]:
        """Return the processes that work for this event, but the first."""
        own = self.process.pid if self.process else 0
        numbers = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
        place = str(self.folder / "essay")
        return [n for n in numbers if n not in (own, os.getpid()) and place in command_of(n)]

    def wait_for_servers(self, n: int) -> None:
        """Wait until so many are at work."""
        until_s = time.monotonic() + 300
        while len(self.servers()) != n and time.monotonic() < until_s:
            time.sleep(0.1)
        assert len(self.servers()) == n

    def end(self, number: int = signal.SIGTERM) -> int:
        """End the first process; return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.communicate(timeout=300)
        return self.process.returncode

    def hand_in(self, person: str) -> Path:
        """Have a person hand a file in; return it."""
        own = self.folder / person
        own.mkdir()
        path = own / "essay.txt"
        path.write_text(f"by {person}", encoding="utf-8")
        ticket = self.folder / "essay/tickets" / f"{person}.ticket"
        dc.upload(path, self.folder / "essay/event.toml", ticket=ticket)
        return path


@pytest.fixture
def quickstart(tmp_path, monkeypatch):
    found = Quickstart(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "essay/try.trusted.pem"))
    yield found
    if found.process is not None and found.process.poll() is None:
        found.process.kill()
        found.process.communicate()


def commands_of_first_page() -> list[list[str]]:
    """Return the commands that its readers type after the event has begun, as arguments."""
    blocks = re.findall(r"^```text\n(.*?)^```", FIRST_PAGE.read_text(), re.MULTILINE | re.DOTALL)
    typed = blocks[1].replace("\\\n", " ")
    lines = [line[2:] for line in typed.splitlines() if line.startswith("$ datacollect ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def without_network() -> list[str]:
    """Return what keeps a command from any network, where this machine lets anybody do that."""
    alone = ["unshare", "--map-root-user", "--net"]
    try:
        done = subprocess.run([*alone, "true"], check=False, capture_output=True)
    except FileNotFoundError:
        return []
    return [] if done.returncode else alone


def require_first_page_to_work(folder: Path) -> None:
    """Type what docs/bistro.md says, in an environment of nothing else."""
    (folder / "essay.txt").write_text("by a reader of the page")
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C"}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    trusted = {"SSL_CERT_FILE": "try.cert.pem"}
    typed = commands_of_first_page()
    assert [each[0] for each in typed] == ["upload", "event", "upload", "verify"]
    for arguments in typed:
        is_last = arguments[0] == "verify"
        alone = without_network() if is_last else []
        done = subprocess.run(
            [*alone, sys.executable, "-m", "datacollect", *arguments],
            cwd=folder / "essay",
            env=environment | ({} if is_last else trusted),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in ((0, 1) if arguments[0] == "event" else (0,)), done
    assert "essay.txt" in done.stdout
    assert "proves nothing against that organiser" in " ".join(done.stdout.split())


def test_first_page_fits_two_screens_and_begins_with_the_command():
    """Of 80 columns and 45 lines each, with what a block of code or a table takes."""
    lines = FIRST_PAGE.read_text().splitlines()
    assert sum(-(-max(len(line), 1) // 80) for line in lines) <= 2 * 45
    assert any("event quickstart" in line for line in lines[:20])


@pytest.mark.slow
@pytest.mark.long
def test_five_peoples_files_are_collected_and_proved_whatever_ends_on_the_way(quickstart, capsys):
    """From an empty folder; killed, a server killed, and started again, it goes on."""
    told = quickstart.start(*quickstart.first)
    assert (told["new_tickets"], told["alone"]) == (5, True)
    folder = quickstart.folder / "essay"
    cards = (folder / "cards.html").read_text()
    assert cards.count("<svg") == 5
    paths = [quickstart.hand_in(name) for name in PEOPLE[:2]]

    # Whoever is killed takes all others with him; the same address, tickets and event remain.
    servers = quickstart.servers()
    assert len(servers) >= 4
    quickstart.end(signal.SIGKILL)
    quickstart.wait_for_servers(0)
    again = quickstart.start("essay")
    assert (again["url"], again["event"], again["new_tickets"]) == (told["url"], told["event"], 0)
    paths += [quickstart.hand_in(PEOPLE[2])]

    # A server that ends by itself is started again.
    service = next(n for n in quickstart.servers() if " timestamp " in command_of(n))
    os.kill(service, signal.SIGKILL)
    until_s = time.monotonic() + 300
    while time.monotonic() < until_s:
        if any(" timestamp " in command_of(n) for n in quickstart.servers() if n != service):
            break
        time.sleep(0.1)
    paths += [quickstart.hand_in(name) for name in PEOPLE[3:]]

    until_s = time.monotonic() + COLLECTED_S
    while time.monotonic() < until_s:
        standing = read_standing(folder / "collected")
        if standing.collected == 5 and standing.n_verdicts >= 5:
            break
        time.sleep(0.5)
    assert (standing.collected, standing.late, standing.lies) == (5, 0, ())
    held = {path.read_text() for path in (folder / "collected/files").glob("*/essay.txt")}
    assert held == {f"by {name}" for name in PEOPLE}

    # What people see: the page, at the address itself, and what it does not prove.
    with Asker(told["url"], web_context(folder / "try.trusted.pem")) as asker:
        page = asker.get("/", 2**20)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "connect-src" in page.headers["content-security-policy"]
    assert b"prove nothing against that organiser" in page.body
    assert run(["event", "page", str(folder / "event.toml"), "--check", told["url"]]) == 0
    for path in paths:
        done = dc.upload(path, folder / "event.toml", ticket=None).files[0]
        assert done.outcome == "in time"
        verdict = dc.verify_receipt(
            f"{path}.receipt.json", folder / "event.toml", file=path, amendments=None
        )
        assert (verdict.outcome, verdict.collected_s is not None) == ("in time", True)
        assert any("proves nothing against that organiser" in each for each in verdict.reasons)
    capsys.readouterr()
    require_first_page_to_work(quickstart.folder)
    assert quickstart.end() == 0
    quickstart.wait_for_servers(0)


@pytest.mark.slow
def test_two_at_once_an_occupied_port_and_other_wishes_are_named_and_nothing_is_lost(quickstart):
    quickstart.start(*quickstart.first)
    event = quickstart.folder / "essay/event.toml"
    before = event.read_bytes()

    def refused(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "datacollect", "event", "quickstart", *arguments],
            cwd=quickstart.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done
        return done.stderr

    assert "another process already runs this event" in refused("essay")
    other = [*quickstart.first]
    other[0] = "other"
    said = refused(*other)
    assert "Address already in use" in said
    assert f"sport = :{quickstart.port}" in said
    assert not (quickstart.folder / "other").exists()
    quickstart.end()
    assert "event extend essay/event.toml" in refused("essay", "--deadline", "2040-01-31 18:00")
    assert "nobody can change it" in refused("essay", "--name", "Another")
    assert event.read_bytes() == before
    assert read_event(before).alone

    # Who came later to the course gets a ticket, too; the others keep theirs.
    roster = quickstart.folder / "people.csv"
    roster.write_text(roster.read_text(encoding="utf-8") + "New One\n", encoding="utf-8")
    assert quickstart.start("essay", "--people", "people.csv")["new_tickets"] == 1
    quickstart.end()
