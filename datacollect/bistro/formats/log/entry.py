"""Entries of a log: 32 bytes that bind what somebody hands in, and tell nothing of it.

An entry commits to the sealed bytes, which bistros and auditors can check, and by the code of its
content (`datacollect.bistro.formats.log.content`) to what lies inside the seal, which only the
destination and the person can: it is keyed by a secret that travels inside the seal, so that nobody
can try guesses of a short or well-known form.

Where an event has marks (`datacollect.bistro.formats.event.marks`), the last eight bytes of an
entry say to two alone whose it is. The 24 before them bind: whoever would commit to two contents at
once needs 2^96 hashes for it.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, replace

from datacollect.errors import ProblemError

ENTRY_BYTES = 32
# Of an entry with a mark: what binds, and the mark behind it.
MARKED_BYTES = 24
MARK_BYTES = ENTRY_BYTES - MARKED_BYTES
SALT_BYTES = 32
COMMITMENT_LABEL = b"datacollect-commitment/2\n"
# Of events of version 1, whose entries have no owner.
OWNERLESS_LABEL = b"datacollect-commitment/1\n"
SIZE_STOP = 2**63


@dataclass(frozen=True)
class Commitment:
    """Content of an entry; with it, sealed bytes can be checked against the entry.

    Attributes
    ----------
    event : bytes
        The event's id, 32 bytes.
    salt : bytes
        32 random bytes.
    size : int
        Of the sealed file, in bytes.
    ciphertext_sha256 : bytes
        Of the sealed file.
    content : bytes
        Its code, as `datacollect.bistro.formats.log.content.content_digest` has it.
    owner : bytes or None
        Public key, 32 bytes: who has its other half alone can push what was committed to, give it
        up or push it sealed anew. None: an entry of an event of version 1.
    mark : bytes or None
        The last 8 bytes of the entry, in an event that has marks.

    Examples
    --------
    >>> Commitment(bytes(32), bytes(32), 0, bytes(32), bytes(32)).entry.hex()[:8]
    '529b3323'
    >>> Commitment(bytes(32), bytes(32), 0, bytes(32), bytes(32), bytes(32)).entry.hex()[:8]
    '330c4f73'
    """

    event: bytes
    salt: bytes
    size: int
    ciphertext_sha256: bytes
    content: bytes
    owner: bytes | None = None
    mark: bytes | None = None

    def __post_init__(self) -> None:
        for name in ("event", "salt", "ciphertext_sha256", "content"):
            if len(getattr(self, name)) != ENTRY_BYTES:
                raise ProblemError(f"{name} of a commitment must have 32 bytes")
        if self.owner is not None and len(self.owner) != ENTRY_BYTES:
            raise ProblemError("owner of a commitment must have 32 bytes")
        if self.mark is not None and len(self.mark) != MARK_BYTES:
            raise ProblemError(f"mark of a commitment must have {MARK_BYTES} bytes")
        if not 0 <= self.size < SIZE_STOP:
            raise ProblemError(f"size of a commitment must be 0 or more, got {self.size}")

    @property
    def entry(self) -> bytes:
        """The entry: 32 bytes."""
        digest = hashlib.sha256(
            (OWNERLESS_LABEL if self.owner is None else COMMITMENT_LABEL)
            + self.event
            + self.salt
            + struct.pack(">Q", self.size)
            + self.ciphertext_sha256
            + self.content
            + (self.owner or b"")
        ).digest()
        return digest if self.mark is None else digest[:MARKED_BYTES] + self.mark


def marked(commitment: Commitment, mark: bytes) -> Commitment:
    r"""Return a commitment whose entry ends with a mark.

    >>> marked(Commitment(bytes(32), bytes(32), 0, bytes(32), bytes(32)), b"12345678").entry[23:]
    b'\xf712345678'
    """
    return replace(commitment, mark=mark)
