"""Feeds over real sockets: from `dc.feeds.send` over relays to an agent's folder."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import replace

import pytest
from instances.agents import KEY, running, write_agent
from instances.feeds import feed_table, feed_tree, kept_report, receiving

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.feeds import FeedStopped
from datacollect.feeds.formats.frames import line_of
from datacollect.feeds.formats.report import FeedCounts
from datacollect.feeds.receiver.service import FEED_HANDLERS
from datacollect.feeds.sender.ending import require_end
from datacollect.feeds.sender.source import counted_bytes
from datacollect.net.keys import PrivateKey

OTHER = PrivateKey(b"whom no agent of these tests has")


def write_all(out, n_bytes=200_000, step=10_000) -> bytes:
    data = counted_bytes(0, n_bytes)
    for at in range(0, n_bytes, step):
        assert out.write(data[at : at + step]) >= 0
    return data


@pytest.mark.parametrize("relays", [[], pytest.param(["K1"], marks=pytest.mark.slow)])
def test_all_that_was_made_is_there(tmp_path, relays):
    told = []
    with ExitStack() as held:
        agents = [held.enter_context(receiving(tmp_path))]
        for name in relays:
            leads = {agents[-1].name: agents[-1].place}
            path = write_agent(tmp_path, name, connect_to=leads)
            agents.append(held.enter_context(running(path)))
        with dc.feeds.send(feed_tree(tmp_path, *agents), tell=told.append) as out:
            data = write_all(out)
        assert (tmp_path / "feeds" / "scan7").read_bytes() == data
        ended = agents[0].logged("ended")[-1]
        assert (ended["why"], ended["to"]) == ("both sides have ended", "feed")
    counts = out.counts
    assert counts == kept_report(tmp_path).counts
    assert (counts.made, counts.received, counts.lost, counts.made_bytes) == (49, 49, 0, 200_000)
    assert out.delays.n == 49
    assert out.clock == "one clock"
    report = kept_report(tmp_path)
    assert report.more["route"] == " → ".join(["source", *relays, "D"])
    assert "granted" in report.more["granted"]
    assert told[0].startswith("connected\nsource → ")
    with pytest.raises(FeedStopped, match="has ended"):
        out.write(b"more")


@pytest.mark.slow
def test_a_connection_that_breaks_is_opened_again(tmp_path):
    told = []
    with receiving(tmp_path) as agent:
        with dc.feeds.send(feed_tree(tmp_path, agent), tell=told.append) as out:
            data = write_all(out)
            cut_all(agent)
            out.write(b"behind")
        assert (tmp_path / "feeds" / "scan7").read_bytes() == data + b"behind"
    assert out.counts.is_whole
    assert out.counts.reconnections == 1
    assert kept_report(tmp_path).counts.reconnections == 1


def cut_all(agent):
    """Cut off all connections of an agent."""
    for session in list(agent.agent._shell._sessions.values()):
        session.cut("the test has cut it")


@pytest.mark.parametrize(
    ("table", "change", "why"),
    [
        ({"most_rate": "1 Mbit/s"}, {}, "but this agent takes at most 1 Mbit/s"),
        ({"bytes": 1000}, {}, None),
        ({"bytes": 1001 + 4000}, {}, None),  # less than a message
        ({"users": [OTHER.public]}, {}, "`users` of"),
        ({}, {"name": "taken"}, "a file taken already"),
        ({}, {"congestion": "carrier-pigeon"}, "congestion must be one that this kernel allows"),
    ],
)
def test_what_is_refused_says_why(tmp_path, table, change, why):
    with receiving(tmp_path, **table) as agent:
        (tmp_path / "feeds" / "taken").write_text("x" * 1001)
        told = []
        tree = feed_tree(tmp_path, agent, **change)
        if why is None:  # room may be made: it goes on trying
            out = dc.feeds.send(tree, tell=told.append)
            out.abandon()
            assert "`bytes` of [feed] allows are used up" in told[0]
            return
        with pytest.raises(ProblemError, match=why):
            dc.feeds.send(tree)


def test_an_agent_that_takes_no_feeds(tmp_path):
    (tmp_path / "data").mkdir()
    with running(write_agent(tmp_path, "D", serve="data")) as agent:
        tree = feed_tree(tmp_path, agent)
        with pytest.raises(ProblemError, match=r"D: takes no feeds; write \[feed\]"):
            dc.feeds.send(tree)


@pytest.mark.slow
def test_two_streams_of_one_name(tmp_path):
    with receiving(tmp_path) as agent:
        out = dc.feeds.send(feed_tree(tmp_path, agent))
        out.write(b"x" * 5000)
        with pytest.raises(ProblemError, match="arriving from another sender"):
            dc.feeds.send(feed_tree(tmp_path, agent))
        out.close()
        assert out.counts.is_whole


@pytest.mark.slow
def test_a_key_withdrawn_ends_its_feed(tmp_path):
    with receiving(tmp_path) as agent:
        out = dc.feeds.send(feed_tree(tmp_path, agent))
        path = tmp_path / "D.toml"
        mine, theirs = (f'["{key.public}"]\nfolder' for key in (KEY, OTHER))
        path.write_text(path.read_text().replace(mine, theirs))
        agent.agent.reread()
        [record] = agent.logged("ended")
        assert record["why"] == "its user's key was withdrawn"
        with pytest.raises(FeedStopped, match="`users` of"):
            out.close()


@pytest.mark.slow
def test_a_spill_goes_on_where_it_was_left(tmp_path):
    with receiving(tmp_path) as agent:
        tree = feed_tree(tmp_path, agent, spill=str(tmp_path / "spill"))
        out = dc.feeds.send(tree)
        out.write(b"a" * 10_000)
        out.abandon()
        with dc.feeds.send(tree) as out:
            assert out.goes_on_at_bytes == 10_000
            out.write(b"b" * 10_000)
        assert (tmp_path / "feeds" / "scan7").read_bytes() == b"a" * 10_000 + b"b" * 10_000
    assert (out.counts.restarts, out.counts.is_whole) == (1, True)
    assert kept_report(tmp_path).counts.restarts == 1


@pytest.mark.slow
def test_without_a_receiver_it_says_what_is_lost(tmp_path):
    with receiving(tmp_path) as agent:
        tree = feed_tree(tmp_path, agent, give_up="0.2 s")
    told = []
    out = dc.feeds.send(tree, tell=told.append)
    out.write(b"x" * 10_000)
    with pytest.raises(FeedStopped, match=r"3 messages did not reach D.*they are lost"):
        out.close()
    assert told[0].startswith("not connected yet; still trying: ")
    assert (out.counts.made, out.counts.received) == (3, 0)


def test_a_full_buffer_stops_the_source_and_what_was_kept_arrives(tmp_path):
    with receiving(tmp_path) as agent:
        tree = feed_tree(tmp_path, agent, buffer_bytes=8192)
        with pytest.raises(FeedStopped) as stopped, dc.feeds.send(tree) as out:
            out.write(bytes(20_000))
        assert stopped.value.counts.lost == 3
        report = kept_report(tmp_path)
        assert report.ended
        assert (report.counts.received, report.counts.lost_bytes) == (2, 20_000 - 8192)
        assert (tmp_path / "feeds" / "scan7.holes").read_text().splitlines()[1] == "2,3,8192,11808"


HOSTILE = [
    b"",
    b"x" * 100_000,
    b'{"welcome":true}\n',
    b'{"why":"no","again":false}\n',
    b'{"welcome":true,"next":99,"written":0,"boot":"b","base_ns":1,"at_ns":1}\n',
    b'{"welcome":true,"next":0,"written":0,"boot":"b","base_ns":1,"at_ns":1}\n{"written":7}\n',
    b'{"welcome":true,"next":0,"written":0,"boot":"b","base_ns":1,"at_ns":1}\n{"report":{}}\n',
    b'{"welcome":true,"next":0,"written":0,"boot":"b","base_ns":1,"at_ns":1}\n{"ended":{}}\n',
    b'{"welcome":true,"next":0,"written":0,"boot":"b","base_ns":1,"at_ns":1}\n{"time":"x"}\n',
]

# It may say so before anything was made, and of all that is the sender's to know.
_ENDED = {
    "format": "datacollect-feed-report/1",
    **dict.fromkeys(("name", "stream", "user", "transport", "clock"), "x"),
    "message_bytes": 4096,
    "next": 0,
    "rate_bytes_per_s": 1,
    "begun": None,
    "ended": "now",
    "counts": {},
    "delay": {"n": 0},
}
HOSTILE.append(line_of({"ended": _ENDED}))


def send_one(tree):
    out = dc.feeds.send(tree)
    out.write(b"x" * 5000)
    out.close()


@pytest.mark.parametrize(
    ("change", "is_ended"),
    [
        ({}, False),
        ({"made": 4, "received": 3}, True),
        ({"made_bytes": 9, "received_bytes": 7}, True),
        ({"received": 3, "lost": 0}, True),
        ({"received": 3}, True),
        ({"received_bytes": 9}, True),
    ],
)
def test_an_end_that_does_not_add_up_is_none(change, is_ended):
    """Messages 0 to 2 were made, of 10 bytes, and the second was not sent."""
    here = FeedCounts(made=3, made_bytes=10, lost=1)
    there = replace(here, received=2, received_bytes=8, lost_bytes=2)
    require_end(there, here, is_ended=True, receiver="D")
    with pytest.raises(ProblemError, match="check its files"):
        require_end(replace(there, **change), here, is_ended=is_ended, receiver="D")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "transport"), [*((answer, "tcp") for answer in HOSTILE), (HOSTILE[-1], "udp")]
)
def test_a_hostile_receiver_is_noticed(tmp_path, answer, transport):
    """However it answers, the sender ends, and says that not all is there."""

    def serve(connection: socket.socket, user: str) -> None:
        with connection:
            connection.recv(10_000)
            connection.sendall(answer)
            connection.settimeout(1)
            with suppress(OSError):
                while connection.recv(10_000):
                    pass

    (tmp_path / "feeds").mkdir()
    path = write_agent(tmp_path, "D", more=feed_table())
    with running(path, services={FEED_HANDLERS.name: serve}) as agent:
        more = {"message_bytes": 1000} if transport == "udp" else {}
        tree = feed_tree(tmp_path, agent, give_up="0.3 s", transport=transport, **more)
        with pytest.raises((ProblemError, FeedStopped)):
            send_one(tree)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_what_was_closed_is_not_written_to(tmp_path, transport):
    """Its number may be that of a file of somebody else by then."""
    more = {"message_bytes": 1000} if transport == "udp" else {}
    with receiving(tmp_path, most_rate="1 Gbit/s") as agent:
        out = dc.feeds.send(feed_tree(tmp_path, agent, transport=transport, **more))
        number = out._waker.fileno()
        out.abandon()
    with (tmp_path / "mine").open("wb") as file:
        if file.fileno() != number:
            os.dup2(file.fileno(), number)
        try:
            out.abandon()
            with pytest.raises(FeedStopped):
                out.write(b"x" * 5000)
        finally:
            if file.fileno() != number:
                os.close(number)
    assert (tmp_path / "mine").stat().st_size == 0


@pytest.mark.slow
def test_nothing_of_it_is_left_running(tmp_path):
    before = threading.active_count()
    with receiving(tmp_path) as agent, dc.feeds.send(feed_tree(tmp_path, agent)) as out:
        out.write(b"x")
    until_s = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < until_s:
        time.sleep(0.01)
    assert threading.active_count() <= before
