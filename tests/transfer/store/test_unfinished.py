"""Unfinished files: none gets its final name without its hash, whatever has touched it.

The oracle is the source's own bytes. What was recorded and is still there is not fetched again.
"""

import errno
import itertools
import shutil
import threading
import time
from contextlib import suppress

import pytest
from blake3 import blake3
from instances.how_many import some
from instances.stores import UNIT, Held, fetch, get_ready, pull, put, rounds
from transfer.store.tampering import (
    INCOMING,
    TAMPERINGS,
    abandon,
    apart,
    begin,
    is_right,
    source,
    unfinished,
)

from datacollect.errors import ProblemError, StoreError
from datacollect.transfer.protocol.source import Listed, Page
from datacollect.transfer.store.status import status_of
from datacollect.transfer.store.store import PieceKey, Store

N_PIECES = 12  # of `source`, but for its hole


def needed_bytes(folder, held):
    """What a start in a copy of a folder says that has yet to come."""
    shutil.copytree(folder, folder.with_name("asked"), symlinks=True)
    store = Store(folder.with_name("asked"))
    store.state.begin_start(["S"])
    store.mend()
    get_ready(store, held)
    spans = [span for piece in store.needed("S") for span in segments_of(store, piece)]
    store.close()
    shutil.rmtree(folder.with_name("asked"))
    return sum(span.n_bytes for span in spans)


def segments_of(store, piece):
    return [segment.span for segment in store.segments(PieceKey("S", piece))]


def tampered(tmp_path, name, n_pieces, *, is_killed):
    """Tamper with each unfinished file by itself; return how many there were."""
    held, first = source(), tmp_path / "first"
    begin(first, held, n_pieces, is_killed=is_killed)
    numbers = [path.name for path in unfinished(first)]
    for number in numbers:
        folder = tmp_path / f"of-{number}"
        # Not as it was left, all of it: that is what a copy is.
        shutil.copytree(first, folder)
        TAMPERINGS[name](folder / INCOMING / number)
        assert pull(folder, held).is_complete, (name, number)
        assert is_right(folder, held), (name, number)
        assert not any((folder / INCOMING).iterdir())
        shutil.rmtree(folder)
    TAMPERINGS[name](first / INCOMING / numbers[-1])
    assert pull(first, held).is_complete
    assert is_right(first, held)
    target = first / ".datacollect/target"
    assert not target.exists() or target.read_bytes() == b"mine"
    return len(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("name", TAMPERINGS)
def test_what_was_tampered_with_between_two_starts_is_fetched_again(tmp_path, name):
    assert tampered(tmp_path, name, 7, is_killed=True) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", TAMPERINGS)
def test_whatever_was_tampered_with_after_however_much(tmp_path, name):
    for n_pieces, is_killed in some(itertools.product(range(1, N_PIECES + 1), (False, True))):
        folder = tmp_path / f"{n_pieces}-{is_killed}"
        folder.mkdir()
        tampered(folder, name, n_pieces, is_killed=is_killed)
        shutil.rmtree(folder)


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("n_pieces", [1, 4, 7, 11])
def test_what_is_recorded_and_there_is_not_fetched_again(tmp_path, n_pieces, is_killed):
    """A copy has other inodes and times: all is read again, and nothing fetched twice."""
    held = source()
    begin(tmp_path / "one", held, n_pieces, is_killed=is_killed)
    n_bytes = needed_bytes(tmp_path / "one", held)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for folder in (tmp_path / "one", tmp_path / "two"):
        found = pull(folder, held)
        assert (found.is_complete, found.n_bytes) == (True, n_bytes)
        assert is_right(folder, held)


def test_only_the_parts_that_are_gone_are_fetched_again(tmp_path):
    """File b has 5 pieces and a bit; one bit of the second is another."""
    held = source()
    begin(tmp_path, held, 7, is_killed=False)
    before = needed_bytes(tmp_path, held)
    path = tmp_path / INCOMING / "3"
    data = bytearray(path.read_bytes())
    data[100_000] ^= 1
    path.write_bytes(data)
    found = pull(tmp_path, held)
    assert is_right(tmp_path, held)
    assert 0 < found.n_bytes - before <= 2**16


def test_after_an_end_in_good_order_nothing_is_read_again(tmp_path):
    """The stamps are those that were noted; a copy's are others."""
    held = source()
    begin(tmp_path / "one", held, 7, is_killed=False)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for folder, is_read in ((tmp_path / "one", False), (tmp_path / "two", True)):
        store = Store(folder)
        store.state.begin_start(["S"])
        store._rereading.add = lambda files, found=(found := []): found.extend(files)
        get_ready(store, held)
        assert bool(found) == is_read
        store.close()


def test_no_file_is_made_anew_of_which_something_is_recorded(tmp_path):
    """`rm incoming/*` while it works, then killed, and once more."""
    held = source()
    begin(tmp_path, held, 6, is_killed=True)
    for _ in range(2):
        store = Store(tmp_path)
        store.state.begin_start(["S"])
        get_ready(store, held)
        for _ in rounds(store):
            for path in unfinished(tmp_path):
                path.unlink()
            for piece in store.needed("S")[:2]:
                put(store, held, piece)
        abandon(store)
    assert pull(tmp_path, held).is_complete
    assert is_right(tmp_path, held)


def disturbed(tmp_path, name, step):
    """Tamper with all unfinished files after some pieces of a start, recorded or only written."""
    held, folder = source(), tmp_path / f"{step}"
    store = Store(folder)
    store.state.begin_start(["S"])
    get_ready(store, held)
    pieces = apart(store.needed("S"))
    for _ in rounds(store):
        for piece in pieces[:step]:
            put(store, held, piece)
    for _ in rounds(store):
        for piece in pieces[step : step + 1]:
            put(store, held, piece)
        for path in unfinished(folder):
            with suppress(FileNotFoundError):  # it has got its name meanwhile
                TAMPERINGS[name](path)
        for piece in pieces[step + 1 :]:
            put(store, held, piece)
    fetch(store, held)
    assert is_right(folder, held), (name, step)
    store.clean()
    assert store.state.is_complete()
    store.close()
    assert pull(folder, held).n_bytes == 0


@pytest.mark.parametrize("name", TAMPERINGS)
def test_what_is_tampered_with_while_it_comes_is_fetched_again(tmp_path, name):
    disturbed(tmp_path, name, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", TAMPERINGS)
@pytest.mark.parametrize("step", some(range(N_PIECES)))
def test_whenever_it_is_tampered_with(tmp_path, name, step):
    disturbed(tmp_path, name, step)


def test_nobody_ends_before_what_was_read_again_is_noted(tmp_path, monkeypatch):
    """The round ends while it is being noted what does not fit: that is fetched again, too."""
    note_lost, held, begun = Store._note_lost, source(), threading.Event()

    def late(store, *found):
        begun.set()
        time.sleep(0.3)
        note_lost(store, *found)

    monkeypatch.setattr(Store, "_note_lost", late)
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    get_ready(store, held)
    first, *others = apart(store.needed("S"))
    for _ in rounds(store):
        put(store, held, first)
        TAMPERINGS["replaced"](unfinished(tmp_path)[0])
        for piece in others:
            put(store, held, piece)
        assert begun.wait(timeout=60)
    fetch(store, held)
    store.close()
    assert is_right(tmp_path, held)


def a_piece_of_two(tmp_path):
    """Two files that share the middle one of three pieces, which has come."""
    held = Held(x=UNIT * 3 // 2, y=UNIT * 3 // 2)
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    get_ready(store, held)
    for _ in rounds(store):
        put(store, held, 1)
    half = UNIT // 2
    x, y = (
        store.segments(PieceKey("S", 0))[0].span.file,
        store.segments(PieceKey("S", 2))[0].span.file,
    )
    return store, held, {"x": (x, UNIT, half), "y": (y, 0, half)}


def lose(store, path, file, offset, n_bytes):
    store._note_reread("S", file, path, [(offset, n_bytes)])


def test_what_is_lost_after_its_piece_was_asked_for_is_asked_for_again(tmp_path):
    """One file's part was lost, and its piece is on its way; then the other's is lost."""
    store, held, parts = a_piece_of_two(tmp_path)
    for _ in rounds(store):
        lose(store, "x", *parts["x"])
        segments = store.segments(PieceKey("S", 1))
        assert [segment.file.path for segment in segments] == ["x"]
        data = held.part(segments[0])
        lose(store, "y", *parts["y"])
        digest = blake3(data).digest()
        store.put(PieceKey("S", 1), [segments[0].span], memoryview(data), digest)
    assert store.needed("S") == [0, 1, 2]
    assert fetch(store, held) == 2 * UNIT + UNIT // 2
    store.close()
    assert is_right(tmp_path, held)


@pytest.mark.parametrize("losses", ["xy", "yx"])
@pytest.mark.parametrize("arrivals", list(itertools.product((0, 1), repeat=3)), ids=str)
@pytest.mark.parametrize("is_apart", [False, True])
def test_a_part_that_comes_twice_counts_once(tmp_path, losses, arrivals, is_apart):
    """After each of two losses the piece is asked for, by two; answers come, together or apart."""
    store, held, parts = a_piece_of_two(tmp_path)
    asked = []
    for path in losses:
        lose(store, path, *parts[path])
        asked.append(store.segments(PieceKey("S", 1)))
    assert [len(segments) for segments in asked] == [1, 2]
    store.start(lambda _, __: None)
    for which in arrivals:
        data = b"".join(held.part(segment) for segment in asked[which])
        spans = [segment.span for segment in asked[which]]
        store.put(PieceKey("S", 1), spans, memoryview(data), blake3(data).digest())
        if is_apart:
            store.stop()
            store.start(lambda _, __: None)
    store.stop()
    assert {0, 2} <= set(store.needed("S"))
    if is_apart:
        assert (1 in store.needed("S")) == (1 not in arrivals)
    assert not (tmp_path / "S").exists()
    fetch(store, held)
    store.close()
    assert is_right(tmp_path, held)


def test_whoever_waits_for_what_is_read_again_hears_that_it_cannot_be_noted(tmp_path, monkeypatch):
    def fail(store, *found):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Store, "_note_lost", fail)
    failures = []

    def run():
        try:
            disturbed(tmp_path, "replaced", 0)
        except StoreError as error:
            failures.append(str(error))

    # Who waits for ever is not waited for here.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert ["make room" in text for text in failures] == [True]


PARTS = ("incoming", "state.sqlite", "state.sqlite-wal", "S")


def copied_meanwhile(tmp_path, order, pieces):
    """Copy one part of a folder after the other, while a start goes on in between."""
    held, one, two = source(), tmp_path / "one", tmp_path / "two"
    (two / ".datacollect").mkdir(parents=True)
    store = Store(one)
    store.state.begin_start(["S"])
    get_ready(store, held)
    for part, n_pieces in zip(order, pieces, strict=True):
        at = one / part if part == "S" else one / ".datacollect" / part
        to = two / part if part == "S" else two / ".datacollect" / part
        if at.is_dir():
            shutil.copytree(at, to)
        elif at.exists():
            shutil.copy2(at, to)
        for _ in rounds(store):
            for piece in apart(store.needed("S"))[:n_pieces]:
                put(store, held, piece)
        # A checkpoint puts what is in the log into the file, and begins the log again.
        store.state._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
    store.close()
    why = ""
    try:
        Store(two).close()
    except ProblemError as error:  # state and log are of two instants: as the message says
        why = str(error)
        for path in (two / ".datacollect").glob("state.sqlite*"):
            path.unlink()
    assert not why or "move state.sqlite and its neighbours" in why
    assert pull(two, held).is_complete, (order, pieces)
    assert is_right(two, held), (order, pieces)


@pytest.mark.parametrize("order", list(itertools.permutations(PARTS))[::5], ids=",".join)
def test_a_copy_that_was_made_meanwhile_goes_on(tmp_path, order):
    copied_meanwhile(tmp_path, order, (4, 3, 3, 2))


@pytest.mark.slow
@pytest.mark.parametrize("order", list(itertools.permutations(PARTS)), ids=",".join)
def test_copies_in_each_order_go_on(tmp_path, order):
    for pieces in some(itertools.product((0, 2, 5), repeat=4)):
        folder = tmp_path / "-".join(map(str, pieces))
        folder.mkdir()
        copied_meanwhile(folder, order, pieces)
        shutil.rmtree(folder)


def test_a_state_of_two_instants_is_damaged(tmp_path):
    """The file of one instant, and the log that was begun after another."""
    one, two = tmp_path / "one", tmp_path / "two"
    store = Store(one)
    store.state.begin_start(["S"])
    for n_files in (2000, 9000):
        listing = store.listing("S")
        listing.take(Page([Listed(f"file-{i:05}", 10, 1, i) for i in range(n_files)]))
        listing.end()
        store.state._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        if n_files == 2000:
            shutil.copytree(one, two)
    store.state.set_fact("more", 1)
    store.prepare("S", 2**16, apart=False)
    store.know("S")
    shutil.copy(one / ".datacollect/state.sqlite-wal", two / ".datacollect")
    abandon(store)
    for asked in (lambda: status_of(two), lambda: Store(two)):
        with pytest.raises(ProblemError, match=r"from different times: .*; move state\.sqlite"):
            asked()
    for path in (two / ".datacollect").glob("state.sqlite*"):
        path.unlink()
    Store(two).close()
