"""The table ``accept`` of an agent's file: sealed uploads that it takes for an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.fields import Field, Table
from datacollect.files.kinds import Number, Text, Whole
from datacollect.transfer.agent.config.tables import AgentTable

if TYPE_CHECKING:
    from pathlib import Path

    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.config.tables import AgentPlaces

# What was collected stays for a week: a destination that loses its disk fetches it again.
KEEP_S = 7 * 86_400.0

ACCEPT = Table(
    "the table accept",
    "Sealed uploads that this agent accepts for an event, as a bistro.",
    (
        Field("event", Text(), "The event's file, which names this bistro.", required=True),
        Field(
            "folder",
            Text(),
            "Folder where uploads are kept. The agent serves the subfolder `served` in it without "
            "being told.",
            required=True,
        ),
        Field(
            "bytes",
            Whole("bytes", minimum=1),
            "Room for uploads: the most bytes that they may take.",
            required=True,
        ),
        Field(
            "receipt_key",
            Text(),
            "File of the bistro's private key, which signs receipts.",
            required=True,
        ),
        Field(
            "expire_s",
            Number("seconds", positive=True),
            "After how many seconds without a byte an unfinished upload is forgotten.",
            default=86_400.0,
        ),
        Field(
            "keep_s",
            Number("seconds"),
            "For how many seconds an upload stays here after it is collected, while there is room.",
            default=KEEP_S,
        ),
    ),
)


@dataclass(frozen=True)
class AcceptConfig:
    """Uploads that an agent accepts; see ``ACCEPT``. All paths resolved."""

    event: Path
    folder: Path
    most_bytes: int
    receipt_key: Path
    expire_s: float
    keep_s: float = KEEP_S

    @property
    def served(self) -> Path:
        """The folder that the agent serves: what is closed."""
        return self.folder / "served"

    @property
    def own(self) -> tuple[Path, ...]:
        """The key, which is never served."""
        return (self.receipt_key,)


def accept_of(config: AgentConfig) -> AcceptConfig | None:
    """Return what an agent's file says of uploads; None where it takes none."""
    found = config.tables.get("accept")
    assert found is None or isinstance(found, AcceptConfig)
    return found


def _configured(values: dict[str, Any], places: AgentPlaces) -> AcceptConfig:
    return AcceptConfig(
        event=places.folder / values["event"],
        folder=(places.folder / values["folder"]).resolve(),
        most_bytes=values["bytes"],
        receipt_key=places.folder / values["receipt_key"],
        expire_s=values["expire_s"],
        keep_s=values["keep_s"],
    )


ACCEPT_TABLE = AgentTable(
    "accept",
    ACCEPT,
    "Uploads that are accepted; left out: none.",
    _configured,
    serves="the closed segments of uploads",
    work="taking uploads",
)
