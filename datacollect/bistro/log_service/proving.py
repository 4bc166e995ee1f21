"""Proofs of what a service has published."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tiles import TileReader
from datacollect.bistro.formats.log.tree import inclusion_proof

if TYPE_CHECKING:
    from datacollect.bistro.log_service.messages import LogReader


def proof_of(index: int, reader: LogReader) -> LogProof | None:
    """Return the proof of an entry by the checkpoint that proves the least time of it.

    That is not always the first one that holds it: where a quorum of one needed a witness that
    post-dates, the next one may prove less.

    Parameters
    ----------
    index : int
        As `LogReader.index_of` tells it.
    reader : LogReader

    Returns
    -------
    LogProof or None
        None: none is published yet; it comes within seconds.
    """
    note = reader.earliest_head(index)
    if note is None:
        return None
    signed = _parsed(note)
    size = signed.checkpoint.size
    hashes = inclusion_proof(index, size, TileReader(size, reader.tile).node)
    return LogProof(index, tuple(hashes), signed)


# Thousands of entries are proved by one checkpoint.
@lru_cache(maxsize=16)
def _parsed(note: bytes) -> SignedCheckpoint:
    return SignedCheckpoint.parse(note)
