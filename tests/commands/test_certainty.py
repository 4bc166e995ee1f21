"""``plan``, ``compare`` and ``explain`` with ``--samples``, or scenarios from intervals."""

from __future__ import annotations

import json

import pytest
from instances.command_line import strict_json

import datacollect as dc

MB = 1_000_000

PROBLEM = {
    "destination": "D",
    "hosts": {"S": {"backlog_bytes": 12 * MB}, "K": {}, "D": {}},
    "links": [
        {"from": "S", "to": "D", "bandwidth_bytes_per_s": 1.0 * MB},
        {"from": "S", "to": "K", "bandwidth_bytes_per_s": 9.0 * MB},
        {"from": "K", "to": "D", "bandwidth_bytes_per_s": 1.0 * MB},
    ],
}


@pytest.fixture
def sampled(here):
    """S has 12 MB and two ways of 1 MB/s: 6 s. K's link to D carried 1, 0.5, 1, 0.5 MB/s.

    In the half of the cycles in which it carries 0.5, its 6 MB take 12 s, as direct does always.
    """
    (here / "p.json").write_text(json.dumps(PROBLEM))
    lines = ["from,to,time_s,bandwidth_bytes_per_s"]
    for cycle, rate in enumerate([1.0, 0.5, 1.0, 0.5]):
        at_s = 1_790_000_000 + 3600 * cycle
        lines += [f"S,D,{at_s},{MB}", f"S,K,{at_s + 1},{9 * MB}", f"K,D,{at_s + 2},{rate * MB}"]
    (here / "s.csv").write_text("\n".join(lines) + "\n")
    return here


def test_a_plan_says_between_which_times_it_ends(sampled, call):
    code, out, _ = call("plan", "p.json", "--chunk", "0", "--samples", "s.csv", "--json")
    found = strict_json(out)["certainty"]
    assert code == 0
    assert found["p10_s"] == pytest.approx(6.0, rel=1e-5)
    assert found["p50_s"] == pytest.approx(9.0, rel=1e-5)
    assert found["p90_s"] == pytest.approx(12.0, rel=1e-5)
    assert (found["n_cycles"], found["n_scenarios"], found["from"]) == (4, 200, "cycles")


def test_without_samples_a_plan_says_nothing_of_it(sampled, call):
    assert "certainty" not in strict_json(call("plan", "p.json", "--json")[1])


def test_people_read_it_in_a_sentence(sampled, call):
    _, out, _ = call("plan", "p.json", "--samples", "s.csv", "--scenarios", "40", "--seed", "3")
    words = " ".join(out.split())
    assert "Certainty: from 6" in words
    assert "(p90) in 8 of 10 scenarios" in words
    assert "40 drawn from 4 cycles" in words
    assert "of 4 cycles the next one lies outside all of them in 40%" in words


def test_compare_says_how_often_each_method_is_the_soonest(sampled, call):
    """In half of the scenarios coordinated takes 6 s, else all take 12 s."""
    _, out, _ = call("compare", "p.json", "--chunk", "0", "--samples", "s.csv", "--json")
    methods = strict_json(out)["methods"]
    assert methods["direct"]["certainty"]["wins"] == 0.5
    assert methods["coordinated"]["certainty"]["wins"] == 1.0
    assert methods["coordinated"]["certainty"]["p90_s"] == pytest.approx(12.0, rel=1e-5)
    _, out, _ = call("compare", "p.json", "--chunk", "0", "--samples", "s.csv")
    rows = [line.split() for line in out.splitlines()]
    assert ["direct", "12", "s", "12", "s", "12", "s", "50%"] in rows
    assert ["coordinated", "6", "s", "9", "s", "12", "s", "100%"] in rows


def test_explain_says_what_costs_most_and_what_a_test_is_worth(sampled, call):
    """K -> D costs 6 s. Who knows that it carries 0.5 sends 8 MB straight: 8 s instead of 12."""
    _, out, _ = call("explain", "p.json", "--samples", "s.csv", "--json")
    cost = next(one for one in strict_json(out)["certainty"]["costs"] if one["kind"] == "link")
    assert cost["hosts"] == ["K", "D"]
    assert cost["moves_p90_s"] == pytest.approx(6.0, rel=1e-2)
    assert cost["test_saves_s"] == pytest.approx(2.0, rel=2e-2)
    _, out, _ = call("explain", "p.json", "--samples", "s.csv")
    assert "If K → D were as planned, p90 would be 6 s less" in " ".join(out.split())


def test_explain_takes_a_schedule_as_well(sampled, call):
    assert call("plan", "p.json", "--method", "direct", "-o", "plan.json")[0] == 0
    _, out, _ = call("explain", "p.json", "plan.json", "--samples", "s.csv", "--json")
    found = strict_json(out)["certainty"]
    assert (found["method"], found["p90_s"]) == ("direct", 12.0)


def test_scenarios_are_drawn_from_the_problems_intervals(here, call):
    tree = json.loads(json.dumps(PROBLEM))
    tree["links"][2] |= {
        "bandwidth_low_bytes_per_s": 0.5 * MB,
        "bandwidth_high_bytes_per_s": 1.0 * MB,
    }
    (here / "p.json").write_text(json.dumps(tree))
    _, out, _ = call("plan", "p.json", "--scenarios", "500", "--json")
    found = strict_json(out)["certainty"]
    assert (found["from"], found["n_scenarios"]) == ("intervals", 500)
    assert found["p10_s"] == pytest.approx(6.0, rel=1e-2)
    assert 9.0 < found["p90_s"] < 11.5


@pytest.mark.parametrize("command", ["plan", "compare", "explain"])
def test_what_cannot_be_drawn_from_is_bad_input(sampled, call, command):
    code, _, err = call(command, "p.json", "--scenarios", "5")
    assert (code, "no link of the problem has an interval" in err) == (2, True)
    code, _, err = call(command, "p.json", "--samples", "nowhere")
    assert (code, "nowhere: no such file" in err) == (2, True)
    (sampled / "others.csv").write_text(
        "from,to,time_s,bandwidth_bytes_per_s\nX,Y,1790000000,5\nX,Y,1790003600,6\n"
    )
    code, _, err = call(command, "p.json", "--samples", "others.csv")
    assert (code, "the samples are of the hosts X, Y" in err) == (2, True)


@pytest.mark.parametrize("command", ["plan", "compare", "explain"])
def test_a_seed_of_nothing_is_bad_input(sampled, call, command):
    code, _, err = call(command, "p.json", "--seed", "0")
    assert (code, "--seed is for scenarios" in " ".join(err.split())) == (2, True)


def test_of_samples_without_times_it_is_said_what_scenarios_need(sampled, call):
    """`--no-times` is an option of `estimate`."""
    (sampled / "timeless.csv").write_text(f"from,to,bandwidth_bytes_per_s\nS,D,{MB}\n")
    code, _, err = call("plan", "p.json", "--samples", "timeless.csv")
    said = " ".join(err.split())
    assert code == 2
    assert "only `datacollect estimate` has these options, scenarios cannot use them" in said
    # As it says, in Python.
    samples = dc.read_samples("timeless.csv", times=False)
    problem = dc.Problem.from_file("p.json")
    assert dc.certainty(problem, dc.direct(problem), samples).n_cycles == 1


def test_one_cycle_gives_a_plan_without_an_interval(sampled, call):
    lines = (sampled / "s.csv").read_text().splitlines()[:4]
    (sampled / "one.csv").write_text("\n".join(lines) + "\n")
    code, out, _ = call("plan", "p.json", "--samples", "one.csv")
    assert code == 0
    assert "no interval: one cycle of tests" in " ".join(out.split())
    code, out, _ = call("compare", "p.json", "--samples", "one.csv", "--json")
    assert strict_json(out)["methods"]["direct"]["certainty"]["wins"] is None
