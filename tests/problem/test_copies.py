"""Copies of problems: changed, checked again, and without stale results."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
import pytest
from instances.three_hosts import ends_and_rates, small

import datacollect as dc
from datacollect.problem.copies import TAKEN_OVER
from datacollect.problem.hosts import Held, SharedBottleneck
from datacollect.problem.problem import Problem

COMPUTED_ONCE = [
    name
    for room in Problem.__mro__
    for name, is_of in vars(room).items()
    if isinstance(is_of, cached_property)
]


def test_replace_validates_anew():
    assert small().replace(backlog_bytes=np.array([7, 0, 0])).total_bytes == 7
    with pytest.raises(dc.ProblemError, match="backlog_bytes must be >= 0"):
        small().replace(backlog_bytes=np.array([-7, 0, 0]))


CHANGES = [
    {"names": ("S", "D", "K")},
    {"destination": "K"},
    {"backlog_bytes": np.array([12, 3, 0])},
    {"release_s": np.array([4.0, 0, 0])},
    {"storage_bytes": np.array([np.inf, 7.0, np.inf])},
    {"link_from": np.array([1, 0, 0], dtype=np.int32), "link_to": np.array([2, 1, 2])},
    {"bandwidth_bytes_per_s": np.array([[7.0, 8.0, 9.0]])},
    {"bandwidth_bytes_per_s": np.ones((2, 3)), "periods_s": np.array([0.0, 3.0])},
    {"price_per_gb": np.array([0.0, 1.0, 2.0])},
    {"shared": (SharedBottleneck("x", 2.0, [("K", "D")]),)},
    {"held": (Held("K", "S", 2, 4),)},
]


def plain(value):
    """Arrays as lists, at any depth: what can be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("changes", CHANGES, ids="+".join)
def test_a_copy_forgets_what_its_changes_touch(changes):
    """All that is computed once is as if the copy had been built from nothing."""
    wire = SharedBottleneck("w", 3.0, [("S", "D"), ("S", "K")])
    problem = small(shared=(wire,), held=(Held("K", "S", 0, 3),))
    if "names" in changes or "link_from" in changes:
        problem = problem.replace(shared=())  # its links would be others
    for name in COMPUTED_ONCE:
        getattr(problem, name)
    copy = problem.replace(**changes)
    afresh = dataclasses.replace(problem, **changes)
    for name in COMPUTED_ONCE:
        assert plain(getattr(copy, name)) == plain(getattr(afresh, name)), name
    assert copy.sha256 != problem.sha256
    every = copy.link_indices(copy.link_from, copy.link_to)
    assert every.tolist() == [0, 1, 2]
    assert ends_and_rates(copy) == ends_and_rates(afresh)


class WithMore(Problem):
    """A problem that computes one thing more, of which copying knows nothing."""

    @cached_property
    def fastest_bytes_per_s(self):
        return float(self.bandwidth_bytes_per_s.max())


def test_what_a_copy_is_not_known_to_share_is_computed_anew():
    problem = WithMore(**{f.name: getattr(small(), f.name) for f in dataclasses.fields(Problem)})
    assert problem.fastest_bytes_per_s == 4.0
    faster = problem.replace(bandwidth_bytes_per_s=np.array([[4.0, 9.0, 2.0]]))
    assert faster.fastest_bytes_per_s == 9.0
    assert problem.with_links(np.array([1, 2])).fastest_bytes_per_s == 2.0


def test_what_takes_long_is_shared_where_nothing_has_changed_it():
    problem = small()
    before = {name: getattr(problem, name) for name in TAKEN_OVER}
    copy = problem.replace(uplink_bytes_per_s=np.ones(3))
    assert all(getattr(copy, name) is value for name, value in before.items())
    assert TAKEN_OVER.keys() < set(COMPUTED_ONCE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"destination": "X"}, "destination must be one of the hosts, got 'X'"),
        ({"release_s": [-1.0, 0, 0]}, "release_s must be >= 0 and finite, got -1"),
        ({"storage_bytes": [1.5, 0, 0]}, "storage_bytes must be whole, got 1.5"),
        ({"bandwidth_bytes_per_s": [[1.0, -1.0, 1.0]]}, "bandwidth_bytes_per_s must be >= 0"),
        ({"backlog_bytes": [2, 0, 0]}, "the range must lie within the backlog of 2 bytes"),
        ({"shared": [SharedBottleneck("x", 1.0, [("D", "K")])]}, "there is no link 'D' -> 'K'"),
        ({"link_from": [0, 1, 1], "link_to": [1, 2, 0]}, "there is no link 'S' -> 'D'"),
    ],
)
def test_a_copy_is_refused_as_the_problem_would_be(changes, message):
    wire = SharedBottleneck("w", 3.0, [("S", "D")])
    problem = small(shared=(wire,), held=(Held("K", "S", 0, 3),))
    changes = {
        key: np.array(v) if isinstance(v[0], int | float) else v for key, v in changes.items()
    }
    for build in (problem.replace, lambda **new: dataclasses.replace(problem, **new)):
        with pytest.raises(dc.ProblemError, match=message):
            build(**changes)


def test_a_copy_has_no_attributes_of_its_own():
    with pytest.raises(
        TypeError, match="no attribute 'backlog_byte'; did you mean 'backlog_bytes'"
    ):
        small().replace(backlog_byte=np.zeros(3))


def test_writing_to_an_array_that_was_passed_changes_nothing():
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    faster = np.array([[7.0]])
    changed = problem.replace(bandwidth_bytes_per_s=faster)
    faster[0, 0] = 9.0
    assert changed.bandwidth_bytes_per_s.tolist() == [[7.0]]
