"""The packet engine with many hosts that open connections through one wire at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from instances.ns3_networks import LINE, MB, ON_THE_WIRE, RATE, needs_ns3, same, star, straight
from instances.tiny_controllers import Straight

from datacollect.control.decisions import Open, Send
from datacollect.control.events import RangeArrived
from datacollect.errors import SimulationError
from datacollect.simulation.ns3.engine import simulate_ns3

pytestmark = needs_ns3


def backlog_of(n_sources, n_bytes):
    return {f"H{i}": n_bytes for i in range(n_sources)}


@pytest.mark.slow
def test_a_thousand_hosts_at_once_collect_within_memory_and_reason():
    """20 MB take the wire 66.4 s.

    Most SYNs find the queue of 50 packets full, and later much of the data does: three times that
    is what doubling time-outs may cost. Retries in step got half of the hosts connected in an hour.
    """
    backlog = backlog_of(1000, 20_000)
    run = straight(star(1000), backlog, time_limit_s=3600.0)
    assert run.complete
    assert run.collected_bytes == 20 * MB
    at_least_s = 20 * MB * ON_THE_WIRE / RATE
    assert at_least_s < run.makespan_s < 3 * at_least_s
    assert run.settings["drawn_syn_timeouts"] == 950
    assert run.settings["peak_memory_bytes"] < 500e6


@pytest.mark.slow
def test_as_many_connections_as_the_queue_holds_keep_the_usual_time_out():
    """Then nothing is drawn, and the seed changes nothing; one more draws one."""
    network = star(51, queue_packets=50)
    runs = [straight(network, backlog_of(50, 20_000), seed=seed) for seed in (1, 2)]
    assert same(*runs)
    assert runs[0].settings["drawn_syn_timeouts"] == 0
    assert straight(network, backlog_of(51, 20_000)).settings["drawn_syn_timeouts"] == 1


@pytest.mark.slow
def test_drawn_time_outs_are_once_to_twice_the_usual_one_and_the_seed_s():
    """200 SYNs of 60 to 70 bytes in 20 ms of delay: 150 are lost, and sent again after 1 to 2 s."""
    network, backlog = star(200, queue_packets=50), backlog_of(200, 1)
    first, again, other = (straight(network, backlog, seed=seed) for seed in (1, 1, 2))
    assert same(first, again)
    assert first.makespan_s != other.makespan_s
    opened_s = np.sort(first.connections["opened_s"].to_numpy())
    assert opened_s[49] < 0.5
    late_s = opened_s[opened_s > 0.5]
    assert 100 < len(late_s) <= 150
    # Each tenth of the second between gets its share of 1/10.
    in_tenths = np.histogram(late_s, np.linspace(1.0, 2.1, 12))[0]
    assert in_tenths.sum() == len(late_s)
    assert in_tenths[:10].min() >= 3


class OneAfterTheOther(Straight):
    """Opens a host's connection once the data of the one before have arrived."""

    def start(self):
        self.waiting = list(enumerate(self.backlog_bytes.items()))
        return self.next()

    def next(self):
        if not self.waiting:
            return []
        number, (host, n) = self.waiting.pop(0)
        return [Open(number, (host, "D")), Send(number, host, 0, n)]

    def handle(self, event):
        return self.next() if isinstance(event, RangeArrived) else []


@pytest.mark.slow
def test_connections_that_are_open_or_closed_are_not_opening():
    backlog = backlog_of(20, 5000)
    network = star(20, queue_packets=12)
    run = simulate_ns3(network, backlog, "D", OneAfterTheOther(backlog, "D"))
    assert run.complete
    assert run.settings["drawn_syn_timeouts"] == 0
    assert straight(network, backlog).settings["drawn_syn_timeouts"] == 8


def test_a_network_too_large_for_memory_is_refused_before_anything_runs():
    """10000 nodes, all hosts: a table of 100 million routes."""
    names = tuple(f"N{i}" for i in range(10_000))
    network = replace(
        LINE,
        node_names=names,
        host_node={name: i for i, name in enumerate(names)},
        next_wire=np.broadcast_to(-1, (10_000, 10_000)),
    )
    with pytest.raises(SimulationError, match=r"need 100000000 routes; .* at most 64000000"):
        simulate_ns3(network, {"N1": 1}, "N0", Straight({"N1": 1}, "N0"))
