"""What else the report measured, in a bed: rates of loss, bursts, three feeds, buffers, gaps."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import multicast
import numpy as np
from feed_bed_runs import (
    BYTES_PER_MBIT,
    COMMAND,
    ENDS,
    FIRST,
    PATIENCE_S,
    Setting,
    feeds_in_bed,
    row_of,
    watched,
)

from datacollect.scenario.setting import network_of
from datacollect.simulation.network import BackgroundFlow
from datacollect.topologies import Node, Topology, Wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from feed_bed_runs import Feeds, Floats
    from testbed.bed import Started

    from datacollect.simulation.network import SimulatedNetwork

    Row = dict[str, Any]

# Section 2.5, figure 2-3 ----------------------------------------------------------------------

LOSSES = (0.0, 1e-4, 3e-4, 1e-3)
# Asked for, so that the kernel's windows hold one bandwidth-delay product.
ONE_BDP_BYTES = 54_000
RATES_FOR_S = 50.0


def rate_of_losses(loss: float, socket_bytes: int | None) -> Row:
    """Return how late messages come in each tenth of a feed, with Reno, 16 over 20 Mbit/s."""
    setting = Setting(
        "reno", 20, n_losses=0, spacing_s=RATES_FOR_S, loss=loss, socket_bytes=socket_bytes
    )
    return row_of(setting, seed=1)


# Section 2.6.1 --------------------------------------------------------------------------------

TOGETHER_S = 0.01
BURST_WITHIN_S = 3.0


def most_together(seen: Floats, within_s: float) -> float:
    """Return the most bytes that came within so long.

    >>> most_together(np.array([[0, 0], [0.005, 100], [0.009, 300], [0.03, 310]]), 0.01)
    300.0
    """
    last = np.searchsorted(seen[:, 0], seen[:, 0] + within_s, side="right") - 1
    return float((seen[last, 1] - seen[:, 1]).max())


def longest_gap_s(seen: Floats) -> float:
    """Return the longest time in which nothing came.

    >>> longest_gap_s(np.array([[0, 0], [1, 5], [2, 5], [3, 5], [4, 6]]))
    3.0
    """
    grown = seen[np.flatnonzero(np.diff(seen[:, 1], prepend=-1.0))]
    return float(np.diff(grown[:, 0]).max(initial=0.0))


def bursts(congestion: str, is_paced: bool) -> Row:
    """Return how packets come in bursts after losses: 16 over 36 Mbit/s, 95 ms."""
    setting = Setting(congestion, 36, rtt_s=0.095, n_losses=4, spacing_s=8.0, is_paced=is_paced)
    found = watched(setting, packets=True)
    assert found.received is not None
    usual = setting.rate_mbit * BYTES_PER_MBIT * TOGETHER_S

    def around(from_s: float, until_s: float) -> list[float]:
        assert found.received is not None
        at = found.received[:, 0]
        here = found.received[(at >= from_s) & (at < until_s)]
        return [most_together(here, TOGETHER_S) / usual, longest_gap_s(here)]

    return {
        "before": [around(lost_s - BURST_WITHIN_S, lost_s) for lost_s in found.lost_s],
        "after": [around(lost_s, lost_s + BURST_WITHIN_S) for lost_s in found.lost_s],
        "worst_s": float(found.delay_s.max()),
    }


# Section 3.4, figure 3-7 ----------------------------------------------------------------------

# A hundredth of the report's 800, 600 and 400 Mbit/s, and of their wires of 1 Gbit/s.
THREE_MBIT = {"S1": 8.0, "S2": 6.0, "S3": 4.0}
CAMPUS_MBIT = 8.0
OTHERS_MBIT, OTHERS_ON_S = 4.0, 1.0
THREE_FOR_S = 60.0


def three_wires() -> SimulatedNetwork:
    """S1 and S3 over wires of their own; S2 over one that it shares with others' datagrams."""
    queue, delay_s = 100, 0.0075
    wires = [
        Wire(a, b, rate * BYTES_PER_MBIT, after_s, queue)
        for a, b, rate, after_s in (
            ("S1", "D", 10.0, delay_s),
            ("S3", "D", 10.0, 2 * delay_s),
            ("C", "D", CAMPUS_MBIT, delay_s),
            ("S2", "C", 100.0, 0.0),
            ("B", "C", 100.0, 0.0),
        )
    ]
    nodes = ("S1", "S2", "S3", "B", "C", "D")
    topology = Topology.from_wires(wires, [Node(name) for name in nodes])
    routes = topology.shortest_routes().next_wire
    network = network_of(topology, {name: name for name in nodes}, routes)
    others = BackgroundFlow(
        "udp",
        network.host_node["B"],
        network.host_node["D"],
        rate_bytes_per_s=OTHERS_MBIT * BYTES_PER_MBIT,
        mean_on_s=OTHERS_ON_S,
        mean_off_s=OTHERS_ON_S,
    )
    return replace(network, background=(others,))


def sent_by_udp(feeds: Feeds, source: str, name: str, rate_mbit: float, seconds: float) -> Started:
    """Start a feed by UDP of data that are made up; whatever it loses, it goes on."""
    rows = ['transport = "udp"', 'buffer_bytes = "64 MB"', 'when_full = "drop-new"']
    path = feeds.file(name, rate_mbit, [*rows, "udp = { most_loss = 0.9 }"])
    words = ["feed", "send", str(path), "--generate", f"{seconds:g} s", "--json"]
    return feeds.bed.start(source, [*FIRST, *COMMAND, *words])


def said_of(started: Started, seconds: float) -> dict[str, Any]:
    """Wait for a feed's end, and return what the command says."""
    if started.wait(seconds + PATIENCE_S) not in (0, 1):
        raise RuntimeError(started.stderr.read_text(encoding="utf-8"))
    said: dict[str, Any] = json.loads(started.stdout.read_text(encoding="utf-8"))
    return said


def three() -> Row:
    """Return what becomes of three feeds by UDP to one receiver at once."""
    with feeds_in_bed(three_wires(), source="S1") as feeds:
        feeds.receiver()
        feeds.bed.start_background()
        sending = {
            host: sent_by_udp(feeds, host, host.lower(), rate, THREE_FOR_S)
            for host, rate in THREE_MBIT.items()
        }
        row: Row = {}
        for host, started in sending.items():
            counts = said_of(started, THREE_FOR_S)["counts"]
            got = counts["received_bytes"] / counts["made_bytes"] if counts["made_bytes"] else 0.0
            row[host] = {
                "mbit": THREE_MBIT[host],
                "received_mbit": got * THREE_MBIT[host],
                "made": counts["made"],
                "lost": counts["made"] - counts["received"],
            }
        return row


# Section 5.1.2, figures 5-2 and 5-3 -----------------------------------------------------------

BUFFERS_KB = (65, 100, 150, 200, 230, 300, 600, 2000)
BUFFER_RATE_MBIT, BUFFER_FOR_S = 400.0, 8.0
# What the library asks for is a constant: a smaller one, and then the command as it is.
SMALLER = (
    "import runpy, datacollect.feeds.udp.sockets as sockets; sockets.RECEIVE_BYTES = {n_bytes}; "
    "runpy.run_module('datacollect', run_name='__main__', alter_sys=True)"
)


def buffer(kilobytes: int) -> Row:
    """Return what is lost at a receiver that asks for so much room."""
    wire = Wire("S", "D", 1000 * BYTES_PER_MBIT, 0.0, 1000)
    topology = Topology.from_wires([wire], [Node("S"), Node("D")])
    routes = topology.shortest_routes().next_wire
    program = [sys.executable, "-c", SMALLER.format(n_bytes=kilobytes * 1000)]
    with feeds_in_bed(network_of(topology, {"S": "S", "D": "D"}, routes)) as feeds:
        feeds.receiver(program)
        started = sent_by_udp(feeds, "S", "scan", BUFFER_RATE_MBIT, BUFFER_FOR_S)
        counts = said_of(started, BUFFER_FOR_S)["counts"]
        report = json.loads((feeds.kept / "scan.json").read_text(encoding="utf-8"))
        return {
            "granted_bytes": report["receive_buffer_bytes"],
            "sent": counts["sent"],
            "lost": counts["sent"] - counts["received"],
        }


# Section 6.4 ----------------------------------------------------------------------------------

PACED_FOR_S = 20.0
# The report's 2 Mbit/s.
PACED_PER_S = 2e6 / 8 / 1472
FAST, FAST_PER_S = 200_000, 20_000.0


def at_the_bridge(name: str, words: Sequence[str]) -> list[str]:
    """Return the words that run an end at the bridge."""
    return ["ip", "netns", "exec", name, *FIRST, *ENDS, *words]


def gaps(to: str, per_s: float, n: int) -> Row:
    """Return gaps between packets, and what receiving took, by unicast, multicast or TCP."""
    own = multicast.address_of(2)
    address = multicast.GROUP if to == "multicast" else own
    by = "_tcp" if to == "tcp" else ""
    with multicast.at_bridge(snooping=1, querier=0):
        heard = [own] if by else [address, own]
        hear = at_the_bridge(multicast.HOSTS[1], [f"hear{by}", *heard])
        with subprocess.Popen(hear, stdout=subprocess.PIPE, text=True) as hearing:
            assert hearing.stdout is not None
            assert hearing.stdout.readline() == "ready\n"
            pace = at_the_bridge(multicast.HOSTS[0], [f"pace{by}", address, str(per_s), str(n)])
            subprocess.run(pace, check=True, timeout=n / per_s + PATIENCE_S)
            said: Row = json.loads(hearing.stdout.readline())
        return {**said, "sent": n}
