"""Tests of the network between agents in a bed, beside what its wires are."""

from __future__ import annotations

import json

import pytest
from testbed.bed import Bed
from testbed.measuring import MeasuredHosts
from testbed.networks import one_wire, star

pytestmark = pytest.mark.usefixtures("beds_possible")

# Of a frame of 1514 bytes TCP carries 1448.
PAYLOAD = 1448 / 1514
MBIT = 125_000.0


@pytest.mark.slow
def test_a_flood_finds_the_wire_of_its_host(tmp_path):
    """M has 10 Mbit/s to two hosts with 8 Mbit/s each: to each alone 8, to both at once 10.

    What came over its wire is counted by the wire.
    """
    wires = {"A": 8 * MBIT, "B": 8 * MBIT, "M": 10 * MBIT}
    with Bed(star(wires, delay_s=0.002)) as bed:
        hosts = MeasuredHosts(bed, tmp_path, wires)
        options = ("--from", "M", "--to", "A", "--to", "B", "--seconds", 3)
        hosts.measure("tcp", *options)
        before = sum(wire.bytes for wire in bed.carried().values())
        at_once = hosts.measure("flood", *options)
        after = sum(wire.bytes for wire in bed.carried().values())
        found = hosts.problem()
    limit = found["problem"]["hosts"]["M"]["uplink_bytes_per_s"]
    assert limit == at_once["together_bytes_per_s"]
    assert limit == pytest.approx(PAYLOAD * 10 * MBIT, rel=0.1)
    rates = {link["to"]: link["bandwidth_bytes_per_s"] for link in found["problem"]["links"]}
    assert rates == pytest.approx(dict.fromkeys("AB", PAYLOAD * 8 * MBIT), rel=0.1)
    # Each byte crosses two wires, and acknowledgements go back.
    told = sum(row["bytes"] for row in at_once["samples"])
    assert told == pytest.approx(PAYLOAD * (after - before) / 2, rel=0.1)
    assert json.loads(at_once["samples"][0]["settings"])["host"] == "M"


@pytest.mark.slow
def test_pairs_find_the_capacity_of_a_wire(tmp_path):
    """5 Mbit/s, of frames of 1514 bytes that carry packets of 1500."""
    with Bed(one_wire(5 * MBIT, delay_s=0.01)) as bed:
        hosts = MeasuredHosts(bed, tmp_path, "LR")
        (row,) = hosts.measure("pairs")["samples"]
    assert row["capacity_bytes_per_s"] == pytest.approx(5 * MBIT * 1500 / 1514, rel=0.05)
    assert row["loss"] == 0
