"""Pulls are held to their word: what was promised beside what came, and what is kept of it."""

import errno
import json
import os

import numpy as np
import pytest

import datacollect as dc
from datacollect.transfer.pull import run
from datacollect.transfer.pull.answering import StartUse
from datacollect.transfer.store.folder.log import LOG_FILE
from datacollect.transfer.store.promises import kept_pulls

MB = 1_000_000


def data(n_bytes, seed=0):
    return np.random.default_rng(seed).bytes(n_bytes)


def link(rate, low=None, high=None):
    said = {"from": "S1", "to": "D", "bandwidth_bytes_per_s": rate}
    if low is None:
        return said
    return {**said, "bandwidth_low_bytes_per_s": low, "bandwidth_high_bytes_per_s": high}


@pytest.mark.parametrize("method", ["adaptive", "coordinated", "direct"])
def test_a_pull_promises_an_interval_where_bandwidths_have_one(
    agents, collection_of, tmp_path, method
):
    """3 MB at 1 MB/s, 0.5 to 2 with 90 %: p10 and p90 are 78 % of the way to either end."""
    one = agents("S1", {"x": data(3 * MB)})
    wanted = collection_of(one, links=[link(MB, MB / 2, 2 * MB)])
    answer = dc.pull(wanted, tmp_path / "into", method)
    assert answer.complete
    lead_s = answer.predicted_makespan_s - 3.0
    assert answer.promised_p10_s - lead_s == pytest.approx(3.0 / 1.779, rel=0.01)
    assert answer.promised_p90_s - lead_s == pytest.approx(3.0 / 0.6105, rel=0.01)
    (kept,) = kept_pulls(tmp_path / "into").pulls
    assert (kept.method, kept.complete) == (method, True)
    assert (kept.p10_s, kept.p90_s) == (answer.promised_p10_s, answer.promised_p90_s)
    assert kept.took_s == answer.makespan_s
    assert answer.to_dict()["promised_p90_s"] == answer.promised_p90_s


def test_without_intervals_no_interval_is_promised_and_a_late_end_is_explained(
    agents, collection_of, tmp_path
):
    """A byte in a nanosecond is promised: whatever comes is late."""
    one = agents("S1", {"x": data(300_000)})
    answer = dc.pull(collection_of(one, links=[link(1e15)]), tmp_path / "into", "direct")
    assert (answer.promised_p10_s, answer.promised_p90_s) == (None, None)
    (kept,) = kept_pulls(tmp_path / "into").pulls
    assert kept.held is None
    assert kept.why == answer.why


def test_a_promise_is_renewed_in_the_round_after_a_regroup_alone():
    """Of six rounds, with regroups before the third and the fifth: three promise."""
    use, due = StartUse(), []
    for n_regroups in (0, 0, 1, 1, 2, 2):
        due.append(use.is_promise_due(n_regroups))
        use.predicted_s = 10.0
    assert due == [True, False, True, False, True, False]


def test_the_log_says_which_plan_promises(agents, collection_of, tmp_path):
    wanted = collection_of(agents("S1", {"x": data(300_000)}), links=[link(MB)])
    dc.pull(wanted, tmp_path / "into", "direct")
    lines = map(json.loads, (tmp_path / "into/.datacollect" / LOG_FILE).read_text().splitlines())
    first = next(line for line in lines if line["what"] == "planned")
    assert first["promises"] is True


def test_a_start_that_only_plans_promises_and_keeps_nothing(agents, collection_of, tmp_path):
    one = agents("S1", {"x": data(3 * MB)})
    wanted = collection_of(one, links=[link(MB, MB / 2, 2 * MB)])
    answer = dc.pull(wanted, tmp_path / "into", "direct", plan_only=True)
    assert answer.promised_p10_s == pytest.approx(3.0 / 1.779, rel=0.01)
    assert kept_pulls(tmp_path / "into").pulls == ()


def test_a_start_that_brings_nothing_is_not_kept(agents, collection_of, tmp_path):
    wanted = collection_of(agents("S1", {"x": data(300_000)}), links=[link(MB)])
    for _ in range(2):
        assert dc.pull(wanted, tmp_path / "into", "direct").complete
    assert len(kept_pulls(tmp_path / "into").pulls) == 1


def test_a_pull_that_is_stopped_and_goes_on_promises_anew(agents, collection_of, tmp_path):
    """The first start fetches a part, as it is asked for no more; the second the rest."""
    files = {"a": data(300_000), "b": data(900_000, 1)}
    wanted = collection_of(agents("S1", files), links=[link(MB, MB / 2, 2 * MB)])
    dc.pull(wanted, tmp_path / "into", "direct", include=["a"])
    dc.pull(wanted, tmp_path / "into", "direct")
    first, second = kept_pulls(tmp_path / "into").pulls
    assert second.p90_s > first.p90_s
    assert first.complete
    assert second.complete


def test_an_end_that_is_not_complete_is_kept_and_not_judged(agents, collection_of, tmp_path):
    one = agents("S1", {"x": data(300_000)})
    wanted = collection_of(one, links=[link(MB, MB / 2, 2 * MB)])
    wanted["sources"] = {"S1": {"files": ["x", "y"]}, "S2": {"files": ["z"]}}
    wanted["agents"]["S2"] = {**one.entry, "url": "https://127.0.0.1:1"}
    wanted["links"].append({"from": "S2", "to": "D", "bandwidth_bytes_per_s": MB})
    answer = dc.pull(wanted, tmp_path / "into", "direct")
    assert not answer.complete
    (kept,) = kept_pulls(tmp_path / "into").pulls
    assert (kept.complete, kept.held, kept.why) == (False, None, ())


def test_where_the_disk_is_full_the_pull_is_complete_all_the_same(
    agents, collection_of, tmp_path, monkeypatch
):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(run, "keep_pull", full)
    told = []
    wanted = collection_of(agents("S1", {"x": data(300_000)}), links=[link(MB)])
    assert dc.pull(wanted, tmp_path / "into", "direct", tell=told.append).complete
    assert any("could not be saved: No space left" in line for line in told)
