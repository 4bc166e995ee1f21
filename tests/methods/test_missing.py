"""What problems do not say is said."""

from __future__ import annotations

from typing import Any

import numpy as np

import datacollect as dc
from datacollect.methods.missing import many_connections, missing_limits
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
    assert many_connections(plan, plan) is None
    few = dc.direct(_star(4))
    found = many_connections(plan, few)
    assert found is not None
    assert found.startswith("direct opens 12 connections and direct 4")
    assert many_connections(plan, None) is None
