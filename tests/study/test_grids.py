"""Problems drawn from tables of measured bandwidths."""

from __future__ import annotations

from pathlib import Path

import pytest
from instances.small_experiments import METHOD

import datacollect as dc


def test_problems_are_drawn_from_tables_and_judged_on_later_ones(tmp_path):
    """One link from S to D: planned at 8 Mbit/s, really 4: 1 MB takes 2 s instead of 1."""
    header = "src,dst,received_bps\n"
    (tmp_path / "early.csv").write_text(header + "A,B,8e6\nB,A,8e6\n")
    (tmp_path / "late.csv").write_text(header + "A,B,4e6\nB,A,3e6\nB,A,5e6\n")
    tree = {
        "engine": "fluid",
        "grids": {
            "planned_csv": "{data}/early.csv",
            "truth_csv": "{data}/late.csv",
            "sources": 1,
            "backlog_bytes": 1_000_000,
        },
        "seeds": {"least": 3},
        "axes": [
            METHOD,
            {"name": "share", "key": "grids.share", "values": [1.0, 0.5]},
        ],
    }
    experiment = dc.Experiment.from_dict(tree, data=tmp_path)
    table = dc.sweep(experiment, tmp_path / "out", workers=0)
    assert len(table) == 12
    for share, factor in (("1", 1.0), ("0.5", 2.0)):
        rows = table[table["share"] == share]
        assert rows["predicted_s"].tolist() == pytest.approx([factor] * 6, rel=2e-3)
        assert rows["makespan_s"].tolist() == pytest.approx([2 * factor] * 6, rel=2e-3)
    (tmp_path / "late.csv").write_text(header + "A,B,2e6\nB,A,2e6\n")
    with pytest.raises(dc.ProblemError, match="the files that it names differ"):
        dc.sweep(experiment, tmp_path / "out", workers=0)


def test_tables_with_too_few_hosts_or_other_columns_are_refused(tmp_path):
    (tmp_path / "g.csv").write_text("src,dst,received_bps\nA,B,8e6\nB,A,8e6\n")
    grids = {"planned_csv": "g.csv", "truth_csv": "g.csv", "sources": 2, "backlog_bytes": 1}
    for change, message in (
        ({}, "only 2 hosts are in all tables, but"),
        ({"columns": ["from", "to", "rate"]}, "name the table's columns in grids.columns"),
    ):
        tree = {"engine": "fluid", "grids": {**grids, **change}, "seeds": {"least": 1}}
        experiment = dc.Experiment.from_dict(tree, tmp_path)
        with pytest.raises(dc.ProblemError, match=message):
            dc.sweep(experiment, tmp_path / f"out of {len(change)}", workers=0)


@pytest.mark.slow
def test_drift_of_the_measured_grids(cloud_grids, tmp_path):
    """Direct plans on nothing; no plan made on what really holds beats its lower bound."""
    path = Path(__file__).resolve().parents[2] / "experiments" / "drift.toml"
    part = {"links": ["a quarter"]}
    table = dc.sweep(path, tmp_path, workers=0, data=cloud_grids, seeds_most=2, only=part)
    assert len(table) == 12
    direct = table[table["method"] == "direct"].groupby("seed")["makespan_s"]
    assert (direct.max() == direct.min()).all()
    informed = table[table["planned"] == "november"]
    assert (informed["makespan_s"] >= informed["lower_bound_s"] * (1 - 1e-6)).all()
