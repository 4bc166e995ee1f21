"""Shared wires that the planner gets to know, and what plans make of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from instances.small_scenarios import line_of

import datacollect as dc
from datacollect.scenario.carry_out import carry_out
from datacollect.scenario.knowledge import planning_problem
from datacollect.scenario.probes import measure
from datacollect.scenario.setting import build

WIRE = "N0-N1"


def two_sources(shared, *, pairs=(), **estimates):
    """A and B of 5 and 2 MB at one end of a wire of 1 MB/s, D at the other."""
    hosts = {
        "access": {"rate_bytes_per_s": 1e8, "delay_s": 0.0},
        "destination": {"at": "N1"},
        "sources": [
            {"name": "A", "at": "N0", "backlog_bytes": 5_000_000},
            {"name": "B", "at": "N0", "backlog_bytes": 2_000_000},
        ],
    }
    estimates = {"shared": shared} | estimates
    return line_of(hosts=hosts, background={"pairs": list(pairs)}, estimates=estimates)


def shared_of(scenario, engine="fluid"):
    problem, _ = planning_problem(build(scenario), engine)
    return {s.name: (s.bandwidth_bytes_per_s, set(s.links)) for s in problem.shared}


TO_D, FROM_D = {("A", "D"), ("B", "D")}, {("D", "A"), ("D", "B")}


@pytest.mark.parametrize("kind", ["measured", "exact"])
def test_all_links_over_a_wire_share_its_rate_each_way_by_itself(kind):
    """A and B are at one node: what they exchange does not cross the wire."""
    scenario = two_sources([{"wire": WIRE}], kind=kind)
    assert shared_of(scenario) == {"N0 -> N1": (1e6, TO_D), "N1 -> N0": (1e6, FROM_D)}


def test_headers_take_their_part_of_a_wire():
    scenario = two_sources([{"wire": WIRE}]).with_values(
        {"transport.header_bytes": 52, "transport.segment_bytes": 948}
    )
    assert shared_of(scenario)["N0 -> N1"][0] == pytest.approx(948_000)


def test_a_number_given_holds_both_ways():
    scenario = two_sources([{"wire": WIRE, "bandwidth_bytes_per_s": 4e5}])
    assert {rate for rate, _ in shared_of(scenario).values()} == {4e5}


@pytest.mark.parametrize(("connections", "share"), [(1, 1 / 4), (3, 3 / 6), (97, 97 / 100)])
def test_connections_get_fair_shares_beside_the_background(connections, share):
    """Beside three endless TCP flows, of what UDP leaves at its mean: on for 1 of 4 s at 0.4 MB/s,
    that is 0.9 MB/s. The other way nobody sends."""
    udp = {"from": "N0", "to": "N1", "kind": "udp", "rate_bytes_per_s": 4e5, "mean_off_s": 3.0}
    pairs = [*[{"from": "N0", "to": "N1"}] * 3, udp]
    found = shared_of(two_sources([{"wire": WIRE, "connections": connections}], pairs=pairs))
    assert found["N0 -> N1"][0] == pytest.approx(share * 9e5)
    assert found["N1 -> N0"][0] == pytest.approx(1e6)


def test_background_flows_that_a_narrower_wire_holds_back_leave_the_rest():
    """One flow comes over a wire of 0.1 MB/s: two connections of ours get 0.9 MB/s together, not
    two thirds."""
    wires = [
        {"a": "X", "b": "N0", "rate_bytes_per_s": 1e5},
        {"a": "N0", "b": "N1", "rate_bytes_per_s": 1e6},
    ]
    scenario = two_sources(
        [{"wire": WIRE, "connections": 2}], pairs=[{"from": "X", "to": "N1"}]
    ).with_values({"topology": {"kind": "explicit", "wires": wires}})
    assert shared_of(scenario)["N0 -> N1"][0] == pytest.approx(9e5)


def test_it_works_with_estimates_that_are_given(tmp_path):
    (tmp_path / "grid.csv").write_text("from,to,bandwidth_bytes_per_s\nA,D,700\nB,D,500\n")
    tree = two_sources([{"wire": WIRE}], kind="given", file="grid.csv").to_dict()
    assert shared_of(dc.Scenario.from_dict(tree, tmp_path)) == {"N0 -> N1": (1e6, TO_D)}


def test_a_wire_that_no_link_crosses_is_left_out():
    behind = {"topology": {"kind": "line", "n_nodes": 3, "rate_bytes_per_s": 1e6}}
    assert shared_of(two_sources([{"wire": "N1-N2"}]).with_values(behind)) == {}


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        ([{"wire": WIRE}, {"wire": "N0-N9"}],
         r"estimates.shared\[1\].wire: there is no wire 'N0-N9' .*did you mean 'N0-N1'"),
        ([{"wire": WIRE}, {"wire": WIRE}], r"estimates.shared\[1\].wire: 'N0-N1' is listed twice"),
    ],
)  # fmt: skip
def test_wires_that_are_wrong_are_named_with_their_place(shared, message):
    with pytest.raises(dc.ProblemError, match=message):
        shared_of(two_sources(shared))


@pytest.mark.parametrize(
    ("method", "blind_s"), [("direct", 5.0), ("best-path", 5.0), ("coordinated", 3.5)]
)
def test_every_method_predicts_right_once_it_knows_the_wire(method, blind_s):
    """7 MB over 1 MB/s take 7 s. Blind, each source alone has 1 MB/s: direct needs 5 s for A, the
    coordinated plan sends half of all over either."""
    for shared, predicted_s in (([], blind_s), ([{"wire": WIRE}], 7.0)):
        scenario = two_sources(shared).with_values({"method.name": method})
        outcome = carry_out(scenario, engine="fluid")
        assert outcome.schedule.makespan_s == pytest.approx(predicted_s, rel=2e-3)
        assert outcome.run.makespan_s == pytest.approx(7.0, rel=0.01)


def test_wires_known_leave_measurements_and_their_cache_as_they_are(paper_setting):
    """What is known is not measured: the probes are the same, and shared."""
    known = paper_setting.scenario.with_values({"estimates.shared": [{"wire": "B0-A0"}]})
    assert (
        measure(replace(paper_setting, scenario=known), "fluid").sha256
        == measure(paper_setting, "fluid").sha256
    )


def test_perturbed_estimates_and_known_wires_go_together(paper):
    scenario = paper.with_values(
        {
            "estimates.perturbations": [{"wire": "B0-A0", "factor": 1.7}],
            "estimates.shared": [{"wire": "B0-A0"}],
        }
    )
    shares = shared_of(scenario)
    assert set(shares) == {"A0 -> B0", "B0 -> A0"}
    assert shares["B0 -> A0"][0] == pytest.approx(625_000 * 1448 / 1502)
