"""Sweeps whose file has changed: what is there is kept, and only what contradicts it refused."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from instances.small_experiments import METHOD, RATE, experiment_of, failures_of, without_times

import datacollect as dc
from datacollect.study.axes import Axis, AxisValue
from datacollect.study.growth import grown_axes

SLOW_RATE = {**RATE, "values": [250_000.0, 500_000.0, 1_000_000.0]}


def swept(folder, **changes):
    """Sweep; return the table, what was kept, and the runs' own finishing times."""
    reports = []
    table = dc.sweep(experiment_of(**changes), folder, workers=0, progress=reports.append)
    return table, reports[-1].kept


def rows_by_key(table):
    return without_times(table).set_index("key").sort_index()


@pytest.mark.slow
def test_a_value_that_is_added_runs_alone(tmp_path):
    """2 methods, 2 rates, 3 seeds are 12 runs; a third rate adds 6, and 2 more seeds 12."""
    first, kept = swept(tmp_path)
    assert (len(first), kept) == (12, 0)
    more, kept = swept(tmp_path, axes=[METHOD, SLOW_RATE])
    assert (len(more), kept) == (18, 12)
    pd.testing.assert_frame_equal(
        rows_by_key(more).loc[first["key"].sort_values()].sort_index(), rows_by_key(first)
    )
    # What had ended was not run again.
    times = more.set_index("key")["finished_at"]
    assert times[first["key"]].tolist() == first["finished_at"].tolist()
    again, kept = swept(tmp_path, axes=[METHOD, SLOW_RATE], seeds={"least": 5})
    assert (len(again), kept) == (30, 18)


@pytest.mark.slow
def test_it_ends_as_if_all_had_been_asked_for_at_once(tmp_path):
    swept(tmp_path / "grown")
    grown, _ = swept(tmp_path / "grown", axes=[METHOD, SLOW_RATE])
    at_once, _ = swept(tmp_path / "at once", axes=[METHOD, SLOW_RATE])
    pd.testing.assert_frame_equal(without_times(grown), without_times(at_once))


def test_a_value_that_is_taken_away_keeps_its_rows(tmp_path):
    swept(tmp_path)
    table, kept = swept(tmp_path, axes=[METHOD, {**RATE, "values": [2_000_000.0]}])
    assert (len(table), kept) == (18, 12)
    assert set(table["rate"]) == {"500000", "1e+06", "2e+06"}
    tree = json.loads((tmp_path / "experiment.json").read_text())
    rates = [value["label"] for value in tree["axes"][1]["values"]]
    assert rates == ["2e+06", "500000", "1e+06"]
    # And the file of the beginning goes on, too.
    assert len(swept(tmp_path)[0]) == 18


def test_a_failure_of_before_is_forgotten_when_it_is_made_well(tmp_path, monkeypatch):
    """Its note is found again, though the experiment has more values by now."""
    with monkeypatch.context() as broken:
        broken.setattr("datacollect.study.jobs.carry_out", None)
        assert swept(tmp_path)[0].empty
    assert len(failures_of(tmp_path, ("method", "rate"))) == 12
    experiment = experiment_of(axes=[METHOD, SLOW_RATE])
    table = dc.sweep(experiment, tmp_path, workers=0, retry_failed=True)
    assert len(table) == 18
    assert not failures_of(tmp_path, ("method", "rate"))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder in which nothing changes."""
    folder = tmp_path_factory.mktemp("results")
    swept(folder)
    return folder


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([METHOD], "'rate' is missing"),
        ([METHOD, RATE, {"name": "n", "key": "scale", "values": [1.0]}], "'n' is new"),
        ([{**METHOD, "paired": False}, RATE], "'method' was paired"),
        (
            [METHOD, {**RATE, "values": [{"label": "500000", "value": 7.0}]}],
            r"the label '500000' meant .*rate_bytes_per_s = 500000.0, and means .* = 7.0 now",
        ),
        (
            [METHOD, {**RATE, "values": [{"label": "half", "value": 500_000.0}]}],
            "'half' was called '500000' before",
        ),
    ],
)
def test_what_contradicts_the_results_is_refused(results, axes, message):
    before = (results / "experiment.json").read_bytes()
    with pytest.raises(dc.ProblemError, match=message) as caught:
        swept(results, axes=axes)
    assert f"or sweep into another folder, with --reuse {results}" in str(caught.value)
    assert (results / "experiment.json").read_bytes() == before


def axis(name, *values):
    return Axis(name, False, tuple(AxisValue(label, places) for label, places in values))


def test_axes_change_places_unless_both_change_the_same():
    flows, udp = axis("flows", ("1", {"background.flows": 1})), axis("udp", ("0", {"b.udp": 0}))
    assert [a.name for a in grown_axes([flows, udp], [udp, flows])] == ["udp", "flows"]
    whole = axis("all", ("1", {"background": {}}))
    with pytest.raises(dc.ProblemError, match="'flows' came before 'all' in"):
        grown_axes([flows, whole], [whole, flows])


def test_what_values_are_combined_with_grows_too():
    def only(*labels):
        value = AxisValue("direct", {}, {"error": list(labels)} if labels else {})
        return Axis("method", True, (value,))

    (grown,) = grown_axes([only("0 %")], [only("+70 %")])
    assert set(grown.values[0].only["error"]) == {"0 %", "+70 %"}
    # All labels of the other axis were allowed before.
    (grown,) = grown_axes([only()], [only("0 %")])
    assert grown.values[0].only == {}
