"""Curves: which tests are run, and what their rates say of the path."""

from __future__ import annotations

import json

import pytest
from instances.measuring import OPERATOR, entry_of, star

from datacollect.measuring.operator import curve_tests, pair_tests
from datacollect.measuring.operator.curve_tests import (
    CAPACITY_PAIRS,
    CurveSettings,
    curve_of,
    measure_curve,
)

# Of 1500 bytes on the wire TCP carries 1448.
WIRE = 1500 / 1448


def rows_of(rates):
    row = {"ended": "done", "bytes": 10, "duration_s": 1.0}
    return [row | {"streams": n, "bandwidth_bytes_per_s": rate} for n, rate in rates.items()]


def test_the_capacity_of_pairs_is_that_of_packets_and_the_curves_of_data():
    """Of 12 MB/s of data beside two of others one gets 4, two get 6, four get 8."""
    rows = rows_of({1: 4e6, 2: 6e6, 4: 8e6})
    found = curve_of(rows, CurveSettings(), 12e6 * WIRE)
    assert found["competitors"] == pytest.approx(2.0)
    assert found["capacity_bytes_per_s"] == pytest.approx(12e6)
    assert found["per_connection_bytes_per_s"] is None
    assert json.loads(found["settings"])["rates_bytes_per_s"] == [[1, 4e6], [2, 6e6], [4, 8e6]]
    assert (found["bytes"], found["duration_s"]) == (30, 3.0)
    # No agent has said whether its host moved other data.
    assert found["beside_pull"] is None
    rows = [row | {"beside_pull": False} for row in rows]
    assert curve_of(rows, CurveSettings(), 12e6 * WIRE)["beside_pull"] is False
    # A test of it beside a pull is none of the path alone, and then neither is the curve.
    rows[1]["beside_pull"] = True
    assert curve_of(rows, CurveSettings(), 12e6 * WIRE)["beside_pull"]


def test_without_a_capacity_there_are_no_competitors():
    found = curve_of(rows_of({1: 40e6, 2: 75e6, 4: 110e6, 8: 115e6}), CurveSettings(), None)
    assert (found["competitors"], found["capacity_bytes_per_s"]) == (None, None)
    assert found["per_connection_bytes_per_s"] == 40e6


def test_a_curve_of_which_a_test_failed_is_none():
    rows = rows_of({1: 4e6, 2: 6e6})
    rows[1] = {"ended": "D: the connection was lost", "streams": 2}
    found = curve_of(rows, CurveSettings(), 12e6)
    assert found["ended"] == "D: the connection was lost"
    assert "competitors" not in found


def pairs_row(capacity):
    """Return the row of pairs that tell a capacity, or none."""
    if capacity is None:
        return {"tool": "pairs", "ended": "packet pairs cannot measure capacities above 300 Mbit/s"}
    return {"tool": "pairs", "ended": "done", "capacity_bytes_per_s": capacity}


@pytest.mark.slow
@pytest.mark.parametrize(("capacity", "numbers"), [(1e9, [1, 2, 4]), (None, [1, 2, 4, 8])])
def test_a_curve_is_measured_test_by_test(tmp_path, monkeypatch, capacity, numbers):
    """Pairs first; where they tell nothing, one more test, and the curve says why it has no m."""
    usual = pair_tests.measure_pair

    def measure(sender, receiver, key, settings, *more):
        if settings.tool == "pairs":
            return pairs_row(capacity)
        return usual(sender, receiver, key, settings, *more)

    monkeypatch.setattr(pair_tests, "measure_pair", measure)
    monkeypatch.setattr(curve_tests, "SETTLED_S", 0.2)
    settings = CurveSettings(0.3, 20_000_000)
    with star(tmp_path, S={"rate": 4_000_000}) as agents:
        ends = (entry_of(agents["S"]), entry_of(agents["D"]))
        *tests, curve = measure_curve(*ends, OPERATOR, settings)
    tests = tests[1:] if capacity else tests  # without the pairs
    assert [row["ended"] for row in tests] == ["done"] * len(numbers)
    assert [(row["tool"], row["streams"]) for row in tests] == [("tcp", n) for n in numbers]
    assert (curve["tool"], curve["ended"]) == ("curve", "done")
    assert (curve["competitors"] is None) == (capacity is None)
    why = json.loads(curve["settings"]).get("no_capacity")
    assert why == (None if capacity else "packet pairs cannot measure capacities above 300 Mbit/s")
    assert curve["time_s"] <= tests[0]["time_s"]


def test_a_curve_costs_its_pairs_and_four_tests():
    cost = CurveSettings(5.0, 10**6).cost
    assert cost.n_bytes == 4 * 10**6 + CAPACITY_PAIRS.cost.n_bytes
    assert cost.seconds == 4 * 8.0 + CAPACITY_PAIRS.cost.seconds
