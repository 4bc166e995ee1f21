"""The folder of a sweep: what is damaged, foreign, held by another, or cannot be written."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from instances.scripts import run_script
from instances.small_experiments import METHOD, experiment_of, failures_of, files_of, without_times

import datacollect as dc
from datacollect.errors import NotWrittenError
from datacollect.scenario.scenario import naming
from datacollect.study.store import RunStore


def test_half_written_and_foreign_files_are_named_and_made_again(tmp_path, serial):
    dc.sweep(experiment_of(), tmp_path, workers=0, seeds_most=2)
    (tmp_path / "parts" / "abc.rows").write_text('{"row": \nno line of ours\n')
    (tmp_path / ".results.parquet.1.tmp").write_text("{")
    with pytest.warns(
        dc.DatacollectWarning, match=r"abc.rows, line 1, .*abc.rows, line 2: damaged"
    ):
        again = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(without_times(again), without_times(serial))
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_damaged_file_of_all_rows_is_refused_and_left_alone(tmp_path):
    dc.sweep(experiment_of(), tmp_path, workers=0)
    file = tmp_path / "results.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    before = file.read_bytes()
    with pytest.raises(dc.ProblemError, match=r"results.parquet: cannot be read as a sweep's rows"):
        dc.sweep(experiment_of(), tmp_path, workers=0)
    assert file.read_bytes() == before


def test_a_folder_of_another_experiment_is_refused_and_left_alone(tmp_path):
    dc.sweep(experiment_of(), tmp_path, workers=0)
    before = {name: (tmp_path / name).read_bytes() for name in files_of(tmp_path)}
    others = {
        "holds results of the experiment 'small', not 'other'": experiment_of(name="other"),
        "of the name 'small': scenario differ": experiment_of(scale=0.5),
        "holds results of other axes: axes: the axis 'rate' is missing": experiment_of(
            axes=[METHOD]
        ),
    }
    for message, other in others.items():
        with pytest.raises(dc.ProblemError, match=message):
            dc.sweep(other, tmp_path, workers=0)
    assert {name: (tmp_path / name).read_bytes() for name in files_of(tmp_path)} == before


def test_results_of_other_versions_are_not_mixed(tmp_path, monkeypatch):
    dc.sweep(experiment_of(), tmp_path, workers=0)
    older = {"datacollect": "0.0.1", "numpy": "1.0"}
    monkeypatch.setattr("datacollect.study.jobs.versions", lambda: older)
    with pytest.raises(dc.ProblemError, match=r"results of datacollect .*, here is 0\.0\.1"):
        dc.sweep(experiment_of(), tmp_path, workers=0)


def test_one_sweep_at_a_time_in_a_folder(tmp_path):
    messages = []

    def meanwhile(_):
        try:
            dc.sweep(experiment_of(), tmp_path, workers=0)
        except dc.ProblemError as error:
            messages.append(str(error))

    dc.sweep(experiment_of(), tmp_path, workers=0, progress=meanwhile)
    assert "another sweep is running in this folder" in messages[0]


def test_a_sweep_that_is_refused_leaves_the_folder_as_it_is(tmp_path):
    """Another number of seeds is no other experiment; but the folder is another sweep's now."""
    before = []

    def meanwhile(_):
        text = (tmp_path / "experiment.json").read_text()
        with pytest.raises(dc.ProblemError, match="another sweep is running"):
            dc.sweep(experiment_of(), tmp_path, workers=0, seeds_most=9)
        before.append((tmp_path / "experiment.json").read_text() == text)

    dc.sweep(experiment_of(), tmp_path, workers=0, progress=meanwhile)
    assert before
    assert all(before)


def test_a_copy_of_the_folder_elsewhere_is_not_taken_for_it(tmp_path):
    """A worker on another machine may have a folder of the same name and experiment."""
    for name in ("here", "elsewhere"):
        dc.sweep(experiment_of(), tmp_path / name, workers=0, seeds_most=1)
    token = json.loads((tmp_path / "here" / "experiment.json").read_text())["token"]
    store = RunStore(tmp_path / "here", "any", (), token)
    assert store.is_here()
    assert not replace(store, folder=tmp_path / "elsewhere").is_here()
    dc.sweep(experiment_of(), tmp_path / "here", workers=0)
    assert store.is_here()


def test_a_disk_that_is_full_while_measuring_is_no_fault_of_the_run(tmp_path, monkeypatch):
    def measure(*_, **__):
        with naming("method"):
            raise NotWrittenError("probes: cannot be written: No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("datacollect.study.jobs.carry_out", measure)
        with pytest.raises(dc.ProblemError, match="No space left"):
            dc.sweep(experiment_of(), tmp_path, workers=0)
    assert not failures_of(tmp_path)
    assert len(dc.sweep(experiment_of(), tmp_path, workers=0)) == 12


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(dc.ProblemError, match="folder of results cannot be made"):
        dc.sweep(experiment_of(), tmp_path / "file" / "out", workers=0)


@pytest.mark.slow
def test_a_full_disk_ends_the_sweep_and_leaves_earlier_results(tmp_path):
    """Files of more than 6 kB cannot be written, as if the disk were full."""
    first = dc.sweep(experiment_of(), tmp_path, workers=0, seeds_most=1)
    done = run_script(
        """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
try:
    dc.sweep(experiment_of(), sys.argv[1], workers=0)
except dc.ProblemError as error:
    print(error)
""",
        tmp_path,
    )
    assert "cannot be written: File too large; what was kept before stays" in done
    n_kept = int(re.search(rf"; (\d+) runs are kept in {re.escape(str(tmp_path))}$", done)[1])
    assert 4 <= n_kept < 12
    assert len(RunStore(tmp_path, "any", ("method", "rate")).read().table) == n_kept
    table = pd.read_parquet(tmp_path / "results.parquet")
    assert len(table) == len(first) == 4
    assert len(dc.sweep(experiment_of(), tmp_path, workers=0)) == 12
