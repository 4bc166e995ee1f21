"""Reports of made-up sweeps and of a real one: which files there are."""

from __future__ import annotations

import io
import json
import struct
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from instances import made_hooks
from instances.made_sweeps import SMALL, cells_in, gains, write_sweep

import datacollect as dc
from datacollect.commands.main import run
from datacollect.installation import command_for_extra
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.own import sweep_report
from datacollect.study.report.report import Report
from datacollect.study.report.verdicts import no_verdicts

PAGELESS = Report(Path("x"), None, (), no_verdicts(), "", ("a.csv",), 1, 0)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep that nobody changes."""
    folder = tmp_path_factory.mktemp("swept")
    write_sweep(folder, "figure3", gains, only=SMALL, documents=True, noise=0.02)
    return folder


@pytest.fixture(scope="module")
def reported(swept):
    """Its report, in its folder."""
    return dc.report(swept, verdicts=made_hooks.judge)


@pytest.fixture(scope="module")
def reports(swept, tmp_path_factory):
    """Its report once more, by the command, into a folder; and what the command prints."""
    folder = tmp_path_factory.mktemp("told") / "out"
    hook = ["--verdicts", made_hooks.__file__]
    with io.StringIO() as text, redirect_stdout(text):
        assert run(["report", str(swept), "-o", str(folder), *hook]) == 0
        return folder, text.getvalue()


def test_a_report_has_pictures_tables_and_a_page(reported):
    found = reported
    assert found.folder.name == "report"
    assert (found.folder.parent / "experiment.json").exists()
    assert set(found.files) == {file.name for file in found.folder.iterdir()}
    assert set(found.files) == {
        "claims.csv",
        "counts.csv",
        "figure3.csv",
        "figure3.png",
        "figure3.svg",
        "figure3_across.csv",
        "figure3_own.csv",
        "figure3_prediction.csv",
        "figure3_runs.csv",
        "figure3_summary.csv",
        "index.html",
        "sweeps.csv",
    }
    data = (found.folder / "figure3.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert width > 800
    assert height > 300
    svg = (found.folder / "figure3.svg").read_text(encoding="utf-8")
    assert all(label in svg for label in ("direct-as-many", "coordinated", "makespan, s"))
    assert len(cells_in(found.folder / "figure3_runs.csv")) == found.n_runs == 144


def test_the_same_sweep_gives_the_same_files(reported, reports):
    again, _ = reports
    assert {file.name for file in again.iterdir()} == set(reported.files)
    for name in reported.files:
        assert (reported.folder / name).read_bytes() == (again / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.usefixtures("empty_pictures")
def test_several_sweeps_of_one_name_do_not_overwrite_each_other(tmp_path):
    only = {**SMALL, "flows": ["0"], "ratio": ["1:1"]}
    for scale in (0.1, 1.0):
        write_sweep(tmp_path / f"at {scale:g}", "figure3", gains, only=only, scale=scale)
    found = dc.report(tmp_path)
    assert {"at_0.1.png", "at_1.png"} <= set(found.files)
    assert {row["sweep"] for row in cells_in(found.folder / "sweeps.csv")} == {"at 0.1", "at 1"}


def test_a_sweep_none_of_whose_panels_has_runs_has_its_tables(tmp_path):
    """Figure 4 draws no 3:1: there is nothing to see, and all to read."""
    only = {"ratio": ["3:1"], "flows": ["60"], "error": ["0 %"]}
    write_sweep(tmp_path / "a", "figure4", only=only)
    found = dc.report(tmp_path)
    assert not [name for name in found.files if name.endswith(".png")]
    assert {"figure4_own.csv", "figure4_summary.csv"} <= set(found.files)
    assert "figure4.csv" not in found.files


def test_all_rows_are_printed(tmp_path, monkeypatch, capsys):
    """All settings of the study's figure: more than a screen, and none is hidden."""
    flows = ("0", "20", "40", "60")
    write_sweep(tmp_path, "figure3", gains, only={"flows": list(flows)})
    reports = sweep_report(*read_sweeps(tmp_path))
    found = replace(PAGELESS, sweeps=(reports,))
    monkeypatch.setattr("datacollect.study.report.report.report", lambda *_, **__: found)
    assert run(["report", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.split(" ")[0] in flows for line in lines) == len(reports.own.table) > 60


@pytest.mark.slow
@pytest.mark.usefixtures("empty_pictures")
def test_a_real_sweep_has_a_report(tmp_path):
    experiment = dc.Experiment.from_dict(
        {
            "engine": "fluid",
            "seeds": {"least": 3, "batch": 3},
            "axes": [
                {"name": "rate", "key": "topology.rate_bytes_per_s", "values": [1e5, 1e6]},
                {
                    "name": "method",
                    "key": "method.name",
                    "paired": True,
                    "values": ["direct", "coordinated"],
                },
            ],
        },
        scenario={
            "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6},
            "hosts": {
                "destination": {"at": "N0"},
                "sources": [{"at": "N1", "backlog_bytes": 1_000_000}],
            },
        },
    )
    dc.sweep(experiment, tmp_path, workers=0)
    found = dc.report(tmp_path)
    rows = cells_in(found.folder / "experiment_summary.csv")
    assert len(rows) == 4
    assert {row["seeds"] for row in rows} == {"3"}
    # 1 MB at 0.1 MB/s takes 10 s, and a little for headers.
    (slow,) = (r for r in rows if (r["rate"], r["method"]) == ("100000", "direct"))
    assert 10 < float(slow["makespan_s"]) < 11


def test_the_command_prints_verdicts_and_where_the_page_is(reports):
    folder, text = reports
    lines = text.splitlines()
    head = lines.index("ns3:")
    assert lines[head + 1].split("  ")[0] == "claim"
    # Of direct's 200 s and coordinated's 100 s; what was not run is counted alone.
    words = lines[head + 2].split()
    assert (words[0], words[-2:]) == ("faster", ["holds,", "open"])
    assert "less than one " in lines[head + 2]
    assert "always" not in text
    assert "1 × holds, 1 × not run" in lines
    assert str(folder / "index.html") in text


@pytest.mark.slow
@pytest.mark.usefixtures("empty_pictures")
def test_without_plotly_all_is_there_but_the_page(sweep_folder, capsys, monkeypatch):
    """A page of a report before, which would speak of other numbers, is taken away."""
    folder = sweep_folder / "report"
    folder.mkdir()
    (folder / "index.html").write_text("old")
    monkeypatch.setitem(sys.modules, "plotly", None)
    hook = ["--verdicts", made_hooks.__file__]
    assert run(["report", str(sweep_folder), *hook, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["page"] is None
    assert [claim["verdict"] for claim in found["claims"]] == ["holds", "not run"]
    assert found["known_hook"] is None
    assert {"claims.csv", "figure3.png", "figure3_own.csv"} <= set(found["files"])
    assert set(found["files"]) == {file.name for file in folder.iterdir()}
    monkeypatch.setattr("datacollect.study.report.report.report", lambda *_, **__: PAGELESS)
    assert run(["report", str(sweep_folder)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"none; for one: {command_for_extra('report')}" in shown


@pytest.mark.usefixtures("empty_pictures")
def test_two_seeds_show_no_time_below_zero(tmp_path, capsys):
    """At twice the rate they take half as long: t is 12.7, so its interval begins below 0."""
    write_sweep(tmp_path, "figure3", gains, only=SMALL, noise=1.0, seeds=2)
    assert run(["report", str(tmp_path)]) == 0
    for name in ("figure3.csv", "figure3_own.csv", "figure3_summary.csv", "figure3_across.csv"):
        for row in cells_in(tmp_path / "report" / name):
            lows = {key: float(cell) for key, cell in row.items() if key.endswith("low") and cell}
            assert min(lows.values()) >= 0, (name, row)
    text = capsys.readouterr().out
    assert " [0, " in text
    assert "[-" not in text
    assert "[0, …: seeds too few or too far apart to bound it from below; add --seeds" in text


@pytest.mark.usefixtures("empty_pictures")
def test_an_output_that_cannot_be_made_is_named(sweep_folder, capsys):
    (sweep_folder / "taken").write_text("")
    assert run(["report", str(sweep_folder), "-o", str(sweep_folder / "taken" / "x")]) == 2
    assert "the folder of the report cannot be made" in capsys.readouterr().err
