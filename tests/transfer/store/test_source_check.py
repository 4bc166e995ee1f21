"""Finished files, compared with what their source has now, and mended part by part."""

import hashlib

import pytest
from blake3 import blake3
from instances.stores import UNIT, Held, fetch, get_ready, pull

from datacollect.transfer.protocol.patterns import Narrowing, WantedFiles
from datacollect.transfer.store import source_check
from datacollect.transfer.store.source_check import Range
from datacollect.transfer.store.store import Store

LARGE = 40 * UNIT


def mixed(tmp_path, held, path, *places):
    """Have a file come as its source had it in the middle of a change that nobody could see."""
    listed, data = held.files[path]
    wrong = bytearray(data)
    for at in places:
        wrong[at] ^= 1
    held.files[path] = (listed, bytes(wrong))
    pull(tmp_path, held)
    held.files[path] = (listed, data)
    assert (tmp_path / "S" / path).read_bytes() != data


def compared(tmp_path, held, digests=None):
    """Compare, as a start does, and fetch what differs; return that, and how many bytes came."""
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    store.mend()
    store.verify()
    listing = store.listing("S")
    listing.take(held.page())
    listing.end()
    store.prepare("S", UNIT, apart=False)
    found = store.check_with_source("S", digests or held.digests)
    store.know("S")
    n_bytes = fetch(store, held)
    is_complete = store.state.is_complete()
    store.close()
    return found, n_bytes, is_complete


def test_a_mixed_file_is_found_and_mended_by_its_parts(tmp_path):
    """Two bytes are wrong, far from each other; files before and behind share its pieces."""
    held = Held(a=100, large=LARGE, z=50)
    mixed(tmp_path, held, "large", 3 * UNIT, 30 * UNIT)
    found, n_bytes, is_complete = compared(tmp_path, held)
    (file,) = found.differing
    assert (file.path, len(file.parts)) == ("large", 2)
    assert [part.offset_bytes // UNIT for part in file.parts] == [2, 29]
    assert (found.n_files, found.n_bytes, found.not_compared) == (2, 150, [])
    assert is_complete
    assert (tmp_path / "S/large").read_bytes() == held.files["large"][1]
    # Pieces are cut again: each wrong part may lie in two, and the first lie beside others.
    assert n_bytes <= 5 * UNIT
    again, n_bytes, _ = compared(tmp_path, held)
    assert (again.n_files, again.differing, n_bytes) == (3, [], 0)


def test_what_a_start_does_not_ask_for_is_not_compared(tmp_path):
    """Its source has other bytes, and is asked about another file alone."""
    held = Held(a=100, large=LARGE)
    mixed(tmp_path, held, "large", 5)
    before = (tmp_path / "S/large").read_bytes()
    store = Store(tmp_path)
    try:
        store.state.begin_start(["S"], Narrowing(("a",)))
        listing = store.listing("S", WantedFiles(include=("a",)))
        listing.take(held.page())
        listing.end()
        store.prepare("S", UNIT, apart=False)
        found = store.check_with_source("S", held.digests)
        assert (found.n_files, found.differing, found.not_compared) == (1, [], [])
        store.know("S")
        assert fetch(store, held) == 0
    finally:
        store.close()
    assert (tmp_path / "S/large").read_bytes() == before
    found, _, is_complete = compared(tmp_path, held)
    assert [file.path for file in found.differing] == ["large"]
    assert is_complete


def test_until_the_new_one_is_whole_the_old_one_lies_there(tmp_path):
    held = Held(large=LARGE)
    mixed(tmp_path, held, "large", 5)
    before = (tmp_path / "S/large").read_bytes()
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    listing = store.listing("S")
    listing.take(held.page())
    listing.end()
    store.prepare("S", UNIT, apart=False)
    store.check_with_source("S", held.digests)
    store.know("S")
    assert len(store.needed("S")) == 1
    store.close()
    assert (tmp_path / "S/large").read_bytes() == before
    assert pull(tmp_path, held).is_complete
    assert (tmp_path / "S/large").read_bytes() == held.files["large"][1]


def test_holes_are_compared_as_zeros(tmp_path, monkeypatch):
    monkeypatch.setattr(source_check, "SPAN_BYTES", 3 * UNIT)
    held = Held()
    data = b"a" * UNIT + bytes(10 * UNIT) + b"b" * UNIT
    held.write("holed", data, extents=((0, UNIT), (11 * UNIT, UNIT)))
    pull(tmp_path, held)
    found, n_bytes, _ = compared(tmp_path, held)
    assert (found.n_files, found.differing, n_bytes) == (1, [], 0)
    changed = bytearray(data)
    changed[5 * UNIT] = 1
    held.files["holed"] = (held.files["holed"][0]._replace(extents=None), bytes(changed))
    found, _, is_complete = compared(tmp_path, held)
    assert [part.offset_bytes for part in found.differing[0].parts] == [4 * UNIT]
    assert is_complete
    assert (tmp_path / "S/holed").read_bytes() == changed


@pytest.mark.parametrize(
    ("digests", "why"),
    [
        (lambda _: None, "this source gives no hashes"),
        (lambda segments: [None] * len(segments), "the source gave no hash of it now"),
        (lambda _: [], "the source gave no hash of it now"),
    ],
)
def test_what_cannot_be_compared_is_named(tmp_path, digests, why):
    held = Held(a=10, b=3 * UNIT)
    pull(tmp_path, held)
    found, _, is_complete = compared(tmp_path, held, digests)
    assert {each.path for each in found.not_compared} == {"a", "b"}
    assert all(each.why.startswith(why) for each in found.not_compared)
    assert (found.n_files, found.differing, is_complete) == (0, [], True)


def test_a_manifest_says_what_a_web_server_has(tmp_path):
    """Nothing is asked then; another file than the manifest says is fetched again as a whole."""
    held = Held(a=1000, b=1000)
    pull(tmp_path, held)
    for path in ("a", "b"):
        held.tell_besides(path, sha256=hashlib.sha256(held.files[path][1]).hexdigest())
    other = bytes(1000)
    listed, _ = held.files["b"]
    held.files["b"] = (listed._replace(sha256=hashlib.sha256(other).hexdigest()), other)
    found, n_bytes, is_complete = compared(tmp_path, held, lambda _: None)
    assert [(each.path, each.parts) for each in found.differing] == [("b", [Range(0, 1000)])]
    assert (found.n_files, n_bytes, is_complete) == (1, 1000, True)
    assert (tmp_path / "S/b").read_bytes() == other


def test_many_files_are_asked_about_together(tmp_path, monkeypatch):
    """Ten of 100 bytes fit into one question, and each file is judged by its own parts."""
    monkeypatch.setattr(source_check, "SPAN_BYTES", 1000)
    held = Held(**{f"f{i:02}": 100 for i in range(35)})
    mixed(tmp_path, held, "f17", 50)
    questions = []

    def digests(segments):
        questions.append(len(segments))
        return [blake3(held.part(segment)).digest() for segment in segments]

    found, n_bytes, _ = compared(tmp_path, held, digests)
    assert [each.path for each in found.differing] == ["f17"]
    assert (found.n_files, n_bytes) == (34, 100)
    assert questions == [10, 10, 10, 5]


def test_one_that_is_changed_here_meanwhile_is_not_taken_from(tmp_path):
    held = Held(large=LARGE)
    mixed(tmp_path, held, "large", 5)
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    listing = store.listing("S")
    listing.take(held.page())
    listing.end()
    store.prepare("S", UNIT, apart=False)
    store.check_with_source("S", held.digests)
    (tmp_path / "S/large").write_bytes(b"x" * LARGE)
    store.know("S")
    assert len(store.needed("S")) == 40
    store.close()


def test_what_is_read_for_a_file_is_what_is_sent(tmp_path):
    """A start that gets ready without asking compares nothing."""
    held = Held(a=10)
    pull(tmp_path, held)
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    get_ready(store, held)
    assert held.asked == []
    store.close()
