"""Which routers count as routers in common."""

from __future__ import annotations

import pytest

from datacollect.measuring.plan.routers import wires_of_routes

AB, CD, AC, EF = ("a", "b"), ("c", "d"), ("a", "c"), ("e", "f")


@pytest.mark.parametrize(
    ("router", "is_common"),
    [
        ("9.9.9.9", True),
        ("2001:4860::1", True),
        ("10.0.0.1", False),
        ("100.64.0.1", False),
        ("fe80::1", False),
        (None, False),
    ],
)
def test_silent_and_private_hops_are_no_routers_in_common(router, is_common):
    found = wires_of_routes({AB: [router], CD: ["8.8.8.8", router]})
    assert found == ([frozenset((AB, CD))] if is_common else [])


def test_each_router_makes_a_set_and_equal_ones_are_one():
    routes = {AB: ["9.0.0.1", "9.0.0.2", "9.0.0.3"], CD: ["9.0.0.1", "9.0.0.2"], EF: ["9.0.0.3"]}
    assert wires_of_routes(routes) == [frozenset((AB, CD)), frozenset((AB, EF))]


def test_pairs_that_share_a_host_anyway_make_no_set():
    assert wires_of_routes({AB: ["9.0.0.1"], AC: ["9.0.0.1"]}) == []
    assert wires_of_routes({AB: ["9.0.0.1"]}) == []
    # Each two of them share a host, but not all three.
    triangle = {AB: ["9.0.0.1"], AC: ["9.0.0.1"], ("b", "c"): ["9.0.0.1"]}
    assert wires_of_routes(triangle) == [frozenset(triangle)]


def test_all_that_answer_on_balanced_paths_may_be_common():
    routes = {AB: [["9.0.0.1", "9.0.0.2"]], CD: ["9.0.0.2"], EF: [["10.0.0.1"], None]}
    assert wires_of_routes(routes) == [frozenset((AB, CD))]
