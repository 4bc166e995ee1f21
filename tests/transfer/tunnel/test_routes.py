"""Which route a tunnel takes: the widest by estimates, with the direct one before its equals."""

from __future__ import annotations

import itertools
import random

import pytest

from datacollect.transfer.tunnel.routes import BETTER_BY, widest_relays

# Two relays: over K1 3, over K2 2, directly 1; both relays after each other 2.
RATES = {
    ("S", "D"): 1.0,
    ("S", "K1"): 3.0,
    ("K1", "D"): 4.0,
    ("S", "K2"): 9.0,
    ("K2", "D"): 2.0,
    ("K2", "K1"): 9.0,
}


def route(rates, broken=(), relays=("K1", "K2")):
    return widest_relays("D", "S", relays, rates, broken)


def test_the_largest_of_path_minima():
    """From S over K2 and K1: min(9, 9, 4) = 4, more than over either alone."""
    assert route(RATES) == ("K1", "K2")
    assert route({**RATES, ("K2", "K1"): 2.9}) == ("K1",)


@pytest.mark.parametrize(("direct", "expected"), [(3.9, ()), (3.8, ("K1", "K2"))])
def test_the_direct_route_unless_another_is_more_than_five_per_cent_better(direct, expected):
    assert route({**RATES, ("S", "D"): direct}) == expected


def test_of_equals_the_shorter_route():
    rates = {**RATES, ("S", "K1"): 4.0}
    assert route(rates) == ("K1",)


def test_a_link_that_is_broken_leads_to_the_next_route():
    assert route(RATES, {("K1", "K2")}) == ("K1",)
    assert route(RATES, {("D", "K1")}) == ("K2",)
    assert route(RATES, {("D", "K1"), ("D", "K2")}) == ()
    assert route(RATES, {("D", "K1"), ("D", "K2"), ("D", "S")}) is None


def test_without_estimates_it_is_direct_and_relays_are_a_last_resort():
    assert route({}) == ()
    assert route({}, {("D", "S")}) == ("K1",)
    assert route({}, {("D", "S"), ("K1", "S")}) == ("K2",)


def test_no_more_relays_than_tickets_name():
    """A chain of ten relays is wide, and too long; one that is shorter by three is the best."""
    names = [f"K{i}" for i in range(10)]
    chain = ["S", *names, "D"]
    rates = dict.fromkeys(itertools.pairwise(chain), 9.0) | {("S", "D"): 1.0}
    assert widest_relays("D", "S", names, rates) == ()
    rates["S", "K2"] = 9.0
    assert widest_relays("D", "S", names, rates) == tuple(names[:1:-1])


@pytest.mark.parametrize("seed", range(30))
def test_no_route_of_all_is_wider(seed):
    """Against every route, one by one."""
    draws = random.Random(seed)
    relays = ["K1", "K2", "K3"]
    hosts = ["S", *relays, "D"]
    rates = {
        (a, b): draws.choice([1.0, 2.0, 3.0, 5.0, 8.0])
        for a in hosts
        for b in hosts
        if a != b and draws.random() < 0.7
    }

    def width(route: tuple[str, ...]) -> float:
        pairs = itertools.pairwise(("D", *route, "S"))
        return min(rates.get((b, a), 0.001) for a, b in pairs)

    every = [each for n in range(1, 4) for each in itertools.permutations(relays, n)]
    best = max(map(width, every))
    found = widest_relays("D", "S", relays, rates)
    if best > BETTER_BY * width(()):
        assert width(found) == best
        assert len(found) == min(len(each) for each in every if width(each) == best)
    else:
        assert found == ()
