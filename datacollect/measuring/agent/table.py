"""The table ``measure`` of an agent's file: tests of the network that operators may run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.fields import Field, Table
from datacollect.files.kinds import ListOf, Number, Schema, Text, Whole, wrong
from datacollect.measuring.agent.host_tools import HOST_TOOLS
from datacollect.measuring.agent.measure_config import COUNTERS, MeasureConfig
from datacollect.net.kinds import PublicKey
from datacollect.transfer.agent.config.tables import AgentTable

if TYPE_CHECKING:
    from datacollect.transfer.agent.config.tables import AgentPlaces

HOURS = re.compile(r"(\d|1\d|2[0-3])-([1-9]|1\d|2[0-4])", re.ASCII)


@dataclass(frozen=True)
class Hours:
    """Hours of the day between which something may happen, by the host's clock: ``"22-6"``."""

    def read(self, value: Any, place: str) -> tuple[int, int]:
        """Return the first and the last hour."""
        text = Text().read(value, place)
        found = HOURS.fullmatch(text)
        if found is None or found[1] == found[2]:
            remedy = 'write "22-6" for ten in the evening to six in the morning'
            raise wrong(place, "must be two hours of the day", text, remedy)
        return int(found[1]), int(found[2])

    def schema(self) -> Schema:
        """Return the JSON Schema of such hours."""
        return {"type": "string", "pattern": f"^(?:{HOURS.pattern})$"}


MEASURE = Table(
    "the table measure",
    "Tests of the network that operators may run between this host and those of connect_to.",
    (
        Field(
            "operators",
            ListOf(PublicKey(), shortest=1),
            "Public keys of operators whose tickets for measuring this agent accepts. Read again "
            "at SIGHUP.",
            required=True,
        ),
        Field(
            "tools",
            ListOf(Text((*HOST_TOOLS, COUNTERS))),
            "Which tools may run, and whether counters of interfaces are shown; left out: all "
            "tests.",
            default=list(HOST_TOOLS),
        ),
        Field(
            "udp_port",
            Whole(minimum=0, stop=65_536),
            "UDP port at which this host receives packet pairs; 0, or left out: none.",
        ),
        Field(
            "bytes_per_hour",
            Whole("bytes", minimum=1),
            "How many bytes all tests together may send and receive in an hour, counted across "
            "restarts.",
            required=True,
        ),
        Field(
            "rate",
            Number("bytes per second", positive=True),
            "How fast a test may send; left out: as fast as the network allows.",
        ),
        Field(
            "hours",
            Hours(),
            "Hours of the day in which tests may run, such as 22-6; left out: always.",
        ),
    ),
)


def _configured(values: dict[str, Any], places: AgentPlaces) -> MeasureConfig:
    return MeasureConfig(
        operators=frozenset(values["operators"]),
        tools=tuple(values["tools"]),
        bytes_per_hour=values["bytes_per_hour"],
        rate_bytes_per_s=values["rate"],
        hours=values["hours"],
        udp_port=values["udp_port"],
        used=places.state / f"{places.stem}.measured",
        lock=places.state / "measure.lock",
    )


MEASURE_TABLE = AgentTable(
    "measure",
    MEASURE,
    "Tests of the network; left out: nothing is measured.",
    _configured,
    work="measuring",
)
