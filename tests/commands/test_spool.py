"""``datacollect spool``: what waits at an agent, whether it runs or not."""

import json
import time

import pytest
from instances.agents import running, write_agent

from datacollect import agent_alone
from datacollect.commands.main import run
from datacollect.files.held_folder import Held
from datacollect.transfer.spool.sealing import SealedPiece
from datacollect.transfer.spool.store import SpoolStore


@pytest.fixture
def agent_file(tmp_path):
    more = 'spool = { folder = "spool", bytes = 1_000_000 }'
    path = write_agent(tmp_path, "K", connect_to={"S": "127.0.0.1:9"}, more=more)
    store = SpoolStore(Held(tmp_path / "spool"), "K", 10**6)
    now_s = time.time()
    for name in ("c1", "c2"):
        number = store.order("ed25519:x", name, now_s + 7200, now_s)
        for i in range(3):
            piece = SealedPiece("S", i, bytes(32), 936)
            store.wait(store.add(number, piece, bytes(1000)), now_s - 60)
    store.close()
    return path


@pytest.mark.parametrize("program", [run, agent_alone.run])
def test_it_says_what_waits_since_and_until_when(program, agent_file, capsys):
    assert program(["spool", "list", str(agent_file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["c1: 3 pieces", "c2: 3 pieces"]
    assert "kept for 2 h" in lines[0] or "kept for 1 h" in lines[0]
    assert program(["spool", "list", str(agent_file), "--collection", "c2", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["collections"]
    assert (found["collection"], found["pieces"], found["bytes"]) == ("c2", 3, 3000)


@pytest.mark.parametrize("program", [run, agent_alone.run])
def test_lines_fit_80_columns_and_what_is_empty_is_called_as_it_was_given(
    program, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    more = 'spool = { folder = "spool", bytes = 1_000_000 }'
    write_agent(tmp_path, "K", connect_to={"S": "127.0.0.1:9"}, more=more)
    assert program(["spool", "list", "K.toml"]) == 0
    assert capsys.readouterr().out == "K.toml: the agent's spool is empty\n"
    now_s = time.time()
    store = SpoolStore(Held(tmp_path / "spool"), "K", 10**6)
    number = store.order("ed25519:x", "3f0c2a9d51e6b784", now_s + 9e4, now_s)
    store.wait(store.add(number, SealedPiece("S", 0, bytes(32), 936), bytes(1000)), now_s - 5000)
    store.close()
    assert program(["spool", "list", "K.toml"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3f0c2a9d51e6b784: 1 piece, 1 kB, the oldest of 1 h")
    assert max(map(len, out.splitlines())) <= 80


def test_it_drops_one_collection_and_then_all(agent_file, tmp_path, capsys):
    assert run(["spool", "drop", str(agent_file), "--collection", "c1"]) == 0
    assert capsys.readouterr().out == "dropped 3 pieces, 3 kB\n"
    assert run(["spool", "list", str(agent_file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "c1: 0 pieces, 0 B; 3 pieces were dropped, 2.808 kB"
    assert run(["spool", "drop", str(agent_file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"pieces": 3, "bytes": 3000}
    assert not list((tmp_path / "spool").rglob("*.segment"))


def test_it_works_beside_the_agent(agent_file, tmp_path, capsys):
    with running(agent_file):
        assert run(["spool", "list", str(agent_file)]) == 0
        assert run(["spool", "drop", str(agent_file)]) == 0
        assert capsys.readouterr().out.endswith("dropped 6 pieces, 6 kB\n")
        assert not list((tmp_path / "spool").rglob("*.segment"))


def test_an_unknown_collection_and_an_agent_without_a_spool_are_bad_input(
    agent_file, tmp_path, capsys
):
    assert run(["spool", "drop", str(agent_file), "--collection", "c3"]) == 2
    assert "got 'c3'; `datacollect spool list` names them" in capsys.readouterr().err
    path = write_agent(tmp_path, "L", connect_to={"S": "127.0.0.1:9"})
    assert run(["spool", "list", str(path)]) == 2
    assert "the agent keeps nothing; give it room" in capsys.readouterr().err
