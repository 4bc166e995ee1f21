"""Tests between this host and an iperf3 server, by this host's programs iperf3 and ping."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError, TransferError
from datacollect.files.documents import peer_json
from datacollect.measurement.iperf3_results import outcome_of_iperf3
from datacollect.measurement.sample_store import DONE
from datacollect.measuring.agent.pinging import HANDSHAKE, round_trips
from datacollect.measuring.operator.pair_tests import AROUND_S, any_known
from datacollect.measuring.operator.pings import PingSettings, ping_row
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.probes.programs import said_by
from datacollect.net.addresses import addresses_of
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import dial
from datacollect.net.host_marks import IN_PULL, is_marked
from datacollect.net.names import host_port_text
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from datacollect.measurement.outcomes import Sample
    from datacollect.measuring.operator.tool import HasCost

# iperf3 sends so much at a time over TCP: where it stops, it has sent up to one more.
BLOCK_BYTES = 128 * 1024
# A test in which the path carried this part of the most that it might was held back by that.
HELD_BACK = 0.8


@dataclass(frozen=True)
class Iperf3Server:
    """A host with an iperf3 server.

    Attributes
    ----------
    name : str
    address : (str, int)
    """

    name: str
    address: tuple[str, int]

    @property
    def port(self) -> int:
        """Of the server."""
        return self.address[1]

    def connected(self) -> socket.socket:
        """Return a connection; raise `TransferError` where there is none."""
        addresses = addresses_of(*self.address)
        return dial(addresses, self.name, Deadline(AROUND_S), what="iperf3 server")


@dataclass(frozen=True)
class ThisHost:
    """The host where this program runs, under its name in the file of hosts."""

    name: str


End: TypeAlias = Iperf3Server | ThisHost


@dataclass
class _OwnTest:
    """A test that no lease bounds."""

    until_s: float
    over: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class _Halves:
    """Each of two runs of iperf3 takes half of what a test may cost; see `_tcp`."""

    seconds: int
    n_bytes: int

    @property
    def most_bytes_per_s(self) -> float:
        return self.n_bytes / self.seconds


def require_by_iperf3(settings: HasCost) -> None:
    """Raise `ProblemError` unless iperf3, or ping, can test so."""
    if isinstance(settings, TcpSettings):
        _halves_of(settings)
    elif not isinstance(settings, PingSettings):
        raise ProblemError(
            f"an iperf3 server cannot take part in {settings.tool}; run an agent there, or measure "
            "it by `datacollect measure tcp` and `ping`"
        )


def affordable(settings: HasCost) -> HasCost | None:
    """Return how an iperf3 server can be tested so, for a little more; None where it cannot.

    >>> affordable(TcpSettings(4, 10.0, 1000)).most_bytes
    2097152
    >>> affordable(PingSettings()) == PingSettings()
    True
    """
    if isinstance(settings, TcpSettings):
        return replace(settings, most_bytes=max(settings.most_bytes, _least_bytes(settings)))
    return settings if isinstance(settings, PingSettings) else None


def measure_by_iperf3(sender: End, receiver: End, settings: HasCost) -> dict[str, Any]:
    """Test between this host and an iperf3 server, and return a row for the table of samples.

    Parameters
    ----------
    sender, receiver : Iperf3Server and ThisHost, or the other way round
    settings : TcpSettings or PingSettings
        As `require_by_iperf3` takes them.

    Returns
    -------
    dict
        ``ended`` says why, and what to do, where it was not ``"done"``.
    """
    server = sender if isinstance(sender, Iperf3Server) else receiver
    assert isinstance(server, Iperf3Server)
    assert isinstance(settings, TcpSettings | PingSettings)
    is_beside_pull = is_marked(IN_PULL)
    row: dict[str, Any] = {
        "from": sender.name,
        "to": receiver.name,
        "time_s": time.time(),
        "tool": settings.tool,
        "settings": json.dumps({**asdict(settings), "by": "iperf3"}),
        "concurrency": 0,
    }
    try:
        if isinstance(settings, PingSettings):
            row |= _ping(server, settings)
        else:
            row |= _tcp(server, settings, is_from_server=sender is server)
    except TransferError as error:
        return row | {"ended": str(error)}
    # A pull that ends meanwhile counts, and one that begins.
    return row | {"beside_pull": any_known((is_beside_pull, is_marked(IN_PULL)))}


def _ping(server: Iperf3Server, settings: PingSettings) -> dict[str, Any]:
    test = _OwnTest(time.monotonic() + settings.cost.seconds + 2 * AROUND_S)
    said = round_trips(server.address[0], server.connected, test, settings.n, settings.every_s)
    row = ping_row(server.name, said, settings)
    if row["rtt_s"] is None and row["ended"] == DONE:
        row["ended"] = f"{server.name}: no answer; check that no firewall drops what ping sends"
        if said["by"] == HANDSHAKE:
            try:
                server.connected().close()
            except TransferError as error:
                row["ended"] = str(error)
    return row


def _tcp(server: Iperf3Server, settings: TcpSettings, *, is_from_server: bool) -> dict[str, Any]:
    """Test within bytes and seconds, of which iperf3 takes one.

    The first run ends by time, at a rate that keeps it within the bytes. Where the path carries
    that rate, it may carry more: a second run sends its bytes as fast as it can, and counts.
    """
    program = shutil.which("iperf3")
    if program is None:
        raise TransferError("iperf3 is not installed on this host; apt install iperf3")
    halves = _halves_of(settings)
    command = [program, "-c", server.address[0], "-p", str(server.port)]
    command += ["-P", str(settings.streams), "-J", *(["-R"] if is_from_server else [])]
    rate_bit_per_s = int(8 * halves.most_bytes_per_s / settings.streams)
    by_time = ["-t", str(halves.seconds), "-b", str(rate_bit_per_s)]
    sample, rtt_s = _sample_of([*command, *by_time], server, settings, halves)
    if sample.bandwidth_bytes_per_s >= HELD_BACK * halves.most_bytes_per_s:
        by_bytes = ["-n", str(int(HELD_BACK * halves.n_bytes))]
        sample, rtt_s = _sample_of([*command, *by_bytes], server, settings, halves)
    return {
        "ended": DONE,
        "bandwidth_bytes_per_s": sample.bandwidth_bytes_per_s,
        "bandwidth_from_connect_bytes_per_s": sample.bandwidth_bytes_per_s,
        "rtt_s": rtt_s,
        "streams": sample.streams,
        "bytes": sample.n_bytes,
        "duration_s": sample.duration_s,
    }


def _halves_of(settings: TcpSettings) -> _Halves:
    """Return what each of two runs may take.

    Raises
    ------
    ProblemError
        iperf3 cannot test so.
    """
    if settings.window_bytes is not None:
        raise ProblemError("iperf3 does not limit windows as agents do; leave out --window")
    seconds = int(settings.seconds / 2)
    if seconds < 1:
        raise ProblemError(
            f"iperf3 counts whole seconds, and runs twice: ask for --seconds of at least 2, got "
            f"{settings.seconds:g}"
        )
    if settings.most_bytes < _least_bytes(settings):
        raise ProblemError(
            f"iperf3 runs twice, and sends {BLOCK_BYTES} bytes at a time over each connection: "
            f"ask for --bytes of at least {_least_bytes(settings)}, got {settings.most_bytes}"
        )
    return _Halves(seconds, settings.most_bytes // 2 - settings.streams * BLOCK_BYTES)


def _least_bytes(settings: TcpSettings) -> int:
    return 4 * settings.streams * BLOCK_BYTES


def _sample_of(
    command: Sequence[str], server: Iperf3Server, settings: TcpSettings, halves: _Halves
) -> tuple[Sample, float | None]:
    """Run iperf3; return what it has measured, and the round trip where it says one, in s.

    Raises
    ------
    TransferError
        It has measured nothing: why, and what to do.
    """
    where, most_s = f"{server.name}: iperf3", halves.seconds + AROUND_S
    until_s = time.monotonic() + most_s
    try:
        said = said_by(command, _OwnTest(until_s), until_s)
    except OSError as error:
        raise TransferError(f"iperf3 on this host fails: {error.strerror}; install it") from None
    if said.is_cut:
        raise TransferError(
            f"{where} has not ended after {most_s:g} s; check that its server runs, and that no "
            f"firewall drops what goes to {host_port_text(*server.address)}"
        )
    tree = _tree_of(said.out)
    if tree is None:
        first = (said.out or said.errors).strip()[:100] or "nothing"
        raise TransferError(
            f"{where} prints no complete result, but {first!r}; try `iperf3 -J` by hand, with 3.1 "
            "or newer at both ends"
        )
    if tree.get("error"):
        raise TransferError(f"{where} says {_complaint(tree, server)}")
    try:
        outcome = outcome_of_iperf3(tree, where)
    except ProblemError as error:
        raise TransferError(str(error)) from None
    for failure in outcome.failures:
        raise TransferError(f"{failure}; repeat the test, with more --bytes")
    sample = outcome.samples[0]
    if sample.kind != "TCP" or sample.streams != settings.streams:
        raise TransferError(
            f"{where} reports {sample.streams} connections of {safe_text(sample.kind)}, but "
            f"{settings.streams} of TCP were asked for; repeat the test"
        )
    return sample, _round_trip_s(tree)


def _tree_of(text: str) -> dict[str, Any] | None:
    tree = peer_json(text)
    return tree if isinstance(tree, dict) else None


def _complaint(tree: dict[str, Any], server: Iperf3Server) -> str:
    """Return what iperf3 complains of, and what to do."""
    text = str(tree["error"])[:300]
    if "busy" in text:
        return f"{text!r}: it runs one test at a time; repeat this one later"
    return (
        f"{text!r}; check that `iperf3 -s -p {server.port}` runs there, and that no firewall keeps "
        f"this host from {host_port_text(*server.address)}"
    )


def _round_trip_s(tree: dict[str, Any]) -> float | None:
    """Return the mean round trip of the connections, in seconds; only who sends knows it."""
    try:
        trips_us = [float(one["sender"]["mean_rtt"]) for one in tree["end"]["streams"]]
    except (KeyError, TypeError, ValueError):
        return None
    return fmean(trips_us) / 1e6 if trips_us and 0 < min(trips_us) <= max(trips_us) < 1e9 else None
