"""Memory: lists of a million names, and sources that send as much as they can."""

import json
import subprocess
import sys
import threading
import time

import pytest
from instances.how_many import many
from transfer.hostile.grammar import case_by_words
from transfer.hostile.hostile_agent import MTIME_NS, HostileAgent
from transfer.hostile.judging import FILES, HEALTHY, OUTSIDE, Trial, data
from transfer.hostile.measured_pull import measured

from datacollect.net.keys import new_private_key, write_private_key
from datacollect.transfer.store.status import status_of

PAGE_NAMES = 10_000
HOSTILE_MB = 100.0
MILLIONS = many(2 * 10**6)


class ManyNames(HostileAgent):
    """Lists so many names, in folders of a thousand, of one byte each."""

    def __init__(self, name, folder, n_names, **more):
        self.n_names, self.is_listed = n_names, threading.Event()
        super().__init__(name, folder, {}, **more)

    def tree_of(self, request):
        if request.where != "inventory":
            return super().tree_of(request)
        after = request.query.get("after", [None])[0]
        begin = 0 if after is None else int(after.rsplit("/", 1)[1]) + 1
        end = min(begin + PAGE_NAMES, self.n_names)
        lines = [
            b'{"path":"d%07d/%010d","bytes":1,"mtime_ns":%d,"inode":%d,"mode":420}\n'
            % (i // 1000, i, MTIME_NS, i + 1)
            for i in range(begin, end)
        ]
        last = path_of(end - 1) if end < self.n_names else None
        if last is None:
            self.is_listed.set()
        return b"".join(lines) + json.dumps({"next": last}).encode() + b"\n"


def path_of(i):
    return f"d{i // 1000:07}/{i:010}"


def collection(key, *agents, **limits):
    return {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": str(key),
        "agents": {agent.name: agent.entry for agent in agents},
        "sources": {agent.name: {} for agent in agents},
        "limits": {"patience_s": 20.0, "timeout_s": 10.0} | limits,
    }


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "collector.key"
    write_private_key(path, new_private_key())
    return path


def listed_names(tmp_path, key, n_names):
    """Return what planning a pull of so many names took, beside a healthy source."""
    healthy, much = HostileAgent("S", tmp_path, HEALTHY), ManyNames("M", tmp_path, n_names)
    try:
        first, second = collection(key, healthy), collection(key, healthy, much)
        return measured(first, second, tmp_path, plan_only=True, within_s=580)
    finally:
        healthy.stop()
        much.stop()


@pytest.mark.slow
def test_thirty_thousand_names_are_listed(tmp_path, key):
    found = listed_names(tmp_path, key, 30_000)
    assert found["listed"], found
    assert found["grown_mb"] < 65, found


@pytest.mark.slow
def test_millions_of_names_are_listed(tmp_path, key):
    """Half a kilobyte a name at most."""
    found = listed_names(tmp_path, key, MILLIONS)
    assert found["listed"], found
    assert found["grown_mb"] < 50 + 500 * MILLIONS / 10**6, found


@pytest.mark.slow
def test_whoever_comes_after_millions_of_names_does_not_wait_for_them(tmp_path, key):
    """It is all there while files of those names still wait."""
    healthy, much = HostileAgent("S", tmp_path, HEALTHY), ManyNames("M", tmp_path, MILLIONS)
    healthy.stop()
    file, into = tmp_path / "collection.json", tmp_path / "into"
    file.write_text(json.dumps(collection(key, healthy, much, patience_s=120.0)))
    command = [sys.executable, "-m", "datacollect", "pull", file, "--into", into]
    pull = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert much.is_listed.wait(300)
        healthy.resume()
        while not is_there(into / "S"):
            assert pull.poll() is None
            time.sleep(0.1)
        waiting_files = {each.name: each.waiting_files for each in status_of(into).sources}
        assert waiting_files["M"] > 0
    finally:
        pull.kill()
        pull.wait()
        healthy.stop()
        much.stop()


def is_there(folder):
    paths = {path: folder / path for path in HEALTHY}
    return all(at.is_file() and at.read_bytes() == HEALTHY[path] for path, at in paths.items())


MUCH = [
    ("facts", "its body is 16 MiB of empty objects", None),
    ("inventory", "its body is 16 MiB of wide names", None),
    ("inventory", "10000 malformed lines", None),
    ("inventory", "its body is 16 MiB of new lines", None),
    ("inventory", "extents of all files are 100000 of them", None),
    ("inventory", "pages without end, each with 10000 entries", 10.0),
    ("confirm", "its body is 16 MiB of empty objects", None),
    ("confirm", "changed has 262144", None),
    ("facts", "it sends a head of lines without end", None),
    ("read", "it sends a body without end", None),
    ("read", "its bytes: 16 MiB", None),
    ("hash", "its body is 16 MiB of empty objects", None),
    ("greeting", "records without end", None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("where", "words", "stop_after_s"), MUCH)
def test_a_source_that_sends_as_much_as_it_can(tmp_path, key, where, words, stop_after_s):
    require_modest(tmp_path, key, [case_by_words(where, words)], stop_after_s)


@pytest.mark.slow
def test_sources_that_send_as_much_as_they_can(tmp_path, key):
    cases = [case_by_words(*each) for *each, stop_after_s in MUCH[:4]]
    require_modest(tmp_path, key, cases, None)


def require_modest(tmp_path, key, cases, stop_after_s):
    healthy = HostileAgent("S", tmp_path, HEALTHY)
    hostile = [
        HostileAgent(f"H{i}", tmp_path, FILES, case.misbehaviours) for i, case in enumerate(cases)
    ]
    limits = {"patience_s": 4.0, "timeout_s": 5.0}
    first = collection(key, healthy, **limits)
    second = collection(key, healthy, *hostile, **limits)
    for agent in hostile:  # so that hashes are asked for, too
        (tmp_path / "second" / agent.name).mkdir(parents=True)
        (tmp_path / "second" / agent.name / "b").write_bytes(FILES["b"])

    def stop():
        for agent in hostile:
            agent.stop()

    try:
        found = measured(
            first, second, tmp_path, stop_after=(stop_after_s, stop) if stop_after_s else None
        )
    finally:
        healthy.stop()
        stop()
    assert {source for source, _, _ in found["missing"]} <= {agent.name for agent in hostile}
    assert found["grown_mb"] < HOSTILE_MB, found


@pytest.mark.slow
def test_agents_listen_on_ipv6(tmp_path):
    trial = Trial(tmp_path, {"H0": case_by_words("facts", "its body is nothing")}, "::1")
    assert trial.run() == []


def test_an_ipv6_agent_alone(tmp_path, key):
    import datacollect as dc

    files = {"a": data(100_000), "b": b""}
    agent = HostileAgent("S", tmp_path, files, host="::1")
    try:
        answer = dc.pull(collection(key, agent), tmp_path / "into")
    finally:
        agent.stop()
    assert answer.complete
    assert {p.name: p.read_bytes() for p in (tmp_path / "into/S").iterdir() if p.is_file()} == files
    assert not OUTSIDE.exists()
