"""The hash of a problem: another for any other content, the same however it was written."""

from __future__ import annotations

import dataclasses

import numpy as np
from instances.hand_made import links
from instances.three_hosts import MATRIX, small

from datacollect.problem.hosts import Held, Host, SharedBottleneck
from datacollect.problem.problem import Problem


def test_any_change_of_content_changes_the_hash():
    wire = SharedBottleneck("w", 1.0, [("S", "D")])
    held = Held("K", "S", 0, 1)
    variants = [
        small(),
        small(names=("S", "L", "D")),
        small(destination="K"),
        small(backlog_bytes=np.array([11, 0, 0])),
        small(backlog_bytes=np.array([0, 10, 0])),
        small(release_s=np.array([1.0, 0, 0])),
        small(storage_bytes=np.array([1.0, 0, 0])),
        small(uplink_bytes_per_s=np.array([1.0, 0, 0])),
        small(downlink_bytes_per_s=np.array([1.0, 0, 0])),
        small(link_to=np.array([1, 2, 0], dtype=np.int32)),
        small(bandwidth_bytes_per_s=np.array([[4.0, 1.0, 3.0]])),
        small(bandwidth_bytes_per_s=np.full((2, 3), 4.0), periods_s=np.array([0.0, 1.0])),
        small(bandwidth_bytes_per_s=np.full((2, 3), 4.0), periods_s=np.array([0.0, 2.0])),
        small(price_per_gb=np.array([0.1, 0, 0])),
        small(shared=(wire,)),
        small(shared=(dataclasses.replace(wire, bandwidth_bytes_per_s=2.0),)),
        small(held=(held,)),
        small(held=(dataclasses.replace(held, offset_bytes=1),)),
    ]
    assert len({problem.sha256 for problem in variants}) == len(variants)


def test_the_hash_does_not_depend_on_how_a_problem_was_written():
    """numpy's types, the order of links, of held data, of a bottleneck's links: all the same."""
    hosts = [Host("S", 10), Host("K"), Host("D")]
    plain = Problem.from_hosts(
        hosts,
        links("S -> K 4, S -> D 1, K -> D 2"),
        "D",
        shared=[SharedBottleneck("w", 3.0, [("S", "D"), ("K", "D")])],
        held=[Held("K", "S", 0, 1), Held("K", "S", 5, 2)],
    )
    other = Problem.from_matrix(
        np.array(["S", "K", "D"]),
        np.array(MATRIX, dtype=np.float32),
        np.array([10.0, 0.0, 0.0]),
        "D",
        shared=[SharedBottleneck(np.str_("w"), 3, [["K", np.str_("D")], ("S", "D")])],
        held=[Held("K", "S", np.int64(5), np.int32(2)), Held(np.str_("K"), "S", 0, 1)],
    )
    assert other.sha256 == plain.sha256
    bandwidth = np.float64(3)
    again = plain.replace(shared=[SharedBottleneck("w", bandwidth, plain.shared[0].links)])
    assert again.sha256 == plain.sha256
    free = small(price_per_gb=np.zeros(3))
    assert free.price_per_gb is None
    assert free.sha256 == small().sha256


def test_the_hash_stays_what_it_was():
    """Schedules name the problem that they solve by it: files of years ago are to be recognised."""
    wire, held = SharedBottleneck("w", 3.0, [("S", "D"), ("K", "D")]), Held("K", "S", 0, 1)
    problem = small(shared=(wire,), held=(held,), price_per_gb=np.array([0.25, 0.0, 0.0]))
    assert problem.sha256 == "8545303fa80189d87fe42a465b91d7933289ab839cf2ac9d1521aa0625c0cebb"
