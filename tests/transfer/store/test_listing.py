"""Listings: odd entries are left out by name, what cannot be ends them, the end is a fact."""

import pytest
from instances.stores import TIME_NS, Held, pull

from datacollect.errors import TransferError
from datacollect.transfer.protocol.patterns import WantedFiles
from datacollect.transfer.protocol.source import (
    UNCONFIRMED,
    LeftOut,
    Listed,
    ListedFolder,
    Page,
)
from datacollect.transfer.store import listing as listing_module
from datacollect.transfer.store.state.state import FileState, Settled, Stamp, State
from datacollect.transfer.store.store import Store, StoreOptions


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path)
    opened.state.begin_start(["S"])
    yield opened
    opened.close()


def listed(store, *pages):
    listing = store.listing("S")
    for page in pages:
        listing.take(page)
    listing.end()
    return {entry.path: entry.why for entry in store.state.missing()}


def test_odd_entries_are_left_out_by_name(store):
    files = [
        Listed("../out", 1, 1, 1),
        Listed("good", 1, 1, 1),
        Listed("inode", 1, 1, 2**63),
        Listed("large", 2**44 + 1, 1, 1),
        Listed("time", 1, 2**96, 1),
        Listed("\udcff", 1, 1, 1),
    ]
    out = [LeftOut("pi\ud800pe", "a\udc00b", "ff00")]
    folders = [ListedFolder("fine", 0o755, 1), ListedFolder(".datacollect", 0o755, 1)]
    whys = listed(store, Page(files, out, folders))
    assert whys.keys() == {
        "../out", "inode", "large", "time", "\\udcff", "pi\\ud800pe", ".datacollect"
    }  # fmt: skip
    assert "up to 17592186044416 bytes, 17.59 TB" in whys["large"]
    assert whys["pi\\ud800pe"] == "a\\udc00b"
    assert [m.path_hex for m in store.state.missing() if m.path.startswith("pi")] == ["ff00"]
    assert [name for name, *_ in store.state.waiting()] == ["S"]
    assert not store.state.is_complete()


@pytest.mark.parametrize("extents", [((5, 10),), ((0, 5), (4, 2)), ((0, 0),), ((-1, 3),)])
def test_ranges_that_cannot_be_are_passed_over(store, extents):
    listed(store, Page([Listed("f", 10, 1, 1, extents=extents, mode=0o200644)]))
    (file,) = store.state.known_files("S").values()
    assert file.extents is None
    assert file.mode is None


def test_names_must_be_sorted(store):
    page = Page([Listed("b", 1, 1, 1), Listed("a", 1, 1, 1)])
    with pytest.raises(TransferError, match="'a' is out of place"):
        listed(store, page)


def test_of_a_name_that_is_listed_again_the_first_counts_and_the_others_are_named(store):
    """Also where a page ends between them; what is not wanted is not named."""
    first = Listed("b", 5, 1, 7)
    pages = Page([Listed("a", 1, 1, 1), first, Listed("b", 6, 2, 8)]), Page([first, *LATER])
    whys = listed(store, *pages)
    assert whys.keys() == {"b"}
    assert "more than once; the first of them is collected" in whys["b"]
    assert len(store.state.missing()) == 2
    found = store.state.known_files("S")
    assert [(path, file.n_bytes) for path, file in sorted(found.items())] == [
        ("a", 1), ("b", 5), ("c", 3)
    ]  # fmt: skip
    assert [each.is_listed for each in store.state.wanted()] == [True]
    listing = store.listing("S", WantedFiles(("a",)))
    for page in pages:
        listing.take(page)
    listing.end()
    assert not any("more than once" in each.why for each in store.state.missing())


LATER = [Listed("c", 3, 1, 9)]


def test_pages_that_bring_nothing_have_an_end(store):
    listing = store.listing("S")
    for _ in range(39_999):
        listing.take(Page(()))
    with pytest.raises(TransferError, match="does not advance: 40000 pages in a row were empty"):
        listing.take(Page(()))


def test_there_are_limits(store, monkeypatch):
    monkeypatch.setattr(listing_module, "MOST_LEFT_OUT", 10)
    with pytest.raises(TransferError, match="collect it in parts, by patterns"):
        listed(store, Page((), [LeftOut(str(i), "why") for i in range(11)]))
    monkeypatch.setattr(listing_module, "MOST_FILES", 10)
    with pytest.raises(TransferError, match="it lists more than 10 files"):
        listed(store, Page((), (), [ListedFolder(str(i), None, None) for i in range(11)]))
    files = [Listed(f"{i:07}", 2**44, 1, 1) for i in range(2**9)]
    monkeypatch.setattr(listing_module, "BYTES_STOP", 2**50)
    monkeypatch.setattr(listing_module, "MOST_FILES", 10**6)
    with pytest.raises(TransferError, match=r"more than 2\*\*62 bytes in all"):
        listed(store, Page(files))


def test_only_a_listing_that_came_to_its_end_counts(tmp_path):
    held = Held(one=10)
    assert pull(tmp_path, held).is_complete
    store = Store(tmp_path)
    assert store.state.is_complete()
    store.state.begin_start(["S"])
    assert not store.state.is_complete()
    store.listing("S").take(held.page())
    assert [each.is_listed for each in store.state.wanted()] == [False]
    assert not store.state.is_complete()
    store.listing("S").end()
    assert [each.is_listed for each in store.state.wanted()] == [True]
    store.close()


def test_only_wanted_sources_count(tmp_path):
    """S lacks a file; taken out of the collection, it counts no more. An empty source counts."""
    lacking, good, empty = Held("S"), Held("T", one=10), Held("E")
    lacking.left_out = [LeftOut("pipe", "is not a regular file")]
    assert not pull(tmp_path, lacking, good).is_complete
    pulled = pull(tmp_path, good, empty)
    assert pulled.is_complete
    assert pulled.missing == {}
    store = Store(tmp_path)
    store.state.begin_start(["T", "E"])
    for name in ("T",):
        listing = store.listing(name)
        listing.take(good.page())
        listing.end()
    assert not store.state.is_complete()  # E is not listed
    store.state.set_wanted("E", False)
    assert store.state.is_complete()
    store.close()


def test_trouble_is_noted_until_a_source_is_listed(store):
    store.state.note_trouble("S", "cannot be \ud800reached")
    assert store.state.wanted()[0].why == "cannot be \\ud800reached"
    listed(store, Page(()))
    assert store.state.wanted() == [("S", True, None)]


def test_a_broken_second_listing_leaves_what_the_first_left_out(store):
    listed(store, Page((), [LeftOut("pipe", "is not a regular file")]))
    store.listing("S").take(Page(()))
    assert [m.path for m in store.state.missing()] == ["pipe"]


def test_times_before_1970_come_back_as_they_were(tmp_path):
    state = State(tmp_path / "state.sqlite")
    number = state.source_id("S")
    state.begin_listing(number)
    times = [-1, -(10**9), -(2**90) + 1, 2**90 + 1, TIME_NS]
    files = [Listed(f"f{i}", 1, time_ns, 1) for i, time_ns in enumerate(times)]
    state.add_page(number, files)
    state.end_listing(number)
    assert [file.mtime_ns for file in state.known_files("S").values()] == times
    state.close()


def unconfirmed(store, *, is_done):
    """List a file, have it placed or not, then list it as it was known."""
    store.state.begin_start(["S"])
    listed(store, Page([Listed("f", 0, 0, 0, '{"etag": "1"}')]))
    (row,) = store.state.files_in(store.state.source_id("S"), FileState.WAITING)
    if is_done:
        store.state.settle([Settled(row.number, FileState.DONE, None, Stamp(0, 1))])
    why = LeftOut("f", "a login page?")
    return listed(store, Page([row.listed], unconfirmed=[why]))


def test_what_is_not_confirmed_is_named_where_it_is_done_and_no_more(store):
    """What has yet to come is named where it does not come."""
    assert unconfirmed(store, is_done=False) == {}
    whys = unconfirmed(store, is_done=True)
    assert whys == {"f": f"{UNCONFIRMED}: a login page?"}
    assert not store.state.is_complete()
    listed(store, Page([Listed("f", 0, 0, 0, '{"etag": "1"}')]))
    assert store.state.is_complete()


def test_what_is_not_confirmed_counts_where_the_user_keeps_it(tmp_path):
    store = Store(tmp_path / "into", StoreOptions(keep=True))
    try:
        assert unconfirmed(store, is_done=True) == {}
    finally:
        store.close()
