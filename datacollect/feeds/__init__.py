"""Feeds: what a source makes at a constant rate, brought to another host, and what is missing said.

What a source makes is cut into messages, which are numbered and stamped. They go by TCP, over the
routes of tunnels, to an agent whose file has a table ``feed``; it keeps them in one file, and says
how late they came. Imports lead downwards::

    commands   `datacollect feed send`, `feed run`
    page       a live page of feeds that are sent
    receiver   the table `feed` of an agent's file, and who takes feeds for it
    sender     takes what a source makes, keeps it until it is written there, sends it
    udp        rings, drop sets, pacing and guard of feeds by UDP
    formats    FEED.toml, messages on the wire, counts, delays, the report

Sender and receiver have a core each that reads no clock, socket or file.
"""

from importlib import import_module
from typing import Any

_HOME_OF = {
    "Feed": "datacollect.feeds.sender.feed",
    "FeedStopped": "datacollect.feeds.formats.report",
    "send": "datacollect.feeds.sender.feed",
}

__all__ = ["Feed", "FeedStopped", "send"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'datacollect.feeds' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
