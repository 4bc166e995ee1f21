"""Knowledge of a network that the planner gets."""

from __future__ import annotations

from collections import Counter

import pytest
from instances.small_scenarios import line_of

import datacollect as dc
from datacollect.scenario.knowledge import planning_problem
from datacollect.scenario.setting import build


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
    assert problem.uplink_bytes_per_s.tolist() == [[1e8, 1e8]]


def test_estimates_can_be_given(tmp_path):
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_bytes_per_s\nS,D,700\n")
    tree = line_of(estimates={"kind": "given", "file": "grid.csv"}).to_dict()
    scenario = dc.Scenario.from_dict(tree, tmp_path)
    assert estimates_of(scenario) == {("S", "D"): 700.0}
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_bytes_per_s\nS,E,700\n")
    with pytest.raises(dc.ProblemError, match=r"estimates.file .*grid.csv"):
        estimates_of(scenario)
