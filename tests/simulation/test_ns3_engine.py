"""The packet engine against arithmetic.

Wires carry 2.5 Mbit/s and 10 ms. A segment of 1448 bytes takes 1448 + 54 on the wire: 2 of PPP,
20 of IP, 32 of TCP with its timestamp. A whole megabyte waits before a wire without loss where
queues hold 1000 packets: TCP's buffers are no larger.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from conftest import NO_NS3
from tiny_controllers import CloseAndGoOn, Fatal, Refilling, Relayed, Straight

from datacollect.errors import ProblemError, SimulationError
from datacollect.simulation.network import BackgroundFlow, SimulatedNetwork, Transport
from datacollect.simulation.ns3 import simulate_ns3
from datacollect.simulation.ns3_probe import probe_ns3

pytestmark = pytest.mark.skipif(find_spec("ns3") is None, reason=NO_NS3)

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


LINE = tree(["SD"])
TWO_HOPS = tree(["SR", "RD"])
STAR = tree(["AX", "BX", "XD"], hosts=["A", "B", "D"])


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


@pytest.mark.parametrize(("number", "seconds"), [(1, 33.3), (5, 20.0), (20, 17.7)])
def test_store_and_forward_takes_the_time_of_one_piece_more(number, seconds):
    """The second hop ends one piece's time after the first: 16.6 s · (1 + 1/n), slow starts."""
    run = simulate_ns3(TWO_HOPS, {"S": 5 * MB}, "D", Relayed(5 * MB, number))
    assert run.makespan_s == pytest.approx(seconds, rel=0.02)
    piece = 5 * MB / number
    assert run.peak_storage_bytes().loc["R", "others_bytes"] >= piece * 0.99


def test_cut_through_takes_hardly_longer_than_one_hop():
    run = simulate_ns3(TWO_HOPS, {"S": 5 * MB}, "D", Relayed(5 * MB, 1, cut_through=True))
    assert run.makespan_s == pytest.approx(16.9, rel=0.02)
    assert run.peak_storage_bytes().loc["R", "others_bytes"] < 0.1 * MB


def test_pieces_cost_next_to_nothing():
    """2500 pieces of 2 kB take the time of one: ranges are counts, not messages."""
    one = simulate_ns3(TWO_HOPS, {"S": 5 * MB}, "D", Relayed(5 * MB, 1, cut_through=True))
    many = simulate_ns3(TWO_HOPS, {"S": 5 * MB}, "D", Relayed(5 * MB, 2500, cut_through=True))
    assert many.makespan_s == pytest.approx(one.makespan_s, rel=0.01)
    assert many.events < 1.1 * one.events


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


TRAFFIC = (
    BackgroundFlow("tcp", 0, 3, start_s=0.3),
    BackgroundFlow("udp", 1, 3, 0.1, RATE / 2, mean_on_s=0.5, mean_off_s=0.5),
    BackgroundFlow("tcp", 3, 1, start_s=1.7),
)
BUSY = replace(STAR, background=TRAFFIC, queue_packets=STAR.queue_packets // 20)
OPTIONS = {"warm_up_s": 5.0, "cool_down_s": 20.0}
BACKLOG = {"A": MB, "B": MB}


def test_bytes_are_conserved():
    """Whatever left a host lies at another one, at any time; routes and connections agree."""
    run = simulate_ns3(TWO_HOPS, {"S": MB, "R": MB // 2}, "D", Both(), relay_buffer_bytes=100_000)
    assert run.complete
    assert run.collected_bytes == 1.5 * MB
    assert run.routes["bytes"].sum() == run.connections["bytes"].sum() == 2.5 * MB
    instants = np.linspace(0, run.makespan_s, 97)
    total = sum(
        np.interp(instants, part["time_s"], part["own_bytes"] + part["others_bytes"])
        for _, part in run.storage.groupby("host")
    )
    np.testing.assert_allclose(total, 1.5 * MB, atol=1)


class Both(Relayed):
    """S over R, and R's own data on a connection of its own."""

    def __init__(self):
        super().__init__(MB, 10, cut_through=True)

    def start(self):
        own = Straight({"R": MB // 2}, "D").start()
        return [*super().start(), *(replace(d, connection=2) for d in own)]


def test_same_seed_same_result_in_any_order_and_process():
    first = straight(BUSY, BACKLOG, seed=3, **OPTIONS)
    straight(LINE, {"S": MB})
    with ThreadPoolExecutor(2) as pool:
        others = list(pool.map(lambda s: straight(BUSY, BACKLOG, seed=s, **OPTIONS), (4, 3)))
    assert same(first, others[1])
    assert first.makespan_s != others[0].makespan_s


def test_background_takes_its_share_and_gives_it_back():
    alone = straight(STAR, BACKLOG)
    run = straight(BUSY, BACKLOG, **OPTIONS)
    assert run.makespan_s > 1.2 * alone.makespan_s
    goodput = run.background.pivot_table(
        index="flow", columns="phase", values="goodput_bytes_per_s", sort=False
    )
    assert goodput.loc[0, "during"] < 0.7 * goodput.loc[0, "before"]
    assert goodput.loc[0, "during"] < goodput.loc[0, "after"]
    # On half of the time; what is lost does not arrive.
    assert goodput.loc[1].max() < RATE / 2
    assert goodput.loc[1, "after"] == pytest.approx(RATE / 4, rel=0.5)


def test_no_background_flows_is_no_background():
    assert same(straight(replace(STAR, background=()), BACKLOG), straight(STAR, BACKLOG))
    assert straight(STAR, BACKLOG).background.empty


def test_a_time_limit_leaves_what_had_been_collected():
    run = straight(LINE, {"S": 5 * MB}, time_limit_s=8.0)
    assert not run.complete
    assert np.isnan(run.makespan_s)
    assert np.isnan(run.source_finish_s["S"])
    assert run.collected_bytes == pytest.approx(8 * RATE / ON_THE_WIRE, rel=0.02)
    assert run.settings["stopped"] == "time limit"


def test_a_controller_that_does_nothing_ends_the_run():
    run = simulate_ns3(LINE, {"S": MB}, "D", Fatal("idle"))
    assert not run.complete
    assert run.settings["stopped"].startswith("nothing left to do")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("abort", "SIGABRT"),
        ("exit", "exit code 7"),
        ("raise", "out of ideas"),
        ("unknown host", "host 'X' is not in the network"),
        ("beyond", "must lie within the source's 10 bytes"),
        ("no connection", "was never opened"),
    ],
)
def test_what_fails_in_the_worker_is_an_error_that_names_the_run(how, words):
    with pytest.raises(SimulationError, match=words) as caught:
        simulate_ns3(LINE, {"S": 10}, "D", Fatal(how), name="run 17")
    assert str(caught.value).startswith("run 17: ")
    assert straight(LINE, {"S": 10}).complete  # the next one is not affected


def test_an_abort_of_ns3_itself_tells_its_last_words():
    """A buffer of 4 GiB and more does not fit ns-3's 32 bits."""
    network = replace(LINE, transport=Transport(buffer_bytes=1 << 33))
    with pytest.raises(SimulationError, match=r"SIGABRT; its last words: (?s:.*)SndBufSize"):
        straight(network, {"S": 10})


def test_stalls_are_reported_and_counted():
    """A wire so slow that a segment takes 15 s: nothing arrives for longer than 5 s."""
    run = straight(replace(LINE, rate_bytes_per_s=np.array([100.0, 100.0])), {"S": 5000}, stall_s=5)
    assert run.complete
    assert run.connections["stalls"].sum() >= 3


@pytest.mark.parametrize(
    ("network", "backlog", "words"),
    [
        (LINE, {"T": 1}, "host 'T' is not in the simulated network"),
        (LINE, {"S": -1}, "got -1"),
        (replace(LINE, transport=Transport("Newreno")), {"S": 1}, "did you mean 'NewReno'"),
        (replace(LINE, queue_packets=np.array([0, 1])), {"S": 1}, "queue must hold"),
        (replace(LINE, background=(BackgroundFlow("udp", 0, 1),)), {"S": 1}, "rate_bytes_per_s"),
        (replace(LINE, background=(BackgroundFlow("tcp", 0, 0),)), {"S": 1}, "background flow 0"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(network, backlog, words):
    with pytest.raises(ProblemError, match=words):
        straight(network, backlog)


def test_hosts_without_a_route_are_an_error_that_names_them():
    network = replace(LINE, next_wire=np.full((2, 2), -1))
    with pytest.raises(SimulationError, match="no route between 'S' and 'D'"):
        straight(network, {"S": 1})


def test_probes_measure_one_pair_at_a_time():
    """Alone on its wires each pair gets 301 kB/s, less a handshake; not a third of that."""
    network = tree(["AX", "BX", "DX"], hosts=["A", "B", "D"])
    probes = probe_ns3(network, n_bytes=2 * MB, repeats=2)
    assert len(probes.samples) == 6 * 2
    expected = RATE / ON_THE_WIRE
    np.testing.assert_allclose(probes.samples["bandwidth_bytes_per_s"], expected, rtol=0.03)
    assert probes.carried_bytes == 24 * MB
    assert probes.samples["time_s"].is_monotonic_increasing
    assert list(probes.samples.loc[0, ["from", "to", "streams", "concurrency"]]) == ["A", "B", 1, 0]


def test_a_probe_that_takes_too_long_tells_what_had_arrived():
    probes = probe_ns3(LINE, [("S", "D")], 5 * MB, give_up_s=8.0)
    assert probes.samples["bytes"].item() == pytest.approx(8 * RATE / ON_THE_WIRE, rel=0.12)
    assert probes.samples["duration_s"].item() == 8.0
