"""Probes in the packet engine against arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from instances.ns3_networks import LINE, MB, ON_THE_WIRE, RATE, needs_ns3, tree

from datacollect.simulation.ns3.probe import probe_ns3

pytestmark = needs_ns3


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_probe_that_takes_too_long_tells_what_had_arrived():
    probes = probe_ns3(LINE, [("S", "D")], 5 * MB, give_up_s=8.0)
    assert probes.samples["bytes"].item() == pytest.approx(8 * RATE / ON_THE_WIRE, rel=0.12)
    assert probes.samples["duration_s"].item() == 8.0
