"""Known hooks: a report names the paper's where the settings are the paper's, and only there."""

from __future__ import annotations

import json

import pytest
from instances.made_sweeps import write_sweep
from instances.small_experiments import experiment_of

import datacollect as dc
from datacollect.commands.main import run
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.known_hooks import hook_for

pytestmark = pytest.mark.usefixtures("empty_pictures")

# One setting of the paper's Figure 3.
ONE = {"flows": ["60"], "ratio": ["1:1"], "udp": ["5 %"]}


def test_the_command_that_gives_verdicts_is_named_in_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    sweep_folder = tmp_path / "figure3"
    write_sweep(sweep_folder, "figure3", only=ONE)
    assert run(["report", str(sweep_folder)]) == 0
    told = capsys.readouterr().out
    command = f"datacollect report {sweep_folder} --verdicts experiments/paper"
    (line,) = (line for line in told.splitlines() if line.startswith("verdicts "))
    assert " ".join(line.split()) == f"verdicts in a clone of datacollect: {command}"
    # Its own tables are there.
    assert "over direct" in told
    assert run(["report", str(sweep_folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["claims"], found["known_hook"]) == ([], "experiments/paper")
    assert "claims.csv" not in found["files"]


def test_other_sweeps_name_none(tmp_path, capsys):
    dc.sweep(experiment_of(), tmp_path, workers=0)
    assert run(["report", str(tmp_path)]) == 0
    assert "verdicts" not in capsys.readouterr().out


def test_among_several_sweeps_one_of_the_paper_s_is_enough(tmp_path):
    dc.sweep(experiment_of(), tmp_path / "own", workers=0)
    write_sweep(tmp_path / "figure3", "figure3", only=ONE)
    assert hook_for(read_sweeps(tmp_path)) == "experiments/paper"
    assert hook_for(read_sweeps(tmp_path / "own")) == ""
