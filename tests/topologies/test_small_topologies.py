"""The small networks: their nodes and wires, written out."""

from __future__ import annotations

import pytest

from datacollect.errors import ProblemError
from datacollect.topologies import dumbbell, line, star, two_domains


def wires_of(topology):
    """Each wire as text and what it carries there and back, its delay, queue and kind."""
    return {
        name: (
            topology.rate_bytes_per_s[i].tolist(),
            topology.delay_s[i],
            topology.queue_packets[i].tolist(),
            topology.wire_kinds[i],
        )
        for i, name in enumerate(topology.wire_names)
    }


def test_line():
    topology = line(3, rate_bytes_per_s=2.0, delay_s=0.5, queue_packets=9)
    wire = ([2.0, 2.0], 0.5, [9, 9], "backbone")
    assert topology.kinds == ("router",) * 3
    assert wires_of(topology) == {"N0-N1": wire, "N1-N2": wire}


def test_star():
    topology = star(2, rate_bytes_per_s=2.0, delay_s=0.5)
    wire = ([2.0, 2.0], 0.5, [50, 50], "access")
    assert topology.hosts == ("H0", "H1")
    assert wires_of(topology) == {"H0-hub": wire, "H1-hub": wire}


def test_dumbbell():
    topology = dumbbell(
        2,
        1,
        rate_bytes_per_s=2.0,
        delay_s=0.5,
        queue_packets=5,
        access_rate_bytes_per_s=8.0,
        access_delay_s=0.25,
        access_queue_packets=6,
    )
    access = ([8.0, 8.0], 0.25, [6, 6], "access")
    assert topology.hosts == ("L0", "L1", "R0")
    assert wires_of(topology) == {
        "bottleneck": ([2.0, 2.0], 0.5, [5, 5], "backbone"),
        "L0-left": access,
        "L1-left": access,
        "R0-right": access,
    }
    assert topology.shortest_routes().path("L1", "R0") == ("L1", "left", "right", "R0")


def test_two_domains():
    """5 and 10 Mbit/s are 625 000 and 1 250 000 bytes per second."""
    topology = two_domains(("D", "K"), ("S0", "S1", "S2"), queue_packets=7)
    queue = [7, 7]
    peering = ([625e3, 625e3], 0.020, queue, "peering")
    transit = ([1.25e6, 1.25e6], 0.010, queue, "transit")
    access = ([1.25e6, 1.25e6], 0.005, queue, "access")
    assert wires_of(topology) == {
        "B0-A0": peering,
        "B1-A1": peering,
        "A0-A1": transit,
        "B0-B1": transit,
        **dict.fromkeys(["D-A0", "K-A1", "S0-B0", "S1-B1", "S2-B0"], access),
    }
    assert topology.domains == ("A", "A", "B", "B", "A", "A", "B", "B", "B")


def test_peering_wires_of_two_domains_may_differ():
    topology = two_domains(peering_rate_bytes_per_s=(3.0, 4.0))
    assert wires_of(topology)["B0-A0"][0] == [3.0, 3.0]
    assert wires_of(topology)["B1-A1"][0] == [4.0, 4.0]


def test_no_hosts_leave_the_routers():
    assert two_domains((), ()).names == ("A0", "A1", "B0", "B1")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: line(0, rate_bytes_per_s=1.0, delay_s=0.0), "n_nodes must be a whole number >= 1"),
        (lambda: star(0, rate_bytes_per_s=1.0, delay_s=0.0), "n_hosts must be a whole number >= 1"),
        (lambda: line(2, rate_bytes_per_s=0.0, delay_s=0.0), "rate_bytes_per_s must be > 0, got 0"),
        (lambda: two_domains(("D", "D")), "host 'D': the topology has a node of this name already"),
        (lambda: two_domains(("A0",)), "host 'A0': the topology has a node of this name already"),
    ],
)
def test_wrong_numbers_and_names_are_refused(build, message):
    with pytest.raises(ProblemError, match=message):
        build()
