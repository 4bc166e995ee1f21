"""``datacollect agent`` as a process: ready, signals, its end, what it says of bad files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from instances.agents import source_ticket, write_agent

from datacollect.commands.main import run
from datacollect.errors import RefusedError, TransferError
from datacollect.net.tls import client_context
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.run import Agent, run_agent
from datacollect.transfer.sources.agent.session import connect

WAIT_S = 300


@contextmanager
def started(path: Path, *options: str):
    """Run an agent's process; yield it and its first line."""
    command = [sys.executable, "-m", "datacollect", "agent", str(path), *options]
    log = path.with_suffix(".log")
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def session_at(line: str):
    facts = json.loads(line)
    host, _, port = facts["url"].removeprefix("https://").rpartition(":")
    context, fingerprint = client_context(), facts["fingerprint"]
    return connect([], facts["name"], (host, int(port)), context, fingerprint, timeout_s=WAIT_S)


def ask_on(session) -> None:
    for _ in range(10_000):
        session.inventory()


def records(path: Path, what: str) -> list[dict]:
    lines = path.with_suffix(".log").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["what"] == what]


def test_it_says_when_it_is_ready_and_ends_when_told(tmp_path):
    path = write_agent(tmp_path, "S1", serve="data")
    with started(path, "--json") as (process, line):
        assert json.loads(line).keys() == {"name", "url", "fingerprint"}
        with session_at(line) as session:
            token = source_ticket("S1")
            assert session.inventory(token).files == ()
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
            assert process.stdout.read() == ""
            with pytest.raises(TransferError):
                session.inventory()
        assert token not in path.with_suffix(".log").read_text()
    # Its certificate stays: whoever has pinned it need not be told.
    with started(path) as (process, second):
        assert second.startswith("S1 is ready at https://127.0.0.1:")
        assert json.loads(line)["fingerprint"] in second


def test_whoever_hears_that_it_is_ready_may_send_signals(tmp_path):
    """Else the first would end it as signals do: in the middle, with another code than 0."""
    path = write_agent(tmp_path, "S1", serve="data")
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    said = []

    def note(line: str) -> None:
        said.append(line)
        if "collectors" in line:
            os.kill(os.getpid(), signal.SIGTERM)

    agent = Agent(AgentConfig.from_file(path), note)

    def ready() -> None:
        signal.raise_signal(signal.SIGHUP)

    try:
        run_agent(agent, ready)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each, handler in before.items():
            signal.signal(each, handler)
    assert [json.loads(line)["what"] for line in said] == ["collectors", "ending"]


@pytest.mark.slow
def test_sighup_withdraws_keys(tmp_path):
    path = write_agent(tmp_path, "S1", serve="data")
    with started(path, "--json") as (process, line), session_at(line) as session:
        session.inventory(source_ticket("S1"))
        path.write_text(path.read_text().replace("collectors = [", "collectors = [] # ["))
        process.send_signal(signal.SIGHUP)
        with pytest.raises(TransferError):
            ask_on(session)
        refused = pytest.raises(
            RefusedError, match=r"not one of the agent's collectors; write the public key .* SIGHUP"
        )
        with session_at(line) as other, refused:
            other.inventory(source_ticket("S1"))
        assert records(path, "collectors")[0]["n"] == 0


@pytest.mark.slow
def test_its_own_files_are_its_owners(tmp_path):
    path = write_agent(tmp_path, "S1", serve="data")
    with started(path, "--json") as (_, line):
        assert line
    modes = {p.name: p.stat().st_mode & 0o777 for p in tmp_path.glob("S1.*")}
    assert modes["S1.key.pem"] == modes["S1.nonces"] == 0o600


@pytest.mark.slow
def test_a_second_agent_with_the_same_file_is_refused(tmp_path, capsys):
    path = write_agent(tmp_path, "S1", serve="data")
    with started(path, "--json") as (_, line):
        assert line
        assert run(["agent", str(path)]) == 2
        assert "another agent that is running" in capsys.readouterr().err


@pytest.mark.slow
def test_a_port_that_is_taken(tmp_path, capsys):
    path = write_agent(tmp_path, "S1", serve="data")
    other = write_agent(tmp_path, "S2", serve="data")
    with started(path, "--json") as (_, line):
        port = json.loads(line)["url"].rpartition(":")[2]
        other.write_text(other.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
        assert run(["agent", str(other)]) == 2
        assert "Address already in use; stop the program that" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('tls = { certificate = "no", key = "no" }', "must be a certificate and its key"),
        ('congestion = "no such"', "congestion must be one that this kernel has"),
        ("serves = 1", "serves: unknown key"),
    ],
)
def test_files_that_cannot_be_carried_out(tmp_path, capsys, more, message):
    path = write_agent(tmp_path, "S1", serve="data", more=more)
    assert run(["agent", str(path)]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_a_folder_for_its_files_that_cannot_be_written(tmp_path, capsys):
    # A file where the agent would make one: even root cannot.
    path = write_agent(tmp_path, "S1", serve="data")
    (tmp_path / "S1.key.pem").mkdir()
    assert run(["agent", str(path)]) == 2
    assert "name another folder as state" in capsys.readouterr().err
