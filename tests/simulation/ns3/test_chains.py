"""Chains in the packet engine: spliced TCP connections, with no more between them than buffers."""

from dataclasses import replace

import numpy as np
import pytest
from instances.ns3_networks import LINE, MB, ON_THE_WIRE, RATE, TWO_HOPS, needs_ns3, tree
from instances.tiny_controllers import Scripted

from datacollect.control.decisions import Close, Open, Send, WakeMe
from datacollect.control.events import Timer
from datacollect.errors import SimulationError
from datacollect.simulation.fluid.engine import simulate_fluid
from datacollect.simulation.network import Transport
from datacollect.simulation.ns3.engine import simulate_ns3

pytestmark = needs_ns3

CHAIN = Open(0, ("S", "R", "D"))


def chain(network, n_bytes, opens=CHAIN, **options):
    decisions = Scripted(opens, Send(0, "S", 0, n_bytes))
    return simulate_ns3(network, {"S": n_bytes}, "D", decisions, **options)


def carried_bytes(run, network):
    """What has left each wire's queue."""
    return (run.wires["utilisation"] * network.rate_bytes_per_s * run.settings["end_s"]).tolist()


def slow_end(part):
    """S -> R -> D whose second cable carries a part of the first's."""
    return replace(TWO_HOPS, rate_bytes_per_s=TWO_HOPS.rate_bytes_per_s * [1, 1, part, part])


@pytest.mark.slow
def test_a_chain_takes_one_hop_s_time_and_every_byte_arrives_once():
    """5 MB with headers at 312.5 kB/s, and handshakes: R connects to D once S's is there, after
    a round trip and a half of 20 ms; D's takes 20 ms more. Then 20 ms to D, and two slow starts."""
    run = chain(TWO_HOPS, 5 * MB)
    assert run.complete
    assert run.makespan_s == pytest.approx(5 * MB * ON_THE_WIRE / RATE + 0.07, rel=0.01)
    assert run.routes["bytes"].tolist() == [5 * MB, 5 * MB]
    assert "R" not in set(run.storage["host"])
    (log,) = run.connections.to_dict("records")
    assert (log["via"], log["hops"], log["bytes"]) == ("R", 2, 5 * MB)
    assert log["opened_s"] == pytest.approx(0.05, abs=0.002)
    there = [wire for wire in carried_bytes(run, TWO_HOPS) if wire > MB]
    assert there == pytest.approx([5 * MB * ON_THE_WIRE] * 2, rel=0.01)


@pytest.mark.slow
def test_it_agrees_with_the_fluid_engine_where_nobody_loses_packets():
    """Three hops, one of them beside a connection with as large a window: half of the wire each."""
    network = tree(["SR", "RQ", "QD"])
    opens = [Open(0, ("S", "R", "Q", "D"), 20_000), Open(1, ("R", "Q"), 20_000)]
    sends = [Send(0, "S", 0, MB), Send(1, "R", 0, MB)]
    backlog = {"S": MB, "R": MB}
    runs = [
        simulate(network, backlog, "D", Scripted(*opens, *sends), time_limit_s=30.0, **options)
        for simulate, options in ((simulate_ns3, {}), (simulate_fluid, {"header_bytes": 54}))
    ]
    ends_s = [run.connections["last_byte_s"].tolist() for run in runs]
    assert ends_s[0] == pytest.approx(ends_s[1], rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("window_bytes", [20_000, 60_000])
def test_what_a_relay_holds_is_bounded_by_the_window(window_bytes):
    """S could send ten times what R passes on. R has read no more than D has, but for what TCP
    holds on either side: a window that S's TCP has sent, one in R's, each with its headers."""
    network = slow_end(0.1)
    run = chain(network, 5 * MB, Open(0, ("S", "R", "D"), window_bytes), time_limit_s=20.0)
    sent = sorted(carried_bytes(run, network))[-2:]
    held = sent[1] - run.collected_bytes * ON_THE_WIRE
    assert 0 < held < 2 * window_bytes * ON_THE_WIRE + 10_000
    assert run.collected_bytes == pytest.approx(20 * RATE / 10 / ON_THE_WIRE, rel=0.03)


def test_without_a_window_the_transport_s_buffers_bound_it():
    network = replace(slow_end(0.1), transport=Transport(buffer_bytes=100_000))
    run = chain(network, 5 * MB, time_limit_s=30.0)
    held = max(carried_bytes(run, network)) - run.collected_bytes * ON_THE_WIRE
    assert 0 < held < 250_000
    assert run.collected_bytes == pytest.approx(30 * RATE / 10 / ON_THE_WIRE, rel=0.05)


def test_a_reader_that_falls_behind_holds_the_whole_chain_up_and_no_byte_is_lost():
    run = chain(slow_end(0.5), MB, Open(0, ("S", "R", "D"), 10_000))
    assert run.complete
    assert run.makespan_s == pytest.approx(MB * ON_THE_WIRE / (RATE / 2), rel=0.03)


def test_pacing_holds_at_its_first_hop():
    run = chain(TWO_HOPS, MB // 5, Open(0, ("S", "R", "D"), None, 50_000.0))
    assert run.makespan_s == pytest.approx(MB / 5 / 50_000, rel=0.03)


def test_a_hop_that_cannot_be_had_closes_the_chain():
    """A SYN takes 9 s on the second cable; R gives up after 1 + 2 s."""
    network = replace(slow_end(2e-5), transport=Transport(syn_retries=1))
    run = chain(network, MB, time_limit_s=100.0)
    assert not run.complete
    (log,) = run.connections.to_dict("records")
    assert np.isnan(log["opened_s"])
    assert 1 <= log["closed_s"] < 10


class DropsAndGoesOn(Scripted):
    """After a second it cuts the chain off, and sends the same over a connection of its own."""

    def handle(self, event):
        if not isinstance(event, Timer):
            return []
        return [Close(0, drop_queue=True), Open(1, ("S", "D")), Send(1, "S", 0, MB)]


@pytest.mark.slow
def test_cut_off_half_way_its_hops_end_and_the_bytes_that_came_count_once():
    script = DropsAndGoesOn(CHAIN, Send(0, "S", 0, MB), WakeMe(1.0, 0))
    run = simulate_ns3(TWO_HOPS, {"S": MB}, "D", script)
    assert run.complete
    assert run.collected_bytes == MB
    first, second = run.connections.to_dict("records")
    assert 0 < first["bytes"] < RATE
    assert first["closed_s"] == 1.0
    assert second["bytes"] == MB


def test_every_pair_of_a_chain_needs_a_route():
    network = replace(LINE, next_wire=np.full((2, 2), -1))
    with pytest.raises(SimulationError, match="no route between 'S' and 'D'"):
        simulate_ns3(network, {"S": 1}, "D", Scripted(Open(0, ("S", "D"))))
