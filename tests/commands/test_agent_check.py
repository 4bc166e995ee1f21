"""``datacollect agent check``: the agent of a file answers where it listens, under its name."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager, suppress

import pytest
from instances.agents import running, write_agent
from instances.ports import free_port

from datacollect import agent_alone
from datacollect.commands.main import run
from datacollect.net.tls import server_context


def at_its_port(path, port):
    path.write_text(path.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    return path


@contextmanager
def answering(path, answer):
    """A server with the agent's own certificate, that gives one answer and then says no more."""
    certificate, key = path.with_suffix(".cert.pem"), path.with_suffix(".key.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:
        at_its_port(path, server.getsockname()[1])

        def serve():
            connection, _ = server.accept()
            context = server_context(certificate, key)
            with (
                connection,
                suppress(OSError),  # who waits no longer hangs up
                context.wrap_socket(connection, server_side=True) as tls,
            ):
                tls.recv(65536)
                tls.sendall(answer)
                tls.recv(65536)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            thread.join()


@pytest.fixture
def agent_file(tmp_path):
    """An agent's file whose certificate was made, by a start that has ended."""
    path = at_its_port(write_agent(tmp_path, "S1", serve="data"), free_port())
    with running(path):
        pass
    return path


@pytest.mark.parametrize("program", ["whole", "alone"])
def test_an_agent_that_runs_is_found_by_its_name_and_certificate(tmp_path, program, capsys):
    path = at_its_port(write_agent(tmp_path, "S1", serve="data"), free_port())
    check = agent_alone.run if program == "alone" else lambda words: run(["agent", *words])
    with running(path) as agent:
        assert check(["check", str(path), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert check(["check", str(path)]) == 0
        said = capsys.readouterr().out
    expected = {"name": "S1", "url": f"https://{agent.place}", "serves": True, "relays_to": []}
    assert {key: facts[key] for key in expected} == expected
    assert said == f"S1 answers at https://{agent.place}\n"


def test_where_it_listens_everywhere_loopback_is_asked(tmp_path, capsys):
    path = write_agent(tmp_path, "S1", serve="data")
    path.write_text(path.read_text().replace("127.0.0.1:0", f"0.0.0.0:{free_port()}"))
    with running(path):
        assert run(["agent", "check", str(path)]) == 0
    assert "S1 answers at https://127.0.0.1:" in capsys.readouterr().out


def test_who_does_not_run_is_not_found(agent_file, capsys):
    assert run(["agent", "check", str(agent_file)]) == 3
    assert "S1: cannot be reached at 127.0.0.1:" in capsys.readouterr().err


def test_another_agent_at_its_port_is_none(tmp_path, agent_file, capsys):
    other = write_agent(tmp_path, "S2", serve="more")
    with running(other) as agent:
        text = agent_file.read_text()
        port = text.split("127.0.0.1:")[1].split('"')[0]
        agent_file.write_text(text.replace(port, str(agent.address[1])))
        assert run(["agent", "check", str(agent_file)]) == 3
    assert "its certificate must have the fingerprint sha256:" in capsys.readouterr().err


def test_an_agent_of_another_name_with_its_certificate_is_none(tmp_path, capsys):
    path = at_its_port(write_agent(tmp_path, "S1", serve="data"), free_port())
    with running(path):
        path.write_text(path.read_text().replace('name = "S1"', 'name = "S9"'))
        assert run(["agent", "check", str(path)]) == 3
    assert "agent 'S9' calls itself 'S1'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "503"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "did an agent answer?"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "has 99999999 bytes, the limit"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "longer than 0.2 s"),
    ],
)
def test_what_answers_otherwise_is_no_agent(tmp_path, answer, message, capsys, monkeypatch):
    if "longer" in message:  # others are waited for as long as they take
        monkeypatch.setattr("datacollect.commands.agent_work.CHECK_S", 0.2)
    path = write_agent(tmp_path, "S1", serve="data")
    with running(path):
        pass
    with answering(path, answer):
        assert run(["agent", "check", str(path)]) == 3
    assert message.replace("longer than 0.2 s", "0.2 s") in capsys.readouterr().err


def test_a_port_that_is_chosen_at_each_start_cannot_be_asked(tmp_path, capsys):
    path = write_agent(tmp_path, "S1", serve="data")
    assert run(["agent", "check", str(path)]) == 2
    assert "listen must name a port, got '127.0.0.1:0'" in capsys.readouterr().err


def test_who_was_never_started_has_no_certificate(tmp_path, capsys):
    path = at_its_port(write_agent(tmp_path, "S1", serve="data"), 7443)
    assert run(["agent", "check", str(path)]) == 2
    assert "S1.cert.pem: no such file; start the agent" in capsys.readouterr().err
