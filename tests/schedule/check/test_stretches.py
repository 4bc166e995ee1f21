"""Stretches of time: the one with the most bytes above one per route that is in use."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from datacollect.schedule.check.stretches import ONE_BYTE, Stretch, activities, worst_stretch

# Sums of these are exact.
AMOUNTS = (-3.0, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


def above(excess_bytes, rows, first, last):
    """Bytes of a stretch above one for each route that is in use in it."""
    routes = {route for route, since, until in rows if since <= last and until > first}
    return sum(excess_bytes[first : last + 1]) - len(routes) * ONE_BYTE


def random_case(rng):
    """Pieces, in each of which some route is in use; rows are (route, first piece, end)."""
    n_pieces = rng.randint(1, 14)
    n_routes = rng.randint(1, 5)
    rows = [(rng.randrange(n_routes), at, at + 1) for at in range(n_pieces)]
    for _ in range(rng.randint(0, 6)):
        first = rng.randrange(n_pieces)
        rows.append((rng.randrange(n_routes), first, rng.randint(first + 1, n_pieces)))
    return [rng.choice(AMOUNTS) for _ in range(n_pieces)], rows


def worst(excess_bytes, rows):
    return worst_stretch(
        np.array(excess_bytes), activities(*map(np.array, zip(*rows, strict=True)))
    )


@pytest.mark.parametrize("seed", range(20))
def test_there_is_one_where_any_of_all_stretches_is_too_much(seed):
    """100 cases each: all stretches are tried."""
    rng = random.Random(seed)
    for _ in range(100):
        excess_bytes, rows = random_case(rng)
        n = len(excess_bytes)
        every = [above(excess_bytes, rows, a, b) for a in range(n) for b in range(a, n)]
        found = worst(excess_bytes, rows)
        if found is None:
            assert max(every) <= 1e-12
        else:
            assert found.n_bytes == sum(excess_bytes[found.first : found.last + 1])
            assert above(excess_bytes, rows, found.first, found.last) > 0


def test_the_worst_of_those_that_hang_together_is_told():
    """One route: of 2 and 3 bytes with a pause that has room for half a byte, all 4.5."""
    rows = [(0, 0, 1), (0, 2, 3)]
    found = worst([2.0, -0.5, 3.0], rows)
    assert (found.first, found.last, found.n_bytes) == (0, 2, 4.5)
    # Room for 2 bytes and more between them: nothing is gained by both; the first is named.
    found = worst([2.0, -2.5, 3.0], rows)
    assert (found.first, found.last, found.n_bytes) == (0, 0, 2.0)


def test_a_route_counts_once_in_stretches_that_begin_before_its_last_use_ended():
    """Routes 0 and 1 in turns, 0.75 bytes too many each time: the third time is too much."""
    rows = [(0, 0, 1), (1, 1, 2), (0, 2, 3)]
    assert worst([0.75, 0.75], rows[:2]) is None
    found = worst([0.75] * 3, rows)
    assert (found.first, found.last, found.n_bytes) == (0, 2, 2.25)
    # Two of three are allowed where a third route comes.
    assert worst([0.75] * 3, [*rows[:2], (2, 2, 3)]) is None


@pytest.mark.slow
@pytest.mark.parametrize("n", [1_000, 200_000])
def test_a_hostile_row_of_pieces_takes_time_in_proportion(n):
    """200 routes round half a byte each, then many pieces a little more and less, in turns.

    All of them are one suspicious row: comparing all stretches of the longer takes half a minute.
    Where the last piece has 200 bytes too many, it is worst alone: with the one before it is 0.4
    more, but a route more, too.
    """
    excess_bytes = np.where(np.arange(n) % 2 == 0, 0.4, -0.4)
    excess_bytes[:200] = 0.5
    first = np.arange(n)
    used = activities(first % 200, first, first + 1)
    began_s = time.process_time()
    assert worst_stretch(excess_bytes, used) is None
    excess_bytes[-1] = 200.0
    assert worst_stretch(excess_bytes, used) == Stretch(n - 1, n - 1, 200.0)
    assert time.process_time() - began_s < 15
