"""Where data that take a detour wait: in queues at relays, or nowhere."""

from __future__ import annotations

QUEUES = "queues"  # at the relay, until one of its connections pulls them
CHAINS = "chains"  # each piece is passed on as it comes
RELAYING = (QUEUES, CHAINS)
