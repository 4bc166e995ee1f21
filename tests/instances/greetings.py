"""First bytes of TLS as OpenSSL makes them, and two sides that greet each other by them."""

from __future__ import annotations

import ssl
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

# A ServerHello's head, and what a stranger to TLS would not see through.
SERVER_HELLO = bytes.fromhex("160303007a020000760303") + bytes(117)


@cache
def client_hello() -> bytes:
    """Return a ClientHello: one record."""
    context = ssl.create_default_context()
    sent = ssl.MemoryBIO()
    side = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="s1.example")
    with suppress(ssl.SSLWantReadError):
        side.do_handshake()
    return sent.read()


def received_whole(connection: socket.socket, n_bytes: int) -> bytes:
    """Return just so many bytes, or fewer where there are no more."""
    data = b""
    while len(data) < n_bytes and (part := connection.recv(n_bytes - len(data))):
        data += part
    return data


def greet(near: socket.socket, far: socket.socket) -> int:
    """Have two sides greet each other as TLS does; return how many bytes went up."""
    near.sendall(client_hello())
    assert received_whole(far, len(client_hello())) == client_hello()
    far.sendall(SERVER_HELLO)
    assert received_whole(near, len(SERVER_HELLO)) == SERVER_HELLO
    return len(client_hello())
