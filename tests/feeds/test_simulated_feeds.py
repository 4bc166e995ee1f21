"""Sender and receiver without I/O: whatever happens, received or listed is all there was."""

from __future__ import annotations

import pytest
from instances.how_many import many
from instances.simulated_feeds import judged


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_received_and_missing_are_all_that_was_made(first):
    for seed in range(first, first + 20):
        judged(seed, has_spill=seed % 4 != 0)


@pytest.mark.slow
def test_received_and_missing_are_all_that_was_made_in_many_worlds():
    """``make explore EXPLORE="--only simulated_feeds"`` draws other ones each time."""
    for seed in range(1000, 1000 + many(1000)):
        judged(seed, has_spill=seed % 4 != 0)


def test_a_world_in_which_nothing_happens_has_all():
    world = judged(7, n_steps=0)
    assert world.report().counts.is_whole
