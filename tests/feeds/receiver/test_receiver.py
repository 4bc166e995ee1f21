"""The receiver: what it takes, what it does not, and what lies in its folder."""

from __future__ import annotations

import json
import mmap
import os
from contextlib import contextmanager
from dataclasses import replace

import pytest

from datacollect.errors import RefusedError, StoreError
from datacollect.feeds.formats import frames
from datacollect.feeds.formats.clock import SteadyClock
from datacollect.feeds.formats.frames import FrameError, Hello
from datacollect.feeds.receiver.disk import Folder
from datacollect.feeds.receiver.kept_feed import kept_feed
from datacollect.feeds.receiver.taking import Taking

S = 10**9


class Clock:
    """Says what it is told to."""

    boot, base_ns, at_ns = "here", 0, 10 * S

    def now_ns(self):
        return self.at_ns


def hello(stream="s", boot="here", message_bytes=4) -> Hello:
    return Hello("scan7", stream, "tcp", 1e6, message_bytes, 0.5, boot, 0)


def begun(folder, greeting=None, clock=None, user="u") -> Taking:
    greeting = greeting or hello()
    kept = kept_feed(Folder(folder), greeting, user, "begun")
    return Taking(kept, greeting, clock or Clock(), lambda _: None)


def names_in(folder) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def data(number, content=b"abcd", made_ns=9 * S):
    return frames.data_frame(number, made_ns, content)


def test_a_feed_with_a_hole(tmp_path):
    one = begun(tmp_path)
    one.take(data(0) + frames.missing_frame(1, 2, 8) + data(3, b"x") + frames.end_frame(4, 13), "e")
    assert one.is_whole
    assert (tmp_path / "scan7").read_bytes() == b"abcd" + bytes(8) + b"x"
    assert (tmp_path / "scan7.holes").read_text() == "message,messages,offset,bytes\n1,2,4,8\n"
    assert names_in(tmp_path) == ["scan7", "scan7.holes", "scan7.json"]
    number, tree = one.snapshot()
    assert (number, tree["counts"]["lost"], tree["counts"]["filled"]) == (4, 2, 2)


def test_delays_by_one_clock_and_who_is_late(tmp_path):
    clock = Clock()
    one = begun(tmp_path, clock=clock)
    one.take(data(0), "e")  # after 1 s
    clock.at_ns = 11 * S
    one.take(data(1, made_ns=int(9.6 * S)), "e")  # after 1.4
    one.take(data(2), "e")  # after 2
    _, tree = one.snapshot()
    assert tree["clock"] == "one clock"
    assert (tree["delay"]["least_s"], tree["delay"]["largest_s"]) == (1, 2)
    assert tree["counts"]["late"] == 1


def test_delays_by_two_clocks_less_half_a_round_trip(tmp_path):
    one = begun(tmp_path, hello(boot="there"))
    one.take(data(0), "e")
    note = {"counts": {}, "clock": [5 * S, 2 * 10**6]}
    one.take(frames.note_frame(note) + data(1, made_ns=4 * S), "e")
    _, tree = one.snapshot()
    assert (
        tree["clock"] == "two clocks, compared over a round trip of 2.00 ms: accurate to half of "
        "that"
    )
    assert (tree["delay"]["n"], tree["delay"]["largest_s"]) == (1, 1)


@pytest.mark.parametrize(
    "sent",
    [
        data(1),
        data(0) + data(0),
        data(0, b""),
        data(0, b"abc") + data(1),
        frames.missing_frame(0, 2, 9),
        frames.missing_frame(0, 2, 4),
        frames.missing_frame(0, 0, 0),
        frames.missing_frame(1, 1, 4),
        data(0) + frames.end_frame(1, 5),
        data(0) + frames.end_frame(2, 8),
        data(0) + frames.end_frame(1, 4) + data(1),
        frames.note_frame({"counts": {"made": -1}}),
        frames.note_frame({"counts": {}, "clock": "x"}),
        frames.note_frame({"counts": {}, "clock": [10**400, 1]}),
        frames.note_frame({"counts": {}, "clock": [0, 10**400]}),
        frames.note_frame({"counts": {}, "clock": [0, -1]}),
        frames.note_frame({"counts": {}, "source_bytes_per_s": 10**400}),
        frames.note_frame({"counts": {}, "route": ["x"]}),
        frames.HEAD.pack(frames.NOTE, 0, 0, 2) + b"[]",
    ],
)
def test_what_no_sender_sends(tmp_path, sent):
    with pytest.raises(FrameError):
        begun(tmp_path).take(sent, "e")


def no_room(n_bytes: int) -> None:
    if n_bytes > 8:
        raise StoreError("no room")


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (data(1, b"x" * 4) * 3, FrameError),
        (data(1) + data(2) + data(3), StoreError),
        (data(1) + b"\0" * 30, FrameError),
    ],
)
def test_nothing_is_kept_of_what_was_not_written(tmp_path, sent, error):
    """Another thread keeps what has come: it must not believe a core that has gone ahead."""
    kept = kept_feed(Folder(tmp_path), hello(), "u", "begun")
    one = Taking(kept, hello(), Clock(), no_room)
    one.take(data(0), "e")
    assert one.has_news
    with pytest.raises(error):
        one.take(sent, "e")
    assert not one.has_news


@pytest.mark.parametrize("n", [100, 2**61])
def test_messages_that_are_missing_take_room_too(tmp_path, n):
    kept = kept_feed(Folder(tmp_path), hello(), "u", "begun")
    one = Taking(kept, hello(), Clock(), no_room)
    with pytest.raises(StoreError):
        one.take(frames.missing_frame(0, n, 4 * n), "e")
    assert names_in(tmp_path) == ["scan7.json"]


def part_way(folder) -> None:
    """Have two messages and a hole behind them in the folder."""
    one = begun(folder)
    one.take(data(0) + data(1) + frames.missing_frame(2, 2, 8), "e")
    one.keep(*one.snapshot(), telling=False)


def test_a_hole_at_the_end_of_what_is_kept(tmp_path):
    part_way(tmp_path)
    again = begun(tmp_path)
    again.take(frames.end_frame(4, 16), "e")
    assert (tmp_path / "scan7").read_bytes() == b"abcdabcd" + bytes(8)


@pytest.mark.parametrize("name", ["scan7.part", "scan7.holes"])
def test_files_that_have_lost_bytes_are_not_gone_on_with(tmp_path, name):
    """The report says that they were there: zeros in their place would look whole."""
    part_way(tmp_path)
    os.truncate(tmp_path / name, 5)
    with pytest.raises(RefusedError, match=rf"{name} has fewer bytes than scan7\.json"):
        begun(tmp_path)
    assert (tmp_path / name).stat().st_size == 5


def test_a_feed_that_keeps_nothing_takes_no_room_when_it_comes_again(tmp_path):
    one = begun(tmp_path)
    one.take(data(0), "e")
    one.keep(*one.snapshot(), telling=False)
    path = tmp_path / "scan7.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"udp": {"keep": False}}))
    os.truncate(tmp_path / "scan7.part", 0)
    begun(tmp_path)
    assert (tmp_path / "scan7.part").stat().st_size == 0


@pytest.mark.parametrize("harm", [os.unlink, lambda path: os.truncate(path, 3)])
def test_a_whole_feed_is_whole_only_where_its_file_is(tmp_path, harm):
    begun(tmp_path).take(data(0) + frames.end_frame(1, 4), "e")
    harm(tmp_path / "scan7")
    with pytest.raises(RefusedError, match=r"scan7 (is gone|has fewer bytes)"):
        begun(tmp_path)


def test_a_file_that_is_taken_away_meanwhile_is_not_said_to_be_written(tmp_path):
    one = begun(tmp_path)
    one.take(data(0), "e")
    (tmp_path / "scan7.part").unlink()
    with pytest.raises(OSError, match=r"scan7\.part"):
        one.keep(*one.snapshot(), telling=False)


def test_the_report_of_another_feed_is_none_of_this_one(tmp_path):
    part_way(tmp_path)
    for ending in ("part", "json", "holes"):
        (tmp_path / f"scan7.{ending}").rename(tmp_path / f"scan8.{ending}")
    with pytest.raises(RefusedError, match=r"scan8\.json is about scan7"):
        begun(tmp_path, replace(hello(), name="scan8"))


def test_a_file_that_goes_while_room_is_counted(tmp_path, monkeypatch):
    """Reports are replaced four times a second, beside feeds that look for room."""
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b").write_bytes(b"abc")
    scandir = os.scandir

    @contextmanager
    def slow(path):
        with scandir(path) as entries:
            found = [*entries]
        (tmp_path / "b").unlink()
        yield iter(found)

    monkeypatch.setattr(os, "scandir", slow)
    assert Folder(tmp_path).used_bytes() == 3


def test_what_a_snapshot_counts_does_not_stay_in_memory(tmp_path, monkeypatch):
    """What has come since may be on no disk yet."""
    size, let_go = mmap.PAGESIZE, []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, begin, n, __: let_go.append((begin, n)))
    one = begun(tmp_path, hello(message_bytes=size))
    one.take(data(0, bytes(size)) + data(1, bytes(size)), "e")
    snapshot = one.snapshot()
    one.take(data(2, bytes(size)), "e")
    one.keep(*snapshot, telling=False)
    assert let_go == [(0, 2 * size)]


def test_it_goes_on_where_its_report_says(tmp_path):
    one = begun(tmp_path)
    one.take(data(0), "e")
    one.keep(*one.snapshot(), telling=False)
    one.take(data(1, b"efgh"), "e")  # written, and not kept
    again = begun(tmp_path)
    assert b'"next":1' in again.welcome()
    assert (tmp_path / "scan7.part").read_bytes() == b"abcd"
    again.take(data(1, b"ijkl") + frames.end_frame(2, 8), "e")
    assert (tmp_path / "scan7").read_bytes() == b"abcdijkl"
    assert b'"ended"' in begun(tmp_path).welcome()


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (["scan7"], "a file scan7 already"),
        (["scan7.part"], "a file scan7.part already"),
        (["scan7.holes"], "a file scan7.holes already"),
        (["scan7.json"], "no report of a feed"),
    ],
)
def test_what_is_there_is_not_touched(tmp_path, there, why):
    for name in there:
        (tmp_path / name).write_text("mine")
    with pytest.raises(RefusedError, match=why):
        begun(tmp_path)
    assert names_in(tmp_path) == there
    assert (tmp_path / there[0]).read_text() == "mine"


@pytest.mark.parametrize(
    ("greeting", "user", "why"),
    [
        (hello("other"), "u", "a feed, not at its end, scan7 that began"),
        (hello(), "v", "of another sender"),
        (hello(message_bytes=8), "u", "messages of 4 bytes"),
    ],
)
def test_another_feed_of_its_name(tmp_path, greeting, user, why):
    one = begun(tmp_path)
    one.take(data(0), "e")
    one.keep(*one.snapshot(), telling=False)
    with pytest.raises(RefusedError, match=why):
        begun(tmp_path, greeting, user=user)


def test_a_file_that_is_gone(tmp_path):
    one = begun(tmp_path)
    one.take(data(0), "e")
    one.keep(*one.snapshot(), telling=False)
    (tmp_path / "scan7.part").unlink()
    with pytest.raises(RefusedError, match=r"scan7\.part is gone"):
        begun(tmp_path)


def test_a_link_that_lies_in_the_way_is_not_followed(tmp_path):
    folder = tmp_path / "feeds"
    folder.mkdir()
    one = begun(folder)
    (folder / "scan7.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        one.take(data(0), "e")
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_in_the_way_of_a_report_is_not_followed(tmp_path):
    folder = tmp_path / "feeds"
    folder.mkdir()
    (tmp_path / "elsewhere").write_text("mine")
    (folder / ".scan7.json.new").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        begun(folder)
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_name_that_was_given_before_the_crash_is_kept(tmp_path):
    one = begun(tmp_path)
    one.take(data(0) + frames.end_frame(1, 4), "e")
    os.link(tmp_path / "scan7", tmp_path / "scan7.part")  # as between two steps of a renaming
    assert b'"ended"' in begun(tmp_path).welcome()
    assert not (tmp_path / "scan7.part").exists()


def test_programs_of_one_start_have_one_clock():
    one, other = SteadyClock(), SteadyClock()
    assert one.boot == other.boot
    assert abs((one.now_ns() - one.base_ns) - (other.now_ns() - other.base_ns)) < 60 * S
