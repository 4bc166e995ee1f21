"""The packet engine under background traffic: who gets what, limits, and repeatable results."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from instances.ns3_networks import (
    BACKLOG,
    BUSY,
    LINE,
    MB,
    OPTIONS,
    RATE,
    STAR,
    TWO_HOPS,
    needs_ns3,
    same,
    stored_bytes,
    straight,
)
from instances.tiny_controllers import Relayed, Straight

from datacollect.simulation.network import BackgroundFlow
from datacollect.simulation.ns3.engine import simulate_ns3

pytestmark = needs_ns3


@pytest.mark.slow
def test_bytes_are_conserved():
    """Whatever left a host lies at another one, at any time; routes and connections agree."""
    run = simulate_ns3(TWO_HOPS, {"S": MB, "R": MB // 2}, "D", Both(), relay_buffer_bytes=100_000)
    assert run.complete
    assert run.collected_bytes == 1.5 * MB
    assert run.routes["bytes"].sum() == run.connections["bytes"].sum() == 2.5 * MB
    instants = np.linspace(0, run.makespan_s, 97)
    np.testing.assert_allclose(stored_bytes(run, instants), 1.5 * MB, atol=1)


class Both(Relayed):
    """S over R, and R's own data on a connection of its own."""

    def __init__(self):
        super().__init__(MB, 10, cut_through=True)

    def start(self):
        own = Straight({"R": MB // 2}, "D").start()
        return [*super().start(), *(replace(d, connection=2) for d in own)]


@pytest.mark.slow
def test_a_relay_stores_no_more_than_its_buffer_under_background_traffic():
    """R's way out is half its way in and shared with a TCP flow: what comes has to wait."""
    network = replace(
        TWO_HOPS,
        rate_bytes_per_s=np.array([RATE, RATE, RATE / 2, RATE / 2]),
        queue_packets=np.full(4, 50),
        background=(
            BackgroundFlow("tcp", 1, 2),
            BackgroundFlow("udp", 0, 2, 0.1, RATE / 8, mean_on_s=0.5, mean_off_s=0.5),
        ),
    )
    controller = Relayed(2 * MB, 3, cut_through=True)
    free, bound = (
        simulate_ns3(
            network, {"S": 2 * MB}, "D", controller, relay_buffer_bytes=limit, warm_up_s=2.0
        )
        for limit in (None, 200_000)
    )
    assert free.peak_storage_bytes().loc["R", "others_bytes"] > 1 * MB
    # Between its points, eight segments apart, the curve is straight.
    assert 150_000 < bound.peak_storage_bytes().loc["R", "others_bytes"] <= 200_000 + 8 * 1448
    assert bound.complete
    assert bound.collected_bytes == 2 * MB
    instants = np.linspace(0, bound.makespan_s, 97)
    np.testing.assert_allclose(stored_bytes(bound, instants), 2 * MB, atol=8 * 1448)


@pytest.mark.slow
def test_same_seed_same_result_in_any_order_and_process():
    first = straight(BUSY, BACKLOG, seed=3, **OPTIONS)
    straight(LINE, {"S": MB})
    with ThreadPoolExecutor(2) as pool:
        others = list(pool.map(lambda s: straight(BUSY, BACKLOG, seed=s, **OPTIONS), (4, 3)))
    assert same(first, others[1])
    assert first.makespan_s != others[0].makespan_s


@pytest.mark.slow
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


@pytest.mark.slow
def test_flows_that_are_yet_to_start_are_no_background():
    """To have sockets and random numbers for them changes nothing."""
    to_come = (
        BackgroundFlow("udp", 1, 3, 1000.0, RATE, mean_on_s=0.5, mean_off_s=0.5),
        BackgroundFlow("tcp", 0, 3, 1000.0),
    )
    none = straight(STAR, BACKLOG)
    late = straight(replace(STAR, background=to_come), BACKLOG)
    assert none.background.empty
    assert (late.makespan_s, late.events) == (none.makespan_s, none.events)
    for name in ("storage", "wires", "connections"):
        pd.testing.assert_frame_equal(getattr(late, name), getattr(none, name), check_exact=True)
