"""Changes of bandwidths and of routes, link by link."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from datacollect.measuring.results.changed_links import (
    RouteChange,
    bandwidth_changes,
    changed_routes,
)

USUAL = [9.0, 10.0, 11.0] * 10


def series(tail, rates):
    table = pd.DataFrame({"from": tail, "to": "D", "time_s": [60.0 * i for i in range(len(rates))]})
    return table.assign(bandwidth_bytes_per_s=rates)


def test_each_link_has_its_own_usual_rate_whatever_the_order_of_rows():
    both = pd.concat([series("S", [*USUAL, 5.0, 5.0, 5.0]), series("K", [9 * x for x in USUAL])])
    [found] = bandwidth_changes(both.sample(frac=1, random_state=1))
    assert (found.tail, found.head, found.time_s) == ("S", "D", 31 * 60.0)
    assert (found.before_bytes_per_s, found.after_bytes_per_s) == (10.0, 5.0)
    assert found.confirmed is False


def test_later_samples_confirm_a_change_or_do_not():
    [stays] = bandwidth_changes(series("S", [*USUAL, *[5.0, 5.2, 4.8] * 4]))
    [returns, *_] = bandwidth_changes(series("S", [*USUAL, 5.0, 5.0, *USUAL]))
    assert stays.confirmed is True
    assert returns.confirmed is False


def test_without_ruptures_nothing_is_confirmed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ruptures", None)
    [found] = bandwidth_changes(series("S", [*USUAL, *[5.0] * 9]))
    assert found.confirmed is None


A, B, BALANCED = '["8.0.0.1"]', '["9.0.0.1"]', '[["9.0.0.1"]]'


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        ([A, B, A], []),
        ([A, B, B, B], [RouteChange("S", "D", 2.0)]),
        ([A, None, B, None, B], [RouteChange("S", "D", 4.0)]),
        ([A, B, "[null]", B], []),
        # Of several paths that are mixed none tells of a change.
        ([A, BALANCED, BALANCED], []),
    ],
)
def test_routes_change_by_two_equal_new_traces(routes, expected):
    times = [float(i) for i in range(len(routes))]
    table = pd.DataFrame({"from": "S", "to": "D", "time_s": times, "routers": routes})
    assert changed_routes(table) == expected
