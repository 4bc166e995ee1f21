"""Jobs: what a worker makes is kept, whether or not it sees the sweep's folder."""

from __future__ import annotations

import pandas as pd
from instances.small_experiments import experiment_of, set_small_jobs, without_times

import datacollect as dc


def test_workers_that_do_not_see_the_folder_hand_their_results_over(tmp_path, serial, monkeypatch):
    """As on a cluster without a shared disk; here the one process looks away."""
    set_small_jobs(monkeypatch)
    monkeypatch.setattr("datacollect.study.store.RunStore.is_here", lambda _: False)
    table = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(without_times(table), without_times(serial))
    monkeypatch.undo()
    again = dc.sweep(experiment_of(), tmp_path, workers=0)
    pd.testing.assert_frame_equal(again, table)
