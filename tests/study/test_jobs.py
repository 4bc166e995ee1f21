"""Jobs: what a worker makes is kept, whether or not it sees the sweep's folder."""

from __future__ import annotations

from itertools import count

import pandas as pd
import pytest
from instances.small_experiments import experiment_of, rows_in_parts, set_small_jobs, without_times

import datacollect as dc
from datacollect.study import jobs
from datacollect.study.plan import SweepPlan


def test_workers_that_do_not_see_the_folder_hand_their_results_over(tmp_path, serial, monkeypatch):
    """As on a cluster without a shared disk; here the one process looks away."""
    set_small_jobs(monkeypatch)
    monkeypatch.setattr("datacollect.study.store.RunStore.is_here", lambda _: False)
    table = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(without_times(table), without_times(serial))
    monkeypatch.undo()
    again = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(again, table)


def test_what_an_interrupted_job_has_made_is_kept(tmp_path, monkeypatch):
    """Ctrl-C in the sixth of twelve runs, the third of a job of many: five stay."""
    numbers, carry_out = count(1), jobs.carry_out

    def interrupted(*args, **options):
        if next(numbers) == 6:
            raise KeyboardInterrupt
        return carry_out(*args, **options)

    monkeypatch.setattr(jobs, "carry_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dc.sweep(experiment_of(), tmp_path, workers=0)
    assert len(pd.read_parquet(tmp_path / "results.parquet")) == 5
    reports = []
    monkeypatch.undo()
    dc.sweep(experiment_of(), tmp_path, workers=0, progress=reports.append)
    assert (reports[0].kept, reports[-1].done) == (5, 12)


def test_rows_of_a_job_that_goes_on_are_kept_in_the_meantime(tmp_path, monkeypatch):
    """A worker that is killed in its last run has kept those before: here it is asked in it."""
    experiment, kept = experiment_of(), []
    monkeypatch.setattr(jobs, "KEEP_S", 0.0)
    carry_out = jobs.carry_out

    def looking(*args, **options):
        kept.append(rows_in_parts(tmp_path))
        return carry_out(*args, **options)

    monkeypatch.setattr(jobs, "carry_out", looking)
    monkeypatch.setattr(SweepPlan, "next_job", all_at_once)
    dc.sweep(experiment, tmp_path, workers=0)
    assert kept == list(range(12))


def all_at_once(plan, n_workers):
    """Hand out all that is to do as one job."""
    groups = [group for todo in plan._todo.values() for group in todo]
    for setting, todo in plan._todo.items():
        plan._out[setting] += len(todo)
        todo.clear()
    return tuple(groups)
