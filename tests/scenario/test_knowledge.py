"""What the planner gets to know of a network."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest
from small_scenarios import line_of

import datacollect as dc
from datacollect import probing
from datacollect.probing import measure, planning_problem
from datacollect.setting import build
from datacollect.simulation import ns3_probe


def bandwidths(problem):
    names = problem.names
    ends = zip(problem.link_from, problem.link_to, strict=True)
    rates = problem.bandwidth_bytes_per_s[0].tolist()
    return {(names[a], names[b]): rate for (a, b), rate in zip(ends, rates, strict=True)}


def estimates_of(scenario):
    return bandwidths(planning_problem(build(scenario), "fluid")[0])


def test_an_idle_wire_is_estimated_at_its_rate():
    assert estimates_of(line_of()) == {("S", "D"): 1e6, ("D", "S"): 1e6}


def test_headers_shrink_what_is_estimated():
    scenario = line_of(transport={"header_bytes": 52, "segment_bytes": 948})
    assert estimates_of(scenario)["S", "D"] == pytest.approx(948_000)


def test_background_is_shared_with_by_tcp_and_yielded_to_by_udp():
    """Three endless transfers beside the probe: a quarter. UDP on for 1 of 4 s at 0.4 MB/s takes
    0.1 MB/s: a quarter of 0.9 MB/s. Nobody sends the other way.
    """
    tcp = [{"from": "N0", "to": "N1"}] * 3
    assert estimates_of(line_of(background={"pairs": tcp})) == {
        ("S", "D"): pytest.approx(250_000),
        ("D", "S"): 1e6,
    }
    udp = {"from": "N0", "to": "N1", "kind": "udp", "rate_bytes_per_s": 4e5, "mean_off_s": 3.0}
    both = line_of(background={"pairs": [*tcp, udp]})
    assert estimates_of(both)["S", "D"] == pytest.approx(225_000)


def test_a_measurement_says_what_it_cost():
    """Two probes of 0.1 × 5 MB at 1 MB/s, one after the other."""
    setting = build(line_of(scale=0.1))
    cost = measure(setting, "fluid").cost
    assert cost["probes"] == 2
    assert cost["bytes"] == 1_000_000
    assert cost["simulated_s"] == pytest.approx(1.0)


def test_only_pairs_that_cross_the_wire_are_misestimated(paper):
    right = estimates_of(paper)
    wrong = estimates_of(
        paper.with_values(
            {
                "estimates.perturbations": [
                    {"wire": "B1-A1", "factor": 1.7},
                    {"wire": "B0-A0", "factor": 0.3},
                ]
            }
        )
    )
    setting = build(paper)
    network, topology = setting.network, setting.topology
    factors = Counter()
    for a, b in right:
        wires = {w // 2 for w in network.path(network.host_node[a], network.host_node[b])}
        expected = 1.0
        expected *= 1.7 if topology.wire_index("B1-A1") in wires else 1
        expected *= 0.3 if topology.wire_index("B0-A0") in wires else 1
        assert wrong[a, b] == pytest.approx(expected * right[a, b])
        factors[expected] += 1
    assert set(factors) == {1.0, 1.7, 0.3}
    with pytest.raises(dc.ProblemError, match=r"estimates.perturbations\[0\].wire: there is no"):
        estimates_of(
            paper.with_values({"estimates.perturbations": [{"wire": "B1-A0", "factor": 2}]})
        )


def test_access_rates_can_be_known():
    scenario = line_of(estimates={"know_access": True})
    problem, _ = planning_problem(build(scenario), "fluid")
    assert problem.uplink_bytes_per_s.tolist() == [1e8, 1e8]


def test_estimates_can_be_given(tmp_path):
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_bytes_per_s\nS,D,700\n")
    tree = line_of(estimates={"kind": "given", "file": "grid.csv"}).to_dict()
    scenario = dc.Scenario.from_dict(tree, tmp_path)
    assert estimates_of(scenario) == {("S", "D"): 700.0}
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_bytes_per_s\nS,E,700\n")
    with pytest.raises(dc.ProblemError, match=r"estimates.file .*grid.csv"):
        estimates_of(scenario)


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

    monkeypatch.setattr(probing, "_KNOWN", {})
    monkeypatch.setattr(ns3_probe, "probe_ns3", probe_ns3)
    return calls


def test_one_measurement_serves_all_methods_and_lies_in_the_cache(fake_ns3, tmp_path, monkeypatch):
    scenario = line_of()
    for method in ("direct", "best-path", "coordinated"):
        setting = build(scenario.with_values({"method.name": method}))
        found = measure(setting, "ns3", tmp_path)
    assert len(fake_ns3) == 1
    assert len(found.samples) == 2 * 3
    assert not found.cost["from_cache"]
    monkeypatch.setattr(probing, "_KNOWN", {})  # another process
    again = measure(build(scenario), "ns3", tmp_path)
    assert again.cost["from_cache"]
    pd.testing.assert_frame_equal(again.samples, found.samples)
    assert len(fake_ns3) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"run.seed": 2},
        {"estimates.repeats": 4},
        {"transport.variant": "Cubic"},
        {"background.pairs": [{"from": "N0", "to": "N1"}]},
        {"run.warm_up_s": 1.0},
    ],
)
def test_whatever_shapes_the_samples_is_measured_anew(values, fake_ns3):
    measure(build(line_of()), "ns3")
    measure(build(line_of().with_values(values)), "ns3")
    assert len(fake_ns3) == 2


def test_a_damaged_cache_is_measured_anew(fake_ns3, tmp_path, monkeypatch):
    measure(build(line_of()), "ns3", tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text()[:-20])
    monkeypatch.setattr(probing, "_KNOWN", {})
    assert not measure(build(line_of()), "ns3", tmp_path).cost["from_cache"]
    assert len(fake_ns3) == 2


def test_a_thousand_hosts_are_refused_where_each_pair_would_be_measured():
    tree = line_of().to_dict()
    tree["hosts"]["relays"] = [{"count": 1000, "at": "N0"}]
    setting = build(dc.Scenario.from_dict(tree))
    with pytest.raises(dc.ProblemError, match=r"1002 hosts need 1003002 pairs .* give estimates"):
        measure(setting, "fluid")
