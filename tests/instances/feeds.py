"""Agents that take feeds, in threads of the test; and what a feed's file says of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from instances.agents import KEY, RunningAgent, running, write_agent

from datacollect.feeds.formats.feed_file import REPORT
from datacollect.feeds.formats.report import FeedReport
from datacollect.feeds.receiver.service import FEED_HANDLERS, FeedService
from datacollect.net.keys import write_private_key
from datacollect.transfer.agent.config.file import AgentConfig


def feed_table(folder: str = "feeds", users: Sequence[str] = (KEY.public,), **keys) -> str:
    """Return the table of an agent's file."""
    rows = {"users": list(users), "folder": folder, "bytes": "1 GB", **keys}
    return "\n".join(["[feed]", *(f"{key} = {json.dumps(each)}" for key, each in rows.items())])


@contextmanager
def receiving(folder: Path, name: str = "D", **keys) -> Iterator[RunningAgent]:
    """Run an agent that takes feeds into ``feeds``."""
    (folder / "feeds").mkdir(exist_ok=True)
    path = folder / f"{name}.toml"
    if not path.exists():
        write_agent(folder, name, more=feed_table(**keys))
    records: list[dict] = []
    service = FeedService(
        AgentConfig.from_file(path), lambda line: records.append(json.loads(line))
    )
    with running(path, services={FEED_HANDLERS.name: service.serve}) as agent:
        agent.feed_records = records
        try:
            yield agent
        finally:
            service.close()


def feed_tree(folder: Path, *agents: RunningAgent, **keys) -> dict:
    """Return what a feed's file says: to the first of the agents, over the others."""
    key = folder / "instrument.key"
    if not key.exists():
        write_private_key(key, KEY)
    return {
        "format": "datacollect-feed/1",
        "name": "scan7",
        "to": agents[0].name,
        "via": [each.name for each in agents[1:]],
        "key": str(key),
        "rate": "16 Mbit/s",
        "agents": {
            each.name: {"url": f"https://{each.place}", "fingerprint": each.agent.fingerprint}
            for each in agents
        },
        **keys,
    }


def kept_report(folder: Path, name: str = "scan7") -> FeedReport:
    """Return the report that a receiver has written down."""
    return FeedReport.from_dict(json.loads((folder / "feeds" / f"{name}{REPORT}").read_text()))
