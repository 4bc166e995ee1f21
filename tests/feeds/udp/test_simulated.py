"""Sender and receiver together, without sockets: what was made is in the file, or listed."""

from __future__ import annotations

import pytest
from instances.how_many import many
from simulated.udp_feeds import case


@pytest.mark.parametrize("tens", range(2))
def test_what_was_made_is_received_or_listed_as_missing(tens: int) -> None:
    found = {seed: wrong for seed in range(10 * tens, 10 * tens + 10) if (wrong := case(seed))}
    assert not found


@pytest.mark.slow
def test_so_it_is_in_many_schedules() -> None:
    """More of them: tests/explore/udp_feeds.py."""
    found = {seed: wrong for seed in range(100, 100 + many(500)) if (wrong := case(seed))}
    assert not found
