"""Sweeps on a Dask client of the caller's: same table, and the client stays as it was."""

from __future__ import annotations

import pandas as pd
import pytest
from conftest import NO_DASK
from instances.small_experiments import many_seeds, set_small_jobs, without_times

import datacollect as dc

distributed = pytest.importorskip("distributed", reason=NO_DASK)


@pytest.fixture
def client():
    """Of a cluster of two threads in this process."""
    options = {"processes": False, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


@pytest.mark.slow
def test_a_client_carries_a_sweep_out_and_stays_open(client, tmp_path, monkeypatch):
    set_small_jobs(monkeypatch)
    there = dc.sweep(many_seeds(), tmp_path / "there", client=client)
    here = dc.sweep(many_seeds(), tmp_path / "here", workers=0)
    pd.testing.assert_frame_equal(without_times(there), without_times(here))
    assert client.submit(int, "7").result() == 7


def test_a_client_that_is_closed_is_refused(client, tmp_path):
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        pass
    with pytest.raises(dc.ProblemError, match=r"client must be connected .* that is closed"):
        dc.sweep(many_seeds(), tmp_path, client=other)


def test_what_is_no_client_is_refused(tmp_path):
    with pytest.raises(dc.ProblemError, match=r"must be a distributed\.Client, got int"):
        dc.sweep(many_seeds(), tmp_path, client=7)


@pytest.mark.parametrize("other", [{"workers": 0}, {"dask": "tcp://127.0.0.1:1"}], ids=str)
def test_a_client_excludes_other_workers(other, tmp_path):
    (name,) = other
    with pytest.raises(dc.ProblemError, match=f"{name} and client cannot be combined"):
        dc.sweep(many_seeds(), tmp_path, client=object(), **other)
