"""TLS whose directions end one by one: what passes, and what is lost on no account."""

from __future__ import annotations

import ssl

import pytest
from instances.tunnels import greeted_streams, readable


def test_one_direction_ends_and_the_other_goes_on(tmp_path):
    client, server = greeted_streams(tmp_path)
    client.write(b"question")
    client.end()
    server.feed(client.to_send())
    assert (readable(server), server.is_ended) == (b"question", True)
    server.write(b"answer")
    server.end()
    client.feed(server.to_send())
    assert (readable(client), client.is_ended) == (b"answer", True)


def test_what_has_come_before_an_end_is_read_after_it(tmp_path):
    """Three records that nobody has read when this side ends."""
    client, server = greeted_streams(tmp_path)
    for part in (b"one", b"two", b"three"):
        server.write(part)
    client.feed(server.to_send())
    client.end()
    assert readable(client) == b"onetwothree"
    assert not client.is_ended


@pytest.mark.parametrize("cut", [1, 4, 5, 6, 3000])
def test_a_record_that_has_come_in_part_before_an_end_is_read_whole(tmp_path, cut):
    client, server = greeted_streams(tmp_path)
    server.write(b"x" * 5000)
    raw = server.to_send()
    client.feed(raw[:cut])
    client.end()
    client.feed(raw[cut:])
    assert readable(client) == b"x" * 5000
    server.feed(client.to_send())
    assert readable(server) == b""
    assert server.is_ended


def test_bytes_that_are_put_back_come_first(tmp_path):
    client, server = greeted_streams(tmp_path)
    server.write(b"more")
    client.feed(server.to_send())
    client.put_back(b"once ")
    assert readable(client) == b"once more"


@pytest.mark.parametrize("at", [5, 20, -1])
def test_a_changed_byte_is_noticed(tmp_path, at):
    client, server = greeted_streams(tmp_path)
    client.write(b"some words")
    raw = bytearray(client.to_send())
    raw[at] ^= 1
    server.feed(raw)
    with pytest.raises(ssl.SSLError):
        readable(server)


def test_a_swapped_or_replayed_record_is_noticed(tmp_path):
    client, server = greeted_streams(tmp_path)
    client.write(b"one")
    one = client.to_send()
    client.write(b"two")
    server.feed(client.to_send())
    with pytest.raises(ssl.SSLError):
        readable(server)
    client, server = greeted_streams(tmp_path)
    client.write(b"one")
    one = client.to_send()
    server.feed(one)
    server.feed(one)
    with pytest.raises(ssl.SSLError):
        readable(server)


def test_many_records_are_read_at_once_as_far_as_the_buffer_goes(tmp_path):
    client, server = greeted_streams(tmp_path)
    for part in (b"one", b"two", b"three"):
        server.write(part)
    server.end()
    client.feed(server.to_send())
    client.put_back(b"zero")
    room = memoryview(bytearray(8))
    assert bytes(room[: client.fill(room)]) == b"zeroonet"
    assert not client.is_ended
    assert bytes(room[: client.fill(room)]) == b"wothree"
    assert client.is_ended
    assert client.fill(room) == 0


def test_what_comes_after_nothing_was_there_is_read(tmp_path):
    """A record in two parts, and one more; nothing can be read before the first is whole."""
    client, server = greeted_streams(tmp_path)
    room = memoryview(bytearray(100))
    server.write(b"a record")
    raw = server.to_send()
    assert client.fill(room) == 0
    client.feed(raw[:10])
    assert client.fill(room) == client.fill(room) == 0
    client.feed(raw[10:])
    assert bytes(room[: client.fill(room)]) == b"a record"
    server.write(b"another")
    client.feed(server.to_send())
    assert bytes(room[: client.fill(room)]) == b"another"


def test_that_nothing_is_there_is_found_out_once(tmp_path, monkeypatch):
    asked = []
    read = ssl.SSLObject.read
    monkeypatch.setattr(ssl.SSLObject, "read", lambda *given: asked.append(given) or read(*given))
    client, _ = greeted_streams(tmp_path)
    for _ in range(3):
        assert readable(client) == b""
    assert len(asked) == 1
