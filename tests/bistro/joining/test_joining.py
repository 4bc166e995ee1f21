"""An event that several hosts keep, by their commands: from invitations to files that are in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from instances.ports import free_port

import datacollect as dc
from datacollect.bistro.destination.run.standing import read_standing
from datacollect.bistro.formats.event.file import read_event

ROLES = ("witness", "witness", "service", "bistro", "destination")
COLLECTED_S = 300
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="all of 127.0.0.0/8 is the loopback there"),
]


class Host:
    """A host of its own: an address of the loopback, a certificate, a folder."""

    def __init__(self, folder: Path, number: int, authority: trustme.CA) -> None:
        self.folder, self.name = folder / f"host{number}", f"127.0.0.{number}"
        self.folder.mkdir()
        issued = authority.issue_cert(self.name)
        (self.folder / "cert.pem").write_bytes(
            b"".join(each.bytes() for each in issued.cert_chain_pems)
        )
        issued.private_key_pem.write_to_path(self.folder / "key.pem")
        self.process: subprocess.Popen[str] | None = None
        place = f"{self.name}:{free_port()}"
        certificate = ("--certificate", "cert.pem", "--certificate-key", "key.pem")
        self.ways = ("--address", place, "--listen", place, *certificate, "--trust-clock")
        self.url = f"https://{place}"

    def start(self, *arguments: str) -> None:
        """Start a command of ours."""
        with (self.folder / "said").open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "datacollect", *arguments, "--json"],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )

    def line(self) -> dict:
        """Return the next that it prints."""
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (self.folder / "said").read_text()
        return json.loads(line)

    def refused(self, *arguments: str) -> str:
        """Run a command that is refused; return what it says."""
        done = subprocess.run(
            [sys.executable, "-m", "datacollect", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done
        return " ".join(done.stderr.split())

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.communicate(timeout=300)


def test_hosts_join_by_a_line_each_and_what_people_hand_in_is_collected(tmp_path, monkeypatch):
    authority = trustme.CA()
    trusted = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(trusted)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    organiser, *hosts = [Host(tmp_path, 2 + i, authority) for i in range(1 + len(ROLES))]
    (organiser.folder / "people.csv").write_text("person\nann\nbob\n")
    deadline = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d} 18:00"
    organiser.start(
        *("event", "init", "essay", "--deadline", deadline, "--timezone", "Europe/Zurich"),
        *("--people", "people.csv", "--hosts", str(len(ROLES)), *organiser.ways),
    )
    out, _ = organiser.process.communicate()
    lines = json.loads(out)["invitations"]
    assert len(lines) == len(ROLES)

    # Those who join before anybody listens wait.
    for host, line, role in zip(hosts[:3], lines[:3], ROLES[:3], strict=True):
        host.start("join", line, "--as", role, *host.ways)
    organiser.start("event", "open", "essay", "--yes")
    told = [host.line() for host in hosts[:3]]
    assert [each["role"] for each in told] == [*ROLES[:3]]

    # One line is for one host, and one host for one part; a changed line is none.
    other = hosts[3]
    used = other.refused("join", lines[0], "--as", "bistro", *other.ways)
    assert f"the invitation was used by {hosts[0].url}" in used
    assert "event invite" in used
    fresh = lines[3]
    changed = fresh[:60] + ("A" if fresh[60] != "A" else "B") + fresh[61:]
    said = other.refused("join", changed, "--as", "bistro", "--folder", "c", *other.ways)
    assert "the invitation is damaged" in said
    twice = hosts[0].refused(
        *("join", fresh, "--as", "bistro", "--folder", "again"),
        *("--address", f"{hosts[0].name}:{free_port()}", *hosts[0].ways[4:]),
    )
    assert "has joined as witness: a host with two roles can lie in both" in twice
    own = organiser.refused(
        *("join", fresh, "--as", "bistro", "--folder", "own"),
        *("--address", f"{organiser.name}:{free_port()}", *organiser.ways[4:]),
    )
    assert "is the organiser's own host" in own

    # What was refused has used nothing up.
    began_s = time.monotonic()
    for host, line, role in zip(hosts[3:], lines[3:], ROLES[3:], strict=True):
        host.start("join", line, "--as", role, "--folder", "part", *host.ways)
        assert host.line()["role"] == role
    opened = organiser.line()
    for host in hosts:
        host.line()  # its server is ready
    _taken_s, _load = time.monotonic() - began_s, os.getloadavg()[0]
    folder = organiser.folder / "essay"
    event = read_event((folder / "event.toml").read_bytes())
    assert (opened["url"], opened["event"]) == (organiser.url, event.id.hex())
    assert (len(event.witnesses), event.quorum, event.alone) == (2, 2, False)
    assert {each["fingerprint"] for each in told} <= {
        line[:19] for line in (organiser.folder / "said").read_text().splitlines()
    }
    unit = (hosts[0].folder / "witness/datacollect-witness.service").read_text()
    assert "witness witness.toml" in unit

    for person in ("ann", "bob"):
        own_folder = tmp_path / person
        own_folder.mkdir()
        (own_folder / "essay.txt").write_text(f"by {person}")
        ticket = folder / f"tickets/{person}.ticket"
        done = dc.upload(own_folder / "essay.txt", folder / "event.toml", ticket=ticket)
        assert done.files[0].outcome == "in time", done
    collected = hosts[4].folder / "part/collected"
    until_s = time.monotonic() + COLLECTED_S
    standing = None
    while time.monotonic() < until_s:
        if (collected / "status.json").exists():
            standing = read_standing(collected)
            if standing.collected == 2:
                break
        time.sleep(0.5)
    assert standing is not None
    assert (standing.collected, standing.lies) == (2, ())
    # It was given no ticket, and says whose each file is all the same.
    assert not [*hosts[4].folder.rglob("*.ticket"), *hosts[4].folder.rglob("*.link")]
    said = subprocess.run(
        [sys.executable, "-m", "datacollect", "event", "list", "part/destination.toml", "--json"],
        cwd=hosts[4].folder,
        capture_output=True,
        text=True,
        check=False,
    )
    people = {each["person"]: each["state"] for each in json.loads(said.stdout)["people"]}
    assert people == {"ann": "collected", "bob": "collected"}
    for each in (organiser, *hosts):
        each.end()
