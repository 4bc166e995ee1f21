"""Warnings of what problems leave out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import datacollect as dc
from datacollect.methods.warnings import (
    DAY_S,
    OLD_S,
    many_connections,
    missing_limits,
    old_estimates,
    plan_warnings,
)
from datacollect.problem.hosts import SharedBottleneck


def _star(n: int, **limits: Any) -> dc.Problem:
    """n sources, each with a link of 1 MB/s to D."""
    names = [f"S{i}" for i in range(n)] + ["D"]
    rates = np.zeros((n + 1, n + 1))
    rates[:n, n] = 1e6
    return dc.Problem.from_matrix(names, rates, [10**6] * n + [0], "D", **limits)


def test_a_destination_without_a_downlink_is_named() -> None:
    assert missing_limits(_star(3)) == [
        "no downlink is given for 'D': its links together, 24 Mbit/s, may be more than it can take"
    ]


def test_what_is_limited_or_has_few_links_is_not() -> None:
    assert missing_limits(_star(3, downlink_bytes_per_s=1e7)) == []
    assert missing_limits(_star(2)) == []
    wire = SharedBottleneck("w", 1e6, [(f"S{i}", "D") for i in range(3)])
    assert missing_limits(_star(3).replace(shared=(wire,))) == []


def test_sources_without_uplinks_are_named_with_the_worst() -> None:
    """Each of four reaches three others and D: 4 MB/s, 32 Mbit/s."""
    names = ["A", "B", "C", "E", "D"]
    rates = np.full((5, 5), 1e6)
    problem = dc.Problem.from_matrix(names, rates, [9] * 4 + [0], "D", downlink_bytes_per_s=1e9)
    (found,) = missing_limits(problem)
    assert found.startswith("no uplink is given for 'A', 'B', 'C' and 1 more: links out of 'E'")
    assert "32 Mbit/s" in found


def test_many_connections_are_told_from_few() -> None:
    plan = dc.direct(_star(12))
    assert many_connections(plan, 12) is None
    assert many_connections(plan, 5) is None
    found = many_connections(plan, 4)
    assert found is not None
    assert found.startswith("direct opens 12 connections and direct 4")
    assert found.endswith("may be as fast; try more connections first")


def test_no_number_of_another_network_is_quoted() -> None:
    """What more connections gain depends on the network: the only numbers are the plan's own."""
    found = many_connections(dc.direct(_star(12)), 4)
    assert found is not None
    assert re.findall(r"[\d.]*\d", found) == ["12", "4"]


def test_nothing_is_compared_with_direct_where_it_is_impossible() -> None:
    """Twelve sources behind K: 24 hops and no way but over K, so direct is no advice."""
    names = [*(f"S{i}" for i in range(12)), "K", "D"]
    rates = np.zeros((14, 14))
    rates[:12, 12] = rates[12, 13] = 1e6
    problem = dc.Problem.from_matrix(names, rates, [9] * 12 + [0, 0], "D")
    plan = dc.coordinated(problem)
    assert many_connections(plan, 4) is not None
    assert not [text for text in plan_warnings(problem, plan) if "direct" in text]
    assert dc.compare(problem).advised is None
    assert dc.compare(_star(2)).advised is not None


def test_old_estimates_are_said_to_be_old() -> None:
    now_s = 1_800_000_000.0
    fresh = _star(2).replace(measured_s=now_s - OLD_S)
    assert old_estimates(fresh, now_s) is None
    assert old_estimates(_star(2), now_s) is None
    ahead = _star(2).replace(measured_s=now_s + 3 * 86_400)
    assert "measured 3 days ahead of this host's clock; check that" in old_estimates(ahead, now_s)
    old = _star(2).replace(measured_s=now_s - 30 * DAY_S)
    (said,) = plan_warnings(old, now_s=now_s)
    assert said.startswith("bandwidths were measured 30 days ago, which is longer than 7:")
    said = old_estimates(_star(2).replace(measured_s=now_s - 7.2 * DAY_S), now_s)
    assert said.startswith("bandwidths were measured more than 7 days ago: of 3080")


def test_when_bandwidths_were_measured_is_read_from_tables_and_files(tmp_path: Path) -> None:
    """Of several links the one whose newest sample is the oldest counts."""
    links = pd.DataFrame(
        {
            "from": ["S", "K"],
            "to": ["D", "D"],
            "bandwidth_bytes_per_s": [1.0, 2.0],
            "newest_s": [1.7e9, 1.6e9],
        }
    )
    assert dc.Problem.from_dataframe(links, {"S": 5}, "D").measured_s == 1.6e9
    assert dc.Problem.from_dataframe(links.assign(newest_s=60.0), {"S": 5}, "D").measured_s is None
    with pytest.raises(dc.ProblemError, match=r"newest_s must be seconds .* divide milli"):
        dc.Problem.from_dataframe(links.assign(newest_s=1.7e12), {"S": 5}, "D")
    links.to_csv(tmp_path / "grid.csv", index=False)
    hosts: dict[str, Any] = {"S": {"backlog_bytes": 5}, "K": {}, "D": {}}
    tree = {"destination": "D", "bandwidth_csv": "grid.csv", "hosts": hosts}
    problem = dc.Problem.from_dict(tree, tmp_path)
    assert problem.measured_s == 1.6e9
    assert dc.Problem.from_dict(problem.to_dict()).measured_s == 1.6e9
    older = dc.Problem.from_dict(tree | {"measured_at": "2020-01-01T00:00:00Z"}, tmp_path)
    assert older.measured_s == 1_577_836_800.0
    assert older.sha256 == problem.sha256


def test_an_instant_that_no_date_can_be_is_refused_where_it_is_read(tmp_path: Path) -> None:
    """Milliseconds, found out only when the problem was written again: a mistake of ours then."""
    (tmp_path / "grid.csv").write_text(
        "from,to,bandwidth_bytes_per_s,newest_s\nS,D,1,1700000000000\n"
    )
    tree = {"destination": "D", "bandwidth_csv": "grid.csv", "hosts": {"S": {}, "D": {}}}
    with pytest.raises(dc.ProblemError, match=r"grid\.csv, line 2: newest_s .* milliseconds"):
        dc.Problem.from_dict(tree, tmp_path)
