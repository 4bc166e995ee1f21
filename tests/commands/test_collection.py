"""A host is added to a collection by one command at each end, and its files arrive."""

from __future__ import annotations

import io
import json
import re
import sys
from types import SimpleNamespace

import pytest
from instances.agents import running
from instances.ports import free_port

from datacollect.commands.main import run


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(bytes(range(256)) * 300)
    return tmp_path


def test_one_command_at_each_end_and_every_byte_arrives(here, capsys):
    assert run(["collection", "new"]) == 0
    public = capsys.readouterr().out.strip()
    place = f"127.0.0.1:{free_port()}"
    init = ["agent", "init", "--name", "S1", "--serve", "data", "--collector", public]
    assert run([*init, "--listen", place]) == 0
    line = capsys.readouterr().out
    assert re.fullmatch(rf"S1 https://{re.escape(place)} sha256:[0-9a-f]{{64}}\n", line)
    # In quotes, as whoever pastes a line may write it.
    assert run(["collection", "add", line.strip()]) == 0
    assert capsys.readouterr().out == "S1 added to collection.toml\n"
    with running(here / "S1.toml"):
        assert run(["pull", "collection.toml", "--into", "got", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["complete"]
    assert (here / "got/S1/file").read_bytes() == (here / "data/file").read_bytes()


def test_lines_come_out_of_a_pipe(here, capsys, monkeypatch):
    assert run(["collection", "new", "-o", "c.toml"]) == 0
    lines = "".join(f"S{i} https://s{i}.example:7443 sha256:{'0' * 64}\n" for i in range(3))
    pipe = io.BytesIO(lines.encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe, isatty=lambda: False))
    capsys.readouterr()
    assert run(["collection", "add", "-", "--to", "c.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == ["S0", "S1", "S2"]


def test_a_relay_beside_named_sources_is_told(here, capsys):
    assert run(["collection", "new"]) == 0
    with (here / "collection.toml").open("a") as file:
        file.write("[sources.S1]\n")
    for name in ("S1", "R"):
        capsys.readouterr()
        place = f"https://{name.lower()}.example:7443"
        code = run(["collection", "add", name, place, f"sha256:{'0' * 64}"])
        said = capsys.readouterr().err
        if name == "S1":
            assert (code, said) == (0, "")
    assert code == 0
    assert said == "R only relays: [sources] of collection.toml does not name it\n"


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (["S2"], "--relay-to must be NAME=HOST:PORT, got 'S2'"),
        (["S2=a.example:1", "S2=b.example:1"], "--relay-to names 'S2' twice"),
        (["S2=a.example"], "connect_to.S2 must be HOST:PORT"),
    ],
)
def test_places_that_are_none(here, capsys, places, message):
    given = [word for place in places for word in ("--relay-to", place)]
    key = "ed25519:O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik="
    init = ["agent", "init", "--name", "R", "--collector", key, "--address", "r.example"]
    assert run([*init, *given]) == 2
    assert message in capsys.readouterr().err
    assert not (here / "R.toml").exists()


def test_an_agents_file_may_have_a_commands_name(here, capsys):
    assert run(["agent", "init.toml"]) == 2
    assert "init.toml: no such file" in capsys.readouterr().err
    assert run(["agent", "run", "init"]) == 2
    assert "init: no such file" in capsys.readouterr().err
    assert run(["agent", "--json", "gone.toml"]) == 2
    assert "gone.toml: no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "fingerprint", "rule"),
    [
        ("https://a:7443", "sha256:1234", "must be sha256: and 64 lowercase hexadecimal digits"),
        ("https://a:99999", f"sha256:{'0' * 64}", "with a port of 1 to 65535"),
    ],
    ids=["fingerprint", "port"],
)
def test_words_are_looked_at_before_what_is_there(here, capsys, address, fingerprint, rule):
    assert run(["collection", "new"]) == 0
    assert run(["collection", "add", "A", "https://a:7443", f"sha256:{'0' * 64}"]) == 0
    capsys.readouterr()
    assert run(["collection", "add", "A", address, fingerprint]) == 2
    said = capsys.readouterr().err
    assert rule in said
    assert "--force" not in said
