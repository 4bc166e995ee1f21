"""A sweep ends with the same table however it is carried out, interrupted, or hurt."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from instances.small_experiments import METHOD, experiment_of, without_times

import datacollect as dc
from datacollect.study.columns import COLUMNS
from datacollect.study.plan import is_precise


def test_every_run_of_the_product_has_a_row(serial):
    """2 methods x 2 rates x 3 seeds; the only link is used by both methods alike."""
    assert len(serial) == 12
    assert serial["key"].is_monotonic_increasing
    assert serial["key"].nunique() == 12
    assert list(serial) == ["rate", *COLUMNS]
    assert serial.groupby(["method", "rate"])["seed"].apply(sorted).tolist() == [[1, 2, 3]] * 4
    assert serial["complete"].all()
    bytes_over_rate = serial["collected_bytes"] / serial["rate"].astype(float)
    assert serial["makespan_s"].tolist() == pytest.approx(bytes_over_rate.tolist())
    assert (serial["storage_mean"] == 1.0).all()


def test_all_ways_of_a_seed_meet_the_same_backlog(serial):
    backlogs = serial.groupby(["rate", "seed"])["collected_bytes"]
    assert (backlogs.min() == backlogs.max()).all()
    assert serial.groupby("seed")["collected_bytes"].first().nunique() == 3


def test_a_second_start_runs_nothing_and_returns_the_same(tmp_path, monkeypatch):
    first = dc.sweep(experiment_of(), tmp_path, workers=0)
    monkeypatch.setattr("datacollect.study.jobs.carry_out", None)
    again = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(first, again)
    pd.testing.assert_frame_equal(first, pd.read_parquet(tmp_path / "results.parquet"))


def test_more_seeds_and_other_parts_are_added_to_what_is_there(tmp_path, serial):
    part = dc.sweep(experiment_of(), tmp_path, workers=0, seeds_most=1, only={"rate": ["500000"]})
    assert len(part) == 2
    whole = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(without_times(whole), without_times(serial))


def test_a_run_that_fails_is_noted_and_stops_no_other(tmp_path, serial):
    """A node that the line does not have: only building the network finds out."""
    place = {"name": "at", "key": "hosts.destination.at", "values": ["N1", "N7"]}
    experiment = experiment_of(axes=[METHOD, place])
    table = dc.sweep(experiment, tmp_path, workers=0)
    assert set(table["at"]) == {"N1"}
    assert len(table) == 6
    notes = [json.loads(line) for line in (tmp_path / "failed.jsonl").read_text().splitlines()]
    assert len(notes) == 6
    assert {note["seed"] for note in notes} == {1, 2, 3}
    assert all("hosts.destination.at" in note["reason"] for note in notes)
    assert all(note["labels"]["at"] == "N7" for note in notes)


@pytest.mark.slow
def test_failed_runs_are_tried_again_when_asked(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise dc.SimulationError("out of luck")

    with monkeypatch.context() as luck:
        luck.setattr("datacollect.study.jobs.carry_out", fail)
        assert dc.sweep(experiment_of(), tmp_path, workers=0).empty
    assert dc.sweep(experiment_of(), tmp_path, workers=0).empty
    assert len(dc.sweep(experiment_of(), tmp_path, workers=0, retry_failed=True)) == 12
    assert (tmp_path / "failed.jsonl").read_text() == ""


@pytest.mark.slow
def test_seeds_are_added_until_every_method_is_precise(tmp_path):
    """Backlogs are uniform from 1 to 9 MB, so makespans vary by half of their mean."""
    seeds = {"batch": 4, "least": 4, "most": 40}
    experiment = experiment_of(seeds=seeds, precision={"half_width": 0.3})
    table = dc.sweep(experiment, tmp_path, workers=0)
    wanted = experiment.precision
    for _, rows in table.groupby("rate"):
        n = rows["seed"].nunique()
        assert n % 4 == 0
        assert n < 40
        for k in range(4, n + 1, 4):
            first = rows[rows["seed"] <= k].groupby("method")["makespan_s"]
            assert first.apply(lambda s: is_precise(s.tolist(), wanted)).all() == (k == n)
    within = dc.sweep(experiment_of(seeds=seeds), tmp_path, workers=0, seeds_most=4)
    pd.testing.assert_frame_equal(within, table)  # nothing is lost by asking for less


@pytest.mark.slow
def test_the_number_of_seeds_is_bounded(tmp_path):
    seeds = {"batch": 2, "least": 2, "most": 5}
    experiment = experiment_of(seeds=seeds, precision={"half_width": 1e-9})
    assert set(dc.sweep(experiment, tmp_path, workers=0)["seed"]) == {1, 2, 3, 4, 5}


def test_who_asks_for_no_progress_is_warned_of_trouble_once(tmp_path, monkeypatch):
    monkeypatch.setattr("datacollect.study.sweep.REPORT_S", 0.0)
    monkeypatch.setattr("datacollect.study.workers.ThisProcess.trouble", lambda _: "nobody works")
    with pytest.warns(dc.DatacollectWarning, match="nobody works") as warned:
        dc.sweep(experiment_of(), tmp_path / "warned", workers=0)
    assert len(warned) == 1
    reports = []
    dc.sweep(experiment_of(), tmp_path / "told", workers=0, progress=reports.append)
    assert "nobody works" in {now.trouble for now in reports}
