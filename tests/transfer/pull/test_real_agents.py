"""Pulls from agents as they are: what they cannot read, odd times, and agents of two versions."""

import errno
import json
import os
import threading
import time

import pytest
from instances.agents import collection_tree, running, write_agent
from instances.ports import free_port

import datacollect as dc
from datacollect.transfer.agent.core import source_requests
from datacollect.transfer.agent.shell.files import Folder
from datacollect.transfer.pull.run import pull

# Of some hundred nanoseconds after 2264, which no 63 bits of nanoseconds hold.
LATE_S = 9_300_000_000


@pytest.fixture
def served(tmp_path):
    """A folder of 33 files in one piece, and one large file."""
    folder = tmp_path / "data"
    folder.mkdir()
    for i in range(33):
        (folder / f"{i:02}").write_bytes(bytes([i]) * 1000)
    (folder / "large").write_bytes(os.urandom(400_000))
    return folder


@pytest.fixture
def collection_of(tmp_path):
    def make(*agents, **limits):
        limits = {"patience_s": 5.0, "timeout_s": 5.0, "piece_bytes": 65536} | limits
        return collection_tree(tmp_path, *agents, limits=limits)

    return make


def arrived(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("n_opened", [0, 1])
def test_one_unreadable_file_takes_no_neighbour_with_it(
    tmp_path, served, collection_of, monkeypatch, n_opened
):
    """Unreadable from the start, or only once its bytes are wanted."""
    real, opened = Folder.open, []

    def refused(self, path, *flags):
        if path == "16":
            opened.append(path)
            if len(opened) > n_opened:
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return real(self, path, *flags)

    monkeypatch.setattr(Folder, "open", refused)
    with running(write_agent(tmp_path, "S1", serve="data")) as agent:
        answer = dc.pull(collection_of(agent), tmp_path / "into")
    assert [(entry.path, "Permission denied" in entry.why) for entry in answer.missing] == [
        ("16", True)
    ]
    wanted = arrived(served)
    del wanted["16"]
    assert arrived(tmp_path / "into/S1") == wanted


def test_times_before_1970_and_after_2262_are_kept(tmp_path, served, collection_of):
    for name, at_s in (("00", LATE_S), ("01", -5), ("02", 0)):
        os.utime(served / name, ns=(0, at_s * 10**9 + 1))
    os.utime(served / "03", ns=(0, 0))  # 1970 itself is no unknown time
    if (served / "00").stat().st_mtime_ns != LATE_S * 10**9 + 1:
        os.utime(served / "00", ns=(0, 10**18))  # this file system does not know such times
    with running(write_agent(tmp_path, "S1", serve="data")) as agent:
        assert dc.pull(collection_of(agent), tmp_path / "into").complete
        for path in served.iterdir():
            there = tmp_path / "into/S1" / path.name
            assert there.stat().st_mtime_ns == path.stat().st_mtime_ns, path.name
        answer = dc.pull(collection_of(agent), tmp_path / "into")
    assert answer.complete
    assert not answer.routes


@pytest.mark.usefixtures("usual_umask")
def test_modes_and_empty_folders_are_kept_unless_told_otherwise(tmp_path, served, collection_of):
    (served / "empty").mkdir(mode=0o555)
    (served / "00").chmod(0o444)
    (served / "01").chmod(0o4755)
    with running(write_agent(tmp_path, "S1", serve="data")) as agent:
        assert dc.pull(collection_of(agent), tmp_path / "into").complete
        assert dc.pull(collection_of(agent), tmp_path / "into", verify=True).complete
        plain = tmp_path / "plain"
        assert dc.pull(collection_of(agent), plain, modes=False, times=False).complete
    modes = {
        name: (tmp_path / "into/S1" / name).stat().st_mode & 0o7777
        for name in ("00", "01", "empty")
    }
    assert modes == {"00": 0o644, "01": 0o755, "empty": 0o755}
    assert (plain / "S1/00").stat().st_mtime > (served / "00").stat().st_mtime
    for path in (served / "empty", served / "00"):
        path.chmod(0o755)


def test_after_the_state_is_lost_nothing_is_fetched_again(tmp_path, served, collection_of):
    with running(write_agent(tmp_path, "S1", serve="data")) as agent:
        assert dc.pull(collection_of(agent), tmp_path / "into").complete
        for path in (tmp_path / "into/.datacollect").glob("state.sqlite*"):
            path.unlink()
        answer = dc.pull(collection_of(agent), tmp_path / "into")
    assert answer.complete
    assert (answer.n_files, answer.routes) == (34, ())


@pytest.mark.slow
def test_an_agent_is_upgraded_while_data_flow(tmp_path, served, collection_of, monkeypatch):
    """The first knows no features; the second, at the same place, all of them."""
    for i in range(20):
        (served / f"more{i:02}").write_bytes(os.urandom(300_000))
    port = free_port()
    path = write_agent(tmp_path, "S1", serve="data")
    path.write_text(path.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    answers = []
    real = Folder.open

    def slow(self, path, *flags):
        time.sleep(0.02)
        return real(self, path, *flags)

    monkeypatch.setattr(Folder, "open", slow)
    monkeypatch.setattr(source_requests, "FEATURES", ())
    with running(path) as old:
        collection = collection_of(old, patience_s=30.0)
        pull = threading.Thread(
            target=lambda: answers.append(dc.pull(collection, tmp_path / "into"))
        )
        pull.start()
        deadline_s = time.monotonic() + 60
        while not list((tmp_path / "into").glob("S1/*")):
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
    monkeypatch.undo()
    with running(path):
        pull.join(60)
    assert answers[0].complete
    assert arrived(tmp_path / "into/S1") == arrived(served)


def test_a_plan_alone_makes_no_folders(tmp_path, served, collection_of):
    (served / "empty").mkdir()
    with running(write_agent(tmp_path, "S1", serve="data")) as agent:
        dc.pull(collection_of(agent), tmp_path / "into", plan_only=True)
        assert not (tmp_path / "into/S1").exists()
        assert dc.pull(collection_of(agent), tmp_path / "into").complete
    assert (tmp_path / "into/S1/empty").is_dir()


def test_what_patterns_do_not_fit_any_more_is_not_gone(tmp_path, served, collection_of):
    """After a start that fetched nothing of it; a pattern that nothing fits is told."""
    told = []
    with running(write_agent(tmp_path, "S1", serve="data")) as agent:
        collection = collection_of(agent)
        assert not dc.pull(collection, tmp_path / "into", plan_only=True).complete
        collection["sources"] = {"S1": {"files": ["0*", "large.*"]}}
        answer = pull(collection, tmp_path / "into", tell=told.append)
    assert answer.complete, answer.missing
    assert sorted(arrived(tmp_path / "into/S1")) == [f"{i:02}" for i in range(10)]
    (note,) = told
    assert note.startswith("note: S1: no file there matches 'large.*' of sources.S1.files; ")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["coordinated", "adaptive", "best-path", "direct"])
def test_pulls_are_planned_on_limits_of_hosts_by_hours(tmp_path, served, collection_of, method):
    """433 kB at 1 MB/s, whatever the hour: the limit binds, not the link."""
    uplink = "Mo-Fr 08:00 1 MB/s, Mo-Fr 20:00 1 MB/s, Sa Su 1 MB/s"
    network = {
        "timezone": "Europe/Zurich",
        "hosts": {"S1": {"uplink_bytes_per_s": uplink}},
        "links": [{"from": "S1", "to": "D", "bandwidth_bytes_per_s": 1e9}],
    }
    with running(write_agent(tmp_path, "S1", serve="data")) as agent:
        answer = dc.pull(collection_of(agent) | network, tmp_path / "into", method=method)
    assert answer.complete
    log = (tmp_path / "into" / ".datacollect" / "log.jsonl").read_text().splitlines()
    (planned,) = [line for line in map(json.loads, log) if line["what"] == "planned"]
    assert planned["makespan_s"] == pytest.approx(0.433, rel=1e-3)
    assert arrived(tmp_path / "into" / "S1") == arrived(served)


def test_a_file_that_changed_unseen_is_found_with_its_source(tmp_path, served, collection_of):
    """As through a memory map: size, time and inode stay; what came is a mixture of versions."""
    path, into, said = served / "large", tmp_path / "into", []
    with running(write_agent(tmp_path, "S1", serve="data")) as agent:
        collection = collection_of(agent)
        assert dc.pull(collection, into).complete
        found = path.stat()
        with path.open("r+b") as file:
            file.seek(200_000)
            file.write(b"another version")
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        assert dc.pull(collection, into, verify=True).complete
        assert (into / "S1/large").read_bytes() != path.read_bytes()
        answer = pull(collection, into, verify=True, with_source=True, tell=said.append)
        assert arrived(into / "S1") == arrived(served)
        (file,) = answer.with_source.differing
        assert (answer.complete, file.path, answer.with_source.n_files) == (True, "large", 33)
        assert sum(use.n_bytes for use in answer.routes) <= 3 * 65536
        assert "S1/large: the source has other bytes in" in said[0]
        again = dc.pull(collection, into, verify=True, with_source=True)
        assert (again.with_source.n_files, again.with_source.differing) == (34, ())
    with pytest.raises(dc.ProblemError, match=r"--verify\) has read; ask for both"):
        dc.pull(collection, into, with_source=True)
