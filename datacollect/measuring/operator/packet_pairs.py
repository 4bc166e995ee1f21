"""The tool `pairs`: what a test of them costs, and the row that comes of what both ends say.

The sender says how far apart packets left, the receiver itself when they came: neither says what
the pairs tell.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from datacollect.errors import ProblemError, TransferError
from datacollect.files.units import format_rate
from datacollect.measuring.operator.tool import (
    MOST_BYTES,
    Option,
    Tool,
    ended_of,
    line_of,
    packets_in,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.measuring.operator.agents import AskedAgent
    from datacollect.measuring.plan.budget import Cost


@dataclass(frozen=True)
class PairsSettings:
    """Settings of packet pairs.

    Attributes
    ----------
    half_width : float
        Wanted half of the interval of the available bandwidth, as a part of it.
    seconds : float
        The test ends then, however wide the interval is.
    most_bytes : int
        The test ends where they are sent, too.
    """

    half_width: float = 0.15
    seconds: float = 30.0
    most_bytes: int = 3_000_000

    tool: ClassVar[str] = "pairs"

    @property
    def cost(self) -> Cost:
        """Return what it takes at most."""
        from datacollect.measuring.plan.budget import Cost

        return Cost(self.most_bytes, self.seconds)

    def row(self, sender: AskedAgent, receiver: AskedAgent, said: dict[str, Any]) -> dict[str, Any]:
        """Return what the row of a test says.

        Raises
        ------
        TransferError
            An end says what no such test can say.
        """
        from datacollect.measuring.probes.pair_packets import FIRST_GREETING

        sent = _sent(sender.name, said)
        if not sent.n_packets:
            return {"ended": sent.ended}
        arrived = receiver.arrived()
        if arrived.clock_was_set:
            return {"ended": f"the clock of {receiver.name} was set meanwhile; test again"}
        of_pairs = [(number, ns) for number, ns in arrived.packets if number < FIRST_GREETING]
        if len({number for number, _ in of_pairs if number < sent.n_packets}) < len(of_pairs):
            return {
                "ended": f"{receiver.name} says that {len(of_pairs)} packets have come, "
                f"{sender.name} has sent {sent.n_packets}, and some that came were never "
                "sent: one of the two is wrong, and nothing is kept"
            }
        return self._found(sent, of_pairs)

    def _found(self, sent: _Sent, arrivals: Sequence[tuple[int, int]]) -> dict[str, Any]:
        from datacollect.measuring.probes.packet_pairs import MOST_AVAILABLE_BYTES_PER_S
        from datacollect.measuring.probes.pair_trains import capacity_by_train, found_by_train

        said = asdict(self) | {
            "packet_bytes": sent.packet_bytes,
            "capacity_pairs": len(sent.back_to_back_s),
            "pairs": len(sent.gaps_s),
        }
        row = {"ended": sent.ended, "loss": 1 - len(arrivals) / sent.n_packets}
        try:
            capacity = capacity_by_train(sent.packet_bytes, sent.back_to_back_s, arrivals)
        except ProblemError as error:
            return _with_reason(row, str(error)) | {"settings": json.dumps(said)}
        row["capacity_bytes_per_s"] = capacity
        if capacity > MOST_AVAILABLE_BYTES_PER_S:
            # Nothing has failed: pairs tell this much of such a path.
            said["no_bandwidth"] = (
                f"above {format_rate(MOST_AVAILABLE_BYTES_PER_S)} pairs do not tell the available "
                "bandwidth: no sender keeps to such gaps; test by tcp"
            )
            return row | {"settings": json.dumps(said)}
        try:
            found = found_by_train(
                capacity,
                sent.packet_bytes,
                len(sent.back_to_back_s),
                sent.gaps_s,
                arrivals,
                self.half_width,
            )
        except ProblemError as error:
            row = _with_reason(row, str(error))
        else:
            said |= {"pairs_arrived": found.n_pairs, "pairs_needed": found.pairs_needed}
            row |= {
                "bandwidth_bytes_per_s": found.bytes_per_s,
                "bandwidth_low_bytes_per_s": found.low_bytes_per_s,
                "bandwidth_high_bytes_per_s": found.high_bytes_per_s,
            }
        return row | {"settings": json.dumps(said)}


def _with_reason(row: dict[str, Any], reason: str) -> dict[str, Any]:
    """Return the row of a test that tells nothing; why it ended early says more than that."""
    return row | {"ended": reason} if row["ended"] == "done" else row


class _Sent(NamedTuple):
    """Report of the sender."""

    ended: str
    packet_bytes: int
    n_packets: int
    back_to_back_s: list[float | None]
    gaps_s: list[float | None]


def _sent(name: str, said: dict[str, Any]) -> _Sent:
    from datacollect.measuring.probes.pair_packets import MOST_PACKETS

    numbers = [said.get(key) for key in ("packet_bytes", "sent_packets")]
    whole = [n for n in numbers if type(n) is int and 0 <= n <= MOST_PACKETS]
    lists = [said.get(key) for key in ("back_to_back_s", "sent_gaps_s")]
    gaps_s = [gaps for gaps in lists if isinstance(gaps, list) and all(map(_is_gap, gaps))]
    if (
        len(whole) < len(numbers)
        or len(gaps_s) < len(lists)
        or not sum(map(len, gaps_s)) <= whole[1] // 2
    ):
        raise TransferError(f"{name}: malformed report on the packets of a test")
    return _Sent(ended_of(said), whole[0], whole[1], gaps_s[0], gaps_s[1])


def _is_gap(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and 0 <= value < 100)


def _line(row: Mapping[str, Any]) -> str:
    if row.get("capacity_bytes_per_s") is None:
        return line_of(row, None)
    capacity = f"capacity {format_rate(row['capacity_bytes_per_s'])}"
    if row.get("bandwidth_bytes_per_s") is None:
        why = json.loads(row["settings"]).get("no_bandwidth")
        return line_of(row, f"{capacity}; {why}" if why else capacity)
    found, low, high = (
        format_rate(row[f"bandwidth_{which}bytes_per_s"]) for which in ("", "low_", "high_")
    )
    return line_of(row, f"{capacity}, available {found} ({low} to {high})")


def _packets_of(row: Mapping[Any, Any]) -> int:
    """Return how many packets of pairs a row is of, whether they told a bandwidth or not."""
    from datacollect.measurement.sample_store import settings_of

    settings = settings_of(row["settings"])
    return 2 * (packets_in(settings, "capacity_pairs") + packets_in(settings, "pairs"))


PAIRS = Tool(
    PairsSettings,
    help=(
        "Measure capacity and available bandwidth between hosts that run agents, by packet pairs."
        "\n\nAs many as the interval needs, over UDP, to the udp_port of the agent that receives."
    ),
    options={
        "half_width": Option(
            "--within",
            "PART",
            "Half of the interval that is wanted, as a part of the available bandwidth.",
            0.01,
            1.0,
        ),
        "seconds": Option("--seconds", "TIME", "How long at most.", 1.0, 60.0),
        "most_bytes": MOST_BYTES,
    },
    line=_line,
    settings_for=lambda _: PairsSettings(),
    packets_of=_packets_of,
)
