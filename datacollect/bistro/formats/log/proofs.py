"""Proofs that need no network: an entry stands in a log (c2sp.org/tlog-proof, 2025)."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from datacollect.bistro.formats.log.checkpoints import (
    HASH_BYTES,
    SIZE_STOP,
    SignedCheckpoint,
    whole,
)
from datacollect.bistro.formats.log.notes import decoded
from datacollect.bistro.formats.log.tree import MOST_HASHES, is_included, leaf_hash
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown

FIRST_LINE = "c2sp.org/tlog-proof@v1"
MOST_PROOF_BYTES = 32_768


@dataclass(frozen=True)
class LogProof:
    """Place of an entry in a log, and the checkpoint that says so with its cosignatures.

    Attributes
    ----------
    index : int
        Of the entry, from 0.
    hashes : tuple of bytes
        From the entry's sibling to the root's child.
    signed : SignedCheckpoint
        Not yet verified.
    """

    index: int
    hashes: tuple[bytes, ...]
    signed: SignedCheckpoint

    @property
    def data(self) -> bytes:
        """The proof as files hold it."""
        lines = [FIRST_LINE, f"index {self.index}", *map(_base64, self.hashes)]
        return "\n".join([*lines, "", ""]).encode() + self.signed.note.data

    @classmethod
    def parse(cls, data: bytes, place: str = "the proof") -> LogProof:
        """Return the proof that bytes are; raise `ProblemError` where they are none."""
        if len(data) > MOST_PROOF_BYTES:
            raise ProblemError(f"{place} must have at most {MOST_PROOF_BYTES} bytes")
        head, gap, note = data.partition(b"\n\n")
        try:
            lines = head.decode().split("\n")
        except UnicodeDecodeError:
            raise ProblemError(f"{place} must be UTF-8") from None
        if lines[0] != FIRST_LINE or not gap:
            raise ProblemError(f"{place} must begin with {FIRST_LINE}, got {shown(lines[0])}")
        # What else somebody has put there is not authenticated, and read by nobody.
        lines = lines[2:] if len(lines) > 1 and lines[1].startswith("extra ") else lines[1:]
        if not lines or not lines[0].startswith("index "):
            raise ProblemError(f"{place} must say its index")
        index = whole(lines[0].removeprefix("index "), f"{place}: index", SIZE_STOP)
        hashes = parse_hashes(lines[1:], place)
        return cls(index, hashes, SignedCheckpoint.parse(note, f"{place}: its checkpoint"))

    def includes(self, entry: bytes) -> bool:
        """Say whether an entry stands there by the checkpoint's root, whoever has signed that."""
        head = self.signed.checkpoint
        return is_included(leaf_hash(entry), self.index, head.size, self.hashes, head.root)


def parse_hashes(lines: list[str], place: str) -> tuple[bytes, ...]:
    """Return the hashes that lines say, one each; raise `ProblemError` where they say none."""
    if len(lines) > MOST_HASHES:
        raise ProblemError(f"{place} must have at most {MOST_HASHES} hashes, got {len(lines)}")
    hashes = []
    for line in lines:
        raw = decoded(line)
        if raw is None or len(raw) != HASH_BYTES:
            raise ProblemError(f"{place}: a hash must be 32 bytes in Base64, got {shown(line)}")
        hashes.append(raw)
    return tuple(hashes)


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
