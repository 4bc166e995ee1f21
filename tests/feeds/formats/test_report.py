"""Counts, delays and the report: what is written is read, and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datacollect.errors import ProblemError
from datacollect.feeds.formats.report import Delays, FeedCounts, FeedReport


def report(**fields) -> FeedReport:
    return FeedReport("scan7", "s", "u", "tcp", 4096, 2e6, **fields)


def test_quantiles_are_right_to_a_tenth():
    drawn = np.random.default_rng(1).lognormal(-3, 1.5, 2000)
    delays = Delays()
    for delay_s in drawn:
        delays.add(delay_s)
    for part in (0.01, 0.5, 0.99, 0.999):
        exact = np.quantile(drawn, part, method="inverted_cdf")
        assert exact <= delays.quantile(part) <= exact * 1.1
    assert delays.quantile(1) == delays.largest_s == drawn.max()
    assert delays.mean_s == pytest.approx(drawn.mean())


def test_no_delays_have_no_quantile():
    assert math.isnan(Delays().quantile(0.5))
    assert Delays.from_dict(Delays().to_dict()) == Delays()


def test_clocks_that_disagree_may_make_delays_negative():
    delays = Delays()
    delays.add(-0.5)
    delays.add(1e9)  # past the last bin
    assert (delays.least_s, delays.quantile(0.1)) == (-0.5, 1e-5)
    assert delays.quantile(1) <= 1e9


def test_a_report_is_read_as_it_was_written():
    one = report(counts=FeedCounts(made=2, received=1, lost=1), next=2, ended="now")
    one.delays.add(0.25)
    one.more["holes_bytes"] = 77
    found = FeedReport.from_dict(one.to_dict())
    assert found.to_dict() == one.to_dict()
    assert not found.counts.is_whole


@pytest.mark.parametrize(
    "change",
    [
        {"format": "datacollect-feed/1"},
        {"counts": {"made": -1}},
        {"counts": {"made": True}},
        {"counts": {"other": 1}},
        {"delay": {"n": 3, "histogram": [[0.1, 2]], "mean_s": 1, "least_s": 1, "largest_s": 1}},
        {"delay": {"n": 1, "histogram": [["x", 1]], "mean_s": 1, "least_s": 1, "largest_s": 1}},
        {"delay": None},
        {"next": "7"},
        {"stream": None},
    ],
)
def test_what_is_no_report(change):
    with pytest.raises(ProblemError):
        FeedReport.from_dict({**report().to_dict(), **change})
