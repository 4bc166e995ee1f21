"""Verdicts by rule, from intervals alone."""

from __future__ import annotations

import pytest

from datacollect.numbers.intervals import Interval
from paper.verdicts import about, between, few_seconds, much_storage


@pytest.mark.parametrize(
    ("verdict", "word", "is_settled", "why"),
    [
        (about(Interval(2.6, 2.5, 2.7, 9), 2.56), "holds", True, "meets 2.56"),
        (about(Interval(8.0, 1.1, 60.0, 2), 2.56), "holds", False, "reaches beyond"),
        (about(Interval(8.0, 0.9, 60.0, 2), 2.56), "differs", False, "holds 2.56 and 1"),
        (between([Interval(0.95, 0.92, 0.97, 9)], 0.91, 0.98), "holds", True, "meets 0.91"),
        (between([Interval(0.6, 0.3, 0.99, 2)], 0.91, 0.98), "holds", False, "reaches beyond"),
        (between([Interval(1.0, 0.99, 1.01, 9)], 0.91, 0.98), "differs", True, "which is larger"),
        (between([Interval(0.8, 0.7, 0.9, 9)], 0.91, 0.98), "differs", True, "same direction"),
        (much_storage([Interval(1.7, 1.65, 1.8, 9)]), "holds", True, "meets 1.73"),
        (much_storage([Interval(9.0, 1.01, 80.0, 2)]), "holds", False, "reaches beyond"),
        (few_seconds(Interval(5.0, 4.0, 6.0, 9)), "differs", False, "holds 5 s"),
        (few_seconds(Interval(9.0, 8.0, 10.0, 9)), "differs", True, "more than 5 s"),
    ],
)
def test_a_wide_interval_that_meets_a_number_settles_nothing(verdict, word, is_settled, why):
    assert (verdict.word, verdict.is_settled) == (word, is_settled)
    assert why in verdict.why
