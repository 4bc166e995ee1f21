"""Wires and limits of hosts whose rates change by time, packet by packet, against arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest
from instances.ns3_networks import LINE, MB, ON_THE_WIRE, RATE, needs_ns3, straight

import datacollect as dc
from datacollect.simulation.network import RateChange

pytestmark = needs_ns3

PAYLOAD = RATE / ON_THE_WIRE


@pytest.mark.slow
@pytest.mark.parametrize("warm_up_s", [0.0, 3.0])
@pytest.mark.parametrize("factor", [4.0, 0.25])
def test_a_wire_has_the_rate_of_the_moment(factor, warm_up_s):
    """8 s at one rate, the rest at four times it, or a quarter; the warm-up is before 0 s."""
    changed = replace(LINE, changes=(RateChange(8.0, 0, factor * RATE),))
    run = straight(changed, {"S": 5 * MB}, warm_up_s=warm_up_s)
    expected_s = 8 + (5 * MB - 8 * PAYLOAD) / (factor * PAYLOAD)
    assert run.makespan_s == pytest.approx(expected_s + 0.03, rel=0.01)
    assert run.complete


PROBLEM = """
destination = "D"
start = 2026-11-27T19:59:40
timezone = "Europe/Zurich"
[hosts.S]
backlog_bytes = 24_000_000
uplink_bytes_per_s = "Mo-Fr 08:00 200 kB/s, Mo-Fr 20:00 1.2 MB/s, Sa Su 2 MB/s"
[hosts.R]
backlog_bytes = 10_000_000
[hosts.D]
downlink_bytes_per_s = 1.55e6
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 3e6
[[links]]
from = "S"
to = "R"
bandwidth_bytes_per_s = 1e5
[[links]]
from = "R"
to = "D"
bandwidth_bytes_per_s = 3e5
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["coordinated", "direct"])
def test_a_plan_over_the_night_of_a_host_s_uplink_takes_what_it_predicts(tmp_path, method):
    """20 s of day at 0.2 MB/s are 4 MB; 20 MB at 1.2 MB/s by night take 16.7 s."""
    (tmp_path / "p.toml").write_text(PROBLEM)
    scenario = dc.Scenario.from_dict({"problem": "p.toml"}, tmp_path)
    fluid, packets = (
        dc.simulate(scenario, engine=engine, method=method) for engine in ("fluid", "ns3")
    )
    seconds = 20 + 20 / 1.2
    assert fluid.settings["predicted_makespan_s"] == pytest.approx(seconds, rel=1e-3)
    assert fluid.makespan_s == pytest.approx(seconds, rel=0.01)
    assert packets.makespan_s == pytest.approx(fluid.makespan_s, rel=0.02)
    assert packets.complete


def test_a_shared_bottleneck_binds_once_the_downlink_is_wide(tmp_path):
    """4 MB until 5 s, as the downlink allows; the other 8 MB at the fibre's 1 MB/s: 13 s."""
    (tmp_path / "p.toml").write_text(
        'destination = "D"\nperiods_s = [0, 5]\n'
        '[hosts.A]\nbacklog_bytes = "6 MB"\n[hosts.B]\nbacklog_bytes = "6 MB"\n'
        "[hosts.D]\ndownlink_bytes_per_s = [8e5, 2e6]\n"
        '[[links]]\nfrom = "A"\nto = "D"\nbandwidth_bytes_per_s = 2e6\n'
        '[[links]]\nfrom = "B"\nto = "D"\nbandwidth_bytes_per_s = 2e6\n'
        '[[shared]]\nname = "fibre"\nbandwidth_bytes_per_s = 1e6\n'
        'links = [["A", "D"], ["B", "D"]]\n'
    )
    scenario = dc.Scenario.from_dict({"problem": "p.toml"}, tmp_path)
    run = dc.simulate(scenario, engine="ns3", method="direct")
    assert run.makespan_s == pytest.approx(13.0, rel=0.02)
    used = run.wires.set_index("from")["utilisation"]
    assert used["shared bottleneck 'fibre'"] == pytest.approx(12 / 13, rel=0.03)
