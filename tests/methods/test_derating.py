"""Plans on a part of all bandwidths: valid for all of them, and as much later."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from instances.hand_made import links
from instances.small_problems import MB, figure_1, relay
from instances.strategies import problems

import datacollect as dc
from datacollect.commands.main import run
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem

METHODS = {"direct": dc.direct, "best-path": dc.best_path, "coordinated": dc.coordinated}


@pytest.mark.parametrize("name", METHODS)
def test_links_alone_take_as_much_longer(name):
    """0.8 of all bandwidths take 1.25 times as long."""
    plan, derated = METHODS[name](relay()), METHODS[name](relay(), derate=0.8)
    derated.check(relay())
    assert derated.makespan_s == pytest.approx(plan.makespan_s / 0.8)
    assert derated.lower_bound_s == plan.lower_bound_s == pytest.approx(2.0)
    assert derated.bottleneck == plan.bottleneck
    assert derated.problem_sha256 == relay().sha256
    assert (derated.status, derated.derate, plan.derate) == ("heuristic", 0.8, None)


def test_limits_that_are_known_are_not_derated():
    """Links of 5 MB/s; S sends at most 2 MB/s, and a wire takes 1 MB/s: neither waits for links."""
    problem = Problem.from_hosts(
        [Host("S", 4 * MB, uplink_bytes_per_s=2e6), Host("D")], links("S -> D 5e6"), "D"
    )
    assert dc.coordinated(problem, derate=0.5).makespan_s == pytest.approx(2.0)
    wire = dc.SharedBottleneck("wire", 1e6, [("S", "D")])
    assert dc.coordinated(problem.replace(shared=[wire]), derate=0.5).makespan_s == (
        pytest.approx(4.0)
    )


def test_a_deadline_that_all_bandwidths_meet_and_a_part_does_not():
    assert dc.coordinated(relay(), deadline_s=2.4).makespan_s <= 2.4
    with pytest.raises(dc.InfeasibleError, match=r"2.5 s.*planned on derate = 0.8 of all links'"):
        dc.coordinated(relay(), deadline_s=2.4, derate=0.8)


@pytest.mark.parametrize("value", [0.0, -0.5, 1.01, np.nan, np.inf])
@pytest.mark.parametrize("name", METHODS)
def test_parts_are_above_0_and_at_most_1(name, value):
    with pytest.raises(dc.ProblemError, match=r"derate must be > 0 and at most 1, got .*; 0\.8"):
        METHODS[name](relay(), derate=value)


@given(problem=problems(large=True), derate=st.floats(0.3, 1.0), slotted=st.booleans())
@settings(suppress_health_check=list(HealthCheck))
def test_plans_are_valid_for_the_problem_as_it_is(problem, derate, slotted):
    for name, method in METHODS.items():
        shape = {"slot_s": 0.5} if slotted and name != "direct" else {}
        try:
            plan = method(problem, derate=derate, **shape)
        except dc.InfeasibleError:
            assume(name != "coordinated")
            continue
        plan.check(problem)
        assert plan.lower_bound_s == dc.lower_bound(problem)[0]


@pytest.mark.parametrize("slot_s", [0.1, 0.25, 0.5, 1.0, 2.0])
def test_a_relay_whose_own_data_come_with_those_of_others_has_no_more_room(slot_s):
    """Another host holds both; the relay's room is for the others' alone."""
    n = 1_000_003
    hosts = [dc.Host("D"), dc.Host("R", n, storage_bytes=n), dc.Host("S", n), dc.Host("H", n)]
    links = [dc.Link("R", "D", n), dc.Link("H", "R", 2 * n)]
    held = [dc.Held("H", "R", 0, n), dc.Held("H", "S", 0, n)]
    problem = dc.Problem.from_hosts(hosts, links, "D", held=held)
    dc.best_path(problem, slot_s=slot_s).check(problem)


def test_files_the_command_line_and_comparisons_know_it(tmp_path, capsys):
    file, plan_file = str(tmp_path / "figure1.json"), str(tmp_path / "plan.json")
    Path(file).write_text(json.dumps(figure_1().to_dict()), encoding="utf-8")
    assert run(["plan", file, "--derate", "0.5", "-o", plan_file]) == 0
    plan = dc.Schedule.from_file(plan_file)
    assert plan.derate == 0.5
    assert run(["check", file, plan_file]) == 0
    capsys.readouterr()
    assert run(["compare", file, "--derate", "0.5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["methods"]["coordinated"]["makespan_s"] == pytest.approx(plan.makespan_s)
    assert dc.compare(figure_1(), derate=0.5).schedules["direct"].derate == 0.5
    assert run(["plan", file, "--derate", "1.5"]) == 2


def test_explanations_say_what_it_costs():
    """2 s become 2.5 and chunks 2.5 ms; without a relay they become 6."""
    plan = dc.coordinated(relay(), derate=0.8)
    parts = {part.cause: part.seconds for part in dc.explain(relay(), plan).plan.parts}
    assert parts == pytest.approx({"chunks": 0.0025, "derate": 0.5}, rel=1e-3)
    turns = dc.coordinated(relay(), most_transfers=1)
    parts = {part.cause: part.seconds for part in dc.explain(relay(), turns).plan.parts}
    assert parts == pytest.approx({"chunks": 0.002, "transfers": 3.998}, rel=1e-3)


@pytest.mark.parametrize(
    ("value", "said"),
    [(True, "derate must be a number, got True"), ("0.8", "got '0.8'; leave out the quotes")],
)
@pytest.mark.parametrize("name", METHODS)
def test_what_is_no_number_is_no_part(name, value, said):
    with pytest.raises(dc.ProblemError, match=said):
        METHODS[name](relay(), derate=value)


def test_scenarios_plan_on_a_part():
    from datacollect.scenario.options import execution_options
    from datacollect.scenario.scenario import Scenario

    tree = {"problem": "upload.toml", "method": {"derate": 0.8}}
    assert execution_options(Scenario.from_dict(tree)).planning().derate == 0.8
    with pytest.raises(dc.ProblemError, match="derate must be > 0 and <= 1"):
        Scenario.from_dict({"problem": "upload.toml", "method": {"derate": 0}})


def test_the_rest_is_planned_on_the_same_part():
    """After 1.25 of 2.5 s half of the data are there, at 0.8 of all rates: 1.25 s more."""
    problem = relay()
    plan = dc.coordinated(problem, derate=0.8, chunk_s=0.0)
    progress = dc.Progress.from_schedule(problem, plan, 1.25)
    rest = dc.replan(problem, plan, progress)
    remaining = dc.remaining_problem(problem, progress)
    rest.check(remaining)
    assert rest.makespan_s == pytest.approx(1.25, rel=1e-6)
    assert rest.lower_bound_s == pytest.approx(1.0, rel=1e-6)
    assert (rest.derate, rest.problem_sha256) == (0.8, remaining.sha256)
