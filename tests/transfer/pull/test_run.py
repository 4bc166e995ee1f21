"""Pulls over loopback from agents in this process, which lie where they are told to."""

import json

import numpy as np
import pytest

import datacollect as dc
from datacollect.transfer.pull import hosts

# Of tests that wait until it is over: longer than whoever has what is wanted may pause.
SHORT = {"patience_s": 4.0, "timeout_s": 5.0}


def data(n_bytes, seed=0):
    return np.random.default_rng(seed).bytes(n_bytes)


FILES = {"a/one": data(100), "a/two": data(300_000, 1), "b": data(70_000, 2), "empty": b""}


def arrived(folder, source):
    base = folder / source
    return {
        str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("method", ["adaptive", "coordinated", "best-path", "direct"])
def test_every_file_arrives(agents, collection_of, tmp_path, method):
    one, two = agents("S1", FILES), agents("S2", {"c": data(200_000, 3)})
    answer = dc.pull(collection_of(one, two), tmp_path / "into", method)
    assert answer.complete
    assert arrived(tmp_path / "into", "S1") == FILES
    assert arrived(tmp_path / "into", "S2") == two.files
    assert (answer.n_files, answer.n_bytes) == (5, sum(map(len, FILES.values())) + 200_000)
    assert {use.hosts for use in answer.routes} == {("S1", "D"), ("S2", "D")}
    # On a busy machine another session may ask for what is late.
    assert answer.refetched.keys() <= {"sent twice"}


def test_a_source_behind_a_relay_is_reached_through_it(agents, collection_of, tmp_path):
    behind = agents("S1", FILES)
    relay = agents("R", connect_to={"S1": behind.address})
    hidden = collection_of(behind, relay)
    hidden["agents"]["S1"] |= {"url": "https://127.0.0.1:1"}  # nobody listens there
    answer = dc.pull(hidden, tmp_path / "into")
    assert answer.complete
    assert arrived(tmp_path / "into", "S1") == FILES
    assert [use.hosts for use in answer.routes] == [("S1", "R", "D")]
    assert ("CONNECT", "S1") in relay.calls


def test_given_links_decide_on_routes(agents, collection_of, tmp_path, monkeypatch):
    """S1 has twice the bandwidth over R: two thirds go there."""
    # On a busy machine the relay may be known only later.
    monkeypatch.setattr(hosts, "SETTLE_S", 60.0)
    one = agents("S1", {"x": data(6_000_000)})
    relay = agents("R", connect_to={"S1": one.address})
    links = [
        {"from": "S1", "to": "D", "bandwidth_bytes_per_s": 1e6},
        {"from": "S1", "to": "R", "bandwidth_bytes_per_s": 2e6},
        {"from": "R", "to": "D", "bandwidth_bytes_per_s": 2e6},
    ]
    answer = dc.pull(collection_of(one, relay, links=links), tmp_path / "into", "coordinated")
    assert answer.complete
    assert {use.hosts for use in answer.routes} == {("S1", "D"), ("S1", "R", "D")}
    log = (tmp_path / "into/.datacollect/log.jsonl").read_text().splitlines()
    planned = next(line for line in map(json.loads, log) if line["what"] == "planned")
    assert planned["makespan_s"] == pytest.approx(2.0, rel=0.01)
    # Until it was planned took a while.
    assert answer.predicted_makespan_s >= planned["makespan_s"]


@pytest.mark.parametrize("method", ["adaptive", "coordinated"])
def test_a_plan_alone_says_what_it_leans_on(method, agents, collection_of, tmp_path, monkeypatch):
    """6 MB at 3 MB/s take 2 s; S1 was shown to send 2, then 3 s; directly 6 s."""
    monkeypatch.setattr(hosts, "SETTLE_S", 60.0)
    one = agents("S1", {"x": data(6_000_000)})
    relay = agents("R", connect_to={"S1": one.address})
    links = [
        {"from": "S1", "to": "D", "bandwidth_bytes_per_s": 1e6},
        {"from": "S1", "to": "R", "bandwidth_bytes_per_s": 2e6},
        {"from": "R", "to": "D", "bandwidth_bytes_per_s": 2e6},
    ]
    limits = {"D": {"downlink_bytes_per_s": "none"}}
    collection = collection_of(one, relay, links=links, hosts=limits)
    answer = dc.pull(collection, tmp_path / "into", method, plan_only=True)
    found = answer.assumptions
    assert [(load.host, load.direction) for load in found.leans_on] == [("S1", "out")]
    assert found.makespan_s == pytest.approx(2.0, rel=0.01)
    assert found.cautious_makespan_s == pytest.approx(3.0, rel=0.01)
    assert answer.to_dict()["assumptions"]["matter"] is True


def test_started_again_nothing_is_fetched(agents, collection_of, tmp_path):
    one = agents("S1", FILES)
    dc.pull(collection_of(one), tmp_path / "into")
    one.calls.clear()
    answer = dc.pull(collection_of(one), tmp_path / "into")
    assert answer.complete
    assert not answer.routes
    assert not [target for _, target in one.calls if target == "/v1/read"]


def test_changed_and_new_files_are_fetched(agents, collection_of, tmp_path):
    one = agents("S1", FILES)
    dc.pull(collection_of(one), tmp_path / "into")
    one.files |= {"b": data(71_000, 9), "new": b"n"}
    one.versions["b"] = 2
    answer = dc.pull(collection_of(one), tmp_path / "into")
    assert answer.complete
    assert arrived(tmp_path / "into", "S1") == one.files
    assert sum(use.n_bytes for use in answer.routes) == 71_001


def test_a_file_that_changes_meanwhile_is_fetched_again(agents, collection_of, tmp_path):
    one = agents("S1", FILES, changing={"a/two": 1})
    answer = dc.pull(collection_of(one), tmp_path / "into")
    assert answer.complete
    assert arrived(tmp_path / "into", "S1") == FILES
    assert answer.refetched.keys() - {"sent twice"} == {"changed"}


def test_a_file_that_never_rests_is_missing_and_others_are_not(agents, collection_of, tmp_path):
    one = agents("S1", FILES, changing={"b": 10**9})
    answer = dc.pull(collection_of(one), tmp_path / "into")
    assert not answer.complete
    (missing,) = answer.missing
    assert (missing.source, missing.path) == ("S1", "b")
    assert "chang" in missing.why
    assert arrived(tmp_path / "into", "S1") == {k: v for k, v in FILES.items() if k != "b"}


def test_wrong_bytes_are_never_written(agents, collection_of, tmp_path):
    one = agents("S1", FILES | {"z": data(200_000, 7)}, corrupt={"z"})
    answer = dc.pull(collection_of(one), tmp_path / "into")
    assert not answer.complete
    assert "z" not in arrived(tmp_path / "into", "S1")
    assert {m.path for m in answer.missing} >= {"z"}
    assert all("source's hashes" in m.why for m in answer.missing)


def test_a_file_shorter_than_listed_is_missing(agents, collection_of, tmp_path):
    one = agents("S1", {"a": b"1234", "b": b"x"}, sizes={"a": 10})
    answer = dc.pull(collection_of(one), tmp_path / "into")
    assert [(m.path, "read it to its end" in m.why) for m in answer.missing] == [
        ("a", True),
        ("b", True),
    ] or [m.path for m in answer.missing] == ["a"]


@pytest.mark.parametrize("name", [".datacollect/state.sqlite", "x" * 300])
def test_names_that_cannot_be_are_left_out(agents, collection_of, tmp_path, name):
    one = agents("S1", FILES, extra_lines=[name])
    answer = dc.pull(collection_of(one), tmp_path / "into")
    assert [m.path for m in answer.missing] == [name]
    assert arrived(tmp_path / "into", "S1") == FILES


@pytest.mark.parametrize("name", ["../escaped", "/etc/passwd"])
def test_a_listing_that_leads_out_of_the_folder_is_refused(agents, collection_of, tmp_path, name):
    answer = dc.pull(collection_of(agents("S1", FILES, extra_lines=[name])), tmp_path / "into")
    assert not answer.complete
    assert not (tmp_path / "escaped").exists()
    assert "S1" in {m.source for m in answer.missing}


def test_a_name_listed_twice_costs_its_source_nothing_else(agents, collection_of, tmp_path):
    answer = dc.pull(collection_of(agents("S1", FILES, extra_lines=["b"])), tmp_path / "into")
    (missing,) = answer.missing
    assert (missing.source, missing.path) == ("S1", "b")
    assert "more than once" in missing.why
    assert {name: (tmp_path / "into/S1" / name).read_bytes() for name in FILES} == FILES


@pytest.mark.parametrize("hours", [-30, 7])
def test_clocks_may_be_wrong_by_hours(agents, collection_of, tmp_path, hours):
    one = agents("S1", FILES, ahead_s=hours * 3600.0)
    assert dc.pull(collection_of(one), tmp_path / "into").complete


def test_another_certificate_is_noticed(agents, collection_of, tmp_path):
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"})
    wrong = collection_of(one, two, limits=SHORT)
    wrong["agents"]["S1"]["fingerprint"] = "sha256:" + "0" * 64
    answer = dc.pull(wrong, tmp_path / "into")
    assert [m.source for m in answer.missing] == ["S1"]
    assert "another host answers there" in answer.missing[0].why
    assert arrived(tmp_path / "into", "S2") == two.files


def test_an_agent_of_another_name_is_noticed(agents, collection_of, tmp_path):
    other = agents("S1", FILES, called="S9")
    answer = dc.pull(collection_of(other, limits=SHORT), tmp_path / "into")
    assert "calls itself 'S9'" in answer.missing[0].why


def test_an_unreachable_host_is_missing_and_others_are_not(agents, collection_of, tmp_path):
    one, two = agents("S1", FILES), agents("S2", {"c": b"c"})
    two.stop()
    answer = dc.pull(collection_of(one, two, limits=SHORT), tmp_path / "into")
    assert [m.source for m in answer.missing] == ["S2"]
    assert arrived(tmp_path / "into", "S1") == FILES


def test_no_room_is_said_before_a_byte_moves(agents, collection_of, tmp_path):
    """A file of 10 TB takes no room at its source where it is sparse; here it would."""
    one = agents("S1", {"huge": b""}, sizes={"huge": 10**13})
    with pytest.raises(dc.DatacollectError, match=r"room for 10 TB more.*--into"):
        dc.pull(collection_of(one), tmp_path / "into")
    assert not [target for _, target in one.calls if target == "/v1/read"]


def test_plan_only_moves_nothing(agents, collection_of, tmp_path):
    one = agents("S1", FILES)
    dc.pull(collection_of(one), tmp_path / "into", plan_only=True)
    assert not [target for _, target in one.calls if target == "/v1/read"]
    assert not (tmp_path / "into/S1").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("include", "exclude", "wanted"),
    [
        (["a/*"], [], ["a/one", "a/two"]),
        (None, ["a/**"], ["b", "empty"]),
        (["**"], ["**/t*", "b"], ["a/one", "empty"]),
        (["b", "nothing"], [], ["b"]),
        ([], [], []),
    ],
    ids=["include", "exclude", "both", "one fits nothing", "no file"],
)
def test_only_what_is_included_and_not_excluded_comes_and_the_rest_later(
    include, exclude, wanted, agents, collection_of, tmp_path
):
    one, into = agents("S1", FILES), tmp_path / "into"
    answer = dc.pull(collection_of(one), into, include=include, exclude=exclude)
    assert (answer.complete, answer.n_files) == (True, len(wanted))
    assert sorted(arrived(into, "S1")) == wanted
    assert dc.pull(collection_of(one), into).n_files == len(FILES)
    assert arrived(into, "S1") == FILES


def test_patterns_of_a_start_only_narrow_those_of_the_collection(agents, collection_of, tmp_path):
    one, into, said = agents("S1", FILES), tmp_path / "into", []
    collection = collection_of(one) | {"sources": {"S1": {"files": ["a/**", "absent"]}}}
    answer = dc.pull(collection, into, include=["*", "a/o*"], tell=said.append)
    assert (answer.complete, sorted(arrived(into, "S1"))) == (True, ["a/one"])
    assert [line for line in said if "absent" in line]
    assert not [line for line in said if "a/o*" in line]


def test_what_has_come_stays_where_it_is_not_wanted_this_time(agents, collection_of, tmp_path):
    one, into = agents("S1", FILES), tmp_path / "into"
    dc.pull(collection_of(one), into)
    assert dc.pull(collection_of(one), into, exclude=["a/**"]).complete
    assert arrived(into, "S1") == FILES
    n_read = len([target for _, target in one.calls if target == "/v1/read"])
    assert dc.pull(collection_of(one), into).complete
    assert len([target for _, target in one.calls if target == "/v1/read"]) == n_read


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ({"include": "a"}, "include must be a list of patterns, got 'a'"),
        ({"exclude": ["a", ""]}, "exclude: a pattern must not be empty"),
    ],
    ids=["text", "empty"],
)
def test_bad_patterns_are_refused(patterns, message, agents, collection_of, tmp_path):
    with pytest.raises(dc.ProblemError, match=message):
        dc.pull(collection_of(agents("S1", FILES)), tmp_path / "into", **patterns)
