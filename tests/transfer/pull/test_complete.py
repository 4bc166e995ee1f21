"""Complete is a positive fact: every wanted source was asked, listed to its end, and fetched."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import datacollect as dc
from datacollect.errors import DatacollectError
from datacollect.transfer.pull.answer import missing_entry
from datacollect.transfer.pull.run import pull
from datacollect.transfer.sources.agent import source as agent_source
from datacollect.transfer.store.state.state import Missing
from datacollect.transfer.store.status import status_of

# Of tests that wait until it is over: longer than whoever has what is wanted may pause.
SHORT = {"patience_s": 4.0, "timeout_s": 4.0}
PULLS = """
import json, sys
import datacollect as dc
dc.pull(json.loads(sys.argv[1]), sys.argv[2])
"""
FILES = {"a/one": b"1" * 100, "b": b"2" * 70_000, "empty": b""}


@pytest.fixture
def into(tmp_path):
    return tmp_path / "into"


def test_it_is_complete_when_all_is_there(agents, collection_of, into):
    collection = collection_of(agents("S1", FILES), agents("S2", {}))
    collection["sources"] = {"S1": {}, "S2": {}}
    assert dc.pull(collection, into).complete
    found = status_of(into)
    assert found.complete
    # An empty source counts: it was listed to its end.
    assert {each.name: each.listed for each in found.sources} == {"S1": True, "S2": True}


def test_a_source_that_was_down_is_never_complete(agents, collection_of, into):
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"})
    two.stop()
    answer = dc.pull(collection_of(one, two, limits=SHORT), into)
    assert not answer.complete
    assert not status_of(into).complete
    assert "cannot be reached" in next(s.trouble for s in status_of(into).sources if s.name == "S2")


@pytest.mark.slow
def test_of_a_source_that_is_down_what_has_come_before_is_not_missing(agents, collection_of, into):
    one, two = agents("S1", FILES), agents("S2", {"c": b"c", "d": b"d"})
    collection = collection_of(one, two, limits=SHORT)
    assert dc.pull(collection, into).complete
    two.stop()
    (missing,) = dc.pull(collection, into).missing
    assert (missing.source, missing.path) == ("S2", "")
    assert missing.why.startswith("whatever it has besides 2 files here: ")


@pytest.mark.parametrize("error", [ValueError("odd"), OSError(24, "Too many open files"), KeyError])
def test_whatever_listing_raises_the_source_is_named(
    agents, collection_of, into, monkeypatch, error
):
    real = agent_source.AgentSource.list

    def listed(self, known):
        if self.name == "S2":
            raise error
        return real(self, known)

    monkeypatch.setattr(agent_source.AgentSource, "list", listed)
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"})
    answer = dc.pull(collection_of(one, two, limits=SHORT), into)
    assert not answer.complete
    assert [entry.source for entry in answer.missing] == ["S2"]
    assert (into / "S1/b").read_bytes() == FILES["b"]
    assert not status_of(into).complete


@pytest.mark.parametrize("text", ["\ud800", "a\x1b[31m", "x" * 5000, "\0"])
def test_odd_texts_of_peers_are_named_and_stop_nothing(agents, collection_of, into, text):
    one = agents("S1", FILES, left_out=[(f"odd{text}", f"why{text}")])
    answer = dc.pull(collection_of(one, limits=SHORT), into)
    assert not answer.complete
    (missing,) = answer.missing
    assert missing.path.startswith("odd")
    assert missing.why.isprintable()
    assert (into / "S1/b").read_bytes() == FILES["b"]


@pytest.mark.slow
def test_a_source_taken_out_of_the_file_no_longer_counts(agents, collection_of, into):
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"})
    two.stop()
    assert not dc.pull(collection_of(one, two, limits=SHORT), into).complete
    assert dc.pull(collection_of(one, limits=SHORT), into).complete
    assert status_of(into).complete


def test_a_source_that_serves_nothing_any_more_is_not_complete(agents, collection_of, into):
    """Its owner may have lost a line of its file; whoever wants nothing of it more says so."""
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"})
    collection = collection_of(one, two, limits=SHORT)
    assert dc.pull(collection, into, include=["c"]).complete
    one.files.clear()
    for _ in range(2):
        answer = dc.pull(collection, into)
        assert not answer.complete
        (missing,) = answer.missing
        assert (missing.source, missing.path) == ("S1", "")
        assert "serves no files any more, and did before" in missing.why
        assert not status_of(into).complete
    assert dc.pull(collection | {"sources": {"S2": {}}}, into).complete
    one.files.update(FILES)
    assert dc.pull(collection, into).complete
    assert (into / "S1/b").read_bytes() == FILES["b"]


def test_after_a_plan_alone_nothing_is_complete_unless_all_is_there(agents, collection_of, into):
    one = agents("S1", FILES)
    answer = dc.pull(collection_of(one), into, plan_only=True)
    assert answer.listed
    assert not answer.complete
    assert not status_of(into).complete
    assert dc.pull(collection_of(one), into).complete
    assert dc.pull(collection_of(one), into, plan_only=True).complete
    assert status_of(into).complete


def test_a_plan_of_sources_that_were_not_listed_is_not_whole(agents, collection_of, into):
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"})
    two.stop()
    assert not dc.pull(collection_of(one, two, limits=SHORT), into, plan_only=True).listed


@pytest.mark.slow
def test_while_listing_and_after_a_kill_it_is_not_complete(agents, collection_of, into, tmp_path):
    """A pull that is killed before a list has ended knows nothing of what it has not heard."""
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"}, slow_s=300.0)
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            PULLS,
            json.dumps(collection_of(one, two, limits={"timeout_s": 300.0, "patience_s": 300.0})),
            str(into),
        ]
    )
    try:
        deadline_s = time.monotonic() + 60
        while not (into / "S1/b").exists():
            assert time.monotonic() < deadline_s, "S1 waits for S2"
            time.sleep(0.05)
        found = status_of(into)
        assert found.at_work
        assert not found.complete
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    found = status_of(into)
    assert not found.at_work
    assert not found.complete
    assert {each.name: each.listed for each in found.sources} == {"S1": True, "S2": False}


def test_an_error_of_the_store_ends_the_pull(agents, collection_of, into, monkeypatch):
    from datacollect.errors import StoreError
    from datacollect.transfer.store.state.state import State

    def full(*_, **__):
        raise StoreError("into: cannot be written: No space left on device")

    monkeypatch.setattr(State, "add_page", full)
    with pytest.raises(DatacollectError, match="No space left") as caught:
        dc.pull(collection_of(agents("S1", FILES)), into)
    assert caught.value.exit_code == 3
    monkeypatch.undo()
    assert dc.pull(collection_of(agents("S2", FILES)), into).complete


def test_what_is_said_is_told_by_the_state_alone(agents, collection_of, into, monkeypatch):
    """Whatever the parts of a pull believe: without the state's word it is not complete."""
    from datacollect.transfer.store.state.state import State

    monkeypatch.setattr(State, "is_complete", lambda _: False)
    answer = pull(collection_of(agents("S1", FILES)), into)
    assert not answer.complete


def test_missing_entries_are_plain_data():
    entry = Missing("S1", "a\\xff", "no", "61ff")
    assert missing_entry(entry) == {
        "source": "S1",
        "path": "a\\xff",
        "path_hex": "61ff",
        "why": "no",
    }
    assert "path_hex" not in missing_entry(Missing("S1", "a", "no"))


def test_a_source_that_does_not_fit_stops_no_other(agents, collection_of, into):
    one, two = agents("S1", FILES), agents("S2", {"huge": b""}, sizes={"huge": 10**13})
    answer = dc.pull(collection_of(one, two, limits=SHORT), into)
    assert not answer.complete
    assert (into / "S1/b").read_bytes() == FILES["b"]
    assert {entry.source for entry in answer.missing} == {"S2"}
    assert "room" in answer.missing[0].why
    assert not [target for _, target in two.calls if target == "/v1/read"]
    assert not status_of(into).complete


def test_a_file_of_the_users_own_is_kept_and_named(agents, collection_of, into):
    (into / "S1").mkdir(parents=True)
    (into / "S1/b").write_text("mine")
    one = agents("S1", FILES)
    answer = dc.pull(collection_of(one, limits=SHORT), into)
    assert not answer.complete
    assert (into / "S1/b").read_text() == "mine"
    (missing,) = answer.missing
    assert (missing.path, "--overwrite" in missing.why) == ("b", True)
    assert dc.pull(collection_of(one, limits=SHORT), into, overwrite=True).complete
    assert (into / "S1/b").read_bytes() == FILES["b"]


def test_an_altered_file_is_kept_and_named_until_it_may_be_replaced(agents, collection_of, into):
    one = agents("S1", FILES)
    assert dc.pull(collection_of(one), into).complete
    (into / "S1/b").write_text("altered")
    answer = dc.pull(collection_of(one), into)
    assert [entry.path for entry in answer.missing] == ["b"]
    assert (into / "S1/b").read_text() == "altered"
    assert dc.pull(collection_of(one), into, overwrite=True).complete
    assert (into / "S1/b").read_bytes() == FILES["b"]


def test_bytes_that_rot_are_found_and_mended_by_verify(agents, collection_of, into):
    """Size and time are as they were: only reading tells."""
    one = agents("S1", FILES)
    assert dc.pull(collection_of(one), into).complete
    found = (into / "S1/b").stat()
    with (into / "S1/b").open("r+b") as file:
        file.seek(40_000)
        file.write(b"!")
    os.utime(into / "S1/b", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert dc.pull(collection_of(one), into).complete
    assert (into / "S1/b").read_bytes() != FILES["b"]
    assert dc.pull(collection_of(one), into, verify=True).complete
    assert (into / "S1/b").read_bytes() == FILES["b"]


def when_it_lies_there(path, do, is_done):
    """Do something to a file as soon as it has its name, in a thread; say when it is done."""

    def wait():
        until_s = time.monotonic() + 30
        while not path.exists() and time.monotonic() < until_s:
            time.sleep(0.01)
        do(path)
        is_done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


HANDS = {
    "removed": (lambda path: path.unlink(), "no longer exists"),
    "a link": (lambda path: (path.unlink(), path.symlink_to("b")), "no longer exists"),
    "cut": (lambda path: os.truncate(path, 50), "differs in size or times from when it came"),
    "touched": (
        lambda path: os.utime(path, ns=(1, 2**60)),
        "differs in size or times from when it came",
    ),
    "with its folder": (lambda path: shutil.rmtree(path.parent), "no longer exists"),
}


@pytest.mark.slow
@pytest.mark.parametrize("hand", HANDS)
def test_what_a_hand_takes_away_meanwhile_is_not_complete(agents, collection_of, into, hand):
    """S1 has come while S2 still lists: its file is removed then, and only the disk tells."""
    is_done = threading.Event()
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"}, awaits={"/v1/inventory": is_done})
    do, why = HANDS[hand]
    thread = when_it_lies_there(into / "S1/a/one", do, is_done)
    collection = collection_of(one, two)
    answer = dc.pull(collection, into)
    thread.join()
    assert not answer.complete
    assert [(each.source, each.path) for each in answer.missing] == [("S1", "a/one")]
    assert answer.missing[0].why.startswith(why)
    assert (answer.n_files, answer.n_bytes) == (3, 70_000 + 1)
    assert (into / "S2/c").read_bytes() == b"c"
    assert not status_of(into).complete
    assert dc.pull(collection, into, overwrite=True).complete
    assert (into / "S1/a/one").read_bytes() == FILES["a/one"]


def test_why_a_source_is_missing_names_it_once(agents, collection_of, into):
    one = agents("S1", FILES)
    one.stop()
    told = []
    answer = pull(collection_of(one, limits=SHORT), into, tell=told.append)
    (entry,) = answer.missing
    assert entry.why.startswith("all of it: cannot be reached")
    assert status_of(into).sources[0].trouble.startswith("cannot be reached")
    assert [line.split(" at ")[0] for line in told] == [
        "note: S1: cannot be reached",
        "given up: S1: cannot be reached",
    ]
