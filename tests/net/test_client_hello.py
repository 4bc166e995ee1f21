"""What a ClientHello offers to speak, whole or damaged."""

from __future__ import annotations

import ssl

import pytest

from datacollect.net.client_hello import offered_protocols
from datacollect.net.tls import client_context


def hello_of(*protocols: str) -> bytes:
    context = client_context()
    if protocols:
        context.set_alpn_protocols(protocols)
    out = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="s.example").do_handshake()
    return out.read()


def test_all_that_is_offered_is_found():
    assert offered_protocols(hello_of("a/1", "longer/2")) == (b"a/1", b"longer/2")


def test_a_hello_without_protocols_offers_none():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    out = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="s.example").do_handshake()
    assert offered_protocols(out.read()) == ()


def test_what_is_cut_short_or_changed_offers_nothing_or_something_and_raises_nothing():
    hello = hello_of("datacollect-tunnel/1")
    for n_bytes in range(len(hello)):
        assert offered_protocols(hello[:n_bytes]) == ()
    for at in range(len(hello)):
        changed = bytearray(hello)
        changed[at] ^= 0xFF
        assert isinstance(offered_protocols(bytes(changed)), tuple)
