"""The tool `ping`: what round trips cost, and the row that comes of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from datacollect.errors import TransferError
from datacollect.files.units import format_short_duration
from datacollect.measuring.operator.tool import (
    Option,
    Tool,
    ended_of,
    line_of,
    packets_in,
    require_short,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.measuring.operator.agents import AskedAgent
    from datacollect.measuring.plan.budget import Cost


@dataclass(frozen=True)
class PingSettings:
    """Settings of round trips: `n` of them, one every `every_s` seconds."""

    n: int = 10
    every_s: float = 1.0

    tool: ClassVar[str] = "ping"

    def __post_init__(self) -> None:
        require_short(self.cost)

    @property
    def cost(self) -> Cost:
        """Return what it takes at most."""
        from datacollect.measuring.agent.pinging import PING_BYTES
        from datacollect.measuring.plan.budget import Cost

        return Cost(PING_BYTES * self.n, self.n * self.every_s)

    def row(self, sender: AskedAgent, receiver: AskedAgent, said: dict[str, Any]) -> dict[str, Any]:
        """Return what the row of a test says."""
        return ping_row(sender.name, said, self)


def ping_row(name: str, said: dict[str, Any], settings: PingSettings) -> dict[str, Any]:
    """Return what the row of a test says, from what who sends says of round trips.

    Raises
    ------
    TransferError
        No such test can say that.
    """
    from statistics import median

    from datacollect.net.safe_text import safe_text

    trips_s, n_sent = said.get("round_trips_s"), said.get("sent")
    if (
        not isinstance(trips_s, list)
        or not all(type(trip) in (int, float) and 0 < trip < 1e6 for trip in trips_s)
        or type(n_sent) is not int
        or not len(trips_s) <= n_sent <= settings.n
    ):
        raise TransferError(f"{name}: malformed report on round trips")
    return {
        "ended": ended_of(said),
        "rtt_s": float(median(trips_s)) if trips_s else None,
        "loss": 1 - len(trips_s) / n_sent if n_sent else None,
        "settings": json.dumps({**asdict(settings), "by": safe_text(str(said.get("by")))}),
    }


def _line(row: Mapping[str, Any]) -> str:
    if row.get("rtt_s") is None:
        return line_of(row, None)
    return line_of(row, f"{format_short_duration(row['rtt_s'])}, loss {row['loss']:.0%}")


def _packets_of(row: Mapping[Any, Any]) -> int:
    """Return how many echo requests a row is of; 0 where it does not say it."""
    from datacollect.measurement.sample_store import DONE, settings_of
    from datacollect.measuring.agent.pinging import HANDSHAKE

    settings = settings_of(row["settings"])
    # Kernels repeat a handshake's packets until one is answered, so that most losses do not show.
    if row["ended"] != DONE or settings.get("by") == HANDSHAKE:
        return 0
    return packets_in(settings, "n")


PING = Tool(
    PingSettings,
    help="Measure round trips between hosts that run agents: by ping, else by handshakes of TCP.",
    options={
        "n": Option("--count", "N", "Round trips.", 1, 100),
        "every_s": Option("--every", "TIME", "Time between one and the next.", 0.2, 10.0),
    },
    line=_line,
    settings_for=lambda _: PingSettings(10, 0.5),
    loads_wires=False,
    is_usual=True,
    packets_of=_packets_of,
)
