"""What advises users of feeds, and whoever takes them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

from instances.agents import write_agent
from instances.feeds import feed_table
from remedies.trying import Example

from datacollect.feeds.commands.send import _input
from datacollect.feeds.formats.feed_file import FeedFile
from datacollect.feeds.formats.frames import Hello
from datacollect.feeds.receiver.service import FeedService
from datacollect.feeds.sender.core import SenderCore
from datacollect.feeds.sender.rate_seen import RateSeen
from datacollect.feeds.sender.source import opened_source
from datacollect.feeds.sender.spill import Spill
from datacollect.feeds.sender.store import Memory
from datacollect.transfer.agent.config.file import AgentConfig

AGENT = {"url": "https://127.0.0.1:9", "fingerprint": f"sha256:{'0' * 64}"}
TREE = {
    "format": "datacollect-feed/1",
    "name": "scan7",
    "to": "D",
    "key": "instrument.key",
    "rate": "16 Mbit/s",
    "agents": {"D": AGENT, "K": AGENT},
}


def read(**keys):
    return lambda: FeedFile.from_dict({**TREE, **keys})


def written(when_full="stop", buffer_bytes=100):
    """Write more than fits."""
    return lambda: SenderCore(Memory(), 10, buffer_bytes, when_full).write(bytes(200), 0)


def made(rate_bytes_per_s):
    """Return what is said of a source of 2 MB/s."""

    def make():
        seen = RateSeen(rate_bytes_per_s)
        said = [seen.made(2_000_000, s * 10**9) for s in range(25)]
        return next(filter(None, said), None)

    return make


def spilled(message_bytes):
    """Open a spill that has messages of ten bytes."""

    def open_it():
        with tempfile.TemporaryDirectory() as folder:
            Spill(Path(folder), "scan7", 10).close(is_done=False)
            Spill(Path(folder), "scan7", message_bytes).close(is_done=False)

    return open_it


def allowed(**change):
    """Ask whether a feed of 2 MB/s may come to an agent that takes 1 MB/s."""
    keys = {
        "name": "scan7",
        "stream": "s",
        "transport": "tcp",
        "rate_bytes_per_s": 2e6,
        "message_bytes": 1,
        "late_after_s": 1.0,
        "boot": "b",
        "base_ns": 0,
    }

    def ask():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "feeds").mkdir()
            path = write_agent(Path(folder), "D", more=feed_table(most_rate="1 MB/s"))
            FeedService(AgentConfig.from_file(path), print).require_allowed(Hello(**keys | change))

    return ask


def entered(most_feeds):
    """Have two feeds come to an agent."""

    def enter():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "feeds").mkdir()
            path = write_agent(Path(folder), "D", more=feed_table(feeds=most_feeds))
            service = FeedService(AgentConfig.from_file(path), print)
            for name in "ab":
                service.enter(SimpleNamespace(name=name), SimpleNamespace(name=name))

    return enter


def opened(name):
    """Open what a feed is read from: a folder, or a file in it."""

    def open_it():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "recording").write_bytes(b"")
            os.close(opened_source(Path(folder) / name))

    return open_it


def given(source, generate):
    """Say what is sent."""
    return lambda: _input(source, generate)


EXAMPLES = [
    Example(
        "catch_up must be >= 1: below that, a late feed would never catch up, got {}; write 1.25",
        read(catch_up=0.5),
        read(catch_up=1.25),
    ),
    Example(
        "buffer_bytes must hold a message of {} bytes, got {}; ask `datacollect feed plan`, which "
        "names one that fits",
        read(buffer_bytes=100),
        read(buffer_bytes="1 MB"),
    ),
    Example("via names the receiver {}; leave it out", read(via=["D"]), read()),
    Example(
        'give it a larger buffer_bytes, or a path that keeps up, or write when_full = "drop-new"',
        written(),
        written("drop-new"),
    ),
    Example('the feed\'s file says {}; write rate = "{}"', made(1e6), made(2e6)),
    Example(
        "write message_bytes = {}, or name another folder",
        spilled(20),
        spilled(10),
        "feeds.sender.spill",
    ),
    Example(
        "send less, or have its operator raise most_rate of [feed] and limits.rate",
        allowed(),
        allowed(rate_bytes_per_s=1e6),
    ),
    Example("end one, or have the agent's operator raise `feeds`", entered(1), entered(2)),
    Example(
        "is a folder, and a feed is one file, pipe or device; name one",
        opened("."),
        opened("recording"),
    ),
    Example(
        "give either FILE or --generate, got both",
        given("recording", "1 s"),
        given(None, "1 s"),
    ),
]
