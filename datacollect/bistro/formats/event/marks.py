"""Marks: which ticket an entry is of, known to the ticket's owner and to the destination alone.

Services do not tell each other what they have taken, so that one that is silent or lies keeps
nobody out: a ticket can have as many entries as it is good for in each log. The destination counts
them together, for it reads all logs. What is in a log names nobody; but the last bytes of an entry
are a code of those before it, by a key that two can make: who has the ticket's seed, and who has
the private key of the log of verdicts. So nobody else finds the entries of a ticket, and nobody can
make one that looks like another's.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.bistro.formats.log.entry import (
    ENTRY_BYTES,
    MARK_BYTES,
    MARKED_BYTES,
    Commitment,
    marked,
)
from datacollect.errors import ProblemError
from datacollect.net.keys import public_key_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.bistro.formats.event.event import Event
    from datacollect.net.keys import PrivateKey

LABEL = b"datacollect-mark/2\n"
_AES_KEY_BYTES, _BLOCK_BYTES = 32, 16
_P = 2**255 - 19


class MarkKey(NamedTuple):
    """Key that marks the entries of a ticket.

    Attributes
    ----------
    group : int
        The first byte of all its marks: who looks for them looks at a 256th of a log.
    key : bytes
        Of AES-256: makes the other seven.
    """

    group: int
    key: bytes

    def mark(self, entry: bytes) -> bytes:
        """Return the mark of an entry, of which the first 24 bytes count: 8 bytes.

        >>> MarkKey(7, bytes(32)).mark(bytes(24)).hex()
        '0708c374848c2282'
        """
        code = _codes(np.frombuffer(entry[:MARKED_BYTES], np.uint8)[None], self.key)
        return bytes([self.group]) + code.tobytes()

    def has_marked(self, entry: bytes) -> bool:
        """Return whether the mark of an entry is by this key."""
        return entry[MARKED_BYTES:] == self.mark(entry)


def mark_key(event: Event, own: PrivateKey, other: str) -> MarkKey:
    """Return what marks a ticket's entries in an event.

    Parameters
    ----------
    event : Event
        That has marks.
    own : PrivateKey
        The ticket's, or that of the log of verdicts.
    other : str
        The public half of the other one of these two, ``ed25519:BASE64``.

    Raises
    ------
    ProblemError
        The other is none that somebody can hold.
    """
    return marking(event, own)(other)


def marking(event: Event, own: PrivateKey) -> Callable[[str], MarkKey]:
    """Return what makes the keys between one and many others, as `mark_key` does: own is read once.

    Parameters
    ----------
    event, own
        As for `mark_key`.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    scalar = hashlib.sha512(own.seed).digest()[:32]
    private, n_bytes = X25519PrivateKey.from_private_bytes(scalar), _AES_KEY_BYTES + 1

    def key_with(other: str) -> MarkKey:
        point = X25519PublicKey.from_public_bytes(_montgomery(public_key_bytes(other)))
        shared = private.exchange(point)
        made = HKDF(SHA256(), length=n_bytes, salt=event.id, info=LABEL).derive(shared)
        return MarkKey(made[-1], made[:-1])

    return key_with


def own_mark_key(event: Event, ticket: PrivateKey) -> MarkKey | None:
    """Return what marks the entries of who has a ticket's key; None: the event has no marks."""
    if not event.has_marks or event.marks_log is None:
        return None
    return mark_key(event, ticket, event.marks_log.key)


def with_mark(commitment: Commitment, key: MarkKey | None) -> Commitment:
    """Return a commitment whose entry is marked by a key; as it is where there is none."""
    return commitment if key is None else marked(commitment, key.mark(commitment.entry))


def require_mark(commitment: Commitment, event: Event, place: str) -> None:
    """Raise `ProblemError` where a commitment has a mark and those of the event have none, or not.

    Whose it is, nobody but two can say.
    """
    if (commitment.mark is not None) != event.has_marks:
        rule = "must have a mark" if event.has_marks else "must have no mark"
        raise ProblemError(
            f"{place} {rule}, as all receipts of this event; take the one that was written for "
            "this event"
        )


class MarkedEntries:
    """Entries of logs, in which those of a ticket are found.

    Parameters
    ----------
    entries : numpy.ndarray
        Of dtype ``S32``.
    """

    def __init__(self, entries: np.ndarray) -> None:
        rows = np.ascontiguousarray(entries).view(np.uint8).reshape(-1, ENTRY_BYTES)
        groups = rows[:, MARKED_BYTES]
        self._order = np.argsort(groups, kind="stable")
        self._rows = rows[self._order]
        self._stops = np.cumsum(np.bincount(groups, minlength=256))

    def of(self, key: MarkKey) -> np.ndarray:
        """Return where entries stand that a key has marked, rising."""
        stop = int(self._stops[key.group])
        start = int(self._stops[key.group - 1]) if key.group else 0
        rows = self._rows[start:stop]
        codes = _codes(rows[:, :MARKED_BYTES], key.key)
        is_marked = (rows[:, MARKED_BYTES + 1 :] == codes).all(axis=1)
        found: np.ndarray = np.sort(self._order[start:stop][is_marked])
        return found


def _codes(beginnings: np.ndarray, key: bytes) -> np.ndarray:
    """Return the codes of the beginnings of entries: CBC-MAC of two blocks, cut to seven bytes."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    # Of this mode each block stands alone, whatever came before.
    encryptor = Cipher(AES(key), ECB()).encryptor()

    def encrypted(blocks: np.ndarray) -> np.ndarray:
        data = encryptor.update(np.ascontiguousarray(blocks).tobytes())
        return np.frombuffer(data, np.uint8).reshape(-1, _BLOCK_BYTES)

    last = np.zeros((len(beginnings), _BLOCK_BYTES), np.uint8)
    last[:, : MARKED_BYTES - _BLOCK_BYTES] = beginnings[:, _BLOCK_BYTES:]
    return encrypted(encrypted(beginnings[:, :_BLOCK_BYTES]) ^ last)[:, : MARK_BYTES - 1]


def _montgomery(key: bytes) -> bytes:
    """Return the point of X25519 that an Ed25519 key is: u = (1 + y) / (1 - y) (RFC 7748, 2016)."""
    y = int.from_bytes(key, "little") % 2**255
    return ((1 + y) * pow(1 - y, -1, _P) % _P).to_bytes(32, "little")
