"""Connections that take places: counted from the moment they are accepted until they are closed."""

from __future__ import annotations

import asyncio
import ipaddress
import resource
import socket

import pytest

from datacollect.bistro.http import connections
from datacollect.bistro.http.connections import (
    CountingListener,
    Places,
    few_connections_text,
    most_connections,
)


def test_one_address_has_a_quarter_and_a_proxy_all():
    places = Places(8, (ipaddress.ip_network("10.0.0.0/8"),))
    assert [places.take("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert [places.take(f"2001:db8::{i}") for i in range(3)] == [True, True, False]
    assert [places.take("10.0.0.1") for _ in range(5)] == [True] * 4 + [False]
    assert not places.take("192.0.2.2")
    places.leave("192.0.2.1")
    assert places.take("192.0.2.1")
    for address in ("192.0.2.1", "192.0.2.1", *(["10.0.0.1"] * 4), "2001:db8::a", "2001:db8::b"):
        places.leave(address)
    assert (places.n_taken, places.taken) == (0, {})


@pytest.mark.parametrize(
    ("limit", "most"),
    [(1024, 896), (100, 50), (10**6, 20_000), (resource.RLIM_INFINITY, 20_000)],
)
def test_files_that_may_be_open_limit_connections(monkeypatch, limit, most):
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (limit, limit))
    monkeypatch.setattr(connections.resource, "setrlimit", lambda *_: None)
    assert most_connections() == most


def test_few_connections_are_said_with_the_limit_to_be_raised(monkeypatch):
    files = 1024
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (files, files))
    monkeypatch.setattr(connections.resource, "setrlimit", lambda *_: None)
    said = few_connections_text()
    assert "896 connections at a time, 224 of one address" in said
    assert "limit of open files to 4224" in said
    files = 4224
    assert few_connections_text() == ""


def test_silent_connections_count_and_leave_their_places_when_they_go():
    async def served() -> None:
        listener = CountingListener(socket.AF_INET)
        listener.bind(("127.0.0.1", 0))
        places = listener.places = Places(8)

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"welcome\n")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(greet, sock=listener)
        port = listener.getsockname()[1]
        async with server:
            streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            said = [await reader.readline() for reader, _ in streams]
            assert said == [b"welcome\n", b"welcome\n", b""]
            assert places.n_taken == 2
            for _, writer in streams:
                writer.close()
            while places.n_taken:
                await asyncio.sleep(0.01)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.readline() == b"welcome\n"
            writer.close()
            while places.n_taken:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(served(), 20))
