"""`datacollect measure hosts`: agents say who they are, and the file of hosts is written."""

from __future__ import annotations

import json
import socket
import threading

import pytest
from instances.agents import running, write_agent

from datacollect.measuring.plan.budget import Cost
from datacollect.measuring.plan.hosts_file import HostsFile


@pytest.fixture
def agents(tmp_path, monkeypatch):
    """Agents D and S, which know nobody's key but the collector's."""
    monkeypatch.chdir(tmp_path)
    files = [write_agent(tmp_path, name, serve="data") for name in "DS"]
    with running(files[0]) as one, running(files[1]) as other:
        yield one, other


def test_agents_are_asked_and_servers_are_taken_as_given(agents, call):
    urls = [f"https://{each.place}" for each in agents]
    options = ("--iperf3", "K=k.example:5201", "--key", "own.key", "-o", "HOSTS.toml")
    code, out, err = call("measure", "hosts", *urls, *options)
    assert code == 0
    found = HostsFile.from_file("HOSTS.toml")
    assert list(found.hosts) == ["K", "D", "S"]
    assert found.destination == "D"
    assert found.key.name == "own.key"
    assert found.hosts["K"] == ("k.example", 5201)
    for each in agents:
        entry = found.hosts[each.name]
        assert (entry.address, entry.fingerprint) == (each.address, each.agent.fingerprint)
        assert f"{each.name} https://{each.place} {each.agent.fingerprint}\n" in out
    assert "compare each fingerprint with the one that its agent prints" in " ".join(err.split())
    assert "`datacollect keys new` makes one" in " ".join(err.split())
    assert "iperf3 servers were not checked: the first test is the first" in " ".join(err.split())
    assert call("measure", "hosts", *urls, *options)[0] == 2  # it is there already


def test_json_names_all_and_without_o_the_file_is_the_answer(call, tmp_path):
    given = ("measure", "hosts", "--iperf3", "D=[::1]:5201", "--iperf3", "S=s.example:5201")
    code, out, err = call(*given, "--json")
    assert (code, "were not checked" in err) == (0, True)
    assert json.loads(out)["hosts"][0] == {"name": "D", "iperf3": "[::1]:5201"}
    (tmp_path / "HOSTS.toml").write_text(call(*given)[1])
    assert HostsFile.from_file(tmp_path / "HOSTS.toml").hosts["D"] == ("::1", 5201)


def test_who_measures_servers_is_the_destination(call, tmp_path, monkeypatch):
    """With an empty table: tests are between the servers and the host where they are asked for."""
    monkeypatch.chdir(tmp_path)
    given = ("--iperf3", "S=s.example:5201", "--destination", "me", "-o", "HOSTS.toml")
    assert call("measure", "hosts", *given)[:2] == (0, "S s.example:5201\nme\n")
    found = HostsFile.from_file("HOSTS.toml")
    assert found.hosts == {"S": ("s.example", 5201), "me": None}
    assert found.destination == "me"


def test_two_agents_of_one_name_are_refused(agents, call, tmp_path):
    (tmp_path / "other").mkdir()
    with running(write_agent(tmp_path / "other", "S", serve="data")) as third:
        urls = [f"https://{each.place}" for each in (*agents, third)]
        code, _, err = call("measure", "hosts", *urls)
    assert code == 2
    said = " ".join(err.split())
    both = f"{urls[1]} and {urls[2]}"
    assert f"two hosts are called 'S': {both}; rename one in its agent's file" in said


def test_an_agent_under_two_addresses_is_said_to_be_one(agents, call):
    urls = [f"https://{each.place}" for each in agents]
    again = urls[1].replace("127.0.0.1", "localhost")
    code, _, err = call("measure", "hosts", *urls, again)
    assert code == 2
    said = " ".join(err.split())
    assert f"{urls[1]} and {again} are the same agent, 'S', by its fingerprint; name it" in said


def test_a_server_with_the_name_of_an_agent_gets_another(agents, call):
    urls = [f"https://{each.place}" for each in agents]
    code, _, err = call("measure", "hosts", *urls, "--iperf3", "S=s.example:5201")
    assert code == 2
    said = " ".join(err.split())
    both = f"the agent {urls[1]} and --iperf3 S=s.example:5201"
    assert f"two hosts are called 'S': {both}; give the one of --iperf3 another name" in said


def test_a_destination_that_is_no_host_is_mended_by_an_option(agents, call, tmp_path):
    """D does not answer: that is said, too."""
    (tmp_path / "other").mkdir()
    with running(write_agent(tmp_path / "other", "T", serve="data")) as third:
        urls = [f"https://{each.place}" for each in (agents[1], third)]
        away = "https://127.0.0.1:1"
        code, _, err = call("measure", "hosts", *urls, away)
        said = " ".join(err.split())
        assert code == 2
        assert "one of the hosts, got 'D'; there are S, T: say which one with --destination" in said
        assert f"{away} is left out: cannot be reached: Connection refused; is its agent" in said
        assert said.count("127.0.0.1:1 ") == 1
        assert call("measure", "hosts", *urls, "--destination", "T")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "hosts must be at least two, got none; name more by the URLs of their agents, or by"),
        (["http://s.example:1"], "URL must be https://HOST:PORT"),
        (["--iperf3", "S"], "--iperf3 must be NAME=HOST:PORT, got 'S'"),
        (["--iperf3", "S=s:1", "--iperf3", "S=s:2"], "--iperf3 names 'S' twice; keep one"),
        (["--iperf3", "S=s:1", "--iperf3", "D=s:1"], "hosts.S and hosts.D are one host, s:1"),
        (["--iperf3", "S=s:1", "--destination", ""], "destination must not be empty"),
    ],
)
def test_wrong_input_is_two(arguments, expected, call):
    code, out, err = call("measure", "hosts", *arguments)
    assert (code, out) == (2, "")
    assert expected in " ".join(err.split())


def answering(data):
    """Return the URL of a server that sends this to whoever connects, and ends."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        with server, server.accept()[0] as connection:
            connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    return f"https://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\n\r\n", bytes(5000)])
def test_what_is_no_agent_is_named_and_nothing_is_written(data, call, tmp_path):
    url, file = answering(data), tmp_path / "HOSTS.toml"
    code, _, err = call("measure", "hosts", url, "-o", str(file))
    assert code == 3
    assert url.removeprefix("https://") in err
    assert "Traceback" not in err
    assert not file.exists()


def test_an_agent_that_does_not_answer_is_named_and_the_others_are_written(agents, call):
    urls = [f"https://{each.place}" for each in agents]
    silent = answering(b"")
    code, out, err = call("measure", "hosts", silent, *urls, "-o", "HOSTS.toml", "--json")
    assert code == 1
    found = HostsFile.from_file("HOSTS.toml")
    assert list(found.hosts) == ["D", "S"]
    said = json.loads(out)
    assert [each["name"] for each in said["hosts"]] == ["D", "S"]
    assert [each["url"] for each in said["failed"]] == [silent]
    assert f"{silent} is left out: " in " ".join(err.split())


def test_the_file_has_a_budget(agents, call):
    urls = [f"https://{each.place}" for each in agents]
    call("measure", "hosts", *urls, "-o", "usual.toml")
    assert HostsFile.from_file("usual.toml").budget == Cost(10**10, 3600.0)
    call("measure", "hosts", *urls, "-o", "own.toml", "--bytes", "2 GB", "--time", "10 min")
    assert HostsFile.from_file("own.toml").budget == Cost(2 * 10**9, 600.0)
    assert call("measure", "hosts", *urls, "--bytes", "much")[0] == 2
