"""The gate of the folder: who is inside when the pull ends, and who closes it."""

import threading
from types import SimpleNamespace

import pytest
from instances.stores import Held, pull

from datacollect.errors import TransferError
from datacollect.transfer.pull import preparing
from datacollect.transfer.pull.config.file import Limits
from datacollect.transfer.pull.notices import Notices
from datacollect.transfer.pull.preparing import Cancelled, Gate, Preparation
from datacollect.transfer.store.folder.log import Log
from datacollect.transfer.store.store import Store


def test_whoever_leaves_last_closes(monkeypatch):
    monkeypatch.setattr(preparing, "LEAVES_WITHIN_S", 0.0)
    gate, closed = Gate(), []
    with gate:
        gate.close()
        gate.leave_last(lambda: closed.append("by the last"))
        assert closed == []
    assert closed == ["by the last"]
    with pytest.raises(Cancelled), gate:
        pass


def test_where_nobody_is_inside_it_is_closed_at_once():
    gate, closed = Gate(), []
    gate.close()
    gate.leave_last(lambda: closed.append(True))
    assert closed == [True]


def test_whoever_waits_inside_is_told_to_end():
    gate, ended = Gate(), threading.Event()

    def wait():
        with gate:
            gate.end_by(ended.set)
            is_inside.set()
            ended.wait(30)

    is_inside = threading.Event()
    thread = threading.Thread(target=wait)
    thread.start()
    is_inside.wait(30)
    gate.close()
    thread.join(30)
    assert ended.is_set()
    with pytest.raises(Cancelled):
        gate.end_by(ended.set)


def test_a_source_that_stays_away_is_tried_for_its_patience_once(monkeypatch):
    """On a clock that only waits move; they double, and the last ends with six seconds."""
    now, tries, told = [0.0], [], []

    def reach(_):
        tries.append(now[0])
        raise TransferError("away")

    def wait_for_news(_, wait_s):
        now[0] += wait_s
        return 0

    monkeypatch.setattr(preparing, "time", SimpleNamespace(monotonic=lambda: now[0]))
    preparation = Preparation(
        source=SimpleNamespace(name="S1", reach=reach),
        collection=SimpleNamespace(limits=Limits(patience_s=6.0, timeout_s=1.0)),
        store=SimpleNamespace(state=SimpleNamespace(note_trouble=lambda *_: None)),
        log=SimpleNamespace(write=lambda *_, **about: told.append(about)),
        network=SimpleNamespace(wait_for_news=wait_for_news),
        gate=Gate(),
        reached={},
        notices=Notices(Limits(), lambda _: None),
    )
    with pytest.raises(TransferError, match="away"):
        preparation.run()
    assert tries == [0.0, 0.5, 1.5, 3.5, 6.0]
    assert len(told) == len(tries)


def test_comparing_ends_between_two_parts(tmp_path):
    """A large file is not read to its end for a pull that is over."""
    source = Held(a=20 * 2**20)
    pull(tmp_path, source)
    for path in (tmp_path / ".datacollect").glob("state.sqlite*"):
        path.unlink()
    store = Store(tmp_path)
    store.state.begin_start(["S"])
    listing = store.listing("S")
    listing.take(source.page())
    listing.end()
    rows = store.prepare("S", 2**20, apart=False)
    gate = Gate()

    def digests(segments):
        gate.close()
        return source.digests(segments)

    with pytest.raises(Cancelled):
        store.compare("S", rows, digests, gate.require_open)
    assert len(source.asked) == 1
    store.close()


def test_a_log_that_is_closed_takes_nothing_any_more(tmp_path):
    log = Log(tmp_path / "log")
    log.close()
    log.write("not planned", why="late")
    assert (tmp_path / "log").read_bytes() == b""
