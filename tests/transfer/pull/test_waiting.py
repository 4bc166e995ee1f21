"""Waiting for sources: none for another, none is given up at once; patience is spent once."""

import json
import socket
import threading
import time

import pytest
from instances.ports import free_port
from transfer.pull.lying_agent import LyingAgent

import datacollect as dc

FILES = {"a/one": b"1" * 100, "b": b"2" * 70_000, "empty": b""}


@pytest.fixture
def into(tmp_path):
    return tmp_path / "into"


def appears(path, within_s=60.0):
    deadline_s = time.monotonic() + within_s
    while not path.exists():
        assert time.monotonic() < deadline_s, f"{path} does not come"
        time.sleep(0.02)


def in_thread(*args, **options):
    """Pull in a thread; return it, and where its answer will be."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(dc.pull(*args, **options)))
    thread.start()
    return thread, answers


@pytest.mark.slow
@pytest.mark.parametrize("target", ["/v1/agent", "/v1/inventory"])
def test_a_source_that_drips_keeps_no_other_from_its_first_byte(
    agents, collection_of, into, target
):
    """A byte every half second would never pass a time-out of system calls of one second."""
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"}, drips={target: 0.5})
    limits = {"patience_s": 6.0, "timeout_s": 1.0}
    answer, was_there = given_up_beside(collection_of(one, two, limits=limits), into)
    assert was_there, "it waited for the other"
    assert [entry.source for entry in answer.missing] == ["S2"]
    assert "the step took longer than" in answer.missing[0].why


def given_up_beside(collection, into):
    """Pull; return the answer, and whether S1 had come when S2 was given up."""
    told = []

    def tell(line):
        told.append((line, (into / "S1/b").exists()))

    answer = dc.pull(collection, into, tell=tell)
    (was_there,) = [is_there for line, is_there in told if line.startswith("given up: S2: ")]
    return answer, was_there


def planned(into) -> int:
    """Return how often was planned."""
    log = map(json.loads, (into / ".datacollect/log.jsonl").read_text().splitlines())
    return sum(line["what"] == "planned" for line in log)


@pytest.mark.slow
def test_who_is_ready_a_little_later_is_in_the_first_plan(agents, collection_of, into):
    """S1 needs four seconds, S2 five, less than twice as long: to plan again would cost seconds."""
    one = agents("S1", {"a": b"a" * 300_000}, slow_s=2.0)
    two = agents("S2", {"c": b"c" * 300_000}, slow_s=2.6)
    limits = {"patience_s": 20.0, "timeout_s": 20.0}
    answer = dc.pull(collection_of(one, two, limits=limits), into, "coordinated")
    assert answer.complete
    assert planned(into) == 1


@pytest.mark.slow
def test_what_is_listed_late_joins_what_is_under_way(agents, collection_of, into):
    """S1 has data for a while; S2 tells what it has only once they are fetched."""
    is_fetched, files = threading.Event(), {f"{i}": bytes([i]) * 2_000_000 for i in range(8)}
    one = agents("S1", files, slow_s=0.6, tells={"/v1/read": is_fetched})
    two = agents("S2", {"c": b"c" * 300_000}, awaits={"/v1/inventory": is_fetched})
    limits = {"patience_s": 20.0, "timeout_s": 20.0, "piece_bytes": 2**20}
    answer = dc.pull(collection_of(one, two, limits=limits), into, "coordinated")
    assert answer.complete
    assert (into / "S2/c").read_bytes() == two.files["c"]
    assert answer.refetched.keys() <= {"sent twice"}
    assert planned(into) == 2


@pytest.mark.slow
def test_an_agent_that_comes_late_is_waited_for(collection_of, into, tmp_path):
    port = free_port()
    late = LyingAgent("S1", tmp_path, FILES, port=port)
    entry = late.entry
    late.stop()
    collection = collection_of(limits={"patience_s": 20.0, "timeout_s": 2.0})
    collection["agents"] = {"S1": entry}
    thread, answers = in_thread(collection, into)
    time.sleep(1.5)
    again = LyingAgent("S1", tmp_path, FILES, port=port, keeps_certificate=True)
    thread.join(60)
    again.stop()
    assert answers[0].complete


@pytest.mark.slow
def test_a_killed_and_restarted_agent_ends_nothing(collection_of, into, tmp_path):
    """With default patience; many connections, all broken at once."""
    port = free_port()
    files = {f"{i:02}": bytes([i]) * 300_000 for i in range(40)}
    first = LyingAgent("S1", tmp_path, files, port=port, slow_s=0.05)
    collection = collection_of(limits={"connections": 64, "timeout_s": 5.0})
    collection["agents"] = {"S1": first.entry}
    thread, answers = in_thread(collection, into)
    appears(into / "S1/00")
    first.stop()
    time.sleep(1.0)
    again = LyingAgent("S1", tmp_path, files, port=port, keeps_certificate=True)
    thread.join(60)
    again.stop()
    assert answers, "the pull failed"
    assert answers[0].complete


@pytest.mark.slow
def test_a_hopeless_source_costs_patience_once(agents, collection_of, into):
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"})
    two.stop()
    told = []
    collection = collection_of(one, two, limits={"patience_s": 6.0, "timeout_s": 1.0})
    answer = dc.pull(collection, into, tell=told.append)
    assert [entry.source for entry in answer.missing] == ["S2"]
    assert sum(line.startswith("given up: S2: ") for line in told) == 1
    # Five tries, fewer where they take long, one more by news of another host; twice are ten.
    log = map(json.loads, (into / ".datacollect/log.jsonl").read_text().splitlines())
    assert sum(line["what"] == "not reached" for line in log) < 8


@pytest.mark.slow
@pytest.mark.parametrize("what", ["fingerprint", "name", "ticket", "unknown host"])
def test_what_cannot_get_better_is_told_at_once_with_its_remedy(agents, collection_of, into, what):
    one = agents("S1", FILES, slow_s=0.3)
    two = agents("S2", {"c": b"c"}, **({"called": "S9"} if what == "name" else {}))
    collection = collection_of(one, two, limits={"patience_s": 30.0, "timeout_s": 5.0})
    if what == "fingerprint":
        collection["agents"]["S2"]["fingerprint"] = "sha256:" + "0" * 64
    if what == "ticket":
        two.refuses = 401
    if what == "unknown host":
        collection["agents"]["S2"]["url"] = "https://no-such-host.invalid:7443"
    told = []
    answer = dc.pull(collection, into, tell=told.append)
    # Whoever is tried again is named before, with a note that says so.
    (line,) = [line for line in told if "S2" in line and "no answer yet" not in line]
    assert line.startswith("given up: ")
    words = {
        "fingerprint": "compare with what it prints when it starts",
        "name": "which is in the agent's own file",
        "ticket": "refuses (401)",
        "unknown host": "correct its url",
    }
    assert words[what] in line
    assert [entry.source for entry in answer.missing] == ["S2"]
    assert (into / "S1/b").read_bytes() == FILES["b"]


@pytest.mark.slow
def test_where_no_row_names_a_link_it_is_a_last_resort(agents, collection_of, into):
    """The file names the way over the relay alone; the relay dies, and the source is reached."""
    # So slow that on no machine all is there before the relay dies.
    one = agents("S1", {"x": b"x" * 3_000_000}, slow_s=1.0)
    relay = agents("R", connect_to={"S1": one.address})
    links = [
        {"from": "S1", "to": "R", "bandwidth_bytes_per_s": 2e6},
        {"from": "R", "to": "D", "bandwidth_bytes_per_s": 2e6},
    ]
    limits = {"patience_s": 12.0, "timeout_s": 2.0, "piece_bytes": 65536}
    thread, answers = in_thread(
        collection_of(one, relay, links=links, limits=limits), into, "coordinated"
    )
    deadline_s = time.monotonic() + 60
    while ("CONNECT", "S1") not in relay.calls:
        assert time.monotonic() < deadline_s, "the relay is not used"
        time.sleep(0.01)
    relay.stop()
    one.slow_s = 0.0
    thread.join(60)
    (answer,) = answers
    assert answer.complete
    assert ("S1", "D") in {use.hosts for use in answer.routes}


def test_a_source_without_any_way_in_the_file_is_reached_directly(agents, collection_of, into):
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"})
    links = [{"from": "S1", "to": "D", "bandwidth_bytes_per_s": 2e6}]
    assert dc.pull(collection_of(one, two, links=links), into, "coordinated").complete


@pytest.mark.slow
def test_silent_servers_hold_nobody_up(agents, collection_of, into):
    """Somebody accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        collection = collection_of(
            agents("S1", FILES), limits={"patience_s": 6.0, "timeout_s": 2.0}
        )
        collection["agents"]["S2"] = {
            "url": f"https://127.0.0.1:{silent.getsockname()[1]}",
            "fingerprint": "sha256:" + "0" * 64,
        }
        answer, was_there = given_up_beside(collection, into)
        assert was_there, "it waited for the other"
        assert [entry.source for entry in answer.missing] == ["S2"]


def test_a_relay_that_is_away_holds_nobody_up(agents, collection_of, into):
    """Nothing is wanted of it: once all is there, it is not waited for."""
    one, relay = agents("S1", FILES), agents("R", {})
    relay.stop()
    limits = {"patience_s": 600.0, "timeout_s": 1.0}
    collection = collection_of(one, relay, sources={"S1": {}}, limits=limits)
    thread, answers = in_thread(collection, into)
    thread.join(60)
    assert answers, "it waits for the relay"
    assert answers[0].complete
