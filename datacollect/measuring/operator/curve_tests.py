"""The tool `curve`: how a rate grows with connections, by packet pairs and tests of 1, 2, 4."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from datacollect.files.units import counted, format_rate
from datacollect.measuring.operator.packet_pairs import PAIRS, PairsSettings
from datacollect.measuring.operator.tcp_tests import TCP, TcpSettings
from datacollect.measuring.operator.tool import MOST_BYTES, Option, Tool, line_of, most_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from datacollect.measuring.plan.budget import Cost
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

NUMBERS = (1, 2, 4)
# Where pairs do not tell the capacity, one more shows whether the rate still grows.
NUMBERS_ALONE = (1, 2, 4, 8)
# Beside others of Cubic new connections get two thirds of their share in the first seconds.
SETTLED_S = 3.0
# For the capacity alone: as few as pairs are sent.
CAPACITY_PAIRS = PairsSettings(half_width=1.0, seconds=8.0, most_bytes=1_000_000)
# Of a packet of 1500 bytes, by which pairs tell the capacity, TCP carries so much.
PAYLOAD = 1448 / 1500


@dataclass(frozen=True)
class CurveSettings:
    """Settings of a curve's tests.

    Attributes
    ----------
    seconds : float
        Each number of connections, when they have come to their share: 5 are enough beside others
        of Reno, Cubic takes 10.
    most_bytes : int
        Of each test.
    """

    seconds: float = 10.0
    most_bytes: int = 100_000_000

    tool: ClassVar[str] = "curve"

    @property
    def cost(self) -> Cost:
        """Return what it takes at most."""
        return CAPACITY_PAIRS.cost + self.test(1).cost.times(len(NUMBERS_ALONE))

    def test(self, streams: int) -> TcpSettings:
        """Return how so many connections are tested."""
        seconds = SETTLED_S + self.seconds
        return TcpSettings(streams, seconds, self.most_bytes, settled_s=SETTLED_S)


def measure_curve(
    sender: AgentEntry,
    receiver: AgentEntry,
    key: PrivateKey,
    settings: CurveSettings,
    patience_s: float = 600.0,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[dict[str, Any]]:
    """Measure a pair of hosts, and yield the row of each test, then that of the curve.

    Where packet pairs do not tell the capacity, the curve has none, and its settings say why.

    Parameters
    ----------
    sender, receiver, key, patience_s, report
        As for `datacollect.measuring.operator.pair_tests.measure_pair`.
    settings : CurveSettings

    Returns
    -------
    iterator of dict
    """
    from datacollect.measuring.operator.pair_tests import measure_pair

    begun_s = time.time()
    pairs = measure_pair(sender, receiver, key, CAPACITY_PAIRS, patience_s, report)
    capacity = pairs.get("capacity_bytes_per_s")
    if pairs["ended"] == "done":
        yield pairs
    rows = []
    for n in NUMBERS if capacity is not None else NUMBERS_ALONE:
        row = measure_pair(sender, receiver, key, settings.test(n), patience_s, report)
        rows.append(row)
        yield row
    yield {
        "from": sender.name,
        "to": receiver.name,
        "time_s": begun_s,
        "tool": settings.tool,
        "concurrency": 0,
        **curve_of(rows, settings, capacity, "" if capacity is not None else pairs["ended"]),
    }


def curve_of(
    rows: list[dict[str, Any]],
    settings: CurveSettings,
    capacity_bytes_per_s: float | None,
    no_capacity: str = "",
) -> dict[str, Any]:
    """Return what the row of a curve says, from those of its tests.

    Parameters
    ----------
    rows : list of dict
    settings : CurveSettings
    capacity_bytes_per_s : float or None
        Of packets on the narrowest wire.
    no_capacity : str
        Why it is not known.
    """
    from datacollect.measuring.operator.pair_tests import any_known
    from datacollect.measuring.probes.connection_curve import competitors, link_rates

    failed = next((row for row in rows if row["ended"] != "done"), None)
    if failed is not None:
        return {"ended": failed["ended"], "settings": json.dumps(asdict(settings))}
    n, rate = [row["streams"] for row in rows], [row["bandwidth_bytes_per_s"] for row in rows]
    said = asdict(settings) | {"rates_bytes_per_s": list(zip(n, rate, strict=True))}
    said |= {"no_capacity": no_capacity} if no_capacity else {}
    known = None
    if capacity_bytes_per_s is not None:
        capacity = capacity_bytes_per_s * PAYLOAD
        known = (capacity, competitors(capacity, n, rate))
    found = link_rates(n, rate, known)
    return {
        "ended": "done",
        "settings": json.dumps(said),
        "capacity_bytes_per_s": None if known is None else known[0],
        "competitors": None if known is None else known[1],
        "per_connection_bytes_per_s": found["bandwidth_bytes_per_s"] if known is None else None,
        "bytes": sum(row["bytes"] for row in rows),
        "duration_s": math.fsum(row["duration_s"] for row in rows),
        "beside_pull": any_known(row.get("beside_pull") for row in rows),
    }


def _line(row: Mapping[str, Any]) -> str:
    """Say what a curve tells; of a test of it, how many connections it had."""
    if row["tool"] == PAIRS.name:
        return PAIRS.line(row)
    if row["tool"] == TCP.name:
        streams = json.loads(row["settings"])["streams"]
        return f"{counted(streams, 'stream')}: {TCP.line(row)}"
    if row["ended"] != "done":
        return line_of(row, None)
    if row["competitors"] is None:
        return line_of(
            row,
            f"one connection gets {format_rate(row['per_connection_bytes_per_s'])}; how many "
            f"connections others have is not known: "
            f"{json.loads(row['settings']).get('no_capacity')}",
        )
    return line_of(
        row,
        f"{format_rate(row['capacity_bytes_per_s'])} for all connections, those of others are as "
        f"{row['competitors']:.1f} of ours",
    )


CURVE = Tool(
    CurveSettings,
    help=(
        "Measure how rates grow with connections, and how many of others share the narrowest wire."
        "\n\nPacket pairs tell the capacity; 1, 2 and 4 connections what we get of it. Where pairs "
        "do not tell it, 8 connections show how far the rate grows."
    ),
    options={
        "seconds": Option("--seconds", "TIME", "Each number of streams.", 0.1, 60.0),
        "most_bytes": MOST_BYTES,
    },
    line=_line,
    settings_for=lambda rate: CurveSettings(10.0, most_bytes(rate, 10.0)),
    measure=measure_curve,
)
