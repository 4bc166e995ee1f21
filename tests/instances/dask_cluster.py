"""A Dask cluster on this machine, of processes that tests can kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

CALM = ["--no-dashboard"]


class Cluster:
    """A scheduler and workers, each a process."""

    def __init__(self, folder, n_workers=2):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.environment = {
            **os.environ,
            # A worker that dies is missed at once.
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
        }
        self.scheduler = self.start("scheduler", "--port", "0", "--host", "127.0.0.1")
        self.workers = [self.start_worker() for _ in range(n_workers)]
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
