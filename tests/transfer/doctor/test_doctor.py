"""The doctor: what it finds of collections and agents, and what peers cannot make it do."""

from __future__ import annotations

import json
import math
import os
import re
import time
from pathlib import Path

import pytest
from instances.agents import KEY, running, write_agent
from instances.ports import closed_port
from instances.tunnels import service
from transfer.pull.lying_agent import LyingAgent

from datacollect.commands.main import run
from datacollect.net.keys import new_private_key, write_private_key
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.dial_back import PATH, dial_back_handler
from datacollect.transfer.doctor import host_checks, patient
from datacollect.transfer.doctor.checks import DOCTOR_CHECKS, Level, examine
from datacollect.transfer.doctor.patient import Patient
from datacollect.transfer.pull.config.file import Collection

CHECKS = [
    *("keys", "ports", "other side", "fingerprints", "tickets", "served", "listening"),
    *(
        "dial back",
        "clocks",
        "files",
        "room",
        "buffers",
        "congestion",
        "versions",
        "tests between hosts",
    ),
]
FACTS = {"format": "datacollect-agent-facts/1", "name": "S1", "version": "0", "serves": True}


@pytest.fixture
def soon(monkeypatch):
    """Take this where somebody says nothing: all that is to come would be there by then."""
    monkeypatch.setattr(patient, "WITHIN_S", 3.0)


@pytest.fixture
def lying(tmp_path):
    """Return a function that starts an agent which lies; all end with the test."""
    started = []

    def start(name="S1", **lies):
        started.append(LyingAgent(name, tmp_path, {"a": b"x"}, **lies))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def port():
    """Nobody listens there."""
    with closed_port() as port:
        yield port


def collection_of(tmp_path, *agents, **more):
    if not (tmp_path / "key").exists():
        write_private_key(tmp_path / "key", new_private_key())
    tree = {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "key",
        "agents": {agent.name: agent.entry for agent in agents},
    }
    return tree | more


def found(tmp_path, tree, check=None):
    """Return what is found that is not good, by check and what was looked at."""
    sick = Patient("c.toml", tmp_path, collection=Collection.from_dict(tree, tmp_path))
    return of(sick, check)


def of(sick, check=None):
    return {
        (name, finding.what): finding
        for name, finding in examine(sick)
        if (finding.level is not Level.GOOD if check is None else name == check)
    }


def stops(findings):
    return [key for key, finding in findings.items() if finding.level is Level.STOPS]


def test_each_of_its_checks_is_registered():
    assert list(DOCTOR_CHECKS.names()) == CHECKS


def test_of_what_works_nothing_stops_and_all_is_told(tmp_path, lying):
    tree = collection_of(tmp_path, lying())
    findings = found(tmp_path, tree)
    # The agent of the test has another version than ours.
    assert [name for name, _ in findings] == ["versions"]
    assert stops(findings) == []


def test_each_finding_says_what_is_wanted_and_what_mends_it(tmp_path, lying, port):
    """Three that are away, another certificate, a key that is not known, a clock that is wrong."""
    key = "ab" * 32
    tree = collection_of(
        tmp_path,
        lying("S1", refuses=401),
        lying("S2", ahead_s=300.0),
        lying("S3", called="S9"),
        lying("S4"),
    )
    tree["agents"] |= {
        "gone": {"url": f"https://127.0.0.1:{port}", "fingerprint": f"sha256:{key}"},
        "nowhere": {"url": "https://no.such.host.invalid:1", "fingerprint": f"sha256:{key}"},
    }
    tree["agents"]["S4"] = tree["agents"]["S4"] | {"fingerprint": f"sha256:{key}"}
    findings = found(tmp_path, tree)
    assert set(stops(findings)) == {
        ("ports", f"gone at 127.0.0.1:{port}"),
        ("ports", "nowhere at no.such.host.invalid:1"),
        ("fingerprints", "name of S3"),
        ("fingerprints", "certificate of S4"),
        ("tickets", "our key at S1"),
    }
    for finding in findings.values():
        assert finding.wanted
        assert finding.remedy
    # As far off as it is, but for what the way to it adds, on a machine that is busy.
    assert float(findings["clocks", "clock of S2"].found.split()[0]) == pytest.approx(300, abs=30)
    assert findings["fingerprints", "certificate of S4"].wanted == f"sha256:{key}"
    assert "collectors of S1's file" in findings["tickets", "our key at S1"].remedy


def test_a_relay_dials_the_others_and_what_it_reaches_stops_nothing(tmp_path, lying, port):
    """S1 is reached over K alone; K reaches nobody at S2's place, which is reached directly."""
    far = lying("S1")
    near = lying("S2")
    relay = lying("K", connect_to={"S1": far.address, "S2": ("127.0.0.1", port)})
    tree = collection_of(tmp_path, far, near, relay)
    tree["agents"]["S1"] = far.entry | {"url": f"https://127.0.0.1:{port}"}
    findings = found(tmp_path, tree)
    assert stops(findings) == []
    assert (
        findings["ports", f"S1 at 127.0.0.1:{port}"].remedy == "nothing, if all is to come over K"
    )
    assert findings["other side", "S2, dialled by K"].level is Level.NOTE
    assert ("other side", "S1, dialled by K") not in findings


def test_a_served_folder_that_is_gone_stops_a_pull_and_comes_first(tmp_path):
    """The agent began with it; one that only relays stops a pull that wants it."""
    write_private_key(tmp_path / "key", KEY)
    serving = write_agent(tmp_path, "S1", serve="data")
    with (
        running(serving) as s1,
        running(write_agent(tmp_path, "K", connect_to={"S1": s1.place})) as k,
    ):
        agents = {
            each.name: {"url": each.agent.url, "fingerprint": each.agent.fingerprint}
            for each in (s1, k)
        }
        tree = collection_of(tmp_path) | {"agents": agents, "sources": {"S1": {}, "K": {}}}
        before = found(tmp_path, tree)
        assert stops(before) == [("served", "folder of K")]
        assert before["served", "folder of K"].remedy.endswith("or take K out of sources")
        (tmp_path / "data").rmdir()
        sick = Patient("c.toml", tmp_path, collection=Collection.from_dict(tree, tmp_path))
        rows = examine(sick)
    levels = [finding.level for _, finding in rows]
    assert levels == sorted(levels, key=[Level.STOPS, Level.NOTE, Level.GOOD].index)
    gone = {finding.what: finding for _, finding in rows}["folder of S1"]
    assert "the folder that is served is lost" in gone.found
    assert gone.remedy == "put it back on the host of S1, and restart the agent there"


def test_a_way_over_a_relay_is_mended_where_it_is_broken(tmp_path, lying, port):
    """S1 is away altogether, S2 from K alone."""
    near = lying("S2")
    nobody = ("127.0.0.1", port)
    relay = lying("K", connect_to={"S1": nobody, "S2": nobody})
    tree = collection_of(tmp_path, near, relay)
    tree["agents"]["S1"] = near.entry | {"url": f"https://127.0.0.1:{port}"}
    findings = found(tmp_path, tree)
    assert findings["other side", "S1, dialled by K"].remedy.startswith("start S1 on its host")
    assert findings["other side", "S2, dialled by K"].remedy.startswith("S2 answers from here")


# Hostile peers -------------------------------------------------------------------------------


def silent(connection):
    connection.settimeout(5)
    while connection.recv(65536):
        pass


def dripping(connection):
    for _ in range(100):
        connection.sendall(b"\x16")
        time.sleep(0.05)


def chattering(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n\x1b[31m" * 1000)


@pytest.mark.parametrize("serve", [silent, dripping, chattering])
def test_who_is_no_agent_is_named_in_time(tmp_path, serve, soon):
    with service(serve) as place:
        entry = {"url": f"https://{place}", "fingerprint": f"sha256:{'ab' * 32}"}
        tree = collection_of(tmp_path, agents={"S1": entry})
        findings = found(tmp_path, tree)
    assert stops(findings) == [("fingerprints", "certificate of S1")]
    assert "\x1b" not in findings["fingerprints", "certificate of S1"].found


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        (b"[" * 100_000, "certificate of S1"),
        (json.dumps(FACTS | {"time_s": "now"}).encode(), "certificate of S1"),
        (b"x" * 2**21, "certificate of S1"),
        (
            json.dumps(
                FACTS | {"time_s": 1, "relays_to": [], "name": "\x1b[31m" + "S" * 9000}
            ).encode(),
            "name of S1",
        ),
    ],
    ids=["deep", "words", "long", "name"],
)
def test_what_an_agent_says_of_itself_is_believed_only_as_far_as_it_goes(
    tmp_path, lying, monkeypatch, facts, what
):
    agent = lying()
    real = agent._answer
    answer = lambda target, body: (  # noqa: E731
        (200, facts) if target == "/v1/agent" else real(target, body)
    )
    monkeypatch.setattr(agent, "_answer", answer)
    findings = found(tmp_path, collection_of(tmp_path, agent))
    assert ("fingerprints", what) in stops(findings)
    assert all(
        text.isprintable() and len(text) <= 300
        for each in findings.values()
        for text in (each.what, each.found, each.wanted)
    )


def test_one_that_names_thousands_to_relay_to_is_asked_about_ours_alone(tmp_path, lying):
    names = {f"X{n}": ("127.0.0.1", 1) for n in range(5000)}
    tree = collection_of(tmp_path, lying("K", connect_to=names))
    assert found(tmp_path, tree, "other side") == {}


# This host -----------------------------------------------------------------------------------


def test_who_may_read_the_key_is_said(tmp_path, lying, monkeypatch):
    tree = collection_of(tmp_path, lying())
    (tmp_path / "key").chmod(0o644)
    finding = found(tmp_path, tree)["keys", f"key {tmp_path}/key"]
    assert (finding.level, finding.wanted) == (Level.NOTE, "mode 0600")
    # Where systemd has put it one service alone may look.
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert ("keys", f"key {tmp_path}/key") not in found(tmp_path, tree)
    (tmp_path / "key").unlink()
    assert ("keys", f"key {tmp_path}/key") in stops(found(tmp_path, tree))


def test_a_folder_that_cannot_be_written_and_a_full_disk_stop_it(tmp_path, lying, monkeypatch):
    tree = collection_of(tmp_path, lying(), limits={"spare_bytes": 10**18})
    finding = found(tmp_path, tree)["room", f"room in {tmp_path}"]
    assert (finding.level, finding.wanted) == (Level.STOPS, "1000 PB beside what is to come")
    tree = collection_of(tmp_path, lying("S2"))
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    assert ("room", f"room in {tmp_path}") in stops(found(tmp_path, tree))


def test_a_folder_that_is_not_there_yet_is_looked_at_where_it_will_be(tmp_path, lying):
    tree = collection_of(tmp_path, lying())
    sick = Patient("c", tmp_path / "a" / "b", collection=Collection.from_dict(tree, tmp_path))
    [finding] = of(sick, "room").values()
    assert finding.level is Level.GOOD


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """What the kernel says, in files that tests may change."""
    folder = tmp_path / "ipv4"
    folder.mkdir()
    (folder / "tcp_rmem").write_text("4096\t131072\t1000000\n")
    (folder / "tcp_wmem").write_text("4096\t131072\t1000000\n")
    (folder / "tcp_congestion_control").write_text("reno\n")
    monkeypatch.setattr(host_checks, "KERNEL", folder)
    return folder


def test_buffers_are_held_against_rate_times_round_trip(tmp_path, lying, kernel, monkeypatch):
    """Half of 1 MB under way in 100 ms is 5 MB/s; the link has 50 MB/s, for which 10 MB do."""
    monkeypatch.setattr(patient, "_rtt_s", lambda _: 0.1)
    link = {"from": "S1", "to": "D", "bandwidth_bytes_per_s": 50e6}
    tree = collection_of(tmp_path, lying(), links=[link])
    finding = found(tmp_path, tree)["buffers", "tcp_rmem for S1"]
    assert finding.found == "1 MB: 40 Mbit/s a connection"
    assert finding.wanted == "10 MB for 400 Mbit/s over 100 ms"
    assert "10000000'" in finding.remedy
    assert "10 connections" in finding.remedy
    (kernel / "tcp_rmem").write_text("4096\t131072\t10000000\n")
    assert ("buffers", "tcp_rmem for S1") not in found(tmp_path, tree)


def test_reno_is_named_where_the_way_is_long(tmp_path, lying, kernel, monkeypatch):
    """Mathis et al.: 1448 B / 0.1 s * sqrt(1.5 / 1e-4) is 1.77 MB/s."""
    monkeypatch.setattr(patient, "_rtt_s", lambda _: 0.1)
    tree = collection_of(tmp_path, lying())
    finding = found(tmp_path, tree)["congestion", "congestion control to S1"]
    rate = 8 * 1448 / 0.1 * math.sqrt(1.5e4) / 1e6
    assert f"{rate:.4g} Mbit/s" in finding.found
    (kernel / "tcp_congestion_control").write_text("cubic\n")
    assert ("congestion", "congestion control to S1") not in found(tmp_path, tree)
    monkeypatch.setattr(patient, "_rtt_s", lambda _: 0.001)
    (kernel / "tcp_congestion_control").write_text("reno\n")
    assert ("congestion", "congestion control to S1") not in found(tmp_path, tree)


def test_limits_of_open_files_are_held_against_connections(tmp_path, lying, monkeypatch):
    monkeypatch.setattr(host_checks.resource, "getrlimit", lambda _: (100, 100))
    finding = found(tmp_path, collection_of(tmp_path, lying()))["files", "files that may be open"]
    assert (finding.found, finding.wanted) == ("100", "115 for 16 connections")


# Agents --------------------------------------------------------------------------------------


def agent_of(path):
    config = AgentConfig.from_file(path)
    return Patient(path.name, path.parent, agent=config)


def test_an_agent_of_connect_to_dials_back(tmp_path):
    """K connects to S1 at a port where nobody listens, then at the one that S1 has."""
    served = write_agent(tmp_path, "S1", serve="data", connect_to={"K": "127.0.0.1:1"})
    with running(served) as s1:
        places = {"S1": ("127.0.0.1", 1), "X": ("192.0.2.1", 7443)}
        handlers = {PATH: dial_back_handler(places)}
        with running(write_agent(tmp_path, "K", connect_to={"S1": "127.0.0.1:1"}), handlers) as k:
            text = served.read_text().replace("127.0.0.1:1", k.place)
            served.write_text(text)
            what = "this host, dialled by K as S1"
            finding = of(agent_of(served), "dial back")["dial back", what]
            assert finding.level is Level.NOTE
            assert "K's file" in finding.remedy
            places["S1"] = s1.address
            finding = of(agent_of(served), "dial back")["dial back", what]
            assert (finding.level, finding.found) == (Level.GOOD, "reached")
            places.pop("S1")
            [finding] = of(agent_of(served), "dial back").values()
            assert "names no host at our address" in finding.found


def test_who_asks_to_be_dialled_back_all_the_time_is_refused(tmp_path):
    answers = []

    class Exchange:
        method, address = "GET", "127.0.0.1"

        def answer(self, status, headers=(), body=b""):
            answers.append((status, body))

    handle = dial_back_handler({"X": ("192.0.2.1", 1)})
    for _ in range(8):
        handle(Exchange())
    assert [status for status, _ in answers] == [200] * 5 + [429] * 3
    # Nobody at another's address is dialled.
    assert answers[0][1] == b'{"rows": []}'


def test_an_agent_finds_itself_or_who_has_its_port(tmp_path):
    path = write_agent(tmp_path, "S1", serve="data")
    with running(path) as agent:
        text = path.read_text()
        path.write_text(text.replace("127.0.0.1:0", agent.place))
        [finding] = of(agent_of(path), "listening").values()
        assert finding.found == f"answers; its fingerprint is {agent.agent.fingerprint}"
        other = tmp_path / "S2.toml"
        other.write_text(path.read_text().replace('"S1"', '"S2"'))
        assert [name for name, _ in stops(of(agent_of(other)))] == ["listening"]
    [finding] = of(agent_of(path), "listening").values()
    assert (finding.found, finding.level) == ("nobody listens", Level.NOTE)


def test_what_tools_of_tests_need_is_looked_at_by_their_wing(tmp_path, monkeypatch):
    more = f'[measure]\noperators = ["{KEY.public}"]\nbytes_per_hour = 1000'
    path = write_agent(tmp_path, "S1", serve="data", more=more)
    monkeypatch.setenv("PATH", str(tmp_path))
    findings = of(agent_of(path), "tests between hosts")
    assert {what for _, what in findings} == {"tool trace", "tool pairs"}
    assert all(each.level is Level.NOTE for each in findings.values())


# The command ---------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path, lying, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree = collection_of(tmp_path, lying())
    Path("c.json").write_text(json.dumps(tree))
    return tree


def test_the_command_says_what_stops_and_exits_by_it(written, capsys):
    assert run(["doctor", "c.json", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["kind"], said["stops"]) == ("collection", False)
    assert {line["check"] for line in said["lines"]} >= {"keys", "ports", "clocks", "room"}
    assert all(
        line.keys() == {"check", "level", "what", "found", "wanted", "remedy"}
        for line in said["lines"]
    )
    Path("key").unlink()
    assert run(["doctor", "c.json"]) == 1
    out = capsys.readouterr().out
    assert "stops  key key: no such file" in out
    assert max(map(len, out.splitlines())) <= 80


def test_verbose_says_how_long_it_looked_and_quiet_leaves_the_answer_alone(written, capsys):
    assert run(["doctor", "c.json", "-v"]) == 0
    assert re.search(r"\d\.\d s: looking", capsys.readouterr().err)
    assert run(["doctor", "c.json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out
    assert err == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "datacollect-problem/1"}', "the doctor checks collections and agents"),
        ("[]", "the doctor checks collections and agents"),
        ("{", "c.json"),
    ],
)
def test_what_is_neither_is_bad_input(written, capsys, text, message):
    Path("c.json").write_text(text)
    assert run(["doctor", "c.json"]) == 2
    assert message in capsys.readouterr().err
    assert run(["doctor", "gone.toml"]) == 2
    assert run(["doctor", "-"]) == 2
