"""Ed25519 keys, and texts signed with them: PASETO v4.public.

Keys are written ``ed25519:BASE64``, private ones in a file ``ed25519-private:BASE64``, so that
neither is taken for the other. Tokens follow PASETO version 4, purpose public
(https://github.com/paseto-standard/paseto-spec, 2021): the payload stands in the token for all to
read, its signature also covers a footer and an implicit assertion, which says what the token is
for and is not in it.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from datacollect.errors import NotWrittenError, ProblemError, TicketError
from datacollect.files.documents import document_name, not_written, read_text, write_owned
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from os import PathLike

    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PUBLIC, PRIVATE = "ed25519:", "ed25519-private:"
HEADER = "v4.public."
KEY_BYTES, SIGNATURE_BYTES = 32, 64

# Keys of small order, under which one signature is good for many texts: the curve has eight, in
# these ways of writing y, each with either sign of x (Chalkias, Garillot and Nikolaenko, Taming the
# many EdDSAs, 2020).
_P = 2**255 - 19
_Y_OF_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL_ORDER_YS = {0, 1, _P - 1, _P, _P + 1, _Y_OF_ORDER_8, _P - _Y_OF_ORDER_8}

# Longer tokens are refused unread. Ours have about 700 characters.
TOKEN_LENGTH = 8192


@dataclass(frozen=True)
class PrivateKey:
    """An Ed25519 key that signs.

    Attributes
    ----------
    seed : bytes
        32 bytes, all that there is to know; never shown.
    public : str
        The public half, ``ed25519:BASE64``.

    Examples
    --------
    >>> PrivateKey(bytes(32)).public
    'ed25519:O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik='
    """

    seed: bytes = field(repr=False)
    public: str = field(init=False)

    def __post_init__(self) -> None:
        if len(self.seed) != KEY_BYTES:
            raise ProblemError(f"a private key has {KEY_BYTES} bytes, got {len(self.seed)}")
        public = _private_key(self.seed).public_key().public_bytes_raw()
        object.__setattr__(self, "public", PUBLIC + base64.b64encode(public).decode())

    def sign(self, message: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return _private_key(self.seed).sign(message)


def new_private_key() -> PrivateKey:
    """Return a key that nobody else has."""
    return PrivateKey(os.urandom(KEY_BYTES))


def write_private_key(path: str | PathLike[str], key: PrivateKey) -> None:
    """Write a private key into a new file that only its owner may read (mode 0600).

    Raises
    ------
    NotWrittenError
        The file is there already: a key overwritten is lost; or it cannot be written.
    """
    name = document_name(path)
    text = f"# The public key that belongs to it: {key.public}\n{PRIVATE}"
    text += base64.b64encode(key.seed).decode() + "\n"
    try:
        write_owned(path, text.encode(), mode=0o600, new=True)
    except FileExistsError:
        message = f"{name}: exists already; a key overwritten is lost: name another file"
        raise NotWrittenError(message) from None
    except OSError as error:
        raise not_written(path, error) from None


def read_private_key(path: str | PathLike[str]) -> PrivateKey:
    """Read the private key that `write_private_key` has written."""
    name = document_name(path)
    lines = [line.strip() for line in read_text(path).splitlines()]
    texts = [line for line in lines if line and not line.startswith("#")]
    if len(texts) != 1 or not texts[0].startswith(PRIVATE):
        raise ProblemError(
            f"{name}: must hold one line {PRIVATE}BASE64; `datacollect keys new FILE` writes one"
        )
    seed = _decoded(texts[0].removeprefix(PRIVATE))
    if seed is None or len(seed) != KEY_BYTES:
        # Not the value received: it may be most of a secret.
        raise ProblemError(
            f"{name}: {PRIVATE} must be followed by {KEY_BYTES} bytes in Base64; copy it again"
        )
    return PrivateKey(seed)


def public_key_bytes(text: str, place: str = "a key") -> bytes:
    """Return the 32 bytes of a public key.

    >>> len(public_key_bytes("ed25519:O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik="))
    32
    """
    if text.startswith(PRIVATE):
        raise ProblemError(
            f"{place} must be a public key, got a private one; delete it wherever you published "
            "it, make another key with `datacollect keys new`, and write the other key's public "
            "half here"
        )
    raw = _decoded(text.removeprefix(PUBLIC)) if text.startswith(PUBLIC) else None
    if raw is None or len(raw) != KEY_BYTES:
        raise ProblemError(
            f"{place} must be {PUBLIC} and {KEY_BYTES} bytes in Base64, got {shown(text)}; "
            "`datacollect keys show FILE` prints it"
        )
    if int.from_bytes(raw, "little") % 2**255 in _SMALL_ORDER_YS:
        raise ProblemError(
            f"{place} must be a safe public key, got {shown(text)}, for which anybody can sign; "
            "ask its owner for another key"
        )
    return raw


def public_text(raw: bytes) -> str:
    """Return the text of a public key of 32 bytes.

    >>> public_text(bytes(32))
    'ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
    """
    return PUBLIC + base64.b64encode(raw).decode()


def sign_token(key: PrivateKey, payload: bytes, assertion: str, footer: bytes = b"") -> str:
    """Sign a payload as PASETO v4.public.

    Parameters
    ----------
    key : PrivateKey
    payload : bytes
        What is signed; readable in the token.
    assertion : str
        What the token is for; whoever verifies it must say the same.
    footer : bytes
        Signed and readable, too.

    Examples
    --------
    >>> key = PrivateKey(bytes(32))
    >>> token = sign_token(key, b"{}", "example/1")
    >>> verify_token(token, key.public, "example/1")
    b'{}'
    """
    signature = key.sign(_authenticated(payload, footer, assertion))
    return HEADER + _encoded(payload + signature) + (f".{_encoded(footer)}" if footer else "")


def verify_token(token: str, public_key: str, assertion: str) -> bytes:
    """Return the payload of a token if the key has signed it for this purpose.

    Raises
    ------
    TicketError
        It is no PASETO v4.public token, or the signature is another's, or for something else.
    """
    payload, signature, footer = _parts(token)
    if not is_signed(_authenticated(payload, footer, assertion), signature, public_key):
        raise TicketError("the token's signature is of another key, or for another purpose")
    return payload


def is_signed(message: bytes, signature: bytes, public_key: str) -> bool:
    """Return whether a signature of a message is that of a public key, ``ed25519:BASE64``.

    >>> key = PrivateKey(bytes(32))
    >>> is_signed(b"yes", key.sign(b"yes"), key.public), is_signed(b"no", b"", key.public)
    (True, False)
    """
    from cryptography.exceptions import InvalidSignature

    try:
        _public_key(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def unverified_payload(token: str) -> bytes:
    """Return what a token says before it counts, to find out whose key to verify it with."""
    return _parts(token)[0]


def signature_of(token: str) -> bytes:
    """Return the signature of a token, whoever's it is."""
    return _parts(token)[1]


def joined_token(payload: bytes, signature: bytes) -> str:
    """Return the token of what somebody has signed as `sign_token` does, without a footer.

    >>> token = sign_token(PrivateKey(bytes(32)), b"{}", "example/1")
    >>> joined_token(b"{}", signature_of(token)) == token
    True
    """
    return HEADER + _encoded(payload + signature)


def _parts(token: str) -> tuple[bytes, bytes, bytes]:
    """Split a token into payload, signature and footer."""
    # The header says version and purpose; nothing in the token chooses an algorithm.
    if not token.startswith(HEADER) or len(token) > TOKEN_LENGTH:
        raise TicketError(f"this is not a token {HEADER}… of at most {TOKEN_LENGTH} characters")
    body, dot, tail = token.removeprefix(HEADER).partition(".")
    signed, footer = _unpadded(body), _unpadded(tail) if dot else b""
    if signed is None or footer is None or len(signed) < SIGNATURE_BYTES or (dot and not tail):
        raise TicketError("the token is incomplete")
    return signed[:-SIGNATURE_BYTES], signed[-SIGNATURE_BYTES:], footer


def _authenticated(payload: bytes, footer: bytes, assertion: str) -> bytes:
    """Return what is signed: PASETO's pre-authentication encoding, in which nothing can shift."""
    pieces = (HEADER.encode(), payload, footer, assertion.encode())
    encoded = len(pieces).to_bytes(8, "little")
    for piece in pieces:
        encoded += len(piece).to_bytes(8, "little") + piece
    return encoded


@lru_cache(maxsize=64)  # not in `PrivateKey`, which can be copied
def _private_key(seed: bytes) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed)


@lru_cache(maxsize=1024)
def _public_key(text: str) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(public_key_bytes(text))


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unpadded(text: str) -> bytes | None:
    """Decode what `_encoded` writes, and nothing else: one text for one meaning."""
    if not re.fullmatch(r"[A-Za-z0-9_-]*", text, re.ASCII) or len(text) % 4 == 1:
        return None
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return raw if _encoded(raw) == text else None


def _decoded(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None
