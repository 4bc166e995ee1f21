"""The least number that suffices: found, in few attempts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.flow.network.smallest_sufficient import NoneSuffices, smallest

ORDERED = st.tuples(*[st.integers(1, 200)] * 3).map(sorted)


class Attempts:
    """Numbers from `answer` on suffice; counts what is tried."""

    def __init__(self, answer):
        self.answer = answer
        self.tried = []

    def __call__(self, number):
        self.tried.append(number)
        return f"by {number}" if number >= self.answer else None


@given(ORDERED)
def test_the_least_number_is_found_in_few_attempts(ordered):
    """Twice the digits of the distance, each number once, none outside the bounds."""
    fewest, answer, most = ordered
    attempts = Attempts(answer)
    assert smallest(attempts, fewest, most) == f"by {answer}"
    assert all(fewest <= number <= most for number in attempts.tried)
    assert len(attempts.tried) == len(set(attempts.tried))
    assert len(attempts.tried) <= 2 + 2 * (answer - fewest).bit_length()


@given(st.integers(0, 100), st.integers(0, 10_000))
def test_without_a_bound_the_least_number_is_found_too(fewest, further):
    attempts = Attempts(fewest + further)
    assert smallest(attempts, fewest) == f"by {fewest + further}"
    assert len(attempts.tried) <= 2 + 2 * further.bit_length()


@given(ORDERED)
def test_where_none_suffices_the_largest_was_tried(ordered):
    fewest, most, before_answer = ordered
    attempts = Attempts(before_answer + 1)
    with pytest.raises(NoneSuffices):
        smallest(attempts, fewest, most)
    assert attempts.tried[-1] == most
    assert max(attempts.tried) == most


def test_a_result_that_counts_as_false_is_one():
    assert smallest(lambda number: number, 0) == 0
