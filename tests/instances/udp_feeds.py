"""Feeds by UDP over loopback, to an agent in a thread of the test."""

from __future__ import annotations

from typing import Any

from datacollect.feeds.formats.feed_file import FeedFile

SIZE = 1000
# A guard that a busy machine does not set off.
UDP: dict[str, Any] = {
    "transport": "udp",
    "rate": "4 Mbit/s",
    "message_bytes": SIZE,
    "give_up": 60,
    "udp": {"most_loss": 0.9, "grace": 30.0, "end": 60.0},
}


def feed_file(**more: object) -> FeedFile:
    """Return a feed by UDP of 4 Mbit/s, messages of 1000 bytes; what is None is left out."""
    tree = {
        "format": "datacollect-feed/1",
        "name": "scan7",
        "to": "D",
        "key": "k",
        "agents": {name: {"url": "https://127.0.0.1:7443", "ca": "ca.pem"} for name in "DK"},
        **UDP,
        **more,
    }
    return FeedFile.from_dict({key: value for key, value in tree.items() if value is not None})
