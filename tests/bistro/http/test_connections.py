"""Connections that take places: counted from the moment they are accepted until they are closed."""

from __future__ import annotations

import asyncio
import ipaddress
import resource
import socket
import time

import pytest
from instances.interpreter_steps import n_steps

from datacollect.bistro.http import connections, web
from datacollect.bistro.http.config import Listening
from datacollect.bistro.http.connections import (
    CountingListener,
    Places,
    few_connections_text,
    most_connections,
)
from datacollect.bistro.http.exchange import Reply


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


def test_silent_connections_count_and_leave_their_places_when_they_go(monkeypatch):
    monkeypatch.setattr(connections, "YOUNG_S", 0.0)

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
            assert said == [b"welcome\n"] * 3
            # The third has the place of the first, which is over.
            assert await streams[0][0].read() == b""
            while places.n_going:
                await asyncio.sleep(0.01)
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

    asyncio.run(asyncio.wait_for(served(), 60))


def counted(listener, address: str):
    """Take a place as `CountingListener.accept` does; return the connection and its far end."""
    near, far = socket.socketpair()
    places = listener.places
    assert places.take(address)
    return connections._Counted(near, places, address, listener._by_file), far


@pytest.fixture
def listener():
    with CountingListener(socket.AF_INET) as made:
        made.places = Places(12, (ipaddress.ip_network("10.0.0.0/8"),))
        yield made


def is_over(far) -> bool:
    far.setblocking(False)
    try:
        return far.recv(1) == b""
    except BlockingIOError:
        return False


def test_the_oldest_idle_one_of_whoever_has_most_gives_way(listener, monkeypatch):
    """A /64 counts as one; who is at work, and proxies, stay. 12 places: 3, 2 and 7."""
    monkeypatch.setattr(connections, "YOUNG_S", 0.0)
    many = [counted(listener, f"2001:db8::{i}") for i in range(3)]
    few = [counted(listener, "192.0.2.1") for _ in range(2)]
    proxies = [counted(listener, "10.0.0.1") for _ in range(7)]

    def gone_for(address: str) -> list[str]:
        """Return who gives way for one more, which is at work at once."""
        listener.places.make_room(address)
        if not listener.places.take(address):
            return []
        named = {"many": many, "few": few, "proxies": proxies}
        return [
            f"{name} {i}"
            for name, rows in named.items()
            for i, (near, far) in enumerate(rows)
            if near not in seen and is_over(far) and not seen.append(near)
        ]

    seen = []
    with listener.at_work(many[0][0].fileno()):
        # Of two that have as many, the one that came first.
        assert [gone_for(f"192.0.2.{10 + i}") for i in range(2)] == [["many 1"], ["few 0"]]
    # Since then it has waited for less long than the other.
    assert [gone_for(f"192.0.2.{20 + i}") for i in range(3)] == [["many 2"], ["few 1"], ["many 0"]]
    assert gone_for("192.0.2.30") == []
    for near, far in (*many, *few, *proxies):
        near.close()
        far.close()
    assert (listener.places.n_going, listener.places.n_taken) == (0, 5)


class Waiting:
    """A connection that waits since then."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s


@pytest.mark.parametrize("n_each", [1, 3])
def test_who_gives_way_is_found_as_fast_among_many_addresses(n_each):
    """An attacker with a /48 has 65 536 of them; counted in steps of the interpreter."""

    def asked(n: int) -> tuple[int, float]:
        idle = connections.Idle()
        for i in range(n_each * n):
            idle.add(f"{i % n}", i, Waiting(float(i)))
        for i in range(n // 2):
            idle.remove(f"{i}", i)

        def come() -> None:
            for _ in range(5):
                idle.remove(f"{n - 1}", n - 1)
                idle.add(f"{n - 1}", n - 1, Waiting(1e6))
                assert idle.of_most()

        # What was left behind by changes is put away once.
        assert idle.of_most()
        steps = n_steps(come)
        return steps, next(iter(idle.of_most().values())).since_s

    (few, first_of_few), (many, first_of_many) = asked(20), asked(1000)
    assert many <= 1.5 * few + 200
    # Of those that have as many, the one that came first, which nobody has taken out.
    assert (first_of_few, first_of_many) == (10.0, 500.0)


def test_those_that_give_way_and_are_open_still_are_few(listener, monkeypatch):
    monkeypatch.setattr(connections, "GOING_AT_ONCE", 1)
    monkeypatch.setattr(connections, "YOUNG_S", 0.0)
    first, second = [counted(listener, f"192.0.2.{i}") for i in range(2)]
    listener.places.most = 2
    listener.places.make_room("192.0.2.9")
    assert listener.places.take("192.0.2.9")
    listener.places.make_room("192.0.2.9")
    assert not listener.places.take("192.0.2.9")
    first[0].close()
    listener.places.make_room("192.0.2.9")
    assert listener.places.n_taken == 1
    for each in (first[1], *second):
        each.close()


@pytest.mark.slow
def test_500_people_behind_one_address_are_answered_beside_silent_connections(monkeypatch):
    """80 places, 20 of one address: strangers hold all, by silence and by bodies without an end."""
    monkeypatch.setattr(web, "most_connections", lambda: 80)
    monkeypatch.setattr(connections, "YOUNG_S", 0.03)

    async def served() -> None:
        async def handle(request) -> Reply:
            if request.method == "POST":
                await web.body_of(request, 1000)
            return Reply.words(200, "here")

        listening = Listening(("127.0.0.1", 0), None)
        bound = web.bound_socket(listening)
        server = web.WebServer(listening, handle)
        await server.start(bound)
        port = bound.getsockname()[1]

        async def come(host: str, said: bytes) -> asyncio.StreamReader:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
            writer.write(said)
            writers.append(writer)
            return reader

        writers: list[asyncio.StreamWriter] = []
        unfinished = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"
        for i in range(80):
            await come(f"127.0.0.{2 + i % 4}", unfinished if i % 2 else b"")
        n_answered = 0
        until_s = time.monotonic() + 120
        while n_answered < 500 and time.monotonic() < until_s:
            # Each keeps his connection, as browsers do; who is not let in comes again.
            readers = await asyncio.gather(
                *(come("127.0.0.9", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(50))
            )
            said = await asyncio.gather(
                *(each.readline() for each in readers), return_exceptions=True
            )
            n_answered += said.count(b"HTTP/1.1 200 OK\r\n")
            await asyncio.sleep(0.03)
        assert n_answered >= 500
        assert bound.places.n_taken <= 80
        for each in writers:
            each.close()
        await asyncio.gather(*(each.wait_closed() for each in writers), return_exceptions=True)
        await server.stop()
        bound.close()

    asyncio.run(asyncio.wait_for(served(), 180))
