"""Patterns of paths: what they mean, by their definition; and that whatever they hold, they end."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.transfer.protocol.patterns import matches


def fits(names, wanted):
    """Whether names fit a pattern's, by the definition alone."""
    if not wanted:
        return not names
    if wanted == ["**"]:
        return bool(names)
    if wanted[0] == "**":
        return any(fits(names[i:], wanted[1:]) for i in range(len(names) + 1))
    return bool(names) and fnmatch.fnmatchcase(names[0], wanted[0]) and fits(names[1:], wanted[1:])


NAMES = st.sampled_from(["a", "ab", "b", "run7", ".x", "a\n"])
WANTED = st.sampled_from(["**", "**", "*", "a", "a*", "?", "[ab]", "[!a]*", "run7", ".*"])


@given(st.lists(NAMES, min_size=1, max_size=5), st.lists(WANTED, min_size=1, max_size=6))
def test_patterns_mean_what_is_written(names, wanted):
    assert matches("/".join(names), ["/".join(wanted)]) == fits(names, wanted)


@given(st.lists(NAMES, min_size=1, max_size=4), st.lists(st.lists(WANTED, max_size=4), max_size=3))
def test_one_pattern_of_several_is_enough(names, several):
    path, patterns = "/".join(names), ["/".join(wanted) for wanted in several if wanted]
    assert matches(path, patterns) == any(matches(path, [pattern]) for pattern in patterns)


@pytest.mark.parametrize(
    ("path", "pattern"),
    [("a" * 4000, "a*" * 30 + "b"), ("a/" * 300 + "a", "**/a/" * 30 + "b")],
    ids=["stars", "folders"],
)
def test_no_pattern_takes_for_ever(path, pattern):
    """Expressions that try all readings one after the other need more than 2**30 steps."""
    assert not matches(path, [pattern])


@pytest.mark.parametrize("name", ["#1", "!a", "a ", "a\\b", "[", "\ta"])
def test_signs_that_ignore_files_read_otherwise_mean_themselves(name):
    assert matches(name, [name])


def test_upper_and_lower_case_differ():
    assert not matches("A", ["a"])
