"""Tests of one ordered pair of hosts: what they cost, and the row that comes of each.

Neither end is believed alone: what the sender calls acknowledged must have been counted by the
receiver, and the receiver cannot have counted what was never sent.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from datacollect.errors import ProblemError, TransferError
from datacollect.measurement.sample_store import DONE
from datacollect.measuring.agent.pinging import PING_BYTES
from datacollect.measuring.operator.agents import AskedAgent
from datacollect.measuring.operator.lease_holding import leases_of
from datacollect.measuring.plan.budget import Cost
from datacollect.measuring.probes.tcp_rates import limited_by, tcp_rates
from datacollect.net.safe_text import safe_text
from datacollect.net.tickets import new_nonce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

# Headers of TLS and of the request; and what may be counted by one end and not yet by the other.
HEADERS, UNDER_WAY_BYTES = 0.01, 64 * 1024
# What of a record of TLS has come counts with its last byte: each connection is cut within one.
RECORD_BYTES = 17 * 1024
# Connecting, and answers.
AROUND_S = 10.0
# With what leases last longer they fit into the longest that agents give.
LONGEST_TEST_S = 60.0


class Settings(Protocol):
    """How a pair is tested, once: what tickets, budgets and agents are told of it.

    A dataclass: its fields are what the sending agent is asked for, and what the row keeps.

    Attributes
    ----------
    tool : str
        As agents and tickets call it.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    tool: ClassVar[str]

    @property
    def cost(self) -> Cost:
        """What it takes at most: no ticket allows more."""

    def row(self, sender: AskedAgent, receiver: AskedAgent, said: dict[str, Any]) -> dict[str, Any]:
        """Return what the test's row says, from what the sender says and the receiver knows.

        Raises
        ------
        TransferError
            No such test can say that.
        """


@dataclass(frozen=True)
class PingSettings:
    """How round trips are measured: `n` of them, one every `every_s` seconds."""

    n: int = 10
    every_s: float = 1.0

    tool: ClassVar[str] = "ping"

    def __post_init__(self) -> None:
        _require_short(self.cost.seconds)

    @property
    def cost(self) -> Cost:
        """What it takes at most."""
        return Cost(PING_BYTES * self.n, self.n * self.every_s)

    def row(self, sender: AskedAgent, receiver: AskedAgent, said: dict[str, Any]) -> dict[str, Any]:
        """Return what the row of a test says."""
        return ping_row(sender.name, said, self)


@dataclass(frozen=True)
class TcpSettings:
    """How connections are measured.

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
        _require_short(self.cost.seconds)

    @property
    def cost(self) -> Cost:
        """What it takes at most."""
        return Cost(self.most_bytes, self.seconds)

    def row(self, sender: AskedAgent, receiver: AskedAgent, said: dict[str, Any]) -> dict[str, Any]:
        """Return what the row of a test says, if both ends have counted the same."""
        row = _tcp_row(sender.name, said, self)
        counted_bytes = receiver.received_bytes(_expected_bytes(row))
        lie = _differing(sender.name, receiver.name, row, said, counted_bytes)
        return {"ended": lie} if lie else row


def _require_short(seconds: float) -> None:
    if seconds > LONGEST_TEST_S:
        raise ProblemError(
            f"a test takes at most {LONGEST_TEST_S:g} s, got {seconds:g} s; ask for several"
        )


def measure_pair(
    sender: AgentEntry,
    receiver: AgentEntry,
    key: PrivateKey,
    settings: Settings,
    patience_s: float = 600.0,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure a pair of hosts, and return a row for the table of samples.

    Parameters
    ----------
    sender, receiver : AgentEntry
        Under the operator's names for them.
    key : PrivateKey
        The operator's.
    settings : Settings
    patience_s : float
        How long others' tests are waited for.
    tell : callable, optional
        Takes a line where somebody has to wait.

    Returns
    -------
    dict
        ``ended`` says why where it was not ``"done"``.
    """
    row: dict[str, Any] = {
        "from": sender.name,
        "to": receiver.name,
        "time_s": time.time(),
        "tool": settings.tool,
        "settings": json.dumps(asdict(settings)),
        "concurrency": 0,
    }
    try:
        with (
            closing(AskedAgent(sender, key)) as sending,
            closing(AskedAgent(receiver, key)) as receiving,
        ):
            return row | _measured(sending, receiving, settings, patience_s, tell)
    except TransferError as error:
        return row | {"ended": str(error)}


def _measured(
    sender: AskedAgent,
    receiver: AskedAgent,
    settings: Settings,
    patience_s: float,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    nonce = new_nonce()
    far_token = tokens_for(sender, receiver, settings, nonce)
    with leases_of((sender, receiver), nonce, settings.cost.seconds, patience_s, tell):
        begun_s = time.time()
        return {"time_s": begun_s, **leased_test(sender, receiver, far_token, settings)}


def tokens_for(sender: AskedAgent, receiver: AskedAgent, settings: Settings, nonce: str) -> str:
    """Give both ends their tickets for a test, and return the receiver's."""
    ends = (sender.fingerprint, receiver.fingerprint)
    _, far_token = (
        agent.token_for(*ends, settings.tool, int(settings.cost.n_bytes), nonce)
        for agent in (sender, receiver)
    )
    return far_token


def leased_test(
    sender: AskedAgent,
    receiver: AskedAgent,
    far_token: str,
    settings: Settings,
) -> dict[str, Any]:
    """Have a test run whose ends have leases and tickets, and return what its row says of it."""
    body = {"to": receiver.place, "far_token": far_token, **asdict(settings)}
    said = sender.run(settings.tool, body, settings.cost.seconds + 2 * AROUND_S)
    beside_pull = any_known((sender.is_in_pull, receiver.is_in_pull))
    return {**settings.row(sender, receiver, said), "beside_pull": beside_pull}


def any_known(answers: Iterable[bool | None]) -> bool | None:
    """Return whether one of them is yes; None where none is, and one is not known."""
    found = set(answers)
    return True if True in found else None if None in found else False


def _expected_bytes(row: dict[str, Any]) -> int:
    """Return what the receiver must have counted at least, if the sender is right."""
    under_way_bytes = UNDER_WAY_BYTES + int(row["streams"]) * RECORD_BYTES
    return max(int((row.get("bytes") or 0) * (1 - HEADERS)) - under_way_bytes, 0)


def ping_row(name: str, said: dict[str, Any], settings: PingSettings) -> dict[str, Any]:
    """Return what the row of a test says, from what who sends says of round trips.

    Raises
    ------
    TransferError
        No such test can say that.
    """
    trips_s, n_sent = said.get("round_trips_s"), said.get("sent")
    if (
        not isinstance(trips_s, list)
        or not all(type(trip) in (int, float) and 0 < trip < 1e6 for trip in trips_s)
        or type(n_sent) is not int
        or not len(trips_s) <= n_sent <= settings.n
    ):
        raise TransferError(f"{name}: what it says of round trips is none of such a test")
    return {
        "ended": _ended(said),
        "rtt_s": float(median(trips_s)) if trips_s else None,
        "loss": 1 - len(trips_s) / n_sent if n_sent else None,
        "settings": json.dumps({**asdict(settings), "by": safe_text(str(said.get("by")))}),
    }


def _tcp_row(name: str, said: dict[str, Any], settings: TcpSettings) -> dict[str, Any]:
    curve, facts, most = said.get("curve"), said.get("facts"), said.get("rate_bytes_per_s")
    if not _is_curve(curve) or not _are_facts(facts) or not (most is None or _is_number(most)):
        raise TransferError(f"{name}: what it says of its test is none of such a test")
    assert curve is not None
    assert facts is not None
    rates = tcp_rates(curve, settings.settled_s)
    trips_s = [float(each["rtt_s"]) for each in facts if "rtt_s" in each]
    if rates is None:
        ended = _ended(said)
        return {"ended": "nothing has arrived" if ended == DONE else ended, "streams": len(facts)}
    return {
        "ended": _ended(said),
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


def _ended(said: dict[str, Any]) -> str:
    return safe_text(str(said.get("ended")))[:500]


def _is_curve(curve: Any) -> bool:
    """Whether it is pairs of seconds and bytes, neither of which ever decreases."""
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
