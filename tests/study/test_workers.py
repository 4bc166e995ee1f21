"""Runs on other processes: the same table, also where one of them dies, or the sweep itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from conftest import NO_PROC
from instances.scripts import script_of
from instances.small_experiments import (
    SMALL_JOBS,
    experiment_of,
    failures_of,
    many_seeds,
    rows_in_parts,
    set_small_jobs,
    without_times,
)

import datacollect as dc
from datacollect.study.workers import LocalProcesses


@pytest.mark.slow
def test_runs_are_counted_as_they_end_not_job_by_job(tmp_path, monkeypatch):
    monkeypatch.setattr("datacollect.study.sweep.REPORT_S", 0.0)
    reports = []
    table = dc.sweep(many_seeds(), tmp_path, workers=0, progress=reports.append)
    done = [now.done for now in reports]
    assert (done[0], done[-1]) == (0, len(table))
    assert {after - before for before, after in pairwise(done)} == {0, 1}
    assert {now.done + now.to_do for now in reports} == {len(table)}


@pytest.mark.slow
def test_a_process_counts_the_runs_of_its_job_and_makes_the_same_table(
    tmp_path, monkeypatch, serial
):
    """When a job has come back, its process has counted each of its runs."""
    counted = []
    has_lost = LocalProcesses.has_lost

    def counting(pool, future):
        counted.append((pool.ended(), len(future.result().rows)))
        return has_lost(pool, future)

    monkeypatch.setattr(LocalProcesses, "has_lost", counting)
    table = dc.sweep(experiment_of(), tmp_path, workers=1)
    pd.testing.assert_frame_equal(without_times(table), without_times(serial))
    assert len(counted) > 1
    assert all(ended == (n_rows, 0) for ended, n_rows in counted)


def workers_of(pid):
    """Return the processes for runs that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if b"spawn_main" in command_of(int(child))]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_until(condition, what):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail(f"waited a minute: {what}")


# It waits, once the first runs are finished, for whoever ends it; also where a shell that started
# the tests in the background has them ignore interrupts.
PAUSING_SWEEP = f"""
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import datacollect.study.plan, datacollect.study.sweep
datacollect.study.plan.FLUID_RUNS, datacollect.study.sweep.REPORT_S = {SMALL_JOBS}
wait = lambda now: time.sleep(600 if now.done else 0)
dc.sweep(many_seeds(), sys.argv[1], workers=2, progress=wait)
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason=NO_PROC)


@pytest.mark.slow
@needs_proc
def test_a_killed_worker_loses_only_what_it_had_in_hand(tmp_path, many, monkeypatch):
    set_small_jobs(monkeypatch)
    killed = []

    def kill_one(now):
        if now.done and not killed:
            killed.append(workers_of(os.getpid())[0])
            os.kill(killed[0], signal.SIGKILL)

    table = dc.sweep(many_seeds(), tmp_path, workers=2, progress=kill_one)
    pd.testing.assert_frame_equal(without_times(table), without_times(many))
    assert killed
    assert not failures_of(tmp_path)


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_is_killed_or_interrupted_goes_on_at_the_next_start(
    tmp_path, many, how, empty_pictures
):
    folder = tmp_path / "out"
    script = script_of(PAUSING_SWEEP, folder)
    with subprocess.Popen(script, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: rows_in_parts(folder), "for the first results")
        workers = workers_of(process.pid)
        process.send_signal(how)
        assert process.wait(timeout=30) != 0
    wait_until(lambda: not any(map(command_of, workers)), "for its workers to end")
    n_kept = rows_in_parts(folder)
    if how == signal.SIGINT:  # it had the time to fold them
        assert not n_kept
        n_kept = len(pd.read_parquet(folder / "results.parquet"))
    assert 0 < n_kept < len(many)
    assert dc.report(folder).n_runs == n_kept
    table = dc.sweep(many_seeds(), folder, workers=0)
    pd.testing.assert_frame_equal(without_times(table), without_times(many))
