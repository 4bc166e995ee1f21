"""The packet engine in another process, which has a worker of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from instances.ns3_elsewhere import collect_for_days, measured, worker_pid
from instances.ns3_networks import needs_ns3

pytestmark = needs_ns3


class Elsewhere:
    """Another process: to start one takes seconds, so that tests share it until it is killed."""

    def __init__(self):
        self.pool = None

    def begin(self, function, *arguments):
        if self.pool is None:
            self.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        return self.pool.submit(function, *arguments)

    def end(self):
        if self.pool is not None:
            self.pool.shutdown()
        self.pool = None


@pytest.fixture(scope="module")
def elsewhere():
    process = Elsewhere()
    yield process
    process.end()


@pytest.mark.slow
def test_same_seed_same_result(elsewhere):
    found = [elsewhere.begin(measured, seed).result() for seed in (4, 3)]
    assert [measured(3), measured(4)] == found[::-1]
    assert found[0] != found[1]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to see processes")
def test_nothing_runs_on_after_its_caller_was_killed(elsewhere):
    caller = elsewhere.begin(os.getpid).result()
    worker = elsewhere.begin(worker_pid).result()
    days = elsewhere.begin(collect_for_days)
    children = Path(f"/proc/{worker}/task/{worker}/children")
    assert within(120, children.read_text)
    runs = [int(pid) for pid in children.read_text().split()]
    assert len(runs) == 1
    os.kill(caller, signal.SIGKILL)
    with pytest.raises(BrokenProcessPool):
        days.result()
    elsewhere.end()
    assert within(120, lambda: not any(alive(pid) for pid in (caller, worker, *runs)))


def within(seconds, happens):
    """Wait until something is so; whether it was in time."""
    ended = time.monotonic() + seconds
    while not (so := happens()) and time.monotonic() < ended:
        time.sleep(0.05)
    return bool(so)


def alive(pid) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
