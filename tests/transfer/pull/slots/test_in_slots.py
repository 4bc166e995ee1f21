"""Pulls in slots: what no open way leads to at once waits at a relay, sealed, and comes later."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from instances.agents import collection_tree, running, write_agent
from instances.dripping import Dripping
from judges.slots import judged

import datacollect as dc
from datacollect.errors import ProblemError, RefusedError
from datacollect.transfer.spool.store import GONE, SpoolStore, collections_of

RATE = 1_000_000.0


def window(begin_s, end_s, now=None):
    """Return hours by UTC, seconds from now on."""
    now = now or datetime.now(UTC)
    begin, end = (now + timedelta(seconds=each) for each in (begin_s, end_s))
    return f"{begin:%H:%M:%S}-{end:%H:%M:%S}"


def nights(first_s, now):
    """Return hours of eight seconds, each twenty seconds after the one before, for ten minutes."""
    return [window(first_s + 20 * i, first_s + 20 * i + 8, now) for i in range(30)]


def link(tail, head, **more):
    return {"from": tail, "to": head, "bandwidth_bytes_per_s": RATE} | more


OPEN = "00:00-24:00"


def stored_alone(collection, into, spool, wanted):
    """Pull until the relay keeps so many pieces, in several starts on a busy machine.

    Each has twice the time of the one before: where nothing comes in six seconds, something will.
    """
    for i in range(6):
        limited = collection | {"limits": {**collection["limits"], "time_s": 6.0 * 2**i}}
        assert not dc.pull(limited, into, slot_s=1.0).complete
        if sum(each.pieces for each in collections_of(spool)) == wanted:
            return
    kept = [each.pieces for each in collections_of(spool)]
    raise AssertionError(f"{wanted} pieces are never kept: {kept}")


def by_night(now):
    """Return a way from S over K whose two links are never open at the same time."""
    return [link("S", "K", open=nights(0, now)), link("K", "D", open=nights(10, now))]


@pytest.fixture
def collection_of(tmp_path):
    limits = {"patience_s": 20.0, "timeout_s": 5.0, "piece_bytes": 65536}
    return partial(collection_tree, tmp_path, timezone="UTC", sources={"S": {}}, limits=limits)


def source_file(tmp_path, n_bytes=1_000_000):
    path = write_agent(tmp_path, "S", serve="data")
    (tmp_path / "data/file").write_bytes(bytes(i % 251 for i in range(n_bytes)))
    return path


def relay_file(tmp_path, source, name="K", n_bytes=10**8):
    spool = f'spool = {{ folder = "spool-{name}", bytes = {n_bytes} }}'
    return write_agent(tmp_path, name, connect_to={"S": source.place}, more=spool)


@pytest.mark.slow
def test_a_collection_by_windows_that_do_not_overlap_comes_and_is_a_valid_schedule(
    tmp_path, collection_of
):
    lines = []
    with running(source_file(tmp_path)) as s, running(relay_file(tmp_path, s)) as k:
        collection = collection_of(s, k, links=by_night(datetime.now(UTC)))
        answer = dc.pull(collection, tmp_path / "into", slot_s=1.0, tell=lines.append)
    assert answer.complete, (answer.missing, lines)
    assert (tmp_path / "into/S/file").read_bytes() == (tmp_path / "data/file").read_bytes()
    assert [use.hosts for use in answer.routes] == [("S", "K", "D")]
    schedule = judged(tmp_path / "into")
    assert schedule.slot_s == 1.0
    assert collections_of(tmp_path / "spool-K") == []
    assert not list((tmp_path / "spool-K").rglob("*.segment"))


def test_slots_need_links_and_are_longer_than_a_round_trip(tmp_path, collection_of):
    with running(source_file(tmp_path)) as s:
        collection = collection_of(s, links=[])
        with pytest.raises(ProblemError, match="--slot needs links"):
            dc.pull(collection, tmp_path / "into", slot_s=5.0)
        collection = collection_of(s, links=[link("S", "D")])
        with pytest.raises(ProblemError, match="at least a round trip, got 1e-06 s, and S answers"):
            dc.pull(collection, tmp_path / "into", slot_s=1e-6)
        with pytest.raises(ProblemError, match="must be > 0"):
            dc.pull(collection, tmp_path / "into", slot_s=0.0)


def test_slots_of_seconds_over_days_are_refused_with_what_is_long_enough(tmp_path, collection_of):
    """K -> D opens in twelve hours: 43 200 slots of a second, at most 5000 are planned."""
    with running(source_file(tmp_path)) as s, running(relay_file(tmp_path, s)) as k:
        links = [link("S", "K"), link("K", "D", open=window(43_205, 50_000))]
        with pytest.raises(ProblemError) as refused:
            dc.pull(collection_of(s, k, links=links), tmp_path / "into", slot_s=1.0)
    assert "slots pass until K -> D opens at" in str(refused.value)
    assert 'plans have at most 5000; take --slot "9 s" or longer' in str(refused.value)


def test_a_plan_alone_says_what_waits_where_and_moves_nothing(tmp_path, collection_of):
    with running(source_file(tmp_path, 300_000)) as s, running(relay_file(tmp_path, s)) as k:
        now = datetime.now(UTC)
        links = [link("S", "K"), link("K", "D", open=window(1800, 3600, now))]
        collection = collection_of(s, k, links=links)
        answer = dc.pull(collection, tmp_path / "into", slot_s=5.0, plan_only=True)
    [wait] = answer.waits
    assert (wait.source, wait.relay, wait.n_bytes) == ("S", "K", 300_000)
    assert wait.from_s - now.timestamp() < 60
    assert 1800 <= wait.until_s - now.timestamp() < 1900
    assert answer.method_text == "adaptive, in slots of 5 s"
    assert answer.to_dict()["waits"][0]["relay"] == "K"
    assert collections_of(tmp_path / "spool-K") == []


# What goes wrong --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_relay_that_changes_or_swaps_pieces_is_named_and_they_come_from_the_source(
    tmp_path, collection_of
):
    """Bytes on its disk are changed after it has stored all; the next start may fetch from S."""
    lines = []
    with running(source_file(tmp_path, 300_000)) as s, running(relay_file(tmp_path, s)) as k:
        now = datetime.now(UTC)
        links = [link("S", "K"), link("K", "D", open=window(3600, 7200, now))]
        collection = collection_of(s, k, links=links)
        stored_alone(collection, tmp_path / "into", tmp_path / "spool-K", 5)
        for path in (tmp_path / "spool-K").rglob("*"):
            if path.parent.name in ("open", "segments"):
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                path.write_bytes(bytes(data))
        links = [link("K", "D", bandwidth_bytes_per_s=2 * RATE), link("S", "D", open=OPEN)]
        answer = dc.pull(
            collection_of(s, k, links=links), tmp_path / "into", slot_s=1.0, tell=lines.append
        )
    assert answer.complete, (answer.missing, lines)
    assert (tmp_path / "into/S/file").read_bytes() == (tmp_path / "data/file").read_bytes()
    [line] = [each for each in lines if "is not as its source sealed it" in each]
    assert line.startswith("note: K: piece ")
    assert line.endswith("it is fetched from its source, and nothing more is kept at K")
    assert ("S", "D") in [use.hosts for use in answer.routes]


def slow_line_beside(*agents, collection_of, **limits):
    """Return a collection whose way over K is fast, and that straight from S slow."""
    links = [link("S", "K"), link("K", "D"), link("S", "D", bandwidth_bytes_per_s=RATE / 20)]
    made = collection_of(*agents, links=links)
    return made | {"limits": {**made["limits"], **limits}}


def changed(store, given):
    """Give each piece with one bit turned."""
    return lambda *which: bytes([given(*which)[0] ^ 1]) + given(*which)[1:]


def swapped(store, given):
    """Give the first piece that was asked for, whichever is wanted."""
    first = []

    def fetch(number, source, index, root):
        first.append(given(number, source, index, root))
        return first[0]

    return fetch


def lost(store, given):
    """Say of all that was kept that it is not there any more."""

    def fetch(*_):
        raise RefusedError("this agent has no such piece, or no longer", GONE)

    return fetch


@pytest.mark.slow
@pytest.mark.parametrize("lie", [changed, swapped, lost])
def test_from_a_relay_that_lies_no_piece_is_taken_and_all_comes(
    tmp_path, collection_of, monkeypatch, lie
):
    given = SpoolStore.fetch
    lies = {}

    def fetch(store, *which):
        honest = given.__get__(store)
        return lies.setdefault(store, lie(store, honest))(*which)

    monkeypatch.setattr(SpoolStore, "fetch", fetch)
    lines = []
    with running(source_file(tmp_path, 400_000)) as s, running(relay_file(tmp_path, s)) as k:
        collection = slow_line_beside(s, k, collection_of=collection_of, patience_s=5.0)
        answer = dc.pull(collection, tmp_path / "into", slot_s=1.0, tell=lines.append)
    assert answer.complete, (answer.missing, lines)
    assert (tmp_path / "into/S/file").read_bytes() == (tmp_path / "data/file").read_bytes()
    assert lies, "the relay was never asked"
    named = [each for each in lines if "is not as its source sealed it" in each]
    assert len(named) == (0 if lie is lost else 1)
    assert all(each.startswith("note: K: ") for each in named)
    if lie is not lost:
        assert ("S", "D") in [use.hosts for use in answer.routes]
    judged(tmp_path / "into")


@pytest.mark.slow
def test_a_relay_that_sends_some_bytes_a_second_is_named_and_holds_nothing_up(
    tmp_path, collection_of
):
    lines = []
    with (
        running(source_file(tmp_path, 400_000)) as s,
        running(relay_file(tmp_path, s)) as k,
        Dripping(k.address, untouched_bytes=20_000) as dripping,
    ):
        collection = slow_line_beside(s, k, collection_of=collection_of, patience_s=4.0)
        collection["agents"]["K"]["url"] = dripping.url
        answer = dc.pull(collection, tmp_path / "into", slot_s=1.0, tell=lines.append)
    assert answer.complete, (answer.missing, lines)
    assert (tmp_path / "into/S/file").read_bytes() == (tmp_path / "data/file").read_bytes()
    assert [each for each in lines if each.startswith("note: K sends what it keeps too slowly")]
    assert [use.hosts for use in answer.routes] == [("S", "D")]
