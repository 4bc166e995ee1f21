"""Inputs of commands are never overwritten, --force or not: nor what a file names in turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import datacollect as dc

# Names that each command would take for its output: what is in a file is not what it is called.
PROBLEM = """
destination = "D"
manifest = "files.json"
bandwidth_csv = "grid.png"
file_tolerance = 0.25
[hosts]
S = {}
K = {}
D = {}
"""
FILES = "host,path,bytes\nS,a,3000000\nS,b,1000000\n"
GRID = "from,to,bandwidth_bytes_per_s,price_per_gb\nS,D,1e6,2\nS,K,1e6,0.1\nK,D,1e6,0.1\n"
SCENARIO = 'problem = "problem.json"\ntruth_csv = "run.json"\n'
BOTH = ("problem.toml", "plan.json")
REST = ("replan", *BOTH, "progress.json")
URLS = ("--url", "http://{host}/{source}/{path}")


@pytest.fixture
def folder(tmp_path, monkeypatch, call):
    """A problem that names its files and links, all under misleading names, and its plan."""
    monkeypatch.chdir(tmp_path)
    Path("problem.toml").write_text(PROBLEM)
    Path("files.json").write_text(FILES)
    Path("grid.png").write_text(GRID)
    Path("samples.csv").write_text("time,from,to,bandwidth_bytes_per_s\n")
    Path("scenario.toml").write_text(SCENARIO)
    Path("run.json").write_text(GRID)
    Path("collect.txt").write_text(PROBLEM)
    Path("probes").mkdir()
    Path("probes", "1.txt").write_text("time,from,to,bandwidth_bytes_per_s\n")
    Path("into").mkdir()
    assert call("plan", "problem.toml", "-o", "plan.json")[0] == 0
    problem = dc.Problem.from_file("problem.toml")
    Path("problem.json").write_text(json.dumps(problem.to_dict()))
    progress = dc.Progress.from_schedule(problem, dc.Schedule.from_file("plan.json"), 1.0)
    Path("progress.json").write_text(json.dumps(progress.to_dict(problem)))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "option", "output", "why"),
    [
        (("plan", "problem.toml"), "-o", "files.json", "which is manifest in problem.toml"),
        (("plan", "problem.json"), "-o", "problem.json", ""),
        (("plan", "collect.txt"), "-o", "files.json", "which is manifest in collect.txt"),
        (("estimate", "probes"), "-o", "probes/1.txt", "which is in probes"),
        ((*REST,), "-o", "files.json", "which is manifest in problem.toml"),
        ((*REST,), "-o", "progress.json", ""),
        ((*REST,), "--problem-output", "files.json", "which is manifest"),
        (("plot", *BOTH), "-o", "grid.png", "which is bandwidth_csv in problem.toml"),
        (("front", "problem.toml"), "-o", "grid.png", "which is bandwidth_csv"),
        (("pulls", *BOTH, "--as", "csv"), "-o", "files.json", "which is manifest"),
        (("pulls", *BOTH, "--as", "csv"), "-o", "problem.toml", ""),
        (("progress", "into", "--manifest", "files.json"), "-o", "files.json", ""),
        (("estimate", "samples.csv"), "-o", "samples.csv", ""),
        (("simulate", "scenario.toml", "--engine", "fluid"), "-o", ".", "which is truth_csv in"),
    ],
)
def test_inputs_are_never_overwritten(folder, call, arguments, option, output, why):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, out, err = call(*arguments, option, output, "--force")
    assert (code, out) == (2, "")
    assert f"{option} {output}" in err or output == "."
    assert "would overwrite the input" in err
    assert why in err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_problem_of_a_scenario_is_kept_too(folder, call):
    """`simulate` writes ``problem.json`` beside ``run.json``."""
    Path("scenario.toml").write_text('problem = "problem.json"\n')
    Path("run.json").unlink()
    code, _, err = call("simulate", "scenario.toml", "--engine", "fluid", "-o", ".", "--force")
    assert code == 2
    assert "would overwrite the input 'problem.json', which is problem in scenario.toml" in err


def test_simulate_overwrites_no_table_either(folder, call):
    Path("scenario.toml").write_text('problem = "problem.toml"\n')
    Path("out").mkdir()
    Path("out/storage.csv").write_text("precious")
    code, _, err = call("simulate", "scenario.toml", "--engine", "fluid", "-o", "out")
    assert code == 2
    assert "storage.csv: exists already; --force overwrites it" in err


def test_the_rest_of_a_problem_names_the_same_files(folder, call):
    """Its manifest is found from where the rest is written; offsets keep their meaning."""
    Path("rest").mkdir()
    written = ("-o", "rest/plan.json", "--problem-output", "rest/problem.json")
    assert call(*REST, *written)[0] == 0
    before, rest = dc.Problem.from_file("problem.toml"), dc.Problem.from_file("rest/problem.json")
    assert rest.manifest["S"].paths == before.manifest["S"].paths == ("a", "b")
    assert rest.file_tolerance == 0.25
    assert rest.held
    assert call("check", "rest/problem.json", "rest/plan.json")[0] == 0
    # So that scripts need no --manifest.
    curl = ("--as", "curl", *URLS, "--relay-url", "K=http://k/{source}/{path}", "-o", "scripts")
    code, _, err = call("pulls", "rest/problem.json", "rest/plan.json", *curl)
    assert code == 0, err
