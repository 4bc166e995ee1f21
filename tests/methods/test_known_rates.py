"""Rates by connections from what wires carry and what one connection got, by hand."""

import numpy as np
import pytest

import datacollect as dc
from datacollect.methods.known_rates import known_capacities, with_known_rates
from datacollect.problem.connection_rates import link_rates, wire_rates


def three(**more):
    """A, B behind one wire of 12 bytes/s where they got 3 and 4; C elsewhere, nothing known."""
    hosts = [dc.Host("A", 60), dc.Host("B", 60), dc.Host("C", 60), dc.Host("D", **more)]
    links = [dc.Link("A", "D", 3.0), dc.Link("B", "D", 4.0), dc.Link("C", "D", 5.0)]
    wire = dc.SharedBottleneck("w", 12.0, [("A", "D"), ("B", "D")])
    return dc.Problem.from_hosts(hosts, links, "D", shared=[wire])


def test_links_take_their_narrowest_wire():
    assert known_capacities(three()).tolist() == [12.0, 12.0, np.inf]
    assert known_capacities(three(downlink_bytes_per_s=9.0)).tolist() == [9.0, 9.0, 9.0]


def test_competitors_follow_from_what_one_connection_got():
    """12/3 - 1 = 3, 12/4 - 1 = 2; on the wire the middle of 3 and 4 was got: 12/3.5 - 1."""
    found = with_known_rates(three())
    assert found.competitors[:2].tolist() == pytest.approx([3.0, 2.0])
    assert np.isnan(found.competitors[2])
    assert found.shared[0].competitors == pytest.approx(12 / 3.5 - 1)
    assert wire_rates(found).rate(1).tolist() == pytest.approx([3.5])
    assert link_rates(found).rate(3)[0] == pytest.approx(6.0)  # 12 x 3 of 6


def test_what_is_given_stays():
    once = with_known_rates(three())
    assert with_known_rates(once) == once


def test_a_probe_that_got_more_than_the_wire_has_it_alone():
    hosts = [dc.Host("A", 60, uplink_bytes_per_s=3.0), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, [dc.Link("A", "D", 4.0)], "D")
    found = with_known_rates(problem)
    assert found.competitors.tolist() == [0.0]
    assert link_rates(found).rate(5).tolist() == [4.0]


def test_where_nothing_is_known_nothing_changes():
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    assert with_known_rates(problem) == problem
