"""Sweeps in ns-3: runs kept one by one, measurements shared, runs taken from other sweeps."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from instances.ns3_networks import needs_ns3
from instances.small_experiments import METHOD, experiment_of, without_times

import datacollect as dc
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.published import publish
from datacollect.study.rows import MOST_POINTS
from datacollect.study.store import RunStore

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


@pytest.mark.slow
def test_all_that_made_each_run_is_kept_with_its_row(tmp_path):
    table = dc.sweep(experiment(), tmp_path, workers=0)
    assert len(table) == 4
    assert table["complete"].all()
    store = RunStore(tmp_path, "any", ("method",))
    # Two seeds: two measurements, shared by both methods.
    assert len(store.measurements()) == 2
    assert not [*(tmp_path / "parts").iterdir(), *(tmp_path / "probes").iterdir()]
    for row in table.to_dict("records"):
        tree = store.document(row["key"])
        assert tree["format"] == "datacollect-sweep-run/1"
        assert tree["row"]["makespan_s"] == row["makespan_s"]
        assert tree["scenario"]["run"]["seed"] == row["seed"]
        assert tree["scenario"]["method"]["name"] == row["method"]
        assert tree["schedule"]["routes"]
        assert sum(tree["schedule"]["transfers"]["n_bytes"]) >= row["collected_bytes"]
        assert tree["settings"]["versions"]["ns3"]
        for curve in tree["storage"].values():
            assert len(curve["time_s"]) == len(curve["others_bytes"]) <= MOST_POINTS


@pytest.mark.slow
def test_runs_that_are_damaged_are_made_again_alone(tmp_path, monkeypatch):
    """A sweep that was killed before it folded: one row torn, one with a bit turned over."""
    with monkeypatch.context() as killed:
        killed.setattr(RunStore, "fold", lambda store: store.read().table)
        first = dc.sweep(experiment(), tmp_path, workers=0)
    (part,) = (tmp_path / "parts").glob("*.rows")
    one, two, three, four = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(one + two[:-9] + b"x" + two[-8:] + three + four[:-50])
    with pytest.warns(dc.DatacollectWarning, match=r"\.rows, line 2: damaged"):
        again = dc.sweep(experiment(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(without_times(again), without_times(first))
    times = again.set_index("key")["cpu_s"]
    for line in (one, three):
        row = json.loads(line.split(b" ", 2)[2])
        assert times[row["key"]] == row["cpu_s"]


@pytest.mark.slow
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
    assert len(RunStore(tmp_path / "two", "any", ()).measurements()) == 2
    (sweep,) = read_sweeps(tmp_path / "one")
    rows = publish(sweep, tmp_path / "rows")
    elsewhere = dc.sweep(experiment(), tmp_path / "three", workers=0, reuse=[rows])
    pd.testing.assert_frame_equal(elsewhere, first)
    one, three = (RunStore(tmp_path / name, "any", ("method",)) for name in ("one", "three"))
    assert three.measurements() == one.measurements()
    on = dc.sweep(experiment(), tmp_path / "three", workers=0)  # from its own files
    pd.testing.assert_frame_equal(on, first)
