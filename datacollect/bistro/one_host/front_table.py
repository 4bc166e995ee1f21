"""The table ``front`` of an agent's file: other parts of an event that answer at its address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.fields import Field, Table
from datacollect.files.kinds import Text
from datacollect.net.kinds import Addresses
from datacollect.transfer.agent.config.tables import AgentTable

if TYPE_CHECKING:
    from pathlib import Path

    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.config.tables import AgentPlaces

FRONT = Table(
    "the table front",
    "Other parts of an event on this host, which answer at this agent's address.",
    (
        Field("page", Text(), "Folder of the event's page, shown at `/`.", required=True),
        Field(
            "to",
            Addresses(shortest=1),
            "Servers on this host that speak plain HTTP: the beginning of the path of requests to "
            "each, and its address.",
            required=True,
        ),
    ),
)


@dataclass(frozen=True)
class FrontConfig:
    """What else answers at an agent's address; see ``FRONT``."""

    page: Path
    to: dict[str, tuple[str, int]]

    @property
    def served(self) -> None:
        """Nothing of it is served to collectors."""

    @property
    def own(self) -> tuple[Path, ...]:
        """It has no secrets."""
        return ()


def front_of(config: AgentConfig) -> FrontConfig:
    """Return what an agent's file, which has the table, says in it."""
    found = config.tables["front"]
    assert isinstance(found, FrontConfig)
    return found


def _configured(values: dict[str, Any], places: AgentPlaces) -> FrontConfig:
    return FrontConfig(places.folder / values["page"], values["to"])


FRONT_TABLE = AgentTable(
    "front",
    FRONT,
    "The page and other servers of an event on this host; left out: none.",
    _configured,
    work="answering for an event's other servers",
)
