"""Settings that several tests look at."""

from __future__ import annotations

import pandas as pd
import pytest
from instances.small_scenarios import PAPER

import datacollect as dc
from datacollect.scenario import probe_cache
from datacollect.scenario.setting import build
from datacollect.simulation.ns3 import probe as ns3_probe


@pytest.fixture(scope="session")
def paper():
    return dc.Scenario.from_dict(PAPER)


@pytest.fixture(scope="session")
def paper_setting(paper):
    return build(paper)


@pytest.fixture
def fake_ns3(monkeypatch):
    """Stand in for ns-3's probes: count them, and answer 1000 bytes per second."""
    calls = []

    def probe_ns3(network, pairs, n_bytes, repeats, *, seed, **_):
        calls.append(seed)
        rows = [
            (a, b, t, 1000.0, n_bytes, n_bytes / 1000) for a, b in pairs for t in range(repeats)
        ]
        columns = ["from", "to", "time_s", "bandwidth_bytes_per_s", "bytes", "duration_s"]
        return ns3_probe.Probes(pd.DataFrame(rows, columns=columns), 0, 1.0, 1, 0.1)

    monkeypatch.setattr(probe_cache, "_KNOWN", {})
    monkeypatch.setattr(ns3_probe, "probe_ns3", probe_ns3)
    return calls
