"""A problem's links and limits as wires: which way data go, what they carry, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from instances.small_networks import PLACES, line_network
from instances.tiny_controllers import sends_of

import datacollect as dc
from datacollect.scenario.setting import network_sha256
from datacollect.simulation.fluid.engine import simulate_fluid
from datacollect.simulation.network import HEADER_BYTES, RateChange
from datacollect.simulation.problem_wires import wires_of

ON_THE_WIRE = (1448 + HEADER_BYTES) / 1448


def problem_of(**changes) -> dc.Problem:
    """S and R send to D, S over R, too; S's uplink and D's downlink change after 10 s."""
    tree = {
        "destination": "D",
        "periods_s": [0.0, 10.0],
        "hosts": {
            "S": {"backlog_bytes": 10, "uplink_bytes_per_s": [3e6, 1e6]},
            "R": {"backlog_bytes": 10},
            "D": {"downlink_bytes_per_s": [4e6, 5e6]},
        },
        "links": [
            {"from": "S", "to": "D", "bandwidth_bytes_per_s": [2e6, 2e6]},
            {"from": "S", "to": "R", "bandwidth_bytes_per_s": [1e6, 2e6]},
            {"from": "R", "to": "D", "bandwidth_bytes_per_s": 6e6},
        ],
        "shared": [{"name": "fibre", "bandwidth_bytes_per_s": 3e6, "links": [["R", "D"]]}],
    }
    return dc.Problem.from_dict(tree | changes)


def with_host(name: str, **keys) -> dc.Problem:
    hosts = problem_of().to_dict()["hosts"]
    return problem_of(hosts=hosts | {name: hosts[name] | keys})


def wires_between(network, *ends):
    node = network.host_node
    path = network.path(*(node[host] for host in ends))
    return [network.wire_name(wire).split(" -> ")[1] for wire in path]


def test_data_take_the_limits_one_behind_the_other():
    network = wires_of(problem_of(), 1e6)
    assert wires_between(network, "S", "D") == ["uplink of 'S'", "downlink of 'D'", "D"]
    assert wires_between(network, "S", "R") == ["uplink of 'S'", "R"]
    fibre = "shared bottleneck 'fibre'"
    assert wires_between(network, "R", "D") == [fibre, f"end of {fibre}", "downlink of 'D'", "D"]
    # Acknowledgements have no limits of their own.
    assert wires_between(network, "D", "S") == ["S"]
    assert network.one_way_s(*(network.host_node[host] for host in "SD")) == 0.01


def test_rates_have_headers_besides_and_change_with_the_periods():
    network = wires_of(problem_of(), 1e6)
    names = [network.wire_name(wire) for wire in range(network.n_wires)]
    rates = dict(zip(names, network.rate_bytes_per_s.tolist(), strict=True))
    assert rates["S -> uplink of 'S'"] == pytest.approx(3e6 * ON_THE_WIRE)
    changes = [(c.at_s, names[c.wire], c.rate_bytes_per_s / ON_THE_WIRE) for c in network.changes]
    assert changes == [
        (10.0, "S -> uplink of 'S'", pytest.approx(1e6)),
        (10.0, "downlink of 'D' -> D", pytest.approx(5e6)),
        (10.0, "uplink of 'S' -> R", pytest.approx(2e6)),
    ]


def test_what_recurs_is_listed_until_the_end():
    """Two changes a day for 12 days, one direction."""
    hosts = {"S": {"backlog_bytes": 10, "uplink_bytes_per_s": "8:00 1 MB/s, 20:00 2 MB/s"}, "D": {}}
    links = [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 9e6}]
    problem = dc.Problem.from_dict(
        {"destination": "D", "start": "2026-11-23T09:00Z", "hosts": hosts, "links": links}
    )
    changes = wires_of(problem, 12 * 86_400.0).changes
    assert [change.at_s / 3600 for change in changes[:3]] == [11.0, 23.0, 35.0]
    assert changes[-1].at_s > 11.5 * 86_400
    with pytest.raises(
        dc.ProblemError, match=r"listed for .* at most, .* lower run.time_limit_s, or use the fl"
    ):
        wires_of(problem, 1e15)


def test_queues_hold_a_round_trip_and_buffers_twice_as_much():
    network = wires_of(problem_of(), 1e6)
    rates = {network.wire_name(w): network.queue_packets[w] for w in range(network.n_wires)}
    assert rates["S -> uplink of 'S'"] == 50
    fast = problem_of(shared=[], links=[{"from": "R", "to": "D", "bandwidth_bytes_per_s": 1e9}])
    hosts = fast.to_dict()["hosts"] | {"D": {}}
    network = wires_of(problem_of(shared=[], links=fast.to_dict()["links"], hosts=hosts), 1e6)
    assert network.queue_packets.max() == np.ceil(1e9 * 0.02 / 1448)
    assert network.transport.buffer_bytes == pytest.approx(1e9 * ON_THE_WIRE * 0.04, abs=1)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (with_host("S", release_s=5.0), "host 'S': its data are released later"),
        (with_host("R", storage_bytes=5), "host 'R': its room is limited"),
        (with_host("S", uplink_bytes_per_s=[1e6, 0.0]), "uplink of 'S' carries nothing from 10 s"),
        (
            problem_of(held=[{"host": "R", "source": "S", "offset_bytes": 0, "bytes": 5}]),
            "data lie at 'R' already",
        ),
        (
            problem_of(
                shared=[
                    {"name": name, "bandwidth_bytes_per_s": 3e6, "links": [["R", "D"]]}
                    for name in ("one", "two")
                ]
            ),
            "link 'R' -> 'D' is in shared bottleneck 'two' and in another",
        ),
    ],
    ids=["release", "storage", "closed", "held", "shared twice"],
)
def test_what_wires_cannot_is_refused_with_a_remedy(problem, said):
    with pytest.raises(dc.ProblemError, match=f"problem: {said}.*; use the fluid engine, --engine"):
        wires_of(problem, 1e6)


def test_the_fluid_engine_has_the_rates_of_the_moment():
    """100 bytes/s until 4 s, 50 until 10 s, 200 after: 400, 300, and 500 in 2.5 s."""
    changes = (RateChange(4.0, 0, 50.0), RateChange(10.0, 0, 200.0))
    line = line_network([100.0, 1e6], PLACES)
    network = with_changes(line, changes)
    run = simulate_fluid(network, {"S": 1200}, "D", sends_of(backlog={"S": 1200}))
    assert run.makespan_s == pytest.approx(12.5)
    used = run.wires.set_index(["from", "to"])["utilisation"]
    assert used["n0", "n1"] == pytest.approx(1.0)
    assert network_sha256(network) != network_sha256(line)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([RateChange(1.0, 0, 0.0)], "wire n0 -> n1: rate from 1 s on must be > 0, got 0"),
        (
            [RateChange(2.0, 0, 1.0), RateChange(1.0, 0, 2.0)],
            "in the order of time, got one at 1 s after",
        ),
        ([RateChange(-1.0, 0, 1.0)], "in the order of time, got one at -1 s"),
    ],
    ids=["nothing", "order", "before"],
)
def test_changes_that_make_no_sense_are_refused(changes, said):
    with pytest.raises(dc.ProblemError, match=said):
        with_changes(line_network([100.0, 1e6], PLACES), tuple(changes))


def with_changes(network, changes):
    return replace(network, changes=changes)
