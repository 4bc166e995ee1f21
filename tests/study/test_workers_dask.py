"""A sweep on a Dask cluster of separate processes ends with the same table, whoever dies.

What is wrong with the cluster is said in a line, whoever answers at the address.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pandas as pd
import pytest
from conftest import NO_DASK
from instances.dask_cluster import Cluster
from instances.small_experiments import (
    SCENARIO,
    TREE,
    failures_of,
    many_seeds,
    set_small_jobs,
    without_times,
)

import datacollect as dc
from datacollect.net import dask_scheduler
from datacollect.study import workers
from datacollect.study.workers import ALONE_S, DaskCluster

distributed = pytest.importorskip("distributed", reason=NO_DASK)


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    try:
        yield found
    finally:
        found.stop()


@contextmanager
def listening(answer):
    """A server that accepts, and does with each connection what `answer` says."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        # Closing alone does not end accept().
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def web_server(connection):
    """As the scheduler's own dashboard does, whose port is easily taken for the other."""
    with connection:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def close(connection):
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (web_server, "what listens there is not Dask"),
        (close, "no Dask scheduler answers at 'tcp:"),
        # Kept open, and nothing said.
        ([].append, "no answer came within 2 s"),
    ],
    ids=["web server", "closes", "silent"],
)
def test_who_is_no_scheduler_is_refused_in_time(answer, message, tmp_path, monkeypatch):
    if answer not in (web_server, close):  # the others answer, however late
        monkeypatch.setattr(dask_scheduler, "DASK_TIMEOUT_S", 1)
    with listening(answer) as address, pytest.raises(dc.ProblemError) as caught:
        dc.sweep(many_seeds(), tmp_path, dask=address)
    assert message in str(caught.value)
    assert str(caught.value).endswith("workers with `dask worker ADDRESS --nthreads 1`")


def test_an_address_of_which_nothing_comes_back_is_refused_with_a_reason(monkeypatch):
    """A name that resolves to nothing ends in a timeout, which says nothing itself."""

    def nothing_comes(*_):
        raise TimeoutError

    monkeypatch.setattr(dask_scheduler, "_require_scheduler", nothing_comes)
    with pytest.raises(dc.ProblemError, match=r"'tcp://a:1': the name is not known, or nothing"):
        DaskCluster("tcp://a:1")


class Lonely(DaskCluster):
    """A cluster whose threads are counted in a list, time by time."""

    def __init__(self, threads):
        self._address, self._had_workers, self._alone_since_s = "tcp://a:1", False, None
        self._threads = iter(threads)

    def _n_threads(self):
        return next(self._threads)


def test_a_scheduler_without_workers_is_said_after_a_while(monkeypatch):
    """Nobody for 5 s; two workers; one second without any; again some; then nobody any more."""
    clock = iter([0.0, 4.9, 5.0, 6.0, 7.0, 8.0, 9.0, 14.0])
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    pool = Lonely([0, 0, 0, 2, 0, 1, 0, 0])
    said = [pool.trouble() for _ in range(8)]
    assert ALONE_S == 5
    assert [i for i, words in enumerate(said) if words] == [2, 7]
    assert "the Dask scheduler at tcp://a:1 has no workers: the sweep waits" in said[2]
    assert "has lost its last worker" in said[7]
    assert said[7].endswith("start workers with `dask worker tcp://a:1 --nthreads 1`")


@pytest.mark.slow
def test_a_sweep_waits_for_workers_and_says_so(tmp_path, many, monkeypatch):
    """One is started where none is missed, killed at its first run, and another is started."""
    set_small_jobs(monkeypatch)
    monkeypatch.setattr(workers, "ALONE_S", 0.5)
    cluster = Cluster(tmp_path, n_workers=0)
    said = []

    def go_on(now):
        if now.trouble and now.trouble not in said:
            said.append(now.trouble)
            cluster.workers.append(cluster.start_worker())
        elif now.done and len(cluster.workers) == 1:
            cluster.workers[0].kill()

    try:
        table = dc.sweep(many_seeds(), tmp_path / "out", dask=cluster.address, progress=go_on)
    finally:
        cluster.stop()
    pd.testing.assert_frame_equal(without_times(table), without_times(many))
    assert [" has no workers: " in words for words in said] == [True, False]
    assert " has lost its last worker: " in said[1]


@pytest.mark.slow
def test_the_command_says_what_is_lost_and_prints_no_trace(cluster, tmp_path):
    """First a worker's address, then a scheduler that is killed while it has nobody else."""
    (tmp_path / "line.json").write_text(json.dumps(SCENARIO), encoding="utf-8")
    experiment = tmp_path / "many.json"
    experiment.write_text(json.dumps({**TREE, "scenario": "line.json"}), encoding="utf-8")

    def command(address):
        sweep = [sys.executable, "-m", "datacollect", "sweep", experiment, "-o", tmp_path / "out"]
        return [*map(str, sweep), "--dask", address]

    with distributed.Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(1)
        (worker, *_) = client.nthreads()  # asks; what it has been told may be older
    ended = subprocess.run(command(worker), capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 2
    assert "it is the address of a Worker" in ended.stderr
    for process in cluster.workers:
        process.kill()
        process.wait()
    with subprocess.Popen(command(cluster.address), stderr=subprocess.PIPE, text=True) as sweep:
        lines = []
        for line in sweep.stderr:
            lines.append(line)
            if " has no workers: the sweep waits" in line:
                cluster.scheduler.kill()
        assert sweep.wait() == 3
    assert len(lines) == 3
    assert lines[1].startswith("warning: the Dask scheduler at tcp://")
    assert lines[2].startswith("error: the Dask scheduler at tcp://")
    assert lines[2].endswith("is gone; what is finished is kept: start again to continue\n")


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(cluster, tmp_path, many, monkeypatch):
    set_small_jobs(monkeypatch)

    def kill_one(now):
        if now.done and cluster.workers[0].poll() is None:
            cluster.workers[0].kill()

    folder = tmp_path / "out"
    table = dc.sweep(many_seeds(), folder, dask=cluster.address, progress=kill_one)
    assert cluster.workers[0].wait(60) != 0
    pd.testing.assert_frame_equal(without_times(table), without_times(many))
    assert not failures_of(folder)


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
