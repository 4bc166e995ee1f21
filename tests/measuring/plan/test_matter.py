"""Which pairs are worth a test: into the destination, binding, carrying."""

from __future__ import annotations

import numpy as np
import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.measuring.plan.matter import pairs_that_matter


def two_sources():
    """S has 30 bytes and 1 B/s to D; over K 1 B/s more and over L half as much. T is of no use."""
    names = ["S", "K", "L", "T", "D"]
    bandwidth = np.zeros((5, 5))
    bandwidth[0] = [0, 1, 0.5, 9, 1]
    bandwidth[1, 4] = bandwidth[2, 4] = 100
    return dc.Problem.from_matrix(names, bandwidth, [30, 0, 0, 0, 0], "D")


def test_without_a_plan_the_pairs_into_the_destination_matter():
    assert pairs_that_matter(["a", "D", "b"], "D") == [("a", "D"), ("b", "D")]


def test_binding_pairs_come_before_those_that_only_carry():
    problem = two_sources()
    found = pairs_that_matter(problem.names, "D", problem, dc.coordinated(problem))
    assert found[:4] == [(host, "D") for host in "SKLT"]
    # 30 bytes at 2.5 B/s: 12 bytes over S -> K and 6 over S -> L, both full all the time.
    assert found[4:] == [("S", "K"), ("S", "L")]


def test_what_is_never_full_comes_last():
    """Behind S -> K, of 1 B/s, K -> M, of 100, carries as much and does not bind; M -> D is new."""
    bandwidth = np.zeros((4, 4))
    bandwidth[0, 1], bandwidth[1, 2], bandwidth[2, 3] = 1, 100, 100
    problem = dc.Problem.from_matrix(["S", "M", "K", "D"], bandwidth, [30, 0, 0, 0], "D")
    found = pairs_that_matter(problem.names, "D", problem, dc.coordinated(problem))
    assert found[3:] == [("S", "M"), ("M", "K")]


def test_hosts_that_are_not_measured_have_no_pairs():
    problem = two_sources()
    hosts = ["S", "L", "D"]
    found = pairs_that_matter(hosts, "D", problem, dc.coordinated(problem))
    assert found == [("S", "D"), ("L", "D"), ("S", "L")]


def test_few_pairs_of_many_hosts_matter():
    """30 hosts with lognormal bandwidths: far fewer than the 870 pairs."""
    random = np.random.default_rng(1)
    bandwidth = random.lognormal(0, 1, (30, 30)) * 1e6
    backlog = random.integers(1, 10**9, 30)
    backlog[0] = 0
    names = [f"h{i}" for i in range(30)]
    problem = dc.Problem.from_matrix(names, bandwidth * (1 - np.eye(30)), backlog, "h0")
    found = pairs_that_matter(names, "h0", problem, dc.coordinated(problem))
    assert len({*found}) == len(found) < 0.35 * 870


def test_wrong_questions_are_refused():
    with pytest.raises(ProblemError, match="'d' must be one of the hosts; did you mean 'D'"):
        pairs_that_matter(["a", "D"], "d")
    problem = two_sources()
    with pytest.raises(ProblemError, match="a plan needs the problem that it is for"):
        pairs_that_matter(problem.names, "D", plan=dc.coordinated(problem))
