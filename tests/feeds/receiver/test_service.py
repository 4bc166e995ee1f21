"""One connection of a feed: what is said over it, and who has its name."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from datacollect.errors import RefusedError, StoreError
from datacollect.feeds.formats.frames import Hello
from datacollect.feeds.receiver.service import FeedSession

HELLO = Hello("scan7", "s", "tcp", 1e6, 4, 0.5, "here", 0)


def test_a_session_that_has_a_name_is_known_to_be_its_feeds_at_once() -> None:
    """Else a sender that comes again just then were taken for another one, for good."""
    seen = []

    def enter(session, hello):
        seen.append(session.is_of(hello, "u"))
        raise RefusedError("enough", 409)

    here, there = socket.socketpair()
    with here, there:
        session = FeedSession(SimpleNamespace(require_allowed=id, enter=enter), here, "u")
        there.sendall(HELLO.line())
        with pytest.raises(RefusedError):
            session.run()
    assert (seen, session.name) == ([True], "scan7")


def test_nothing_is_said_behind_half_a_line() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.settimeout(0.01)
        session = FeedSession(SimpleNamespace(), here, "u")
        with pytest.raises(OSError, match="timed out"):
            session._send(b"x" * 10_000_000)
        there.settimeout(2)
        while there.recv(1_000_000):
            pass


def test_a_thread_that_syncs_and_fails_in_an_unforeseen_way_ends_the_connection() -> None:
    """Else the feed went on, and nothing of it were ever acknowledged."""

    def surprising() -> None:
        raise RuntimeError("surprise")

    taking = SimpleNamespace(
        is_whole=False,
        has_news=True,
        take=lambda *_: b"",
        snapshot=surprising,
        stop=lambda: None,
    )
    here, there = socket.socketpair()
    with here, there:
        session = FeedSession(SimpleNamespace(), here, "u")
        there.sendall(b"x")
        there.settimeout(10)
        with pytest.raises(StoreError, match="RuntimeError: surprise"):
            session._take(taking, b"x")
