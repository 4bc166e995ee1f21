"""Predicted ends of collections, from capacities and what one connection got; by hand."""

import pytest

import datacollect as dc
from datacollect.methods.prediction import (
    AT_FAIR_RATES,
    IN_PACKETS,
    RouteLoad,
    bare_adaptive_s,
    bare_makespan_s,
    predicted,
    predictions,
)


def two(wire=None, **host):
    """A and B with 60 bytes each, 3 bytes/s to D for one connection."""
    hosts = [dc.Host("A", 60, **host), dc.Host("B", 60, **host), dc.Host("D")]
    links = [dc.Link("A", "D", 3.0), dc.Link("B", "D", 3.0)]
    shared = [dc.SharedBottleneck("w", wire, [("A", "D"), ("B", "D")])] if wire else []
    return dc.Problem.from_hosts(hosts, links, "D", shared=shared)


def test_ours_share_with_what_left_one_its_rate():
    """Of 12 bytes/s beside 3 others one got 3; 2 of ours get 12/5 each: 1/r = 1/3 + 1/12."""
    jobs = [RouteLoad(("A", "D"), 60, 1), RouteLoad(("B", "D"), 60, 1)]
    assert bare_makespan_s(two(12.0), jobs) == pytest.approx(60 / 2.4)


def test_what_has_ended_leaves_room():
    """A's 24 bytes end after 10 s at 2.4; B has 36 left, alone at 3: 12 s more."""
    jobs = [RouteLoad(("A", "D"), 24, 1), RouteLoad(("B", "D"), 60, 1)]
    assert bare_makespan_s(two(12.0), jobs) == pytest.approx(22.0)


def test_connections_that_move_take_their_share_of_the_wire_all_the_time():
    """Of 12 bytes/s beside 3 others 6 of ours have 8: 120 bytes take 15 s."""
    assert bare_adaptive_s(two(12.0), 6) == pytest.approx(15.0)


def test_a_hop_has_the_connections_that_the_plan_gives_it():
    """Two on the first hop, of 12 bytes/s beside 3 others, get 2 x 12/5; one on the second 4."""
    hosts = [dc.Host("A", 60), dc.Host("B"), dc.Host("D")]
    links = [
        dc.Link("A", "B", 3.0, capacity_bytes_per_s=12.0),
        dc.Link("B", "D", 4.0, capacity_bytes_per_s=12.0),
    ]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    job = [RouteLoad(("A", "B", "D"), 60, (2, 1))]
    assert bare_makespan_s(problem, job) == pytest.approx(15.0)
    assert bare_makespan_s(problem, [RouteLoad(("A", "B", "D"), 60, (1, 2))]) == pytest.approx(20.0)


def test_the_narrowest_of_several_wires_counts():
    """Uplinks of 6 allow two of A's 1/r = 1/3 + 1/6; the wire allows three 1/r = 1/3 + 2/12."""
    jobs = [RouteLoad(("A", "D"), 40, 2), RouteLoad(("B", "D"), 10, 1)]
    problem = two(12.0, uplink_bytes_per_s=6.0)
    # B ends after 5 s at 2; A's two go on at 2 each, by the uplink.
    assert bare_makespan_s(problem, jobs) == pytest.approx(10.0)


def test_a_link_may_know_its_own_wire():
    hosts, link = [dc.Host("S", 60), dc.Host("D")], dc.Link("S", "D", 3.0, competitors=3)
    problem = dc.Problem.from_hosts(hosts, [link], "D")
    assert bare_makespan_s(problem, [RouteLoad(("S", "D"), 60, 4)]) == pytest.approx(
        60 / 4 / 12 * 7
    )


def test_without_capacities_nothing_is_predicted():
    assert bare_makespan_s(two(), [RouteLoad(("A", "D"), 60, 1)]) is None
    assert predicted(two(), [RouteLoad(("A", "D"), 60, 1)], "direct") is None


@pytest.mark.parametrize(("in_packets", "learned"), [(True, IN_PACKETS), (False, AT_FAIR_RATES)])
def test_wires_that_others_use_are_told_from_wires_that_are_free(in_packets, learned):
    """3 of 12 bytes/s is little of them, 7 of 12 is most; packets have factors of their own."""
    jobs = [RouteLoad(("A", "D"), 60, 1)]
    found = predicted(two(12.0), jobs, "coordinated", in_packets=in_packets)
    bare_s = bare_makespan_s(two(12.0), jobs)
    assert found == tuple(bare_s * factor for factor in _in_order(learned["coordinated"][False]))
    free = two(12.0).replace(bandwidth_bytes_per_s=[[7.0, 7.0]])
    bare_s = bare_makespan_s(free, jobs)
    found = predicted(free, jobs, "coordinated", in_packets=in_packets)
    assert found == tuple(bare_s * factor for factor in _in_order(learned["coordinated"][True]))


def _in_order(factors):
    return factors.middle, factors.low, factors.high


@pytest.mark.parametrize("learned", [IN_PACKETS, AT_FAIR_RATES])
def test_the_middle_lies_in_the_range(learned):
    assert sorted(learned) == ["adaptive", "coordinated", "direct"]
    for factors in (each for pair in learned.values() for each in pair):
        assert factors.low <= factors.middle <= factors.high


def known_link(**more):
    hosts = [dc.Host("S", 60, **more), dc.Host("D")]
    link = dc.Link("S", "D", 3.0, capacity_bytes_per_s=12.0)
    return dc.Problem.from_hosts(hosts, [link], "D")


def test_plans_are_predicted_where_rates_by_connections_are_known():
    """Four of ours beside three others have 48/7 bytes/s."""
    problem = known_link()
    found = predictions(problem, dc.coordinated(problem, connections=4))
    middle = IN_PACKETS["coordinated"][False].middle
    assert found["coordinated"].makespan_s == pytest.approx(60 * 7 / 48 * middle)
    assert found["adaptive"].makespan_s == pytest.approx(
        60 * 7 / 48 * IN_PACKETS["adaptive"][False].middle
    )
    bare = problem.replace(
        capacity_bytes_per_s=None, competitors=None, per_connection_bytes_per_s=None
    )
    assert predictions(bare, dc.coordinated(bare)) == {}
    late = known_link(release_s=5.0)
    assert predictions(late, dc.direct(late)) == {}
    turns = dc.direct(problem, at_a_time=1)
    assert set(predictions(problem, turns)) == {"adaptive"}
