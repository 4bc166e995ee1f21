"""Results of the packet engine's process, turned into a run: by hand, without ns-3."""

import math
from dataclasses import replace

import pytest
from instances.small_networks import line_network

from datacollect.control.events import ConnectionClosed, ConnectionOpened, ConnectionStalled
from datacollect.errors import SimulationError
from datacollect.simulation.network import BackgroundFlow
from datacollect.simulation.ns3.messages import ConnectionAsked, RunResult
from datacollect.simulation.ns3.results import run_of

# S sends 10 bytes to K from 1 to 3 s, K on to D from 2 to 4 s; 3 of them travel twice.
LOG = [
    ConnectionAsked(0.0, 7, ("S", "K")),
    ConnectionOpened(0.5, 7),
    ConnectionAsked(0.5, 8, ("K", "D")),
    ConnectionStalled(1.0, 8),
    ConnectionClosed(3.5, 7),
]
TEXT = """move 7 0 1 3 10 10 10
move 8 0 2 4 13 10 10
retransmissions 7 0
retransmissions 8 3
drawn_syn_timeouts 5
wire 0 0.5 2
wire 1 inf 0
flow 0 before 12.5
flow 0 during 6.25
"""
RESULT = RunResult("", 4.0, LOG, TEXT, events=99, cpu_s=0.1, peak_memory_bytes=1, answer=None)
NETWORK = line_network(
    [5.0, 5.0], {"S": 0, "K": 1, "D": 2}, background=[BackgroundFlow("tcp", 0, 2)]
)


def run(**changes):
    return run_of(NETWORK, {"S": 10}, "D", replace(RESULT, **changes), {"seed": 1}, "run 17")


def test_all_that_is_reported_is_in_the_run():
    made = run()
    assert (made.complete, made.makespan_s, made.collected_bytes) == (True, 4.0, 10)
    assert made.events == 99
    assert made.settings == {"seed": 1, "drawn_syn_timeouts": 5}
    assert made.routes.to_dict("list") == {
        "source": ["S", "S"], "from": ["S", "K"], "to": ["K", "D"], "bytes": [10, 13],
    }  # fmt: skip
    first, second = made.connections.set_index("connection").to_dict("records")
    assert (first["asked_s"], first["opened_s"], first["closed_s"]) == (0.0, 0.5, 3.5)
    assert (second["asked_s"], second["stalls"], second["retransmissions"]) == (0.5, 1, 3)
    assert math.isnan(second["closed_s"])
    assert made.background.to_numpy().tolist() == [
        [0, "tcp", "before", 12.5],
        [0, "tcp", "during", 6.25],
    ]


def test_a_wire_that_was_measured_in_no_time_is_idle():
    assert run().wires["utilisation"].tolist() == [0.5, 0.0]
    assert run().wires["dropped_packets"].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("broken 4", "run 17: background flow 4 lost its connection; allow more data_retries"),
        ("wyre 0 1 2", "run 17: ns-3 reports 'wyre 0 1 2', which is unknown"),
    ],
)
def test_what_went_wrong_is_an_error_that_names_the_run(line, words):
    with pytest.raises(SimulationError, match=words):
        run(text=TEXT + line)
