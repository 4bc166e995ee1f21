"""Real transfers carried out without time or network, with all that goes wrong; agents, too."""

from __future__ import annotations

import random

from simulated.many import failure_of


def case(seed: int) -> str | None:
    """Carry out a small collection, from agents or web servers as well, or an agent's clients."""
    rng = random.Random(f"pulls {seed}")
    agents = rng.random() < 0.2
    _, why = failure_of(seed, is_small=True, web=not agents and rng.random() < 0.5, agents=agents)
    return why
