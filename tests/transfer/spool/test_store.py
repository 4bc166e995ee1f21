"""A spool on the disk: what is kept outlasts its process, what has ended leaves nothing behind."""

import threading

import pytest

from datacollect.errors import ProblemError, RefusedError
from datacollect.files.held_folder import Held
from datacollect.transfer.spool.sealing import SealedPiece, new_key, open_sealed, seal
from datacollect.transfer.spool.store import (
    DROPPED,
    EXPIRED,
    MOST_KEEP_S,
    Lost,
    SpoolStore,
    collections_of,
)

KEY, ROOT, NOW_S = new_key(), bytes(32), 1e9


def piece(index, data=b"hello", source="S1"):
    return SealedPiece(source, index, ROOT, len(data))


@pytest.fixture
def opened(tmp_path):
    stores = []

    def open_store(most_bytes=10**9, owner="K"):
        store = SpoolStore(Held(tmp_path / "spool"), owner, most_bytes)
        stores.append(store)
        return store

    yield open_store
    for store in stores:
        store.close()


def keep(store, collection, index, data=b"hello"):
    sealed = seal(KEY, "c1", piece(index, data), data)
    store.reserve(len(sealed))
    store.wait(store.add(collection, piece(index, data), sealed), NOW_S)
    return sealed


def test_what_is_kept_is_there_after_the_process(opened):
    store = opened()
    number = store.order("ed25519:x", "c1", NOW_S + 60, NOW_S)
    kept = [keep(store, number, i, bytes([i]) * 1000) for i in range(5)]
    store.close()
    again = opened()
    assert again.number_of("ed25519:x", "c1") == number
    assert [each.index for each in again.pieces(number)] == list(range(5))
    assert [again.fetch(number, "S1", i, ROOT) for i in range(5)] == kept
    found = piece(3, bytes(1000))
    assert open_sealed(KEY, "c1", found, again.fetch(number, "S1", 3, ROOT)) == b"\3" * 1000


def test_what_was_not_waited_for_is_not_there_after_a_crash(opened, tmp_path):
    store = opened()
    number = store.order("x", "c1", NOW_S + 60, NOW_S)
    keep(store, number, 0)
    store.reserve(piece(1).sealed_bytes)
    store.add(number, piece(1), seal(KEY, "c1", piece(1), b"hello"))
    store.close()
    again = opened()
    assert [each.index for each in again.pieces(number)] == [0]
    (segment,) = (tmp_path / "spool" / "kept" / "segments").iterdir()
    assert segment.stat().st_size == piece(0).sealed_bytes


def test_a_piece_that_is_another_by_now_is_not_given_for_it(opened):
    store = opened()
    number = store.order("x", "c1", NOW_S + 60, NOW_S)
    keep(store, number, 0)
    for source, index, root in (("S2", 0, ROOT), ("S1", 1, ROOT), ("S1", 0, b"\1" * 32)):
        with pytest.raises(RefusedError, match="this agent has no such piece, or no longer"):
            store.fetch(number, source, index, root)


def test_room_is_promised_before_a_byte_and_only_once(opened):
    store = opened(most_bytes=1000)
    number = store.order("x", "c1", NOW_S + 60, NOW_S)
    store.reserve(600)
    with pytest.raises(RefusedError, match="no room in the spool for 600") as refused:
        store.reserve(600)
    assert refused.value.status == 507
    store.let_go(600)
    keep(store, number, 0, bytes(870))
    with pytest.raises(RefusedError, match="no room"):
        store.reserve(100)


def test_nothing_of_a_collection_is_left_after_its_end(opened, tmp_path):
    store = opened()
    first, second = (store.order("x", name, NOW_S + 60, NOW_S) for name in ("c1", "c2"))
    for i in range(3):
        keep(store, first, i)
        keep(store, second, i)
    store.end(first)
    assert store.number_of("x", "c1") is None
    assert [each.name for each in collections_of(tmp_path / "spool")] == ["c2"]
    with pytest.raises(RefusedError, match="has ended"):
        store.add(first, piece(4), bytes(piece(4).sealed_bytes))
    assert len(store.pieces(second)) == 3
    store.close()
    again = opened()
    assert len(again.pieces(second)) == 3
    assert len(list((tmp_path / "spool").rglob("*.segment"))) == 1
    again.end(second)
    assert not list((tmp_path / "spool").rglob("*.segment"))


def test_what_the_destination_has_frees_its_segment(opened, tmp_path, monkeypatch):
    monkeypatch.setattr("datacollect.transfer.spool.store.MOST_SEGMENT_BYTES", 150)
    store = opened(most_bytes=1000)
    number = store.order("x", "c1", NOW_S + 60, NOW_S)
    for i in range(6):
        keep(store, number, i)  # two in each segment of 150 bytes
    store.forget(number, [("S1", 0), ("S1", 1), ("S1", 2)])
    assert [each.index for each in store.pieces(number)] == [3, 4, 5]
    assert len(list((tmp_path / "spool").rglob("*.segment"))) == 1
    store.forget(number, [("S1", 3), ("S1", 4), ("S1", 5)])
    assert not list((tmp_path / "spool").rglob("*.segment"))
    store.reserve(1000 - 2 * 69)  # but for the open one


def test_what_expires_or_is_dropped_is_counted(opened):
    store = opened()
    number = store.order("x", "c1", NOW_S + 60, NOW_S)
    keep(store, number, 0)
    keep(store, number, 1)
    assert store.expire(NOW_S + 59) == []
    assert store.expire(NOW_S + 61) == [number]
    found = store.collection(number)
    assert (found.expired, found.dropped, found.pieces) == (Lost(2, 10), Lost(), 0)
    store.order("x", "c1", NOW_S + 600, NOW_S + 100)
    keep(store, number, 2)
    store.drop(number, DROPPED)
    assert store.collection(number).dropped == Lost(1, 5)
    assert store.expire(NOW_S + 10**8) == []
    assert store.collection(number) is None


def test_a_clock_that_is_set_back_keeps_nothing_for_ever(opened):
    store = opened()
    number = store.order("x", "c1", NOW_S + 60, NOW_S)
    keep(store, number, 0)
    back_s = NOW_S - 10 * MOST_KEEP_S
    assert store.expire(back_s) == []
    assert store.collection(number).until_s == back_s + MOST_KEEP_S
    assert store.expire(back_s + MOST_KEEP_S) == [number]


def test_the_folder_of_another_agent_is_refused(opened):
    opened().close()
    with pytest.raises(ProblemError, match="belongs to the spool of K, not to the spool of L"):
        opened(owner="L")


def test_many_threads_share_a_sync_and_all_is_kept(opened):
    store = opened()
    number = store.order("x", "c1", NOW_S + 60, NOW_S)
    threads = [
        threading.Thread(target=lambda k=k: [keep(store, number, 100 * k + i) for i in range(20)])
        for k in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(store.pieces(number)) == 160


def test_a_full_disk_is_refused_and_what_was_kept_stays(opened, monkeypatch):
    """Then there is room again, and the store goes on by itself."""
    store = opened()
    number = store.order("x", "c1", NOW_S + 60, NOW_S)
    keep(store, number, 0)
    real = store._files.sync
    monkeypatch.setattr(store._files, "sync", _no_room)
    with pytest.raises(RefusedError, match="not kept") as refused:
        keep(store, number, 1)
    assert refused.value.status == 507
    monkeypatch.setattr(store._files, "sync", real)
    keep(store, number, 2)
    assert [each.index for each in store.pieces(number)] == [0, 2]
    assert EXPIRED != DROPPED


def _no_room(_):
    from datacollect.files.held_folder import NoRoomError

    raise NoRoomError("spool: no room is left on its disk")
