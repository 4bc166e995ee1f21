"""The tool `trace`: the routers on the way to the other end, by scamper, else by traceroute.

Who is traced to has shown before, over TLS, that it is the other end, and is traced to at the
address where it has shown it. Routers that balance load choose a packet's path by its addresses and
ports: where these stay the same all packets take one path (Augustin et al., "Avoiding traceroute
anomalies with Paris traceroute", IMC 2006), and they are the same in each trace, so that traces can
be compared. What a program has written is handed on as it is; whoever asks reads it.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

from datacollect.errors import TransferError
from datacollect.measuring.agent.host_tests import ENDED_EARLY
from datacollect.measuring.agent.host_tool import SECONDS, HostTool, Limits
from datacollect.measuring.probes.programs import said_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.measuring.agent.host_tool import Sending

# Of a packet with its headers, as traceroute sends it.
TRACE_BYTES = 60
TRIES, WAIT_S = 2, 1
FROM_PORT, TO_PORT = "40123", "33434"
# After so many silent hops in a row scamper goes no further.
SILENT_HOPS = 5
MOST_TEXT = 16_000

SCAMPER, ONE_FLOW, MANY_FLOWS = "scamper", "traceroute", "traceroute, many flows"
# How what each of them writes begins, where it has sent anything: else it is not permitted.
BEGINS: Mapping[str, str] = {
    SCAMPER: '{"type":"trace"',
    ONE_FLOW: "traceroute to ",
    MANY_FLOWS: "traceroute to ",
}


def trace(sending: Sending, hops: int, seconds: float) -> dict[str, Any]:
    """Trace to the other end.

    Parameters
    ----------
    sending : Sending
    hops : int
        Most routers that are asked.
    seconds : float
        How long at most; what is known by then counts.

    Returns
    -------
    dict
        ``ended`` (``"done"``, or why not), ``by`` (one of ``BEGINS``), ``address`` (of the other
        end), ``text`` (what the program has written), ``why_not`` (programs that could not be used,
        with the reason).
    """
    far, test = sending.far, sending.test
    try:
        connection = far.connected()
    except TransferError as error:
        return {"ended": str(error)}
    try:
        address = connection.getpeername()[0]
    finally:
        connection.close()
    test.take_to_send(TRACE_BYTES * TRIES * hops)
    until_s, why_not = time.monotonic() + seconds, {}
    for by, command in _commands(address, hops).items():
        program = shutil.which(command[0])
        if program is None:
            why_not[by] = f"{command[0]} is not installed"
            continue
        try:
            said = said_by([program, *command[1:]], test, until_s)
        except OSError as error:
            why_not[by] = f"{command[0]} fails: {error.strerror}"
            continue
        lines = [line for line in said.out.splitlines() if line.strip()]
        if by == SCAMPER:
            lines = [line for line in lines if line.startswith(BEGINS[by])]
        if lines and lines[0].startswith(BEGINS[by]):
            ended = ENDED_EARLY if test.over.is_set() else "done"
            text = "\n".join(lines)[:MOST_TEXT]
            return {"ended": ended, "by": by, "address": address, "text": text, "why_not": why_not}
        if said.is_cut:
            return {"ended": ENDED_EARLY if test.over.is_set() else f"{by} printed nothing in time"}
        why_not[by] = f"fails: {said.first_error}"
    whys = "; ".join(f"{by}: {why}" for by, why in why_not.items())
    return {"ended": f"no program on this host can trace: {whys}"}


def _commands(address: str, hops: int) -> dict[str, list[str]]:
    """Return the programs that may trace, the best first."""
    usual = ["-q", str(TRIES), "-w", str(WAIT_S), "-m", str(hops)]
    paris = ["trace", "-P", "udp-paris", "-s", FROM_PORT, "-d", TO_PORT, "-g", str(SILENT_HOPS)]
    one_flow = ["-U", "-p", TO_PORT, f"--sport={FROM_PORT}", "-N", "1"]
    return {
        SCAMPER: ["scamper", "-O", "json", "-c", " ".join(paris + usual), "-i", address],
        ONE_FLOW: ["traceroute", "-n", *one_flow, *usual, address],
        MANY_FLOWS: ["traceroute", "-n", *usual, address],
    }


TRACE = HostTool(
    "trace",
    {"hops": Limits(1, 64, is_whole=True), "seconds": SECONDS},
    "trace",
    ("hops",),
    trace,
)
