"""The tool `ping`: round trips by the system's ping, else by handshakes of TCP.

Who is asked has shown before, over TLS, that it is the other end, and is asked at the address where
it has shown it. Where ping is not installed or not permitted, as in hardened units of systemd, a
handshake's round trip stands for it.
"""

from __future__ import annotations

import re
import shutil
import time
from typing import TYPE_CHECKING, Any

from datacollect.errors import TransferError
from datacollect.measuring.agent.host_tests import ENDED_EARLY
from datacollect.measuring.agent.host_tool import HostTool, Limits
from datacollect.measuring.probes.programs import said_by
from datacollect.net.tcp_info import tcp_info

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from datacollect.measuring.agent.host_tool import Sending
    from datacollect.measuring.probes.programs import Bounded

# Of an echo request.
PING_BYTES = 56
# How long the last answer is waited for.
LAST_S = 2.0
ICMP, HANDSHAKE = "icmp", "tcp handshake"

_ROUND_TRIP = re.compile(r"time[=<]([0-9.]+) ms")
_SUMMARY = re.compile(r"([0-9]+) packets transmitted, ([0-9]+) (?:packets )?received")


def ping(sending: Sending, n: int, every_s: float) -> dict[str, Any]:
    """Ask the other end for `n` round trips, one every so many seconds.

    Returns
    -------
    dict
        ``ended``, ``by`` (``"icmp"`` or ``"tcp handshake"``), ``sent`` (a number),
        ``round_trips_s`` (one for each answer), ``why_not_icmp`` where that could not be had.
    """
    far, test = sending.far, sending.test
    try:
        connection = far.connected()
    except TransferError as error:
        return {"ended": str(error), "by": ICMP, **_none()}
    try:
        address = connection.getpeername()[0]
    finally:
        connection.close()
    n = test.take_to_send(PING_BYTES * n) // PING_BYTES
    return round_trips(address, far.connected, test, n, every_s)


def round_trips(
    address: str, connected: Callable[[], socket.socket], test: Bounded, n: int, every_s: float
) -> dict[str, Any]:
    """Ask an address for round trips, as `ping` does; `connected` connects for handshakes."""
    found = _by_system(address, test, n, every_s)
    if "why_not_icmp" in found:
        found |= _by_handshakes(connected, test, n, every_s)
    return found


def _by_system(address: str, test: Bounded, n: int, every_s: float) -> dict[str, Any]:
    program = shutil.which("ping")
    if program is None:
        return {"why_not_icmp": "ping is not installed"}
    wait_s = n * every_s + LAST_S
    command = [program, "-n", "-c", str(n), "-i", f"{every_s:g}", "-s", str(PING_BYTES)]
    command += ["-w", str(max(round(wait_s), 1)), address]
    try:
        said = said_by(command, test, time.monotonic() + wait_s + LAST_S)
    except OSError as error:
        return {"why_not_icmp": f"ping fails: {error.strerror}"}
    if said.is_cut:
        return {"ended": ENDED_EARLY, "by": ICMP, **_none()}
    summary = _SUMMARY.search(said.out)
    if summary is None or int(summary[1]) == 0:
        return {"why_not_icmp": f"ping fails: {said.first_error}"}
    trips_s = [float(text) / 1000 for text in _ROUND_TRIP.findall(said.out)]
    # Answers that come twice are no round trips more.
    n_received = min(int(summary[2]), len(trips_s))
    return {
        "ended": "done",
        "by": ICMP,
        "sent": int(summary[1]),
        "round_trips_s": trips_s[:n_received],
    }


def _by_handshakes(
    connected: Callable[[], socket.socket], test: Bounded, n: int, every_s: float
) -> dict[str, Any]:
    trips_s: list[float] = []
    for i in range(n):
        if test.over.wait(every_s if i else 0.0) or time.monotonic() >= test.until_s:
            return {"ended": ENDED_EARLY, "by": HANDSHAKE, "sent": i, "round_trips_s": trips_s}
        try:
            connection = connected()
        except TransferError:
            continue
        # The least one: later ones hold what the greeting of TLS has cost the other side.
        trip_s = tcp_info(connection).get("least_rtt_s")
        connection.close()
        if trip_s:
            trips_s.append(trip_s)
    return {"ended": "done", "by": HANDSHAKE, "sent": n, "round_trips_s": trips_s}


def _none() -> dict[str, Any]:
    return {"sent": 0, "round_trips_s": []}


PING = HostTool(
    "ping",
    {"n": Limits(1, 100, is_whole=True), "every_s": Limits(0.2, 10.0)},
    "ping test",
    ("n",),
    ping,
)
