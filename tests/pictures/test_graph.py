"""Positions of hosts in drawings."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from datacollect.pictures.graph import place_hosts
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem


def hosts(*places) -> Problem:
    """Hosts at (latitude, longitude), or nowhere; the first collects."""
    named = [
        Host(f"h{i}", latitude=place and place[0], longitude=place and place[1])
        for i, place in enumerate(places)
    ]
    return Problem.from_hosts(named, [], "h0")


def test_a_map_has_north_up_east_right_and_degrees_true_to_scale():
    """Around 60 degrees north a degree of longitude is half as long as one of latitude."""
    drawing = place_hosts(hosts((55, 0), (65, 0), (60, 40)), range(3), [])
    assert drawing.is_map
    assert drawing.at.tolist() == [[0, 1], [0, 0], [1, 0.5]]
    assert drawing.aspect == pytest.approx(40 * math.cos(math.radians(60)) / 10)


def test_the_date_line_does_not_tear_neighbours_apart():
    """Auckland and Honolulu are 28 degrees apart over the date line, Tokyo west of both."""
    drawing = place_hosts(hosts((-37, 175), (21, -158), (36, 140)), range(3), [])
    x = drawing.at[:, 0]
    assert x[2] == 0
    assert x[1] == 1
    assert x[0] == pytest.approx(35 / 62)


def test_hosts_that_stand_nowhere_are_on_the_lower_edge():
    drawing = place_hosts(hosts((10, 10), (20, 20), None), range(3), [])
    assert drawing.is_map
    assert drawing.off_map == (2,)
    assert drawing.at[2].tolist() == [0.5, 1.0]
    assert drawing.at[:2, 1].max() < 0.9


@pytest.mark.parametrize("places", [(None, None), ((5, 5), None), ((5, 5), (5, 5))])
def test_one_place_makes_no_map(places):
    assert not place_hosts(hosts(*places), range(2), [(1, 0)]).is_map


def test_without_places_hosts_stand_in_rings_by_their_hops():
    """h1 and h2 send to h0, h3 to h1; nobody hears of h4."""
    at = place_hosts(hosts(*[None] * 5), range(5), [(1, 0), (2, 0), (3, 1)]).at
    away = np.hypot(*(at - at[0]).T)
    assert away[0] == 0
    assert away[1] == pytest.approx(away[2])
    assert 0 < away[1] < away[3] < away[4] + 1e-9


@pytest.mark.parametrize("n", [2, 33, 300])
def test_nobody_hides_another(n):
    at = place_hosts(hosts(*[None] * n), range(n), [(i, 0) for i in range(1, n)]).at
    assert at.min() >= 0
    assert at.max() <= 1
    assert min(math.dist(a, b) for a, b in combinations(at.tolist(), 2)) > 0.3 / math.sqrt(n)
