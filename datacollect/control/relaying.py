"""Relaying of data that take a detour: through queues at relays, or cut through."""

from __future__ import annotations

from typing import Final

from datacollect.errors import ProblemError, nearest_hint

QUEUES: Final = "queues"  # at the relay, until one of its connections pulls them
CHAINS: Final = "chains"  # each piece is passed on as it comes
RELAYING = (QUEUES, CHAINS)


def are_chains(relays: str) -> bool:
    """Return whether detours are chains.

    Raises
    ------
    ProblemError
        Another word.
    """
    if relays not in RELAYING:
        raise ProblemError(
            f"relays must be one of {', '.join(RELAYING)}, got {relays!r}"
            + nearest_hint(relays, RELAYING)
        )
    return relays == CHAINS
