"""The tool `tcp`: what connections cost, and the row that comes of what both ends say.

Neither end is believed alone: what the sender calls acknowledged must have been counted by the
receiver, and the receiver cannot have counted what was never sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from datacollect.errors import TransferError
from datacollect.files.units import format_rate
from datacollect.measuring.operator.tool import (
    MOST_BYTES,
    SECONDS,
    Option,
    Tool,
    ended_of,
    line_of,
    most_bytes,
    require_short,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.measuring.operator.agents import AskedAgent
    from datacollect.measuring.plan.budget import Cost

# Headers of TLS and of the request; and what may be counted by one end and not yet by the other.
HEADERS, UNDER_WAY_BYTES = 0.01, 64 * 1024
# What of a record of TLS has come counts with its last byte: each connection is cut within one.
RECORD_BYTES = 17 * 1024


@dataclass(frozen=True)
class TcpSettings:
    """Settings of tests by connections.

    Attributes
    ----------
    streams : int
        Connections at a time.
    seconds : float
    most_bytes : int
        The test ends where they are sent, before its time.
    window_bytes : int or None
        So much of each connection may be on its way at a time; None: the sender's kernel decides.
    settled_s : float
        The rate is that from then on: until then connections come to their share beside others.
    """

    streams: int = 1
    seconds: float = 10.0
    most_bytes: int = 100_000_000
    window_bytes: int | None = None
    settled_s: float = 0.0

    tool: ClassVar[str] = "tcp"

    def __post_init__(self) -> None:
        require_short(self.cost)

    @property
    def cost(self) -> Cost:
        """Return what it takes at most."""
        from datacollect.measuring.plan.budget import Cost

        return Cost(self.most_bytes, self.seconds)

    def row(self, sender: AskedAgent, receiver: AskedAgent, said: dict[str, Any]) -> dict[str, Any]:
        """Return what the row of a test says, if both ends have counted the same."""
        row = _row(sender.name, said, self)
        counted_bytes = receiver.received_bytes(_expected_bytes(row))
        lie = _differing(sender.name, receiver.name, row, said, counted_bytes)
        return {"ended": lie} if lie else row


def _row(name: str, said: dict[str, Any], settings: TcpSettings) -> dict[str, Any]:
    from statistics import median

    from datacollect.measurement.sample_store import DONE
    from datacollect.measuring.probes.tcp_rates import limited_by, tcp_rates

    curve, facts, most = said.get("curve"), said.get("facts"), said.get("rate_bytes_per_s")
    if not _is_curve(curve) or not _are_facts(facts) or not (most is None or _is_number(most)):
        raise TransferError(f"{name}: malformed report on its test")
    assert curve is not None
    assert facts is not None
    rates = tcp_rates(curve, settings.settled_s)
    trips_s = [float(each["rtt_s"]) for each in facts if "rtt_s" in each]
    if rates is None:
        ended = ended_of(said)
        return {"ended": "nothing has arrived" if ended == DONE else ended, "streams": len(facts)}
    return {
        "ended": ended_of(said),
        "bandwidth_bytes_per_s": rates.flowing_bytes_per_s,
        "bandwidth_from_connect_bytes_per_s": rates.from_connect_bytes_per_s,
        "rtt_s": median(trips_s) if trips_s else None,
        "streams": settings.streams,
        "bytes": rates.n_bytes,
        "duration_s": rates.duration_s,
        "limited_by": limited_by(facts, rates.flowing_bytes_per_s, most),
    }


def _differing(
    sender: str, receiver: str, row: dict[str, Any], said: dict[str, Any], counted_bytes: int
) -> str:
    """Return who says what, where the two ends cannot both be right; empty: they agree."""
    sent = said.get("sent_bytes")
    if sent is None or not _is_number(sent):
        return f"{sender}: does not say what it has sent"
    if counted_bytes > sent:
        return (
            f"{receiver} says that {counted_bytes} bytes have come, {sender} has sent {sent}: one "
            "of them is wrong, and no rate is kept"
        )
    if counted_bytes < _expected_bytes(row):
        return (
            f"{sender} says that {row['bytes']} bytes have arrived, {receiver} has counted "
            f"{counted_bytes}: one of them is wrong, and no rate is kept"
        )
    return ""


def _expected_bytes(row: dict[str, Any]) -> int:
    """Return what the receiver must have counted at least, if the sender is right."""
    under_way_bytes = UNDER_WAY_BYTES + int(row["streams"]) * RECORD_BYTES
    return max(int((row.get("bytes") or 0) * (1 - HEADERS)) - under_way_bytes, 0)


def _is_curve(curve: Any) -> bool:
    """Return whether it is pairs of seconds and bytes, neither of which ever decreases."""
    if not isinstance(curve, list) or not 0 < len(curve) <= 10_000:
        return False
    if not all(isinstance(row, list) and len(row) == 2 for row in curve):
        return False
    if not all(_is_number(value) for row in curve for value in row):
        return False
    times, totals = zip(*curve, strict=True)
    return sorted(times) == list(times) and sorted(totals) == list(totals)


def _are_facts(facts: Any) -> bool:
    return (
        isinstance(facts, list)
        and len(facts) <= 1000
        and all(isinstance(each, dict) for each in facts)
        and all(_is_number(value) for each in facts for value in each.values())
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 2**62


def _line(row: Mapping[str, Any]) -> str:
    if row.get("bandwidth_bytes_per_s") is None:
        return line_of(row, None)
    rate = format_rate(row["bandwidth_bytes_per_s"])
    whole = format_rate(row["bandwidth_from_connect_bytes_per_s"])
    said = f"{rate} ({whole} from connecting on)"
    if row.get("limited_by") is not None:
        said += f", limited by: {row['limited_by']}"
    return line_of(row, said)


TCP = Tool(
    TcpSettings,
    help=(
        "Measure what TCP connections carry between hosts that run agents, or to an iperf3 server."
    ),
    options={
        "streams": Option("--streams", "N", "Connections at a time.", 1, 64),
        "window_bytes": Option(
            "--window", "BYTES", "Most bytes in flight on each connection.", in_bytes=True
        ),
        "seconds": SECONDS,
        "most_bytes": MOST_BYTES,
    },
    line=_line,
    settings_for=lambda rate: TcpSettings(4, 10.0, most_bytes(rate, 10.0)),
    is_usual=True,
)
