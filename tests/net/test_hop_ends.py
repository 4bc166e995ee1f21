"""Ends of connections, as agents tell them in a header."""

from __future__ import annotations

import socket

import pytest
from instances.tunnels import tcp_pair

from datacollect.net.connect import answered_ends, established
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import dial
from datacollect.net.hop_ends import HopEnd, ends_of, hop_end

END = HopEnd("cubic", 65_536, 131_072, 131_072, 14_480)
AUTOMATIC = HopEnd("bbr", None, 87_040, 131_072, None)


def test_an_answer_says_what_it_was_made_of():
    ends = {"near": AUTOMATIC, "far": END}
    assert answered_ends(established(ends)) == ends


@pytest.mark.parametrize(
    "text",
    [
        "",
        "near",
        "near bbr",
        "near bbr send=1",
        "near bbr send=1 receive=x",
        "near bbr send=-1 receive=2",
        "near bbr send=1e9 receive=2",
        "near \x1b[31m send=1 receive=2",
        "middle bbr send=1 receive=2",
        "near bbr send=" + "9" * 400 + " receive=2",
    ],
)
def test_what_says_no_ends(text):
    assert ends_of(text) == {}


def test_an_older_agent_says_nothing():
    assert answered_ends(b"HTTP/1.1 200 Connection established\r\n\r\n") == {}


def test_buffers_are_asked_for_before_a_connection_is_opened():
    """Linux grants twice as much; the window that the first packet offers is as small."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        dial([listener.getsockname()], "S", Deadline(5), buffer_bytes=8192) as one,
    ):
        end = hop_end(one, 8192)
    assert (end.asked_bytes, end.send_bytes, end.receive_bytes) == (8192, 16_384, 16_384)


def test_an_open_connection_says_its_congestion_control_and_its_window():
    one, other = tcp_pair()
    with one, other:
        end = hop_end(one)
    assert end.congestion
    assert end.window_bytes > 0
    with pytest.raises(OSError, match="file descriptor"):
        hop_end(one)
