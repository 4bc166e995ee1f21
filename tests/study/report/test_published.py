"""Rows as a repository keeps them: from them alone a report comes out the same."""

from __future__ import annotations

import pandas as pd
import pytest
from instances.made_sweeps import SMALL, gains, write_sweep
from instances.small_experiments import experiment_of

import datacollect as dc
from datacollect.study.report.across import across_table
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.own import own_results
from datacollect.study.report.published import publish
from datacollect.study.report.tables import prediction_table, summary_table

TABLES = {
    "summary": summary_table,
    "across": across_table,
    "prediction": prediction_table,
    "own": lambda sweep: own_results(sweep).table,
}


@pytest.mark.slow
def test_every_number_comes_out_again_from_the_rows_alone(tmp_path):
    """Noise, so that each interval has its own bounds; all digits of all tables."""
    write_sweep(tmp_path / "sweep", "figure3", gains, only=SMALL, noise=0.2)
    (sweep,) = read_sweeps(tmp_path / "sweep")
    (again,) = read_sweeps(publish(sweep, tmp_path / "rows"))
    pd.testing.assert_frame_equal(sweep.table, again.table)
    for make in TABLES.values():
        pd.testing.assert_frame_equal(make(sweep), make(again))
    assert [file.name for file in (tmp_path / "rows").iterdir()] == ["results.parquet"]


@pytest.mark.slow
def test_a_real_sweep_comes_out_again_with_its_empty_cells(tmp_path):
    """The fluid engine drops no packets, and without a background there is no throughput."""
    dc.sweep(experiment_of(), tmp_path / "sweep", workers=0)
    (sweep,) = read_sweeps(tmp_path / "sweep")
    (again,) = read_sweeps(publish(sweep, tmp_path / "rows"))
    pd.testing.assert_frame_equal(sweep.table, again.table)
    assert again.table["tcp_during_bytes_per_s"].isna().all()


def test_the_same_rows_are_the_same_bytes(tmp_path):
    write_sweep(tmp_path / "sweep", "figure3", gains, only=SMALL)
    (sweep,) = read_sweeps(tmp_path / "sweep")
    one, two = (publish(sweep, tmp_path / name) / "results.parquet" for name in ("a", "b"))
    assert one.read_bytes() == two.read_bytes()


def test_the_folder_of_a_sweep_is_not_published_over(tmp_path):
    write_sweep(tmp_path / "sweep", "figure3", gains, only=SMALL, seeds=1)
    (sweep,) = read_sweeps(tmp_path / "sweep")
    with pytest.raises(dc.ProblemError, match="is the folder of a sweep; publish its rows into"):
        publish(sweep, tmp_path / "sweep")
