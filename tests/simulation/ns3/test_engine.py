"""The packet engine against arithmetic: transfers, relays, pieces, pacing, plans."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from instances.hand_made_plans import plan_of
from instances.ns3_networks import (
    LINE,
    MB,
    ON_THE_WIRE,
    RATE,
    STAR,
    TWO_HOPS,
    needs_ns3,
    stored_bytes,
    straight,
    tree,
)
from instances.tiny_controllers import CloseAndGoOn, Refilling, Relayed, Straight, pieces

from datacollect.control.controller import Controller
from datacollect.control.decisions import WakeMe
from datacollect.control.events import Timer
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.errors import ProblemError
from datacollect.simulation.network import Transport
from datacollect.simulation.ns3.engine import simulate_ns3
from datacollect.simulation.ns3.network_text import VARIANTS

pytestmark = needs_ns3


def test_one_transfer_takes_its_bytes_with_headers_and_a_handshake():
    """5 MB · 1502/1448 / 312500 B/s = 16.60 s, and a round trip and a half of 20 ms."""
    run = straight(LINE, {"S": 5 * MB})
    assert run.makespan_s == pytest.approx(5 * MB * ON_THE_WIRE / RATE + 0.03, rel=0.01)
    assert run.complete
    assert run.collected_bytes == 5 * MB
    assert run.source_finish_s == {"S": run.makespan_s}
    (connection,) = run.connections.to_dict("records")
    assert connection["bytes"] == 5 * MB
    assert connection["retransmissions"] == 0
    assert connection["opened_s"] == pytest.approx(0.02, abs=0.001)
    assert connection["last_byte_s"] == run.makespan_s
    there, back = run.wires["utilisation"]
    assert there == pytest.approx(1.0, abs=0.01)
    assert 0 < back < 0.05  # acknowledgements
    assert run.wires["dropped_packets"].sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("number", "seconds"), [(1, 33.3), (5, 20.0), (20, 17.7)])
def test_store_and_forward_takes_the_time_of_one_piece_more(number, seconds):
    """The second hop ends one piece's time after the first: 16.6 s · (1 + 1/n), slow starts."""
    run = simulate_ns3(TWO_HOPS, {"S": 5 * MB}, "D", Relayed(5 * MB, number))
    assert run.makespan_s == pytest.approx(seconds, rel=0.02)
    piece = 5 * MB / number
    assert run.peak_storage_bytes().loc["R", "others_bytes"] >= piece * 0.99


@pytest.mark.slow
def test_cut_through_takes_hardly_longer_than_one_hop():
    run = simulate_ns3(TWO_HOPS, {"S": 5 * MB}, "D", Relayed(5 * MB, 1, cut_through=True))
    assert run.makespan_s == pytest.approx(16.9, rel=0.02)
    assert run.peak_storage_bytes().loc["R", "others_bytes"] < 0.1 * MB


@pytest.mark.slow
def test_pieces_cost_next_to_nothing():
    """2500 pieces of 2 kB take the time of one: ranges are counts, not messages."""
    one = simulate_ns3(TWO_HOPS, {"S": 5 * MB}, "D", Relayed(5 * MB, 1, cut_through=True))
    many = simulate_ns3(TWO_HOPS, {"S": 5 * MB}, "D", Relayed(5 * MB, 2500, cut_through=True))
    assert many.makespan_s == pytest.approx(one.makespan_s, rel=0.01)
    assert many.events < 1.1 * one.events


def in_pieces(n_bytes, number):
    """Plan S over R to D, a piece in each time slot; a link has what its wire has for data."""
    slot_s = n_bytes / number / (RATE / ON_THE_WIRE)
    rows = [
        (0, hop, *piece, (i + hop) * slot_s, (i + hop + 1) * slot_s)
        for i, piece in enumerate(pieces(n_bytes, number))
        for hop in (0, 1)
    ]
    return plan_of([("S", "R", "D")], rows, slot_s)


@pytest.mark.slow
@pytest.mark.parametrize("controller", [PlannedController, AsapController])
def test_a_plan_of_thousands_of_pieces_costs_no_more_than_one_of_a_single_piece(controller):
    """Store and forward, 2000 pieces of four segments each, on time or as soon as possible.

    In pieces both hops are busy at once: 12 MB and a piece take the time that one piece takes on
    each hop, half of the simulated time, with as many packets.
    """
    n_bytes = 2000 * 4 * 1448
    one, many = (
        simulate_ns3(TWO_HOPS, {"S": n_bytes}, "D", controller(in_pieces(n_bytes, n)))
        for n in (1, 2000)
    )
    expected_s = n_bytes * ON_THE_WIRE / RATE
    assert one.makespan_s == pytest.approx(2 * expected_s, rel=0.01)
    assert many.makespan_s == pytest.approx(expected_s, rel=0.01)
    assert len(many.connections) == 2
    assert many.events < 1.1 * one.events
    cpu = f"CPU: {many.cpu_s:.2f} s in 2000 pieces, {one.cpu_s:.2f} s in one"
    print(cpu)  # noqa: T201 - to be seen with -s; a busy machine makes a bound useless


@pytest.mark.slow
@pytest.mark.parametrize("controller", [PlannedController, AsapController])
def test_a_plan_over_disjoint_idle_links_takes_what_it_predicts(controller):
    """Two sources straight to D, one over a relay, on wires of their own: 13.28 s."""
    rate = RATE / ON_THE_WIRE
    rows = [
        (0, 0, 0, 4 * MB, 0.0, 4 * MB / rate),
        (1, 0, 0, 4 * MB, 0.0, 4 * MB / rate),
        (1, 1, 0, 4 * MB, 0.0, 4 * MB / rate),
        (2, 0, 0, 3 * MB, 0.0, 3 * MB / rate),
    ]
    plan = plan_of([("A", "D"), ("B", "R", "D"), ("C", "D")], rows)
    backlog = {"A": 4 * MB, "B": 4 * MB, "C": 3 * MB}
    network = tree(["AD", "BR", "RD", "CD"])
    run = simulate_ns3(network, backlog, "D", controller(plan))
    assert run.makespan_s == pytest.approx(plan.makespan_s, rel=0.03)
    assert run.source_finish_s["C"] == pytest.approx(3 * MB / rate, rel=0.03)


class Alarms(Controller):
    """Asks again and again for the next of many instants until it has come."""

    def __init__(self, times_s):
        self.times_s = times_s
        self.answer = []

    def start(self):
        return [WakeMe(self.times_s[0], 0)]

    def handle(self, event):
        if not isinstance(event, Timer):
            return []
        self.answer.append(event.time_s)
        assert len(self.answer) <= len(self.times_s), "woken before the time"
        reached = sum(t <= event.time_s for t in self.times_s)
        return [WakeMe(self.times_s[reached], 0)] if reached < len(self.times_s) else []


@pytest.mark.slow
@pytest.mark.parametrize("warm_up_s", [0.0, 0.1])
def test_nobody_is_woken_before_the_time(warm_up_s):
    """ns-3 counts whole nanoseconds: those before 1/3 s, 1/7 s … are too early."""
    times_s = [k / 333 for k in range(1, 200)]
    run = simulate_ns3(LINE, {"S": MB}, "D", Alarms(times_s), warm_up_s=warm_up_s)
    assert run.settings["stopped"].startswith("nothing left to do")
    assert run.settings["end_s"] == pytest.approx(times_s[-1], abs=2e-9)


@pytest.mark.slow
def test_a_relay_stores_no_more_than_its_buffer():
    """The relay's way out is a quarter of its way in: unbounded it stores most of the data."""
    rates = np.array([RATE, RATE, RATE / 4, RATE / 4])
    network = replace(TWO_HOPS, rate_bytes_per_s=rates)
    controller = Relayed(3 * MB, 3, cut_through=True)
    free = simulate_ns3(network, {"S": 3 * MB}, "D", controller)
    bound = simulate_ns3(network, {"S": 3 * MB}, "D", controller, relay_buffer_bytes=200_000)
    assert free.peak_storage_bytes().loc["R", "others_bytes"] > 2 * MB
    # Between its points, eight segments apart, the curve is straight.
    peak = bound.peak_storage_bytes().loc["R", "others_bytes"]
    assert 150_000 < peak <= 200_000 + 8 * 1448
    assert bound.makespan_s == pytest.approx(3 * MB * ON_THE_WIRE / (RATE / 4), rel=0.03)
    assert bound.makespan_s == pytest.approx(free.makespan_s, rel=0.02)


def test_two_equal_flows_share_a_wire():
    # Windows of 200 kB, which the queue holds: with losses the shares are equal only on average.
    network = replace(STAR, transport=Transport(buffer_bytes=200_000))
    run = straight(network, {"A": 3 * MB, "B": 3 * MB})
    assert run.makespan_s == pytest.approx(6 * MB * ON_THE_WIRE / RATE, rel=0.03)
    a, b = run.source_finish_s.values()
    assert min(a, b) > 0.9 * max(a, b)


def test_pacing_caps_the_rate():
    controller = Straight({"S": MB}, "D", pace_bytes_per_s=50_000.0)
    run = simulate_ns3(LINE, {"S": MB}, "D", controller)
    assert run.makespan_s == pytest.approx(MB / 50_000, rel=0.01)


@pytest.mark.slow
def test_pacing_holds_at_high_rates():
    """100 MB/s on a wire of 1 Gbit/s, which has 120 MB/s for data: a segment every 14.48 µs."""
    network = tree(["SD"], rate_bytes_per_s=1.25e8, delay_s=0.001)
    free = straight(network, {"S": 50 * MB})
    assert free.makespan_s < 0.9 * 50 * MB / 1e8
    paced = simulate_ns3(
        network, {"S": 50 * MB}, "D", Straight({"S": 50 * MB}, "D", pace_bytes_per_s=1e8)
    )
    assert paced.makespan_s == pytest.approx(50 * MB / 1e8, rel=0.01)


def test_room_is_reported_whenever_a_piece_has_left():
    """Pieces smaller than the window keep the wire busy."""
    run = simulate_ns3(LINE, {"S": 2 * MB}, "D", Refilling(2 * MB, 50_000, 100_000))
    assert run.makespan_s == pytest.approx(2 * MB * ON_THE_WIRE / RATE, rel=0.02)


def test_a_dropped_connection_leaves_the_wire_to_its_successor():
    """The cut connection has moved one second's data, which move again."""
    network = replace(LINE, queue_packets=np.array([50, 50]))
    run = simulate_ns3(network, {"S": 2 * MB}, "D", CloseAndGoOn(2 * MB))
    assert run.complete
    first, second = run.connections.to_dict("records")
    assert first["closed_s"] < second["last_byte_s"] == run.makespan_s
    again = first["bytes"] + second["bytes"] - 2 * MB
    assert 0 < again < 1.1 * RATE
    # What had been in TCP's buffers of the first, up to 1 MiB, is not sent.
    assert run.makespan_s < (2 * MB + again + 500_000) * ON_THE_WIRE / RATE


def test_lost_packets_are_sent_again_and_counted():
    run = straight(replace(LINE, queue_packets=np.array([20, 20])), {"S": 2 * MB})
    drops = run.wires["dropped_packets"].sum()
    assert drops > 0
    assert run.connections["retransmissions"].sum() >= drops
    assert run.complete


@cache
def relayed_with(variant):
    """1 MB over two hops whose queues of 20 packets overflow if the variant lets them."""
    network = replace(TWO_HOPS, queue_packets=np.full(4, 20), transport=Transport(variant))
    return simulate_ns3(network, {"S": MB}, "D", Relayed(MB, 4, cut_through=True))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_of_tcp_collects_each_byte_once(variant):
    run = relayed_with(variant)
    assert run.settings["ns3_defaults"]["ns3::TcpL4Protocol::SocketType"] == f"ns3::Tcp{variant}"
    assert run.complete
    assert run.collected_bytes == MB
    assert run.connections["bytes"].tolist() == [MB, MB]
    at_least_s = MB * ON_THE_WIRE / RATE
    assert at_least_s < run.makespan_s < 3 * at_least_s
    # Curves are straight between points eight segments apart, and cut off at 0.
    stored = stored_bytes(run, np.linspace(0, run.makespan_s, 53))
    np.testing.assert_allclose(stored, MB, atol=8 * 1448)
    assert run.storage[run.storage["host"] == "D"]["others_bytes"].iloc[-1] == MB


@pytest.mark.slow
def test_variants_differ_in_what_they_do():
    """Losses and waits tell most of them apart, on as small a transfer as this."""
    runs = [relayed_with(variant) for variant in VARIANTS]
    assert len({run.makespan_s for run in runs}) >= 10
    careful, bold = relayed_with("Vegas"), relayed_with("Scalable")
    assert careful.wires["dropped_packets"].sum() == 0
    assert bold.wires["dropped_packets"].sum() > 50


@pytest.mark.parametrize("rate", [0.01, 1e300])
def test_rates_that_its_clock_cannot_bear_are_refused(rate):
    network = replace(LINE, rate_bytes_per_s=np.full_like(LINE.rate_bytes_per_s, rate))
    with pytest.raises(ProblemError, match=r"wire .* must lie between 1 and 1e\+12 for ns-3"):
        straight(network, {"S": 10})
