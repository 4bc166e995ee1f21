"""Files that were written once are still read, and go on: a pull, a sweep, plans.

The files beside this one were written by the code of November 2026; the pull was killed (SIGKILL)
when half of its bytes had come, and its state made text by SQLite.
"""

import json
import shutil
from pathlib import Path

import apsw
import pandas as pd
import pytest
from instances.agents import KEY
from instances.range_server import Valve, serving

import datacollect as dc
from datacollect.net.keys import write_private_key

HERE = Path(__file__).parent
SIZES = {"a.bin": 300_000, "b.bin": 200_000, "c.bin": 100_000}

# What the killed pull had recorded: the first two pieces of a.bin, all of b.bin from its third on.
HAD = {"a.bin": (0, 131_072), "b.bin": (131_072, 200_000)}


def content(n_bytes):
    return bytes((7 * i + n_bytes) % 251 for i in range(n_bytes))


@pytest.fixture
def unfinished(tmp_path):
    """The folder of the killed pull."""
    inside = tmp_path / "into/.datacollect"
    (inside / "incoming").mkdir(parents=True)
    db = apsw.Connection(str(inside / "state.sqlite"))
    db.execute("PRAGMA journal_mode=WAL").fetchall()
    db.execute((HERE / "state.sql").read_text())
    db.close()
    for number, (path, (begin, end)) in enumerate(HAD.items(), start=1):
        came = bytes(begin) + content(SIZES[path])[begin:end]
        (inside / "incoming" / str(number)).write_bytes(came)
    return tmp_path / "into"


def test_a_killed_pull_goes_on_and_fetches_nothing_twice(unfinished, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for path, n_bytes in SIZES.items():
        (source / path).write_bytes(content(n_bytes))
    write_private_key(tmp_path / "key", KEY)
    valve = Valve(is_open=True)
    with serving(source, valve=valve) as url:
        answer = dc.pull(
            {
                "format": "datacollect-collection/1",
                "destination": "D",
                "key": str(tmp_path / "key"),
                "servers": {"W": {"url": url, "plain_http": True, "paths": sorted(SIZES)}},
            },
            unfinished,
        )
    assert answer.complete, answer.missing
    for path, n_bytes in SIZES.items():
        assert (unfinished / "W" / path).read_bytes() == content(n_bytes)
    had_bytes = sum(end - begin for begin, end in HAD.values())
    # Each file is asked for one byte besides, which says how large it is.
    assert valve.passed_bytes <= sum(SIZES.values()) - had_bytes + len(SIZES)


def test_a_sweep_is_reported_and_goes_on(tmp_path, monkeypatch):
    for name in ("sweep.toml", "scenario_small.toml"):
        shutil.copy(HERE / name, tmp_path)
    folder = shutil.copytree(HERE / "sweep", tmp_path / "folder")
    # A sweep goes on with the versions that it began with only; here they may be others by now.
    kept = json.loads((folder / "experiment.json").read_text())["versions"]
    monkeypatch.setattr("datacollect.study.jobs.versions", lambda: kept)
    assert dc.report(folder).n_runs == 6
    experiment = dc.Experiment.from_file(tmp_path / "sweep.toml")
    rows = pd.read_parquet(folder / "results.parquet")
    with monkeypatch.context() as nothing_is_run:
        nothing_is_run.setattr("datacollect.study.jobs.carry_out", None)
        table = dc.sweep(experiment, folder, workers=0)
    pd.testing.assert_frame_equal(table[list(rows)], rows, check_exact=True)
    # It goes on: the rows of before are the same.
    more = dc.sweep(experiment, folder, workers=0, seeds_most=4).set_index("key")
    assert len(more) > 6
    pd.testing.assert_frame_equal(more.loc[rows["key"]].reset_index()[list(rows)], rows)


@pytest.mark.parametrize("name", ["schedule.json", "schedule.parquet"])
def test_schedules_are_read_and_valid(name):
    problem = dc.Problem.from_file(HERE / "problem.toml")
    schedule = dc.Schedule.from_file(HERE / name)
    schedule.check(problem)
    assert schedule.makespan_s == pytest.approx(1026, abs=1)


def test_scenarios_are_read_and_run():
    scenario = dc.Scenario.from_file(HERE / "scenario_small.toml")
    assert dc.simulate(scenario, engine="fluid").makespan_s > 0
