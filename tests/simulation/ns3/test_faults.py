"""The packet engine where things go wrong: limits, aborts, refusals, stalls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from instances.ns3_networks import LINE, MB, ON_THE_WIRE, RATE, needs_ns3, straight
from instances.tiny_controllers import Fatal

from datacollect.errors import ProblemError, SimulationError
from datacollect.simulation.network import BackgroundFlow, Transport
from datacollect.simulation.ns3.engine import simulate_ns3

pytestmark = needs_ns3


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_abort_of_ns3_itself_names_the_run_and_tells_its_last_words():
    """A buffer of 4 GiB and more does not fit ns-3's 32 bits."""
    network = replace(LINE, transport=Transport(buffer_bytes=1 << 33))
    with pytest.raises(
        SimulationError, match=r"SIGABRT; its last output: (?s:.*)SndBufSize"
    ) as caught:
        straight(network, {"S": 10}, name="run 18")
    assert str(caught.value).startswith("run 18: ")
    assert straight(LINE, {"S": 10}).complete


@pytest.mark.slow
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
