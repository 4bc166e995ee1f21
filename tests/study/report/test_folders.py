"""Folders of sweeps as a reader takes them: cut short, of earlier versions, or none at all."""

from __future__ import annotations

import json
import shlex
import shutil

import pandas as pd
import pytest
from instances.made_sweeps import EXPERIMENTS, SMALL, cells_in, row_of, write_sweep

import datacollect as dc
from datacollect.commands.main import run
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.tables import summary_table
from datacollect.study.rows import table_of

pytestmark = pytest.mark.usefixtures("empty_pictures")


@pytest.mark.slow
def test_the_command_that_adds_seeds_can_be_typed(tmp_path, cloud_grids):
    sweep = EXPERIMENTS / "drift.toml"
    part = {"links": ["full"], "planned": ["january"]}
    dc.sweep(sweep, tmp_path / "a b", workers=0, data=cloud_grids, seeds_most=2, only=part)
    found = dc.report(tmp_path / "a b")
    facts = {row["fact"]: row["value"] for row in cells_in(found.folder / "sweeps.csv")}
    command = facts["to add or tighten"]
    assert " --scale 1 --seeds 4 --only planned=january --only links=full " in command
    words = shlex.split(command.replace("DATA", str(cloud_grids)))
    assert words[:5] == ["datacollect", "sweep", str(sweep), "-o", str(tmp_path / "a b")]
    assert run([*words[1:], "--workers", "0"]) == 0
    assert len(pd.read_parquet(tmp_path / "a b" / "results.parquet")) == 3 * 4


def test_a_folder_that_begins_with_its_experiment_s_name_has_its_own(tmp_path):
    """So that what was run with other probes, say, is told apart also where it stands alone."""
    only = {**SMALL, "ratio": ["1:1"], "flows": ["60"]}
    for folder in ("figure3_full", "elsewhere"):
        write_sweep(tmp_path / folder / folder, only=only, seeds=2)
    names = [read_sweeps(tmp_path / folder)[0].name for folder in ("figure3_full", "elsewhere")]
    assert names == ["figure3_full", "figure3"]


def test_folders_of_earlier_versions_stay_readable(tmp_path):
    """As they were written once: keys that came later are missing, a key is there no more."""
    right = {"label": "0 %"}
    wrong = {"label": "+70 %", "set": {"estimates.perturbations": [{"factor": 1.7}]}}
    direct = {"label": "direct", "set": {"method.name": "direct"}, "only": {"error": ["0 %"]}}
    tree = {
        "format": "datacollect-experiment/1",
        "name": "old",
        "engine": "fluid",
        "sha256": "0",
        "panels": [],
        "scenario": {
            "background": {"flows": 20, "a_key_of_old": 1},
            "method": {"name": "coordinated", "lanes": 2},
        },
        "axes": [
            {"name": "method", "paired": True, "values": [direct, {"label": "coordinated"}]},
            {"name": "flows", "paired": False, "values": [
                {"label": "none", "set": {"background.flows": None}},
                {"label": "60", "set": {"background.flows": 60}},
            ]},
            {"name": "error", "paired": True, "values": [right, wrong]},
        ],
    }  # fmt: skip
    (tmp_path / "experiment.json").write_text(json.dumps(tree))
    rows = [
        row_of({"method": "direct", "flows": flows, "error": "0 %"}, 1, lambda _: {}, 0.0)
        for flows in ("none", "60")
    ]
    table_of(rows, ["method", "flows", "error"]).to_parquet(tmp_path / "results.parquet")
    (sweep,) = read_sweeps(tmp_path)
    assert len(sweep.table) == 2
    assert sweep.scale == 1.0
    assert sweep.settings() == [("none",), ("60",)]
    treatments = [("direct", "0 %"), ("coordinated", "0 %"), ("coordinated", "+70 %")]
    assert sweep.treatments() == treatments
    labels = sweep.labels(("none",), ("coordinated", "+70 %"))
    assert labels == {"method": "coordinated", "flows": "none", "error": "+70 %"}
    assert sweep.scenario(labels) == {
        "background": {"a_key_of_old": 1},
        "method": {"name": "coordinated", "lanes": 2},
        "estimates": {"perturbations": [{"factor": 1.7}]},
    }
    assert summary_table(sweep)["seeds"].tolist() == [1, 1]


def broken_json(folder):
    (folder / "experiment.json").write_text('{"format": "datacoll')


def another_format(folder):
    (folder / "experiment.json").write_text('{"format": "datacollect-problem/1"}')


def without_axes(folder):
    tree = '{"format": "datacollect-experiment/1", "name": "x", "engine": "fluid"}'
    (folder / "experiment.json").write_text(tree)


def without_runs(folder):
    write_sweep(folder / "a", "figure3", only=SMALL, seeds=0)


def something_else(folder):
    (folder / "letter.txt").write_text("Dear")


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda _: None, "the folder is empty"),
        (something_else, "no experiment.json in it"),
        (broken_json, "cannot be read as JSON; is it cut short?"),
        (another_format, "format must be 'datacollect-experiment/1', got 'datacollect-problem/1'"),
        (without_axes, "scenario, axes, panels, sha256 missing"),
        (without_runs, "no run is finished"),
        (shutil.rmtree, "no such folder"),
    ],
)
def test_what_is_no_sweep_is_refused_with_a_remedy(tmp_path, capsys, prepare, message):
    folder = tmp_path / "given"
    folder.mkdir()
    prepare(folder)
    assert run(["report", str(folder)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert str(folder) in error
    assert not (folder / "report").exists()
