"""ClientHello of TLS (RFC 8446, 4.1.2), in the clear: what a client offers to speak."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD_HEAD_BYTES = 5
_ALPN = 16
# Of the record, of the message; the version, 32 random bytes.
_BEFORE_SESSION = RECORD_HEAD_BYTES + 4 + 2 + 32


def offered_protocols(hello: bytes) -> tuple[bytes, ...]:
    """Return the protocols that a ClientHello offers (ALPN, RFC 7301); of what is none, nothing.

    Parameters
    ----------
    hello : bytes
        Its whole record.
    """
    try:
        at = _BEFORE_SESSION
        at = _after(hello, at, 1)  # the session
        at = _after(hello, at, 2)  # ciphers
        at = _after(hello, at, 1)  # compression
        end = _after(hello, at, 2)
        extensions = hello[at + 2 : end]
        for kind, body in _extensions(extensions):
            if kind == _ALPN:
                return tuple(_names(body[2 : _after(body, 0, 2)]))
    except ValueError:
        pass
    return ()


def _after(data: bytes, at: int, n_length: int) -> int:
    """Return where something ends that begins with its length."""
    end = at + n_length + int.from_bytes(data[at : at + n_length], "big")
    if end > len(data) or at + n_length > len(data):
        raise ValueError("cut short")
    return end


def _extensions(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        end = _after(data, at + 2, 2)
        yield int.from_bytes(data[at : at + 2], "big"), data[at + 4 : end]
        at = end


def _names(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = _after(data, at, 1)
        yield data[at + 1 : end]
        at = end
