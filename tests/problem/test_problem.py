"""Answers of a problem, and that nothing changes it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from instances.three_hosts import MATRIX, from_hosts, from_matrix, small

from datacollect.problem.hosts import Held, Host, Parcel, SharedBottleneck
from datacollect.problem.problem import Problem


def test_arrays_and_attributes_cannot_be_changed():
    problem = from_matrix([MATRIX, MATRIX], periods_s=[0, 1])
    for field in dataclasses.fields(problem):
        value = getattr(problem, field.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(problem, field.name, value)


def test_problems_are_compared_by_what_they_say_and_can_be_keys():
    assert small() == small()
    assert len({small(), small(), small(destination="K")}) == 2


def test_parcels_are_what_lies_where_and_has_yet_to_move():
    """Of S's bytes 3 to 4 lie at K, 6 at D (collected); K has 2 of its own; D's are there."""
    problem = from_hosts(
        [Host("S", 10, release_s=2.0), Host("K", 2), Host("D", 99)],
        held=[Held("D", "S", 6, 1), Held("K", "S", 3, 2)],
    )
    assert problem.parcels == (
        Parcel(0, 0, 0, 3, 2.0),
        Parcel(0, 0, 5, 1, 2.0),
        Parcel(0, 0, 7, 3, 2.0),
        Parcel(1, 0, 3, 2, 0.0),
        Parcel(1, 1, 0, 2, 0.0),
    )
    assert problem.total_bytes == 11
    assert problem.sources == ("S", "K")


def test_what_is_held_altogether_leaves_nothing_at_the_source():
    problem = from_hosts(held=[Held("K", "S", 0, 10)])
    assert problem.parcels == (Parcel(1, 0, 0, 10, 0.0),)
    assert problem.sources == ("S",)
    everything_collected = from_hosts(held=[Held("D", "S", 0, 10)])
    assert everything_collected.parcels == ()
    assert everything_collected.sources == ()


def test_data_held_at_their_own_source_are_as_if_not_named():
    """They wait for the source's release like the rest."""
    problem = from_hosts(
        [Host("S", 10, release_s=2.0), Host("K"), Host("D")], held=[Held("S", "S", 2, 3)]
    )
    assert problem.parcels == (Parcel(0, 0, 0, 10, 2.0),)


def test_links_are_found_by_their_ends():
    problem = small()
    assert problem.link_indices([0, 0, 1, 1, 2], [1, 2, 2, 0, 2]).tolist() == [0, 1, 2, -1, -1]
    assert problem.link_indices(1, 2).item() == 2
    assert problem.link_indices([[0, 2]], [[2, 1]]).tolist() == [[1, -1]]
    assert problem.link_indices([], []).tolist() == []


def test_a_problem_without_links_finds_none():
    assert Problem.from_hosts([Host("D")], [], "D").link_indices([0], [0]).tolist() == [-1]


def test_shared_bottlenecks_know_their_links():
    problem = from_hosts(shared=[SharedBottleneck("w", 1.0, [("K", "D"), ("S", "K")])])
    assert [links.tolist() for links in problem.shared_links] == [[2, 0]]
