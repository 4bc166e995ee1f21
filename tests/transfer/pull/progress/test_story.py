"""What pages and metrics tell of a pull: to the byte, and never without end."""

from __future__ import annotations

import pytest
from instances.metrics import moved, read_metrics, samples

import datacollect as dc
from datacollect.net.bounded_rows import OTHER
from datacollect.net.metrics import MOST_SERIES, MetricsServer
from datacollect.transfer.pull.progress.metrics import pull_families
from datacollect.transfer.pull.progress.pull_progress import PullProgress
from datacollect.transfer.pull.progress.story import MOST_EVENTS, PullStory

FILES = {f"{n}": bytes([n]) * 10_000 for n in range(8)}


def pulled(collection, into, story, **options):
    return dc.pull(
        collection, into, watch=lambda look: story.look(look()), log=story.hear, **options
    )


def test_counters_of_a_pull_move_by_exactly_what_has_come(agents, collection_of, tmp_path):
    agent, story = agents("S1", FILES), PullStory()
    with MetricsServer(("127.0.0.1", 0), lambda: pull_families(story), "--metrics 0") as server:
        before = samples(read_metrics(server.url))
        assert pulled(collection_of(agent), tmp_path / "into", story).complete
        change = moved(before, samples(read_metrics(server.url)))
    of_bytes = {key[1:]: value for key, value in change.items() if "bytes" in key[0]}
    # The number of a collection is drawn.
    [(name, *route)] = [labels for labels in of_bytes if len(labels) == 3]
    assert (len(name), route) == (16, ["S1", ""])
    assert change["datacollect_pull_bytes_total", name, "S1", ""] == 80_000
    assert change[("datacollect_pull_done_bytes",)] == 80_000
    assert change[("datacollect_pull_done_files",)] == 8
    assert change["datacollect_pull_info", name, "D", "adaptive"] == 1
    assert change[("datacollect_pull_complete",)] == 1
    assert not [key for key in change if "refetched" in key[0]]
    # Started again nothing comes, and no counter moves.
    again = PullStory()
    pulled(collection_of(agent), tmp_path / "into", again)
    told = {(each.name, *labels) for each in pull_families(again) for labels in each.values}
    assert not [key for key in told if key[0] == "datacollect_pull_bytes"]


def test_what_comes_twice_is_counted_by_its_reason(agents, collection_of, tmp_path):
    agent, story = agents("S1", FILES, corrupt={"3"}), PullStory()
    limits = {"piece_bytes": 65536}
    answer = pulled(collection_of(agent, limits=limits), tmp_path / "into", story)
    assert [each.path for each in answer.missing]
    found = {each.name: each.values for each in pull_families(story)}
    told = {why: n for (why,), n in found["datacollect_pull_refetched_bytes"].items()}
    assert told == answer.refetched != {}
    n_bytes = sum(found["datacollect_pull_bytes"].values())
    assert n_bytes == sum(use.n_bytes for use in answer.routes)


def test_of_a_thousand_sources_and_routes_nothing_is_lost_and_no_more_is_told():
    story = PullStory()
    routes = {(f"S{n}", f"K{n % 7}", "D"): 3 for n in range(2000)}
    story.look(PullProgress(0, 6000, 1, 6000, routes=routes, troubles=dict.fromkeys("abc", "x")))
    story.look(
        PullProgress(0, 6000, 1, 6000, routes=routes, troubles={f"S{n}": "x" for n in range(900)})
    )
    families = {each.name: each.values for each in pull_families(story)}
    assert sum(map(len, families.values())) < MOST_SERIES
    assert sum(families["datacollect_pull_bytes"].values()) == 6000
    assert families["datacollect_pull_bytes"][OTHER, OTHER, OTHER] > 3
    assert sum(families["datacollect_pull_stuck"].values()) == 900


def test_who_is_given_up_is_told_with_the_reason_once(agents, collection_of, tmp_path):
    agent, story = agents("S1", FILES, refuses=401), PullStory()
    pulled(collection_of(agent), tmp_path / "into", story)
    assert list(story.given_up) == ["S1"]
    assert "401" in story.given_up["S1"]
    assert story.counts["source given up"] == 1
    assert story.answer["complete"] is False


@pytest.mark.parametrize("n", [3, 10 * MOST_EVENTS])
def test_of_all_that_goes_wrong_the_newest_is_kept(n):
    story = PullStory()
    for number in range(n):
        line = {"what": "session stuck", "s": number, "hosts": ["S1", "D"], "session": number}
        story.hear(line)
    assert story.counts["connection stuck"] == n
    assert [event[0] for event in story.events] == list(range(n))[-MOST_EVENTS:]
