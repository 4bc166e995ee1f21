"""Limits of a collection: files that are too large, room that is left, a pull that is to end."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.errors import ProblemError, StoreError
from datacollect.transfer.pull.config.file import Collection


def arrived(folder):
    return {
        path.name: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".datacollect" not in path.parts
    }


def test_a_file_that_is_larger_than_it_may_be_is_left_out_and_named(
    tmp_path, agents, collection_of
):
    agent = agents("S1", {"small": b"a" * 1000, "large": b"b" * 1001})
    collection = collection_of(agent, sources={"S1": {"largest_bytes": 1000}})
    answer = dc.pull(collection, tmp_path / "into")
    assert arrived(tmp_path / "into") == {"small": b"a" * 1000}
    assert not answer.complete
    (missing,) = answer.missing
    assert (missing.source, missing.path) == ("S1", "large")
    assert missing.why == "it has 1001 bytes, and largest_bytes is 1000"
    collection["sources"]["S1"]["largest_bytes"] = 1001
    assert dc.pull(collection, tmp_path / "into").complete


def test_so_much_room_is_left_free(tmp_path, agents, collection_of):
    collection = collection_of(agents("S1", {"a": b"a"}), limits={"spare_bytes": 10**15})
    with pytest.raises(StoreError, match="must have room for 1 B more, has 0 B free"):
        dc.pull(collection, tmp_path / "into")
    collection["limits"]["spare_bytes"] = 0
    assert dc.pull(collection, tmp_path / "into").complete


@pytest.mark.slow
def test_a_pull_ends_when_it_is_to_end_with_what_has_come_by_then(tmp_path, agents, collection_of):
    """Others' files come; of who trickles, and of who never lists, it is said why not."""
    quick = agents("quick", {"a": b"a" * 1000})
    trickling = agents("trickling", {"b": b"b" * 100_000}, drips={"/v1/read": 0.001})
    silent = agents("silent", {"c": b"c"}, slow_s=30.0)
    limits = {"patience_s": 600.0, "timeout_s": 600.0, "time_s": 6.0}
    collection = collection_of(quick, trickling, silent, limits=limits)
    collection["sources"] = {name: {} for name in ("quick", "trickling", "silent")}
    answer = dc.pull(collection, tmp_path / "into")
    assert arrived(tmp_path / "into") == {"a": b"a" * 1000}
    assert not answer.complete
    whys = {each.source: each.why for each in answer.missing}
    assert whys == {
        "trickling": "the pull was to end after 6 s",
        "silent": "all of it: the pull was to end after 6 s",
    }


def test_the_time_of_a_pull_is_positive(collection_of, agents):
    collection = collection_of(agents("S1", {}), limits={"time_s": 0})
    with pytest.raises(
        ProblemError, match=r"limits\.time_s must be a finite number of seconds > 0"
    ):
        Collection.from_dict(collection)
