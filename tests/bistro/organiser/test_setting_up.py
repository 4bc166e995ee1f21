"""An event set up by commands of which each needs only what those before it have made."""

from __future__ import annotations

import json
import tomllib

import pyrage
import pytest

from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.http.config import DestinationConfig, ServiceConfig, WitnessConfig
from datacollect.bistro.log_service.core import log_of
from datacollect.bistro.upload_server.server import Bistro
from datacollect.bistro.upload_server.table import accept_of
from datacollect.commands.main import run
from datacollect.net.tls import fingerprint_of_file
from datacollect.transfer.agent.config.file import AgentConfig

DRAFT = """
name = "Income tax 2026"
deadline = 2027-04-15T23:59:59-04:00
timezone = "America/New_York"
collect_until = 2027-04-30T23:59:59-04:00
keep_until = 2037-04-30T23:59:59-04:00
organiser = "{organiser}"
recipients = ["{recipient}"]
[verdicts]
key = "{verdicts}"
url = "https://destination.example:8443"
[[services]]
url = "https://log1.example"
key = "{service}"
{witnesses}
{bistros}
"""


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> str:
        code = run([*arguments])
        out, err = capsys.readouterr()
        assert code == 0, err
        return out.strip()

    return call


BISTRO = ("--name", "north", "--event", "tax.toml", "--bytes", "2 TB", "--address", "north.example")


def test_each_party_is_set_up_before_the_event_and_runs_by_it(said, tmp_path):
    keys = {name: said("keys", "new", f"{name}.key") for name in ("organiser", "service")}
    keys["verdicts"] = said("keys", "new", "verdicts.key")
    witnesses = "".join(
        f'[[witnesses]]\nurl = "https://{name}"\n'
        f'vkey = "{said("keys", "new", f"{name}.key", "--witness", name)}"\n'
        for name in ("w1.example", "w2.example", "w3.example")
    )
    collector = said("keys", "new", "collector.key")
    bistros = said("bistro", "init", *BISTRO, "--collector", collector)
    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "destination.txt").write_text(f"{identity}\n")
    recipient = str(identity.to_public())
    (tmp_path / "draft.toml").write_text(
        DRAFT.format(**keys, recipient=recipient, witnesses=witnesses, bistros=bistros)
    )
    new = said("event", "new", "draft.toml", "-o", "tax.toml", "--identity", "destination.txt")
    event = read_event((tmp_path / "tax.toml").read_bytes())

    # What each then runs by.
    [logs] = [line for line in new.splitlines() if line.startswith("logs = [")]
    listen = 'listen = "127.0.0.1:0"\n'
    (tmp_path / "witness.toml").write_text(
        'format = "datacollect-witness/1"\nname = "w1.example"\nkey = "w1.example.key"\n'
        f'folder = "signed"\n{listen}{logs}\n'
    )
    witness = WitnessConfig.from_file("witness.toml")
    (tmp_path / "service.toml").write_text(
        'format = "datacollect-service/1"\nevent = "tax.toml"\nkey = "service.key"\n'
        f'folder = "log"\n{listen}'
    )
    service = ServiceConfig.from_file("service.toml")
    assert {each.name for each in witness.logs} == {
        log_of(event, service.key).name,
        event.verdicts.name,
    }
    (tmp_path / "destination.toml").write_text(
        'format = "datacollect-destination/1"\nkey = "verdicts.key"\ncollector = "collector.key"\n'
        'identities = ["destination.txt"]\nfolder = "collected"\n'
    )
    assert DestinationConfig.from_file("destination.toml").key.public == keys["verdicts"]
    agent = AgentConfig.from_file("north.toml")
    assert agent.collectors == {collector}
    assert tomllib.loads((tmp_path / "north.toml").read_text())["accept"]["event"] == "tax.toml"
    assert event.bistros[0].fingerprint == fingerprint_of_file(agent.certificate)
    Bistro(accept_of(agent), lambda _: None).close()


def test_a_bistro_is_set_up_once_and_told_again(said, tmp_path):
    collector = said("keys", "new", "collector.key")
    init = ("bistro", "init", *BISTRO, "--collector", collector)
    first = said(*init)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert said(*init) == first
    [row] = tomllib.loads(first)["bistros"]
    assert row["url"] == "https://north.example:7443"
    assert json.loads(said(*init, "--json")) == {**row, "file": "north.toml"}
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_bistro_without_room_is_refused_and_nothing_is_written(said, tmp_path, capsys):
    collector = said("keys", "new", "collector.key")
    init = ["bistro", "init", *BISTRO, "--collector", collector]
    init[init.index("2 TB")] = "much"
    assert run(init) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "accept.bytes must be a whole number of bytes >= 1, got 'much'" in err
    assert [path.name for path in tmp_path.iterdir()] == ["collector.key"]
