"""A method of another package with a controller of its own carries collections out everywhere.

The package is `tests/plugins`, its method ``in-turn``: one source sends after another, the smallest
first. Two sources hold 1 and 2 MB; each has a link of 1 MB/s to D: all is there after 3 s, where
`direct` takes 2.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from instances.agents import KEY, running, write_agent
from instances.installed_packages import (
    EXAMPLE,
    forget_packages,
    install_package,
    install_project,
)
from instances.ns3_networks import needs_ns3

import datacollect as dc
from datacollect.commands.main import run
from datacollect.control.planned.direct import DirectController
from datacollect.control.planned.scheduled import AsapController
from datacollect.methods.choice import METHODS, plan
from datacollect.methods.execution import ExecutionOptions, execution_of
from datacollect.net.keys import write_private_key

MB = 1_000_000
PROBLEM = dc.Problem.from_matrix(
    ["S1", "S2", "D"], [[0, 0, 1e6], [0, 0, 1e6], [0, 0, 0]], [2 * MB, MB, 0], "D"
)
SCENARIO = {
    "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6, "delay_s": 0.0},
    "hosts": {
        "access": {"rate_bytes_per_s": 1e8, "delay_s": 0.0},
        "destination": {"at": "N1"},
        "sources": [
            {"name": "S1", "at": "N0", "backlog_bytes": 2 * MB},
            {"name": "S2", "at": "N0", "backlog_bytes": MB},
        ],
    },
    "method": {"name": "in-turn"},
    "transport": {"header_bytes": 0},
    "run": {"warm_up_s": 0.0},
}
# Whatever is missing in a package: a controller, or a plan of its own.
INCOMPLETE = """
from dataclasses import dataclass
import datacollect as dc
from datacollect.methods.adaptive_spec import ADAPTIVE_CONTROLLER, AdaptiveOptions
from datacollect.methods.direct_spec import DirectOptions
from datacollect.methods.options.spec import MethodSpec

class Only(DirectOptions):
    method = "only-plans"

class Moving(AdaptiveOptions):
    method = "moving"

def named_wrongly(problem, **options):
    return dc.direct(problem)

ONLY_PLANS = MethodSpec("only-plans", Only, named_wrongly, controller=None)
MOVING = MethodSpec("moving", Moving, plans_as="coordinated", controller=ADAPTIVE_CONTROLLER)
"""


@pytest.fixture(autouse=True)
def packages(tmp_path, monkeypatch):
    """The example, and a package whose methods only plan, and only move; return their folder."""
    folder = install_project(EXAMPLE, tmp_path / "packages")
    points = {"only-plans": "incomplete:ONLY_PLANS", "moving": "incomplete:MOVING"}
    install_package(
        folder, "incomplete", {"datacollect.methods": points}, {"incomplete": INCOMPLETE}
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(tmp_path)
    forget_packages()
    yield folder
    forget_packages()
    sys.modules.pop("incomplete", None)


def how(name, **options):
    return ExecutionOptions(name, **options)


def test_the_method_says_which_controller_it_is_and_over_how_many_connections():
    """A plan as direct's gets direct's controller where its method asks for that."""
    found = execution_of(PROBLEM, how("in-turn", streams=3))
    assert (type(found.controller).__name__, found.connections) == ("InTurnController", 3)
    assert (found.schedule.method, found.predicted_s) == ("in-turn", 3.0)
    found = execution_of(PROBLEM, how("slowly", streams=3))
    assert (type(found.controller), found.connections) == (DirectController, 6)


def test_a_schedule_of_it_is_carried_out_as_its_own_by_another_method_too():
    schedule = plan(PROBLEM, METHODS.get("in-turn").asked({}))
    found = execution_of(PROBLEM, how("coordinated"), schedule=schedule)
    assert type(found.controller).__name__ == "InTurnController"
    found = execution_of(PROBLEM, how("in-turn"), schedule=dc.coordinated(PROBLEM))
    assert type(found.controller) is AsapController


def test_it_is_planned_compared_and_explained():
    assert dc.compare(PROBLEM).schedules["in-turn"].makespan_s == 3.0
    found = dc.explain(PROBLEM, plan(PROBLEM, METHODS.get("in-turn").asked({})))
    assert [part.cause for part in found.plan.parts] == ["method"]
    assert found.plan.coordinated_s == pytest.approx(2.0, rel=1e-2)


def turns_of(run):
    """Return the sources in the order of their connections, and when all had arrived."""
    return run.connections["from"].tolist(), pytest.approx(run.makespan_s, rel=0.1)


def test_the_fluid_engine_carries_it_out():
    for keys in ({}, {"relays": "chains"}):
        tree = SCENARIO | {"method": {"name": "in-turn", "streams": 1} | keys}
        run = dc.simulate(tree, engine="fluid")
        assert run.complete
        assert turns_of(run) == (["S2", "S1"], 3.0)
    run = dc.simulate(SCENARIO | {"method": {"name": "in-turn", "streams": 2}}, engine="fluid")
    assert turns_of(run)[0] == ["S2", "S2", "S1", "S1"]


@pytest.mark.slow  # starts ns-3 for itself alone; `test_the_fluid_engine_carries_it_out` does not
@needs_ns3
def test_ns3_carries_it_out(packages):
    """Its worker is a process of its own, which imports the controller from the same places."""
    code = (
        "import json, sys, datacollect as dc\n"
        "run = dc.simulate(json.loads(sys.argv[1]), engine='ns3')\n"
        "print(json.dumps([run.complete, run.connections['from'].tolist()]))\n"
    )
    places = os.pathsep.join([str(packages), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(SCENARIO)],
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, ["S2", "S1"]]


def test_a_sweep_carries_it_out(tmp_path):
    values = ["direct", "in-turn", "adaptive", "moving"]
    experiment = dc.Experiment.from_dict(
        {
            "name": "turns",
            "engine": "fluid",
            "seeds": {"batch": 1, "least": 1, "most": 1},
            "axes": [{"name": "method", "key": "method.name", "paired": True, "values": values}],
        },
        scenario={key: value for key, value in SCENARIO.items() if key != "method"},
    )
    table = dc.sweep(experiment, tmp_path / "sweep", workers=0).set_index("method")
    assert table["complete"].all()
    assert table["connections"][["direct", "in-turn"]].tolist() == [2, 1]
    # The same controller; what is measured against the fastest flow, as its connections move.
    for column in ("connections", "makespan_s", "reference_s"):
        assert table[column]["moving"] == table[column]["adaptive"]
    assert table["reference_s"][["direct", "in-turn"]].isna().all()


@pytest.mark.parametrize("knows_links", [True, False])
def test_a_pull_carries_it_out(tmp_path, knows_links):
    write_private_key(tmp_path / "collector.key", KEY)
    for name, n_bytes in (("S1", 200_000), ("S2", 100_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(os.urandom(n_bytes))
    seen = []
    with (
        running(write_agent(tmp_path, "S1", serve="S1")) as one,
        running(write_agent(tmp_path, "S2", serve="S2")) as two,
    ):
        collection = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(tmp_path / "collector.key"),
            "agents": {
                each.name: {"url": each.agent.url, "fingerprint": each.agent.fingerprint}
                for each in (one, two)
            },
            "limits": {"piece_bytes": 65536},
        }
        if knows_links:
            collection["links"] = [
                {"from": name, "to": "D", "bandwidth_bytes_per_s": 1e6} for name in ("S1", "S2")
            ]
        found = dc.pull(collection, tmp_path / "into", "in-turn", log=seen.append)
    assert (found.complete, found.method, found.n_bytes) == (True, "in-turn", 300_000)
    opened = [record["hosts"][0] for record in seen if record["what"] == "session opened"]
    assert opened == ["S2", "S1"]
    for name in ("S1", "S2"):
        came = (tmp_path / "into" / name / "file").read_bytes()
        assert came == (tmp_path / name / "file").read_bytes()


def test_a_method_without_a_controller_plans_and_says_what_it_lacks(tmp_path, capsys):
    """Its plan has its name, whatever its function calls it."""
    assert plan(PROBLEM, METHODS.get("only-plans").asked({})).method == "only-plans"
    lacks = "method 'only-plans' only plans: it has no controller, which would carry its plans out"
    for call in (
        lambda: execution_of(PROBLEM, how("only-plans")),
        lambda: dc.Scenario.from_dict(SCENARIO | {"method": {"name": "only-plans"}}),
        lambda: dc.simulate(SCENARIO, engine="fluid", method="only-plans"),
        lambda: dc.pull({}, tmp_path / "into", "only-plans"),
    ):
        with pytest.raises(dc.ProblemError, match=lacks):
            call()
    (tmp_path / "scenario.json").write_text(json.dumps(SCENARIO))
    called = ["simulate", "scenario.json", "--engine", "fluid", "--method", "only-plans"]
    assert run(called) == 2
    assert lacks in " ".join(capsys.readouterr().err.split())


def test_a_method_without_a_plan_is_carried_out_and_says_so_where_a_plan_is_asked_for(
    tmp_path, capsys
):
    found = execution_of(PROBLEM, how("moving", connections=2))
    assert (found.schedule.method, found.connections) == ("moving", 2)
    explained = dc.explain(PROBLEM, found.schedule).plan
    assert explained.advice.why_not == (
        "moving follows no plan: the schedule says what another method would do"
    )
    assert dc.simulate(SCENARIO, engine="fluid", method="moving").complete
    (tmp_path / "problem.json").write_text(json.dumps(PROBLEM.to_dict()))
    assert run(["plan", "problem.json", "--method", "moving"]) == 2
    assert "method 'moving' follows no plan" in " ".join(capsys.readouterr().err.split())
