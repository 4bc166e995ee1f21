"""Sweeps in ns-3: a file for each run, measurements shared, runs taken over from other sweeps."""

from __future__ import annotations

import json

import pandas as pd
from instances.ns3_networks import needs_ns3
from instances.small_experiments import METHOD, experiment_of, without_times

import datacollect as dc
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.published import publish
from datacollect.study.rows import MOST_POINTS

pytestmark = needs_ns3

# Two sources share a wire; one could relay for the other.
SCENARIO = {
    "name": "star",
    "topology": {"kind": "star", "n_hosts": 3, "rate_bytes_per_s": 3e5},
    "hosts": {
        "destination": {"at": "H0"},
        "sources": [{"name": "S1", "at": "H1"}, {"name": "S2", "at": "H2"}],
    },
    "backlog": {"least_bytes": 20_000, "most_bytes": 60_000},
    "estimates": {"probe_bytes": 20_000, "repeats": 1},
    "run": {"warm_up_s": 0.0},
}


def experiment(**changes):
    tree = {"engine": "ns3", "seeds": {"least": 2}, "axes": [METHOD]}
    return experiment_of(**tree | changes, scenario=SCENARIO)


def test_each_run_has_a_file_with_all_that_made_it(tmp_path):
    table = dc.sweep(experiment(), tmp_path, workers=0)
    assert len(table) == 4
    assert table["complete"].all()
    assert {file.stem for file in (tmp_path / "runs").glob("*.json")} == set(table["key"])
    # Two seeds: two measurements, shared by both methods.
    assert len(list((tmp_path / "probes").iterdir())) == 2
    for row in table.to_dict("records"):
        tree = json.loads((tmp_path / "runs" / f"{row['key']}.json").read_text())
        assert tree["format"] == "datacollect-sweep-run/1"
        assert tree["row"]["makespan_s"] == row["makespan_s"]
        assert tree["scenario"]["run"]["seed"] == row["seed"]
        assert tree["scenario"]["method"]["name"] == row["method"]
        assert tree["schedule"]["routes"]
        assert sum(tree["schedule"]["transfers"]["n_bytes"]) >= row["collected_bytes"]
        assert tree["settings"]["versions"]["ns3"]
        for curve in tree["storage"].values():
            assert len(curve["time_s"]) == len(curve["others_bytes"]) <= MOST_POINTS


def test_runs_that_are_lost_or_damaged_are_made_again_alone(tmp_path):
    first = dc.sweep(experiment(), tmp_path, workers=0)
    files = sorted((tmp_path / "runs").glob("*.json"))
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-50])
    kept = {file: file.stat().st_mtime_ns for file in files[2:]}
    again = dc.sweep(experiment(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(without_times(again), without_times(first))
    assert {file: file.stat().st_mtime_ns for file in files[2:]} == kept


def test_the_same_runs_are_taken_from_another_sweep_and_from_published_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "datacollect.scenario.probe_cache._KNOWN", {}
    )  # what other tests have measured
    first = dc.sweep(experiment(), tmp_path / "one", workers=0)
    other = {**METHOD, "values": [{"label": "all at once", "value": "direct"}]}
    monkeypatch.setattr("datacollect.study.jobs.carry_out", None)
    again = dc.sweep(
        experiment(name="two", axes=[other]), tmp_path / "two", workers=0, reuse=[tmp_path / "one"]
    )
    direct = first[first["method"] == "direct"]
    assert again["method"].tolist() == ["all at once"] * 2
    assert again["makespan_s"].tolist() == direct["makespan_s"].tolist()
    assert len(list((tmp_path / "two" / "probes").iterdir())) == 2
    (sweep,) = read_sweeps(tmp_path / "one")
    rows = publish(sweep, tmp_path / "rows")
    damaged = rows / "probes" / "probes-cut.json.gz"
    damaged.write_bytes(next((rows / "probes").iterdir()).read_bytes()[:-9])
    elsewhere = dc.sweep(experiment(), tmp_path / "three", workers=0, reuse=[rows])
    pd.testing.assert_frame_equal(elsewhere, first)
    own, taken = (
        {file.name: file.read_text() for file in (tmp_path / name / "probes").iterdir()}
        for name in ("one", "three")
    )
    assert taken == own
    on = dc.sweep(experiment(), tmp_path / "three", workers=0)  # from its own files
    pd.testing.assert_frame_equal(on, first)
