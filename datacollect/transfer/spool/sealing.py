"""Sealed pieces: what a relay keeps, and can neither read nor change, swap or bring back.

The destination gives each source a key inside TLS from end to end. Of each piece a key of its own
is derived from it by HKDF (RFC 5869) with a random salt, so that a restart can repeat no nonce, and
the piece is encrypted by AES-256-GCM with nonce 0. Which piece it is of which collection is what
it is authenticated with. Behind its bytes their BLAKE3 is sealed, too, as of each piece that a
source sends.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.transfer.protocol.messages import DIGEST_BYTES, read_body

if TYPE_CHECKING:
    from datacollect.transfer.protocol.messages import Read

KEY_BYTES, SALT_BYTES, TAG_BYTES, ROOT_BYTES = 32, 16, 16, 32
OVERHEAD_BYTES = SALT_BYTES + DIGEST_BYTES + TAG_BYTES
NONCE = bytes(12)
PURPOSE = b"datacollect-sealed-piece/1"


@dataclass(frozen=True, slots=True)
class SealedPiece:
    """Name of a sealed piece.

    Attributes
    ----------
    source : str
    index : int
        The piece's number at the destination.
    root : bytes
        BLAKE3 of all that the piece is made of: of each file its path and version, from where, how
        much. See `root_of`.
    n_bytes : int
        Before it was sealed.
    """

    source: str
    index: int
    root: bytes
    n_bytes: int

    @property
    def sealed_bytes(self) -> int:
        """Return how long it is once it is sealed."""
        return self.n_bytes + OVERHEAD_BYTES


def root_of(read: Read) -> bytes:
    """Return the root of an inventory of what a piece is made of: as it is asked for.

    >>> from datacollect.transfer.protocol.messages import FileEntry, WireSegment, Read
    >>> old, new = (Read((WireSegment(FileEntry("a", 5, t, 1), 0, 5),)) for t in (1, 2))
    >>> len(root_of(old)), root_of(old) == root_of(new)
    (32, False)
    """
    from blake3 import blake3

    return blake3(read_body(read)).digest()


def new_key() -> bytes:
    """Return a fresh key for a source."""
    return os.urandom(KEY_BYTES)


def seal(key: bytes, collection: str, piece: SealedPiece, data: bytes | bytearray) -> bytes:
    """Return a piece sealed: its salt, what it is encrypted to, its tag.

    Examples
    --------
    >>> key, piece = new_key(), SealedPiece("S1", 0, bytes(32), 5)
    >>> open_sealed(key, "c1", piece, seal(key, "c1", piece, b"hello"))
    b'hello'
    """
    from blake3 import blake3
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, whole = os.urandom(SALT_BYTES), bytes(data) + blake3(data).digest()
    return salt + AESGCM(_key_of(key, salt)).encrypt(NONCE, whole, _about(collection, piece))


def open_sealed(
    key: bytes, collection: str, piece: SealedPiece, sealed: bytes | memoryview
) -> bytes:
    """Return what a sealed piece holds.

    Raises
    ------
    TransferError
        It is not this piece of this collection, as its source sealed it by this key.
    """
    from blake3 import blake3
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, data = bytes(sealed[:SALT_BYTES]), bytes(sealed[SALT_BYTES:])
    if len(sealed) == piece.sealed_bytes:
        try:
            whole = AESGCM(_key_of(key, salt)).decrypt(NONCE, data, _about(collection, piece))
        except InvalidTag:
            whole = b""
        data, digest = whole[: piece.n_bytes], whole[piece.n_bytes :]
        if whole and blake3(data).digest() == digest:
            return data
    raise TransferError(
        f"piece {piece.index} of {piece.source} is not as its source sealed it: it was changed, or "
        "it is another piece, or an old one"
    )


def _key_of(key: bytes, salt: bytes) -> bytes:
    """Return the key of a piece."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), KEY_BYTES, salt, PURPOSE).derive(key)


def _about(collection: str, piece: SealedPiece) -> bytes:
    """Return what a piece is authenticated with: no two pieces have the same."""
    texts = [text.encode() for text in (collection, piece.source)]
    numbers = (piece.index, piece.n_bytes)
    return b"".join(
        [
            PURPOSE,
            *(len(text).to_bytes(8, "big") + text for text in texts),
            piece.root,
            *(number.to_bytes(8, "big") for number in numbers),
        ]
    )
