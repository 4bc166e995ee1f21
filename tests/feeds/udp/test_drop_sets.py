"""Drop sets: what is left out, by the report's two algorithms."""

from __future__ import annotations

from itertools import pairwise

import pytest

from datacollect.errors import ProblemError
from datacollect.feeds.udp.drop_sets import drop_set, dropped

N = 10**6


def bunches(numbers: list[int]) -> list[tuple[int, int]]:
    """Return where each run begins, and how many it has."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and sum(found[-1]) == number:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((number, 1))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_single_ones_come_at_a_steady_rate(seed: int) -> None:
    """Of 10^6 at 6.5 % exactly 65 000, one after 15 or 16 others, none beside another."""
    numbers = dropped("single", 0.065, seed, N)
    assert len(numbers) == 65_000
    assert {b - a for a, b in pairwise(numbers)} == {15, 16}


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.005, 0.065, 0.2])
def test_bunches_have_one_to_ten_and_then_their_share_is_sent(part: float) -> None:
    """After n left out come n (1/f - 1) that are sent: to within one, by what was owed before."""
    found = bunches(dropped("bunches", part, 7, N))
    assert {n for _, n in found} == set(range(1, 11))
    for (first, n), (after, _) in pairwise(found):
        assert abs((after - first - n) - n * (1 / part - 1)) <= 1
    assert sum(n for _, n in found) / N == pytest.approx(part, abs=20 / N)


def test_a_seed_says_all() -> None:
    assert dropped("bunches", 0.1, 1, 1000) == dropped("bunches", 0.1, 1, 1000)
    assert dropped("bunches", 0.1, 1, 1000) != dropped("bunches", 0.1, 2, 1000)
    assert dropped("single", 0.0, 1, 1000) == []


@pytest.mark.parametrize(
    ("kind", "part"), [("all", 0.1), ("single", 1.0), ("bunches", -0.1), ("single", float("nan"))]
)
def test_there_is_no_other_kind_or_part(kind: str, part: float) -> None:
    with pytest.raises(ProblemError, match="must be"):
        drop_set(kind, part)
