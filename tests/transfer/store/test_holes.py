"""Sparse files: what lies in their holes is not fetched, not written and not counted."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.stores import UNIT, Held, fetch, get_ready, pull

from datacollect.transfer.protocol.source import Listed
from datacollect.transfer.store.state.holes import cuts, data_bytes, stretches
from datacollect.transfer.store.status import verify_of
from datacollect.transfer.store.store import Store

MIB = 2**20


def holed(n_bytes, *extents):
    """A source of one file, whose data ranges are full of ones."""
    data = bytearray(n_bytes)
    for offset, length in extents:
        data[offset : offset + length] = b"\1" * length
    source = Held()
    source.write("f", bytes(data), extents=extents)
    return source


@pytest.mark.parametrize(
    ("n_bytes", "extents", "fetched"),
    [
        (4 * MIB, ((MIB, 3 * UNIT),), 3 * UNIT),
        (4 * MIB, ((0, 10), (4 * MIB - 10, 10)), 20),
        (4 * MIB, (), 0),
        (100, (), 100),  # shorter than a piece
        (3 * UNIT, ((0, UNIT), (UNIT + 100, UNIT)), 3 * UNIT),  # short holes are fetched
    ],
)
def test_holes_are_not_fetched_and_stay_holes(tmp_path, n_bytes, extents, fetched):
    source = holed(n_bytes, *extents)
    source.write("before", b"b" * 10)
    source.write("g", b"g" * (UNIT + 5))
    pulled = pull(tmp_path, source)
    assert pulled.is_complete
    assert pulled.n_bytes == fetched + 10 + UNIT + 5
    file = tmp_path / "S/f"
    assert file.read_bytes() == source.files["f"][1]
    room = sum(length + UNIT for _, length in extents) + (UNIT if fetched else 0)
    assert file.stat().st_blocks * 512 <= room
    assert verify_of(tmp_path).is_sound
    again = pull(tmp_path, source)
    assert again.is_complete
    assert again.n_bytes == again.n_lost == 0


def test_blocks_of_zeros_that_are_fetched_are_not_written(tmp_path):
    """Ranges of data may hold zeros, as where a file system does not tell its holes exactly."""
    data = b"\1" * UNIT + bytes(8 * UNIT) + b"\1" * UNIT
    source = Held()
    source.write("f", data, extents=((0, len(data)),))
    assert pull(tmp_path, source).is_complete
    assert (tmp_path / "S/f").read_bytes() == data
    assert (tmp_path / "S/f").stat().st_blocks * 512 < 4 * UNIT


def test_zeros_are_written_over_what_lay_there_before(tmp_path):
    """A file that was begun, and of which nothing was recorded, may hold anything."""
    data = bytes(4 * UNIT)
    source = Held()
    source.write("f", data, extents=((0, len(data)),))
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    get_ready(store, source)
    (tmp_path / ".datacollect/incoming/1").write_bytes(b"x" * (4 * UNIT))
    fetch(store, source)
    store.close()
    assert (tmp_path / "S/f").read_bytes() == data


def test_a_file_of_a_terabyte_of_holes_costs_nothing(tmp_path):
    """Its pieces are as many as its data need."""
    n_bytes = 2**44
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    source = Held()
    source.files["f"] = (Listed("f", n_bytes, 1, 1, None, None, None, ((2**40, 10),)), b"")
    listing = store.listing("S")
    listing.take(source.page())
    listing.end()
    assert store.prepare("S", UNIT, apart=False) == []
    assert store.why_no_room("S") is None
    store.know("S")
    layout = store.layout("S")
    assert layout.pieces.tolist() == [0, 2**40, 2**40 + 10]
    assert store.needed("S") == [1]
    store.close()


def test_holes_count_for_no_room(tmp_path, monkeypatch):
    free = os.statvfs(tmp_path)
    free_bytes = free.f_bavail * free.f_frsize
    store = Store(tmp_path)
    store.state.begin_start(["S", "T"])
    for name, extents in (("S", None), ("T", ((0, 10),))):
        source = Held(name)
        source.files["f"] = (Listed("f", free_bytes, 1, 1, extents=extents), b"")
        listing = store.listing(name)
        listing.take(source.page())
        listing.end()
        store.prepare(name, UNIT, apart=False)
    why = store.why_no_room("S")
    assert "must have room for" in why
    store.put_off("S", why)
    assert store.put_off_sources() == {"S": why}
    assert store.why_no_room("T") is None
    store.know("T")
    assert [(m.source, m.why) for m in store.state.missing()] == [("S", why)]
    assert store.known_sources() == ["T"]
    store.close()


def test_the_room_of_all_that_is_under_way_counts(tmp_path):
    """Either fits, both do not."""
    free = os.statvfs(tmp_path)
    half = free.f_bavail * free.f_frsize * 6 // 10
    store = Store(tmp_path)
    store.state.begin_start(["S", "T"])
    for name in ("S", "T"):
        source = Held(name)
        source.files["f"] = (Listed("f", half, 1, 1), b"")
        listing = store.listing(name)
        listing.take(source.page())
        listing.end()
        store.prepare(name, 2**24, apart=False)
    assert store.why_no_room("S") is None
    assert store.why_no_room("T") is None
    store.know("S")
    assert store.why_no_room("S") is None
    assert store.why_no_room("T") is not None
    store.close()


ranges = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 300)), max_size=6)


@given(ranges, st.integers(0, 300), st.integers(1, 200))
def test_stretches_cover_a_file_once(gaps, rest, size):
    extents, end = [], 0
    for gap, length in gaps:
        extents.append((end + gap, length))
        end += gap + length
    n_bytes = end + rest
    found = list(stretches(n_bytes, extents, size))
    at = 0
    for begin, stop, is_hole in found:
        assert begin == at < stop
        at = stop
        held = [(a, n) for a, n in extents if a < stop and a + n > begin]
        assert is_hole == (not held and stop - begin >= size)
    assert at == n_bytes
    begins = cuts(n_bytes, extents, size)
    assert begins == sorted(set(begins))
    assert {begin for begin, _, _ in found} <= set(begins)
    assert data_bytes(Listed("f", n_bytes, 0, 0, extents=tuple(extents))) == sum(
        n for _, n in extents
    )
