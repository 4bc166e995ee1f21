"""Methods that other packages bring: whatever knows methods knows them, too."""

from __future__ import annotations

import importlib.metadata
import json

import pytest
from instances.installed_packages import EXAMPLE, forget_packages, install_project
from instances.small_problems import figure_1
from instances.three_hosts import small

import datacollect as dc
from datacollect.commands.main import run
from datacollect.methods.choice import METHODS, options_like, plan
from datacollect.methods.places import require_fit
from datacollect.methods.planning_options import PlanningOptions
from datacollect.transfer.pull.planning import planned


@pytest.fixture(autouse=True)
def brought(tmp_path, monkeypatch):
    """A package that brings the method `slowly`."""
    monkeypatch.syspath_prepend(install_project(EXAMPLE, tmp_path / "packages"))
    monkeypatch.chdir(tmp_path)
    forget_packages()
    yield
    forget_packages()


@pytest.fixture
def problem_file(tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps(small().to_dict()), encoding="utf-8")
    return str(path)


def makespan_s(capsys, *arguments):
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["makespan_s"]


def test_plan_takes_its_name_and_its_options(problem_file, capsys):
    direct_s = dc.direct(small()).makespan_s
    asked = ("plan", problem_file, "--method", "slowly")
    assert makespan_s(capsys, *asked) == pytest.approx(direct_s)
    assert makespan_s(capsys, *asked, "--times", "2") == pytest.approx(2 * direct_s, rel=1e-6)


def test_options_of_others_are_refused_beside_it(problem_file, capsys):
    assert run(["plan", problem_file, "--method", "slowly", "--finish", "early"]) == 2
    assert "--finish is for --method coordinated, got --method slowly" in capsys.readouterr().err
    assert run(["plan", problem_file, "--method", "direct", "--times", "2"]) == 2
    assert "No such option: --times" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "pull", "simulate"])
def test_help_lists_it(command, capsys):
    assert run([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "|slowly>" in text
    assert ("--times X" in text) == (command == "plan")


def test_it_is_compared_with_the_others():
    own = ["direct", "best-path", "coordinated"]
    assert list(dc.compare(small()).schedules) == [*own, "in-turn", "slowly"]


def test_a_schedule_of_it_is_known_and_explained():
    problem = figure_1()
    schedule = plan(problem, METHODS.get("slowly").asked({}))
    assert options_like(schedule).method == "slowly"
    found = dc.explain(problem, schedule).plan
    assert [each.cause for each in found.parts] == ["method"]


def test_scenarios_carry_it_out_with_its_options(problem_file):
    tree = {"problem": problem_file, "method": {"name": "slowly", "times": 2}}
    scenario = dc.Scenario.from_dict(tree)
    assert dc.Scenario.from_dict(scenario.to_dict()).sha256 == scenario.sha256
    run = dc.simulate(scenario, engine="fluid")
    assert run.complete
    assert run.settings["predicted_makespan_s"] == pytest.approx(
        2 * dc.direct(small()).makespan_s, rel=1e-6
    )
    with pytest.raises(dc.ProblemError, match=r"method.time: unknown key; did you mean 'times'"):
        dc.Scenario.from_dict({"problem": problem_file, "method": {"name": "slowly", "time": 2}})


def test_pulls_plan_by_it():
    how = PlanningOptions("slowly", {"solver": "auto"})
    assert require_fit(METHODS.get("slowly"), how.options, "pull", str) == []
    found = planned(small(), how, connections=4, piece_bytes=1000, is_known=True)
    assert found.schedule.method == "slowly"


def test_the_schema_of_scenarios_knows_its_name(capsys):
    assert run(["schema", "scenario"]) == 0
    names = json.loads(capsys.readouterr().out)["$defs"]["method"]["properties"]["name"]["enum"]
    assert names == [*METHODS.own, "in-turn", "slowly"]


def test_an_unknown_name_is_refused_with_the_nearest(capsys):
    assert run(["plan", "p.toml", "--method", "slow"]) == 2
    assert "'coordinated', 'in-turn', 'slowly'; did you mean 'slowly'?" in capsys.readouterr().err


def test_our_own_names_look_for_no_packages(problem_file, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", None)
    assert run(["plan", problem_file, "--method", "direct"]) == 0
    assert dc.direct(small()).method == "direct"
