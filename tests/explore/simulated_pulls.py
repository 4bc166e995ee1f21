"""Real transfers carried out without time or network, with all that goes wrong; agents, spools."""

from __future__ import annotations

import random

from simulated.many import AGENTS, PULLS, SPOOLS, WEB, failure_of


def case(seed: int) -> str | None:
    """Carry out a small collection, from agents or web servers, or an agent's clients, a spool."""
    rng = random.Random(f"pulls {seed}")
    draw = rng.random()
    pulls = WEB if rng.random() < 0.5 else PULLS
    of = AGENTS if draw < 0.2 else SPOOLS if draw < 0.25 else pulls
    _, why = failure_of(seed, of=of, is_small=True)
    return why
