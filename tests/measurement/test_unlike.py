"""Tests of unlike kinds are never averaged: one kind counts for a link, and the rest is told."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import datacollect as dc
from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.measurement.unlike import of_one_kind


def table(*rows):
    """Rows: from, to, kind, streams, bandwidth; a second apart."""
    names = ["from", "to", "kind", "streams", "bandwidth_bytes_per_s"]
    return pd.DataFrame(rows, columns=names).assign(time_s=range(len(rows)))


ONE_AND_EIGHT = table(
    ("a", "b", "TCP", 1, 10.0), ("a", "b", "TCP", 8, 80.0), ("a", "c", "TCP", 1, 20.0)
)


def quietly(samples, **options):
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        return dc.estimate(samples, "last", **options)


def test_the_kind_that_most_links_have_counts_and_the_rest_is_told():
    with pytest.warns(
        DatacollectWarning, match="left out, since a mean over unlike kinds of tests"
    ):
        found = dc.estimate(ONE_AND_EIGHT)
    assert found["bandwidth_bytes_per_s"].tolist() == [10, 20]
    assert found["kind"].tolist() == ["TCP, 1 stream"] * 2
    assert found["n_samples"].tolist() == [1, 1]
    [note] = found.attrs["notes"]
    assert note == (
        "left out, since a mean over unlike kinds of tests describes none of them: 1 test of 1 "
        "link (a -> b): "
        "1 of 'TCP, 8 streams'; choose with --streams (streams, in Python) for estimates of these"
    )


def test_streams_choose_and_links_without_such_tests_are_named():
    found = quietly(ONE_AND_EIGHT, streams=8)
    assert found[["from", "to", "bandwidth_bytes_per_s"]].to_numpy().tolist() == [["a", "b", 80]]
    assert found.attrs["notes"] == (
        "left out, as no test of theirs had 8 connections: 1 link, a -> c",
    )
    with pytest.raises(ProblemError, match="no test had 3 connections; there are tests with 1 and"):
        dc.estimate(ONE_AND_EIGHT, streams=3)
    with pytest.raises(ProblemError, match="there are tests with none that says how many it had"):
        dc.estimate(ONE_AND_EIGHT.drop(columns="streams"), streams=3)


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        # UDP only where there is nothing else, even if most links have it.
        ([("a", "b", "UDP", 1), ("a", "c", "UDP", 1), ("a", "b", "TCP", 1)], ["TCP", "UDP"]),
        ([("a", "b", "TCP", 1), ("a", "b", "TCP both ways at once", 1)] * 2, ["TCP"]),
        # As many links: more samples, then fewer connections; a number not known comes last.
        ([("a", "b", "", 2), ("a", "b", "", 4), ("a", "b", "", 4)], ["4 streams"]),
        ([("a", "b", "", 16), ("a", "b", "", 2)], ["2 streams"]),
        ([("a", "b", "", float("nan")), ("a", "b", "", 2)], ["2 streams"]),
    ],
)
def test_which_kind_counts(rows, counts):
    samples = table(*((*row, 1.0) for row in rows))
    found = quietly(samples)["kind"].str.removesuffix(", 1 stream")
    assert found.tolist() == counts


def test_links_of_unlike_kinds_are_told():
    samples = table(("a", "b", "TCP", 1, 10.0), ("a", "c", "TCP", 8, 80.0))
    with pytest.warns(
        DatacollectWarning, match="may not be comparable: 1 link by 'TCP, 1 stream', 1 li"
    ):
        assert len(dc.estimate(samples)) == 2


def test_of_alike_tests_nothing_is_said():
    alike = ONE_AND_EIGHT[ONE_AND_EIGHT["streams"] == 1]
    for samples in (alike, alike.drop(columns="kind"), alike.drop(columns=["kind", "streams"])):
        assert of_one_kind(samples).notes == ()
        assert len(dc.estimate(samples)) == 2


def test_a_kind_is_chosen_before_periods_of_the_day_are():
    """By night eight streams alone: the link has no estimate of one stream then."""
    samples = table(("a", "b", "TCP", 1, 10.0), ("a", "b", "TCP", 8, 80.0))
    noon_s = 1_700_049_600
    samples["time_s"] = [noon_s, noon_s + 12 * 3600]
    with (
        pytest.warns(DatacollectWarning, match="1 of 'TCP, 8 streams'"),
        pytest.raises(ProblemError, match="never measured in the period from 20:00 on"),
    ):
        dc.estimate(samples, daily=["08:00", "20:00"], timezone="UTC")
