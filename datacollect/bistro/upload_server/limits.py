"""Limits on how often uploads may begin, and notes arrive: by ticket, and by address without one.

A campus has one address: what a ticket has signed counts for the ticket alone, so that nobody is
refused for his neighbours.
"""

from __future__ import annotations

import threading

from datacollect.errors import RefusedError
from datacollect.net.buckets import Bucket, bucket_of

# Of a ticket; of an address without a ticket that counts, or at an open event.
TICKET_PER_S, TICKET_AT_ONCE = 2.0, 60.0
ADDRESS_PER_S, ADDRESS_AT_ONCE = 20.0, 600.0
TOO_MANY = 429


class PostLimits:
    """Counts requests; for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tickets: dict[str, Bucket] = {}
        self._addresses: dict[str, Bucket] = {}

    def count_ticket(self, ticket: bytes, now_s: float) -> None:
        """Count a request that a ticket has signed; raise `RefusedError` where it has too many."""
        with self._lock:
            bucket = bucket_of(self._tickets, ticket.hex(), TICKET_PER_S, TICKET_AT_ONCE)
            may = bucket.take(now_s)
        if not may:
            raise RefusedError("too many requests with this ticket; try again later", TOO_MANY)

    def count_address(self, address: str, now_s: float) -> None:
        """Count a request for whom it comes from; raise `RefusedError` where those are too many."""
        with self._lock:
            bucket = bucket_of(self._addresses, address, ADDRESS_PER_S, ADDRESS_AT_ONCE)
            may = bucket.take(now_s)
        if not may:
            raise RefusedError("too many requests from this address; try again later", TOO_MANY)
