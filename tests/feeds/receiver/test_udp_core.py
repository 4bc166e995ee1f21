"""The receiver's core by UDP: senders that lie, over the connection and in packets."""

from __future__ import annotations

import numpy as np
import pytest

from datacollect.feeds.formats import frames
from datacollect.feeds.formats.clock import SteadyClock
from datacollect.feeds.formats.frames import FrameError, Hello
from datacollect.feeds.formats.report import FeedReport
from datacollect.feeds.receiver.core import Finish, Hole
from datacollect.feeds.receiver.udp_core import UdpReceiverCore, udp_values
from datacollect.feeds.udp.heads import HEADS, Heads, nonce_words
from datacollect.feeds.udp.receiving import Place, UdpTerms

NONCE, SIZE, MOST = bytes(range(16)), 10, 1000


def core(report: FeedReport | None = None) -> UdpReceiverCore:
    """Return one that takes 100 packets a second, and 1000 messages."""
    clock = SteadyClock()
    hello = Hello("scan7", "s", "udp", 1000.0, SIZE, 0.02, clock.boot, clock.base_ns)
    terms = UdpTerms(NONCE, SIZE, 100.0, MOST, 64)
    report = report or FeedReport("scan7", "s", "u", "udp", SIZE, 1000.0)
    return UdpReceiverCore(report, hello, clock, terms, 0.0)


def heads(*messages: int, packet: int = 0, nonce: bytes = NONCE) -> Heads:
    found = np.empty(len(messages), HEADS)
    found["nonce"], found["made_ns"] = nonce_words(nonce), 5
    found["message"] = messages
    found["packet"] = range(packet, packet + len(messages))
    return found


def test_what_comes_goes_to_its_place_and_what_does_not_is_a_hole() -> None:
    """Messages 0, 1, 3 and a last one of 4 bytes, number 5, of 54 bytes in all."""
    found = core()
    assert found.packets(10**9, heads(0, 1, 3), SIZE, 0) == [Place(0, 0, 2), Place(2, 3, 1)]
    assert found.packets(10**9, heads(5, packet=3), 4, 0) == [Place(0, 5, 1)]
    assert found.take(frames.end_frame(6, 54), 0) == [Finish(54)]
    assert found.holes() == [Hole(2, 1, 20, 10), Hole(4, 1, 40, 10)]
    found.decide()
    counts = found.report.counts
    assert (counts.made, counts.made_bytes, found.report.next) == (6, 54, 6)
    assert (counts.received, counts.received_bytes) == (4, 34)
    assert (counts.lost, counts.lost_bytes, counts.filled) == (2, 20, 2)
    assert found.report.delays.n == 4


@pytest.mark.parametrize(
    ("given", "last_bytes"),
    [
        (heads(MOST), SIZE),  # no room for it
        (heads(2**63, 2**63 + 1), SIZE),
        (heads(3, packet=10**6), SIZE),  # far above the rate
        (heads(3, nonce=bytes(16)), SIZE),
        (heads(3), SIZE + 1),
        (heads(3), 0),
    ],
)
def test_packets_that_cannot_be_of_the_feed_change_nothing(given: Heads, last_bytes: int) -> None:
    found = core()
    found.packets(10**9, heads(0, 1), SIZE, 0)
    assert found.packets(10**9, given, last_bytes, 0) == []
    report = found.receiving.report()
    assert (report.n_received, report.n_packets, report.n_lost) == (2, 2, 0)
    assert report.n_foreign + len(found.receiving.greetings) == len(given)


def test_nothing_comes_after_a_message_that_is_shorter() -> None:
    found = core()
    found.packets(10**9, heads(7), 4, 0)
    assert found.packets(10**9, heads(8, packet=1), SIZE, 0) == []
    assert found.packets(10**9, heads(3, packet=2), 4, 0) == []
    assert found.packets(10**9, heads(3, packet=2), SIZE, 0) == [Place(0, 3, 1)]


@pytest.mark.parametrize(
    "frame",
    [
        frames.data_frame(0, 5, bytes(SIZE)),
        frames.missing_frame(0, 1, 10),
        frames.end_frame(1, 10),  # two have come
        frames.end_frame(2, 21),
        frames.end_frame(2, 10),
        frames.end_frame(2, 15),  # the second has come whole
        frames.end_frame(MOST + 1, SIZE * (MOST + 1)),
        frames.note_frame({"counts": {"made": -1}}),
    ],
)
def test_frames_that_cannot_be_are_refused(frame: bytes) -> None:
    found = core()
    found.packets(10**9, heads(0, 1), SIZE, 0)
    with pytest.raises(FrameError):
        found.take(frame, 0)


@pytest.mark.parametrize("told", [None, [], {"reorder": 10**9}, {"fill": "ones"}, {"odd": 1}])
def test_tables_that_cannot_be_are_refused(told: object) -> None:
    with pytest.raises(FrameError):
        udp_values(told)


def test_greetings_are_kept_a_few() -> None:
    found = core()
    for _ in range(100):
        found.packets(10**9, heads(2**62 + 5), SIZE, 0)
    assert len(found.receiving.greetings) == 32
    assert found.receiving.report().n_received == 0


def test_a_shorter_message_that_was_the_last_before_the_connection_broke() -> None:
    """No message is shorter than the last, which the next connection does not see again."""
    found = core()
    found.packets(10**9, heads(0, 1), 4, 0)
    found.close()
    found.decide()
    assert (found.report.counts.made_bytes, found.report.counts.received_bytes) == (14, 14)
    again = core(found.report)
    again.decide()
    assert (again.report.counts.made_bytes, again.report.counts.received_bytes) == (14, 14)


def test_a_late_greeting_that_the_kernel_puts_before_packets_costs_none_of_them() -> None:
    found = core()
    assert found.packets(10**9, heads(2**62 + 5, 0, 1), 4, 0) == [Place(1, 0, 2)]
    assert (found.receiving.greetings, found.receiving.n_received) == ([2**62 + 5], 2)
    assert found.receiving.last_bytes == 4
