"""Small networks for the packet engine, and how tests run them.

Wires carry 2.5 Mbit/s and 10 ms. A segment of 1448 bytes takes 1448 + 54 on the wire: 2 of PPP,
20 of IP, 32 of TCP with its timestamp. A whole megabyte waits before a wire without loss where
queues hold 1000 packets: TCP's buffers are no larger.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from conftest import NO_NS3
from instances.tiny_controllers import Straight

from datacollect.simulation.network import BackgroundFlow, SimulatedNetwork
from datacollect.simulation.ns3.engine import simulate_ns3

needs_ns3 = pytest.mark.skipif(find_spec("ns3") is None, reason=NO_NS3)

RATE = 312_500.0
ON_THE_WIRE = 1502 / 1448
MB = 1_000_000


def tree(edges, rate_bytes_per_s=RATE, delay_s=0.01, queue_packets=1000, hosts=None, **options):
    """Return a network of cables without circles, all nodes hosts unless `hosts` says which."""
    names = tuple(dict.fromkeys(name for edge in edges for name in edge))
    index = {name: i for i, name in enumerate(names)}
    tail = np.array([index[n] for a, b in edges for n in (a, b)])
    head = np.array([index[n] for a, b in edges for n in (b, a)])
    next_wire = np.full((len(names), len(names)), -1)
    for target in range(len(names)):
        reached = [target]
        for node in reached:
            for wire in np.flatnonzero(head == node):
                if tail[wire] not in reached:
                    next_wire[tail[wire], target] = wire
                    reached.append(int(tail[wire]))
    full = np.full(len(tail), 1.0)
    return SimulatedNetwork(
        names,
        {name: index[name] for name in hosts or names},
        tail,
        head,
        full * rate_bytes_per_s,
        full * delay_s,
        (full * queue_packets).astype(int),
        next_wire,
        **options,
    )


def star(n_sources, rate_bytes_per_s=RATE, delay_s=0.01, queue_packets=50):
    """Return sources H0, H1, ... and D around a hub, all cables alike."""
    names = ("X", "D", *(f"H{i}" for i in range(n_sources)))
    leaves = np.arange(1, len(names))
    hub = np.zeros_like(leaves)
    # Cable i joins leaf i + 1 to the hub: wire 2i leads to the hub, wire 2i + 1 back.
    next_wire = np.full((len(names), len(names)), -1)
    next_wire[leaves, :] = 2 * (leaves - 1)[:, None]
    next_wire[0, leaves] = 2 * (leaves - 1) + 1
    np.fill_diagonal(next_wire, -1)
    full = np.full(2 * len(leaves), 1.0)
    return SimulatedNetwork(
        names,
        {name: i for i, name in enumerate(names) if i},
        np.stack([leaves, hub], axis=1).ravel(),
        np.stack([hub, leaves], axis=1).ravel(),
        full * rate_bytes_per_s,
        full * delay_s,
        (full * queue_packets).astype(int),
        next_wire,
    )


LINE = tree(["SD"])
TWO_HOPS = tree(["SR", "RD"])
STAR = tree(["AX", "BX", "XD"], hosts=["A", "B", "D"])

# The star under traffic of others, its queues short; how to run it.
TRAFFIC = (
    BackgroundFlow("tcp", 0, 3, start_s=0.3),
    BackgroundFlow("udp", 1, 3, 0.1, RATE / 2, mean_on_s=0.5, mean_off_s=0.5),
    BackgroundFlow("tcp", 3, 1, start_s=1.7),
)
BUSY = replace(STAR, background=TRAFFIC, queue_packets=STAR.queue_packets // 20)
OPTIONS = {"warm_up_s": 5.0, "cool_down_s": 20.0}
BACKLOG = {"A": MB, "B": MB}


def same(a, b):
    """Two runs agree in all that is measured, not in what measuring cost."""
    for name in ("storage", "routes", "background", "wires", "connections"):
        pd.testing.assert_frame_equal(getattr(a, name), getattr(b, name), check_exact=True)
    return (a.makespan_s, a.events, a.source_finish_s) == (
        b.makespan_s,
        b.events,
        b.source_finish_s,
    )


def straight(network, backlog_bytes, **options):
    streams = options.pop("streams", 1)
    controller = Straight(backlog_bytes, "D", streams)
    return simulate_ns3(network, backlog_bytes, "D", controller, **options)


def stored_bytes(run, instants):
    """What all hosts together hold, at each instant."""
    return sum(
        np.interp(instants, part["time_s"], part["own_bytes"] + part["others_bytes"])
        for _, part in run.storage.groupby("host")
    )
