"""Statements: what tickets and owners sign, each for one receiver, so that no other can repeat it.

A ticket's key says who may hand in, an owner's key whose an entry is. Who only hears a token, a
receipt or a signature has neither: what is signed names the log, the bistro or the upload that it
is for, and coming twice there it changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.net.keys import is_signed, public_text

if TYPE_CHECKING:
    from collections.abc import Iterable

COMMIT = "datacollect-commit/2"
PUSH = "datacollect-push/2"
GIVE_UP = "datacollect-give-up/2"
HAND_IN = "datacollect-hand-in/2"
# In which an owner's signature of giving up is sent, in Base64.
GIVE_UP_HEADER = "Datacollect-Signature"


def commit_statement(event: bytes, log_key: str, entries: Iterable[bytes]) -> bytes:
    r"""Return what a ticket signs for a log: that these entries be taken with it.

    Parameters
    ----------
    event : bytes
        The event's id.
    log_key : str
        The log's public key, ``ed25519:BASE64``.
    entries : iterable of bytes

    Examples
    --------
    >>> commit_statement(b"e", "ed25519:k", [b"1", b"2"])
    b'datacollect-commit/2\n65\ned25519:k\n31\n32\n'
    """
    return _lines(COMMIT, event.hex(), log_key, *(each.hex() for each in entries))


def push_statement(
    event: bytes, bistro_key: str, entry: bytes, sha256: bytes, n_bytes: int, ticket: bytes
) -> bytes:
    """Return what an entry's owner, and a ticket, sign for a bistro: that it take these bytes.

    Both sign which ticket it is: no bistro can put another one in its place.

    Parameters
    ----------
    event : bytes
        The event's id.
    bistro_key : str
        The bistro's public key, ``ed25519:BASE64``.
    entry : bytes
    sha256 : bytes
        Of what is pushed: another ciphertext than the committed one where it was sealed anew.
    n_bytes : int
        Of what is pushed.
    ticket : bytes
        Its number, 16 bytes; zeros at an open event.
    """
    pushed = (entry.hex(), sha256.hex(), str(n_bytes), ticket.hex())
    return _lines(PUSH, event.hex(), bistro_key, *pushed)


def give_up_statement(event: bytes, bistro_key: str, upload: str) -> bytes:
    """Return what an entry's owner signs for a bistro: that it forget an upload, by its id."""
    return _lines(GIVE_UP, event.hex(), bistro_key, upload)


def hand_in_statement(event: bytes, salt: bytes, owner: bytes) -> bytes:
    """Return what a ticket signs inside the seal: that who has it hands in by this owner key."""
    return _lines(HAND_IN, event.hex(), salt.hex(), owner.hex())


def is_by_key(statement: bytes, signature: bytes, key: bytes) -> bool:
    """Return whether a statement is signed by a public key of 32 bytes.

    One that nobody can hold is none.

    >>> from datacollect.net.keys import PrivateKey, public_key_bytes
    >>> key = PrivateKey(bytes(32))
    >>> is_by_key(b"yes", key.sign(b"yes"), public_key_bytes(key.public))
    True
    """
    try:
        return is_signed(statement, signature, public_text(key))
    except ProblemError:
        return False


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
