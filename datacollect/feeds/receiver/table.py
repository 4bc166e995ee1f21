"""The table ``feed`` of an agent's file: feeds that are taken here, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.fields import Field, Table
from datacollect.files.kinds import ListOf, Number, Text, Whole, wrong
from datacollect.files.quantities import BYTES, BYTES_PER_S
from datacollect.net.kinds import PublicKey
from datacollect.transfer.agent.config.tables import AgentTable

if TYPE_CHECKING:
    from pathlib import Path

    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.config.tables import AgentPlaces

# Each by UDP may take 50 MB of memory while its disk does not keep up.
MOST_FEEDS = 16

FEED = Table(
    "the table feed",
    "Feeds that are taken here: of sources that make data at a constant rate and cannot wait.",
    (
        Field(
            "users",
            ListOf(PublicKey()),
            "Public keys of senders whose feeds this agent accepts. Read again at SIGHUP.",
            required=True,
        ),
        Field("folder", Text(), "Existing folder in which this agent keeps feeds.", required=True),
        Field(
            "bytes",
            Whole(BYTES, minimum=1),
            "Most bytes that feeds may take in the folder.",
            required=True,
        ),
        Field(
            "most_rate",
            Number(BYTES_PER_S, positive=True),
            "The largest rate of a feed; left out: any rate by TCP, but no feeds by UDP.",
        ),
        Field(
            "feeds",
            Whole(minimum=1),
            "How many feeds may arrive at once; any further sender is told to try again.",
            default=MOST_FEEDS,
        ),
        Field(
            "udp_port",
            Whole(minimum=0, stop=65_536),
            "UDP port of feeds that come by UDP; 0, or left out: any free one.",
        ),
    ),
)


@dataclass(frozen=True)
class FeedConfig:
    """Feeds that an agent takes; see ``FEED``.

    Attributes
    ----------
    users : frozenset of str
        Public keys.
    folder : Path
    most_bytes : int
    most_rate_bytes_per_s : float or None
    udp_port : int
    most_feeds : int
    """

    users: frozenset[str]
    folder: Path
    most_bytes: int
    most_rate_bytes_per_s: float | None = None
    udp_port: int = 0
    most_feeds: int = MOST_FEEDS

    @property
    def served(self) -> None:
        """Nothing is served for it."""

    @property
    def own(self) -> tuple[Path, ...]:
        """None of its files are secrets: who serves the folder, too, has his reasons."""
        return ()


def feed_config_of(config: AgentConfig) -> FeedConfig | None:
    """Return what an agent's file says of feeds; None where it takes none."""
    found = config.tables.get("feed")
    assert found is None or isinstance(found, FeedConfig)
    return found


def _configured(values: dict[str, Any], places: AgentPlaces) -> FeedConfig:
    folder = (places.folder / values["folder"]).resolve()
    if not folder.is_dir():
        raise wrong(
            "feed.folder",
            "must be an existing folder",
            values["folder"],
            "make it, or correct the path",
        )
    return FeedConfig(
        users=frozenset(values["users"]),
        folder=folder,
        most_bytes=values["bytes"],
        most_rate_bytes_per_s=values["most_rate"],
        udp_port=values["udp_port"] or 0,
        most_feeds=values["feeds"],
    )


FEED_TABLE = AgentTable(
    "feed",
    FEED,
    "Feeds that are taken; left out: none.",
    _configured,
    work="taking feeds",
    users=lambda feed: feed.users,
)
