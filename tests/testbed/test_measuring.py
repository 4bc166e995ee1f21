"""Tests of the network between agents in a bed, beside what its wires are."""

from __future__ import annotations

import json

import pytest
from testbed.bed import Bed
from testbed.measuring import MeasuredHosts
from testbed.networks import one_wire, star

import datacollect as dc

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
def test_one_line_of_a_source_is_found_by_the_book(tmp_path):
    """S1 has one line of 4 Mbit/s, S2 one of 10: whatever is planned, S1 needs 6 MB over its line.

    Each pair is tested alone, and shows the line of S1 twice. Nobody asks for a flood of S1.
    """
    wires = {"S1": 4 * MBIT, "S2": 10 * MBIT, "D": 20 * MBIT}
    pairs = [("S1", "D"), ("S1", "S2"), ("S2", "D")]
    held = {"S1": 6_000_000, "S2": 10_000_000}
    with Bed(star(wires, delay_s=0.002)) as bed:
        hosts = MeasuredHosts(bed, tmp_path, wires, pairs=pairs)
        hosts.measure("cycle", "--tools", "tcp,flood")
        found = hosts.problem(held)
    line = PAYLOAD * 4 * MBIT
    assert found["problem"]["hosts"]["S1"]["uplink_bytes_per_s"] == pytest.approx(line, rel=0.1)
    assert found["not_shown"] == []
    plan = dc.coordinated(dc.Problem.from_dict(found["problem"]))
    assert plan.makespan_s == pytest.approx(held["S1"] / line, rel=0.1)
    assert plan.assumptions.gain == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
def test_pairs_find_the_capacity_of_a_wire(tmp_path):
    """5 Mbit/s, of frames of 1514 bytes that carry packets of 1500."""
    with Bed(one_wire(5 * MBIT, delay_s=0.01)) as bed:
        hosts = MeasuredHosts(bed, tmp_path, "LR")
        (row,) = hosts.measure("pairs")["samples"]
    assert row["capacity_bytes_per_s"] == pytest.approx(5 * MBIT * 1500 / 1514, rel=0.05)
    assert row["loss"] == 0
