"""Outcome of a scenario: the run, and what is told of how it came to it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from instances.small_scenarios import line_of, shipped

from datacollect.scenario.carry_out import carry_out
from datacollect.scenario.outcome import most_open_at_once, versions


@pytest.fixture(scope="module")
def outcome():
    return carry_out(line_of(), engine="fluid", method="direct")


def test_a_run_s_settings_say_all_that_led_to_it(outcome):
    settings = outcome.run.settings
    assert list(settings) == [
        "scenario",
        "scenario_sha256",
        "engine",
        "drawn",
        "warnings",
        "predicted_makespan_s",
        "plan",
        "prediction",
        "connections",
        "replanning",
        "problem_sha256",
        "measurement",
        "fluid_settings",
        "versions",
    ]
    assert settings["scenario"]["method"]["name"] == "direct"
    assert settings["predicted_makespan_s"] == outcome.schedule.makespan_s
    assert settings["connections"] == outcome.connections == 1
    assert settings["replanning"] is outcome.replanning is None
    assert settings["problem_sha256"] == outcome.problem.sha256
    assert settings["measurement"] == outcome.measurement.cost
    assert settings["fluid_settings"] == outcome.simulated.settings
    assert settings["versions"] == versions()


def test_the_run_is_the_engine_s_but_for_its_settings(outcome):
    run, simulated = outcome.run, outcome.simulated
    assert all(
        getattr(run, name) is getattr(simulated, name) for name in vars(run) if name != "settings"
    )
    assert "scenario" not in simulated.settings
    assert outcome.run is run


def test_connections_of_a_run_that_is_planned_anew_are_the_most_at_a_time():
    free = {"method.replan_s": 1.0, "run.control": "free"}
    outcome = carry_out(shipped(**free), engine="fluid")
    log, made = outcome.run.connections, outcome.replanning
    assert made.replans == len(made.at_s) == len(made.predicted_end_s) >= 1
    assert made.connections_opened == len(log)
    closed_s = log["closed_s"].fillna(np.inf)
    open_at = [((log["asked_s"] <= t) & (closed_s > t)).sum() for t in log["asked_s"]]
    assert outcome.connections == max(open_at) < len(log)
    assert most_open_at_once(log.iloc[:0]) == 0
    # Who is told late counts a connection longer than it is there.
    told_late = carry_out(shipped(**{"method.replan_s": 1.0}), engine="fluid")
    assert told_late.connections >= most_open_at_once(told_late.run.connections)
    # In the settings as JSON has it.
    told = outcome.run.settings["replanning"]
    assert json.loads(json.dumps(told)) == told == vars(made)
