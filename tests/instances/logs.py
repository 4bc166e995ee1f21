"""A log in memory with its witnesses, for receipts that fit in the head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from instances.events import key_of

from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    cosign,
    sign_checkpoint,
)
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tree import inclusion_proof, leaf_hash, node_hash, tree_root
from datacollect.net.keys import PrivateKey


@dataclass
class SmallLog:
    """The log of an event's first service, entry by entry."""

    event: Event
    which: int = 0
    entries: list[bytes] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return self.event.services[self.which].log.name

    @property
    def key(self) -> PrivateKey:
        return key_of(f"s{self.which}")

    def node(self, level: int, index: int) -> bytes:
        """Read the tree by its definition."""
        if level == 0:
            return leaf_hash(self.entries[index])
        return node_hash(self.node(level - 1, 2 * index), self.node(level - 1, 2 * index + 1))

    def head(
        self, times_s: Mapping[str, int], size: int | None = None, key: PrivateKey | None = None
    ) -> SignedCheckpoint:
        """Return a checkpoint, cosigned by witnesses at times."""
        size = len(self.entries) if size is None else size
        checkpoint = Checkpoint(self.origin, size, tree_root(size, self.node))
        note = sign_checkpoint(checkpoint, key or self.key)
        lines = [cosign(note.text, t, name, key_of(name)) for name, t in times_s.items()]
        return SignedCheckpoint(checkpoint, note.with_more(*lines))

    def proof(self, entry: bytes, times_s: Mapping[str, int]) -> LogProof:
        """Return the proof of an entry, with witnesses' times."""
        index, size = self.entries.index(entry), len(self.entries)
        return LogProof(index, tuple(inclusion_proof(index, size, self.node)), self.head(times_s))
