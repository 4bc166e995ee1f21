"""The sender's core: numbers, stamps, what becomes of what does not fit."""

from __future__ import annotations

import pytest

from datacollect.feeds.formats import frames
from datacollect.feeds.formats.frames import FrameError, Frames
from datacollect.feeds.formats.report import FeedStopped
from datacollect.feeds.sender.core import SenderCore
from datacollect.feeds.sender.store import Memory

S = 10**9


def core(when_full="stop", buffer_bytes=12) -> SenderCore:
    """Return a sender of messages of four bytes; three of them fit."""
    return SenderCore(Memory(), 4, buffer_bytes, when_full)


def sent(core_: SenderCore, most_bytes=10**6) -> list[tuple]:
    data = b"".join(core_.frames(most_bytes))
    kinds = {frames.DATA: bytes, frames.MISSING: frames.whole_number}
    return [
        (kind, number, stamp, kinds[kind](content) if kind in kinds else None)
        for kind, number, stamp, content in Frames(4).take(data)
        if kind != frames.NOTE
    ]


def test_messages_are_cut_numbered_and_stamped_when_they_are_whole():
    one = core()
    one.write(b"abcde", 1)
    one.write(b"fgh", 2)
    one.write(b"i", 3)
    one.end(4)
    assert sent(one) == [
        (frames.DATA, 0, 1, b"abcd"),
        (frames.DATA, 1, 2, b"efgh"),
        (frames.DATA, 2, 4, b"i"),
        (frames.END, 3, 9, None),
    ]
    assert (one.counts.made, one.counts.made_bytes, one.counts.sent) == (3, 9, 3)


def test_what_does_not_fit_stops_the_feed_and_is_counted():
    one = core("stop")
    with pytest.raises(FeedStopped, match="larger buffer_bytes") as stopped:
        one.write(b"0123456789abcdefgh", 1)
    assert (stopped.value.counts.made, stopped.value.counts.lost_bytes) == (5, 6)
    assert sent(one)[3:] == [(frames.MISSING, 3, 2, 6), (frames.END, 5, 18, None)]
    with pytest.raises(FeedStopped, match="has ended"):
        one.write(b"more", 2)


def test_what_is_new_is_dropped():
    one = core("drop-new")
    one.write(b"aaaabbbbccccddddee", 1)
    one.connected(0, 0)
    assert sent(one) == [
        *((frames.DATA, i, 1, each) for i, each in enumerate((b"aaaa", b"bbbb", b"cccc"))),
        (frames.MISSING, 3, 1, 4),
    ]
    one.told_written(4)
    one.write(b"ee", 2)
    assert sent(one) == [(frames.DATA, 4, 2, b"eeee")]
    assert (one.counts.made, one.counts.lost) == (5, 1)


def test_the_oldest_is_dropped_that_was_not_sent():
    one = core("drop-old")
    one.write(b"aaaabbbbcccc", 1)
    assert sent(one, 1) == [(frames.DATA, 0, 1, b"aaaa")]
    one.write(b"dddd", 2)
    assert sent(one) == [
        (frames.MISSING, 1, 1, 4),
        (frames.DATA, 2, 1, b"cccc"),
        (frames.DATA, 3, 2, b"dddd"),
    ]
    one.write(b"eeee", 3)  # all were sent: none of them can be dropped
    assert sent(one) == [(frames.MISSING, 4, 1, 4)]


def test_how_far_it_is_behind():
    one = core("drop-new", 10**6)
    one.write(b"aaaa", 1 * S)
    one.write(b"bbbb", 2 * S)
    assert one.behind_s(3 * S) == 2
    sent(one, 1)
    assert one.behind_s(3 * S) == 1
    sent(one)
    assert one.behind_s(3 * S) == 0


def test_what_is_not_written_is_sent_again():
    one = core()
    one.write(b"aaaabbbbcccc", 1)
    sent(one)
    one.connected(2, 1)
    assert sent(one) == [(frames.DATA, 2, 1, b"cccc")]
    one.connected(1, 1)
    assert [row[1] for row in sent(one)] == [1, 2]
    assert one.counts.sent == 3


@pytest.mark.parametrize(("number", "written"), [(4, 0), (0, 0), (2, 3)])
def test_a_receiver_that_cannot_be_the_same(number, written):
    one = core()
    one.write(b"aaaabbbbcccc", 1)
    sent(one)
    one.told_written(1)
    with pytest.raises(FrameError, match="a disk has lost something"):
        one.connected(number, written)


def test_what_is_written_was_sent():
    one = core()
    one.write(b"aaaabbbbcccc", 1)
    sent(one, 1)
    with pytest.raises(FrameError, match="must be 0 to 1, got 2"):
        one.told_written(2)
