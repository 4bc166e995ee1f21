"""Feeds whose ends are killed, whose disks are full: received or listed is all there was."""

from __future__ import annotations

from instances.simulated_feeds import judged


def case(seed: int) -> str | None:
    """Let a feed come to its end in a world where anything may happen."""
    judged(seed, has_spill=seed % 4 != 0)
    return None
