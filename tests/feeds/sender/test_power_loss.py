"""A spill after a loss of power: what is whole is sent, what is not is missing, nothing is made up.

What a disk may have then is made by hand: an older write-ahead log, one that ends in the middle of
a head or a body, in zeros or garbage, a database that is damaged or gone.
"""

from __future__ import annotations

import json
import shutil

import apsw
import pytest

from datacollect.errors import ProblemError
from datacollect.feeds.formats import frames
from datacollect.feeds.formats.frames import FrameError, Frames
from datacollect.feeds.formats.report import FeedStopped
from datacollect.feeds.sender import spill as spill_module
from datacollect.feeds.sender.core import SenderCore
from datacollect.feeds.sender.missing import Run
from datacollect.feeds.sender.spill import FILE, IDENTITY, Spill
from datacollect.feeds.sender.store import Message

SIZE = 1000
WAL_HEAD, FRAME_HEAD, PAGE = 32, 24, 4096
DB, WAL = FILE, f"{FILE}-wal"


def content(number: int) -> bytes:
    return number.to_bytes(2, "big") * (SIZE // 2)


def add(spill: Spill, first: int, stop: int) -> None:
    for number in range(first, stop):
        spill.add([Message(number, number, content(number))], b"", ends=False)


def snapshot(folder, to) -> None:
    """What the disk has at this instant, of what the process has written."""
    shutil.copytree(folder, to)


@pytest.fixture
def power_goes(monkeypatch):
    """Have the host start once more."""
    boots = iter(range(1, 1000))
    now = [0]
    monkeypatch.setattr(spill_module, "boot_id", lambda: str(now[0]))

    def goes() -> None:
        now[0] = next(boots)

    return goes


@pytest.fixture
def torn(tmp_path):
    """Return a folder of 40 messages, 5 of them released, whose log is as it was written."""
    spill = Spill(tmp_path / "spill", "scan7", SIZE)
    add(spill, 0, 30)
    spill.release(5)
    add(spill, 30, 40)
    snapshot(tmp_path / "spill", tmp_path / "torn")
    spill.close(is_done=False)
    return tmp_path / "torn"


def sent_by(spill: Spill, next_: int) -> tuple[dict[int, bytes], list[int], SenderCore]:
    """Return what leaves once the receiver has said what it wants next, and what is missing."""
    core = SenderCore(spill, SIZE, 10**9, "stop")
    core.connected(next_, next_)
    found, missing = {}, []
    reader = Frames(SIZE)
    while core.has_something:
        for kind, number, stamp, data in reader.take(b"".join(core.frames(10**6))):
            if kind == frames.DATA:
                found[number] = bytes(data)
            elif kind == frames.MISSING:
                missing += range(number, number + stamp)
    return found, missing, core


def ends(n_bytes: int) -> list[int]:
    """Return places in a log: in each head and body of some frames, and between them."""
    found = {0, WAL_HEAD - 1}
    n_frames = (n_bytes - WAL_HEAD) // (FRAME_HEAD + PAGE)
    for frame in (n_frames // 2, n_frames - 1):
        begin = WAL_HEAD + frame * (FRAME_HEAD + PAGE)
        found |= {begin, begin + 7, begin + FRAME_HEAD, begin + FRAME_HEAD + PAGE - 1}
    return sorted(at for at in found if 0 <= at < n_bytes)


@pytest.mark.parametrize("tail", ["cut", "zeros", "garbage"])
def test_a_log_that_is_torn_anywhere(torn, tmp_path, power_goes, tail):
    """The receiver has 12: what is sent is right, and all is sent, or missing, or unknown here."""
    whole = (torn / WAL).read_bytes()
    for at in ends(len(whole)):
        folder = tmp_path / f"at {at}"
        snapshot(torn, folder)
        n = len(whole) - at
        ending = {
            "cut": b"",
            "zeros": bytes(n),
            "garbage": bytes((i * 89 + 7) % 256 for i in range(n)),
        }
        (folder / WAL).write_bytes(whole[:at] + ending[tail])
        power_goes()
        spill = Spill(folder, "scan7", SIZE)
        assert spill.begun.made <= 40
        found, missing, core = sent_by(spill, 12)
        assert core.counts.made == max(spill.begun.made, 12)
        assert not missing
        assert found == {number: content(number) for number in range(12, core.counts.made)}
        # It goes on, and another time, too.
        core.write(b"n" * SIZE, 99)
        assert core.counts.made_bytes == core.counts.made * SIZE
        spill.close(is_done=False)
        again = Spill(folder, "scan7", SIZE)
        assert again.begun.made == core.counts.made
        again.close(is_done=False)


@pytest.mark.parametrize("kind", ["gone", "cut", "zeros", "garbage", "old"])
def test_a_database_that_is_damaged(torn, tmp_path, power_goes, kind):
    """The receiver knows the feed all the same, which goes on behind what that has."""
    stream = json.loads((torn / IDENTITY).read_text())["stream"]
    path = torn / DB
    data = path.read_bytes()
    if kind == "gone":
        path.unlink()
        (torn / WAL).unlink(missing_ok=True)
    elif kind == "old":
        # Without its log it is as it was at first.
        (torn / WAL).unlink(missing_ok=True)
    else:
        n = len(data) - len(data) // 3
        ending = {"cut": b"", "zeros": bytes(n), "garbage": b"\x5a" * n}[kind]
        path.write_bytes(data[: len(data) // 3] + ending)
        (torn / WAL).unlink(missing_ok=True)
    power_goes()
    spill = Spill(torn, "scan7", SIZE)
    assert spill.begun.stream == stream
    assert spill.begun.restarts
    core = SenderCore(spill, SIZE, 10**9, "stop")
    core.write(b"n" * SIZE * 2, 1)
    spill.close(is_done=False)
    # Twice killed before the receiver was reached.
    spill = Spill(torn, "scan7", SIZE)
    found, missing, core = sent_by(spill, 12)
    assert (found, missing) == ({12: b"n" * SIZE, 13: b"n" * SIZE}, [])
    assert (core.counts.made, core.counts.made_bytes) == (14, 14 * SIZE)
    spill.close(is_done=False)
    with pytest.raises(ProblemError, match="name another folder"):
        Spill(torn, "scan8", SIZE)


def test_a_message_that_is_not_whole_is_missing(torn, tmp_path, power_goes):
    """Of 5 to 39 the bytes of 20 and 21 are others, 30 and the last are gone."""
    db = apsw.Connection(str(torn / DB))
    db.execute("UPDATE message SET content = zeroblob(1000) WHERE number IN (20, 21)")
    db.execute("DELETE FROM message WHERE number IN (30, 39)")
    db.close()
    power_goes()
    spill = Spill(torn, "scan7", SIZE)
    assert spill.begun.missing == [Run(20, 2, 2 * SIZE), Run(30, 1, SIZE), Run(39, 1, SIZE)]
    found, missing, _ = sent_by(spill, 5)
    assert missing == [20, 21, 30, 39]
    assert sorted(found) == [i for i in range(5, 40) if i not in missing]
    assert all(found[number] == content(number) for number in found)


def test_what_was_made_since_moves_behind_what_the_receiver_has(torn, tmp_path, power_goes):
    """The spill knows 40, the receiver 47: what comes now is 47 and on, also what was dropped."""
    power_goes()
    spill = Spill(torn, "scan7", SIZE)
    core = SenderCore(spill, SIZE, spill.kept_bytes + 2 * SIZE, "drop-new")
    core.write(b"n" * SIZE * 3, 1)
    assert not core.is_placed
    core.connected(47, 47)
    assert core.is_placed
    assert (core.counts.made, core.counts.made_bytes, core.counts.lost) == (50, 50 * SIZE, 1)
    kinds = [each[:3] for each in Frames(SIZE).take(b"".join(core.frames(10**6)))]
    assert kinds == [(frames.DATA, 47, 1), (frames.DATA, 48, 1), (frames.MISSING, 49, 1)]
    # Never again: a receiver that has more than was made is wrong.
    with pytest.raises(FrameError, match="a disk has lost something"):
        core.connected(60, 60)


def test_two_losses_of_power_in_a_row_send_nothing_twice(torn, tmp_path, power_goes, monkeypatch):
    """Where it goes on is on the disk before anything is sent; of three messages two have come."""
    disk = tmp_path / "disk"
    monkeypatch.setattr(spill_module, "SYNC_S", 1000)
    monkeypatch.setattr(
        spill_module, "_sync", lambda log: shutil.copytree(log.parent, disk, dirs_exist_ok=True)
    )
    power_goes()
    core = SenderCore(Spill(torn, "scan7", SIZE), SIZE, 10**9, "stop")
    core.write(b"".join(map(content, (100, 101, 102))), 1)
    shutil.copytree(torn, disk)
    core.connected(47, 47)
    power_goes()
    found, missing, _ = sent_by(Spill(disk, "scan7", SIZE), 49)
    assert (found, missing) == ({49: content(102)}, [])


@pytest.mark.parametrize("again", [False, True])
def test_what_is_dropped_across_the_loss_moves_in_part(torn, tmp_path, power_goes, again):
    """Of 35 kept messages and 10 new ones the oldest 40 are dropped; the receiver wants 47 then."""
    power_goes()
    spill = Spill(torn, "scan7", SIZE)
    core = SenderCore(spill, SIZE, spill.kept_bytes, "drop-old")
    core.write(b"".join(map(content, range(100, 110))), 1)
    core.write(b"".join(map(content, range(110, 140))), 1)
    core.connected(47, 47)
    assert (core.counts.lost, core.counts.lost_bytes) == (5, 5 * SIZE)
    if again:
        spill.close(is_done=False)
        found, missing, _ = sent_by(Spill(torn, "scan7", SIZE), 47)
    else:
        found, missing = {}, []
        for kind, number, stamp, data in Frames(SIZE).take(b"".join(core.frames(10**6))):
            if kind == frames.DATA:
                found[number] = bytes(data)
            else:
                missing += range(number, number + stamp)
    assert missing == [47, 48, 49, 50, 51]
    assert found == {number: content(number + 53) for number in range(52, 87)}


def test_an_end_that_only_the_receiver_has(torn, tmp_path, power_goes):
    power_goes()
    core = SenderCore(Spill(torn, "scan7", SIZE), SIZE, 10**9, "stop")
    core.has_ended_there(41, 40_500)
    assert (core.is_ended, core.counts.made, core.counts.made_bytes) == (True, 41, 40_500)


def test_without_a_loss_of_power_a_receiver_that_has_more_is_wrong(tmp_path):
    spill = Spill(tmp_path, "scan7", SIZE)
    add(spill, 0, 3)
    spill.close(is_done=False)
    core = SenderCore(Spill(tmp_path, "scan7", SIZE), SIZE, 10**9, "stop")
    with pytest.raises(FrameError, match="a disk has lost something"):
        core.connected(4, 4)


def test_what_was_made_is_synced_once_a_second(tmp_path, monkeypatch):
    """A sync that fails shows: what cannot be kept is not taken."""
    monkeypatch.setattr(spill_module, "SYNC_S", 0.01)

    def fails(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(spill_module, "_sync", fails)
    spill = Spill(tmp_path, "scan7", SIZE)
    add(spill, 0, 1)
    spill._syncing.join(20)
    core = SenderCore(spill, SIZE, 10**9, "stop")
    with pytest.raises(FeedStopped, match="cannot be written or read"):
        core.write(bytes(SIZE), 1)
    spill.close(is_done=False)
