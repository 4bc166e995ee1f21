"""S (10 bytes) -> K -> D, and S -> D: one problem by each constructor, and what its links are."""

from __future__ import annotations

import numpy as np
from instances.hand_made import links

from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem

MATRIX = [[0, 4.0, 1.0], [0, 0, 2.0], [0, 0, 0]]


def small(**changes) -> Problem:
    """S (10 bytes) -> K -> D, and S -> D; hosts 0, 1, 2; changed by columns."""
    columns = {
        "names": ("S", "K", "D"),
        "destination": "D",
        "backlog_bytes": np.array([10, 0, 0]),
        "release_s": np.zeros(3),
        "storage_bytes": np.full(3, np.inf),
        "uplink_bytes_per_s": np.full(3, np.inf),
        "downlink_bytes_per_s": np.full(3, np.inf),
        "link_from": np.array([0, 0, 1], dtype=np.int32),
        "link_to": np.array([1, 2, 2], dtype=np.int32),
        "bandwidth_bytes_per_s": np.array([[4.0, 1.0, 2.0]]),
    }
    return Problem(**(columns | changes))


def from_hosts(hosts=None, text="S -> K 4, S -> D 1, K -> D 2", destination="D", **options):
    hosts = hosts or [Host("S", 10), Host("K"), Host("D")]
    return Problem.from_hosts(hosts, links(text), destination, **options)


def from_matrix(matrix=MATRIX, backlog_bytes=(10, 0, 0), names=("S", "K", "D"), **options):
    return Problem.from_matrix(names, matrix, backlog_bytes, "D", **options)


def ends_and_rates(problem: Problem) -> list[tuple[str, str, list[float]]]:
    names, rates = problem.names, problem.bandwidth_bytes_per_s.T.tolist()
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    return [(names[a], names[b], rate) for (a, b), rate in zip(ends, rates, strict=True)]
