"""Sealed pieces of a source: collectors give the keys, relays get pieces, never a file."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from datacollect.errors import RefusedError
from datacollect.net.tickets import SEALED, SOURCE
from datacollect.transfer.agent.asked import JSON, OCTETS, by_ticket
from datacollect.transfer.agent.shell.files import SegmentReader
from datacollect.transfer.protocol.messages import AS_LISTED
from datacollect.transfer.protocol.patterns import matches
from datacollect.transfer.spool import messages
from datacollect.transfer.spool.sealing import seal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from datacollect.net.tickets import Ticket
    from datacollect.transfer.agent.shell.files import Folder
    from datacollect.transfer.agent.shell.handling import Exchange, Handler

# A source that was started again has no key: the collector gives it once more.
NO_KEY, CHANGED = 428, 409
MOST_KEYS = 10_000


class SealedPieces:
    """Gives pieces of a folder, sealed by keys that it has in memory alone.

    Parameters
    ----------
    agent : str
        Its name.
    folder : Folder
    collectors : callable
        Returns whose tickets count now.
    """

    def __init__(
        self, agent: str, folder: Folder, collectors: Callable[[], Collection[str]]
    ) -> None:
        self._agent, self._folder = agent, folder
        self._lock = threading.Lock()
        # By collector and collection: the key, and until when it is kept.
        self._keys: dict[tuple[str, str], tuple[bytes, float]] = {}
        self.handlers: dict[str, Handler] = {
            messages.KEY: by_ticket(SOURCE, agent, collectors, self._take_key),
            messages.SEALED: by_ticket(SEALED, agent, collectors, self._sealed),
        }

    def _take_key(self, _: Exchange, ticket: Ticket, body: bytes) -> tuple[str, bytes]:
        key = messages.parse_key(body)
        with self._lock:
            now_s = time.time()
            for name in [name for name, (_, until_s) in self._keys.items() if until_s <= now_s]:
                del self._keys[name]
            if len(self._keys) >= MOST_KEYS:
                raise RefusedError("too many collections have given this agent keys", 503)
            self._keys[ticket.issuer, ticket.collection] = key, ticket.expires_s
        return JSON, b"{}"

    def _sealed(self, _: Exchange, ticket: Ticket, body: bytes) -> tuple[str, bytes]:
        asked = messages.parse_asked(body)
        if not all(matches(segment.file.path, ticket.files) for segment in asked.read.segments):
            raise RefusedError("the ticket is for other files", 403)
        with self._lock:
            key, until_s = self._keys.get((ticket.issuer, ticket.collection), (b"", 0.0))
        if not key or until_s <= time.time():
            raise RefusedError("the collector has given no key for this collection", NO_KEY)
        buffer = bytearray(asked.read.n_bytes)
        reader = SegmentReader(self._folder, asked.read.segments)
        for _block in reader.blocks(memoryview(buffer)):
            pass  # the buffer is as long as all of it
        if reader.status != AS_LISTED:
            raise RefusedError("a file has changed since it was listed, or cannot be read", CHANGED)
        piece = asked.sealed_of(self._agent)
        return OCTETS, seal(key, ticket.collection, piece, buffer)
