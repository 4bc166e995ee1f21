"""One connection of a feed: what is said over it, and who has its name."""

from __future__ import annotations

import os
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from instances.agents import write_agent
from instances.feeds import feed_table

from datacollect.errors import RefusedError, StoreError
from datacollect.feeds.formats.frames import Hello
from datacollect.feeds.receiver import service as service_module
from datacollect.feeds.receiver.service import FeedService, FeedSession
from datacollect.transfer.agent.config.file import AgentConfig

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


def test_a_first_line_that_comes_byte_by_byte_keeps_no_place(monkeypatch) -> None:
    """All of it has to come within the time, not each byte."""
    monkeypatch.setattr(service_module, "HELLO_S", 0.2)
    is_over = threading.Event()

    def drip(there) -> None:
        while not is_over.wait(0.02):
            try:
                there.send(b"x")
            except OSError:
                return

    here, there = socket.socketpair()
    with here, there:
        dripping = threading.Thread(target=drip, args=(there,))
        dripping.start()
        begun_s = time.monotonic()
        assert FeedSession(SimpleNamespace(), here, "u")._first_line() == (b"", b"")
        is_over.set()
        dripping.join()
        assert time.monotonic() - begun_s >= 0.2


def test_one_feed_more_than_may_come_is_told_to_try_again(tmp_path) -> None:
    (tmp_path / "feeds").mkdir()
    path = write_agent(tmp_path, "D", more=feed_table(feeds=2))
    service = FeedService(AgentConfig.from_file(path), print)
    sessions = []
    here, there = socket.socketpair()
    with here, there:
        for name in ("a", "b"):
            sessions.append(FeedSession(service, here, "u"))
            sessions[-1].name = name
            service.enter(sessions[-1], SimpleNamespace(name=name))
        with pytest.raises(RefusedError, match="allows 2; end one") as found:
            service.enter(FeedSession(service, here, "u"), SimpleNamespace(name="c"))
        assert found.value.status == service_module.AGAIN
        service.leave(sessions[0])
        service.enter(FeedSession(service, here, "u"), SimpleNamespace(name="c"))


@pytest.mark.parametrize("ending", ["", ".part", ".json", ".holes"])
def test_a_pipe_in_the_way_is_refused_and_waited_for_by_nobody(tmp_path, ending) -> None:
    from datacollect.feeds.receiver.disk import Folder
    from datacollect.feeds.receiver.kept_feed import kept_feed

    os.mkfifo(tmp_path / f"scan7{ending}")
    with pytest.raises(RefusedError, match=f"there is a file scan7{ending} already"):
        kept_feed(Folder(tmp_path), HELLO, "u", "now")
