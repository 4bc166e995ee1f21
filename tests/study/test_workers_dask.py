"""A sweep on a Dask cluster of separate processes ends with the same table, whoever dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pandas as pd
import pytest
from conftest import NO_DASK
from instances.small_experiments import many_seeds, set_small_jobs, without_times

import datacollect as dc

pytest.importorskip("distributed", reason=NO_DASK)

CALM = ["--no-dashboard"]


class Cluster:
    """A scheduler and two workers, each a process."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.environment = {
            **os.environ,
            # A worker that dies is missed at once.
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
        }
        self.scheduler = self.start("scheduler", "--port", "0", "--host", "127.0.0.1")
        self.workers = [self.start_worker() for _ in range(2)]
        self.address = self._address()

    def start(self, what, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *options, *CALM]
        with (self.folder / f"{what}.log").open("a") as log:
            return subprocess.Popen(
                [*command, "--scheduler-file", str(self.file)],
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=self.folder,
            )

    def start_worker(self):
        return self.start("worker", "--nthreads", "1", "--no-nanny")

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _address(self):
        for _ in range(600):
            if self.file.exists() and (text := self.file.read_text()):
                return json.loads(text)["address"]
            time.sleep(0.1)
        return pytest.fail((self.folder / "scheduler.log").read_text())


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    try:
        yield found
    finally:
        found.stop()


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(cluster, tmp_path, many, monkeypatch):
    set_small_jobs(monkeypatch)

    def kill_one(now):
        if now.done and cluster.workers[0].poll() is None:
            cluster.workers[0].kill()

    folder = tmp_path / "out"
    table = dc.sweep(many_seeds(), folder, dask=cluster.address, progress=kill_one)
    assert cluster.workers[0].poll() is not None
    pd.testing.assert_frame_equal(without_times(table), without_times(many))
    assert not list((folder / "failed").iterdir())


@pytest.mark.slow
def test_a_killed_scheduler_ends_the_sweep_which_then_goes_on(cluster, tmp_path, many, monkeypatch):
    set_small_jobs(monkeypatch)

    def kill(now):
        if now.done:
            cluster.scheduler.kill()

    folder = tmp_path / "out"
    with pytest.raises(dc.SimulationError, match=r"scheduler at .* is gone; what is finished is"):
        dc.sweep(many_seeds(), folder, dask=cluster.address, progress=kill)
    n_kept = len(pd.read_parquet(folder / "results.parquet"))
    assert 0 < n_kept < len(many)
    table = dc.sweep(many_seeds(), folder, workers=0)
    pd.testing.assert_frame_equal(without_times(table), without_times(many))
