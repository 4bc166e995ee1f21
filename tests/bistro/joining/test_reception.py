"""Who listens for hosts that join: a connection carries requests of several of them."""

from __future__ import annotations

import json
import socket
from contextlib import suppress

from instances.events import key_of
from instances.ports import free_port

from datacollect.bistro.joining.guests import Guests
from datacollect.bistro.joining.reception import MOST_BYTES, Reception, receiving


def answers(port: int, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        got = b""
        with suppress(OSError):  # it has closed with something unread: whichever call learns that
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65_536):
                got += part
        return got


def request(body: bytes) -> bytes:
    return (
        f"POST /posted HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )


def test_body_that_is_refused_unread_is_never_taken_for_the_next_request(tmp_path):
    reception = Reception(Guests(tmp_path / "g", "o"), key_of("organiser"), lambda _: None)
    hidden = request(json.dumps({"number": "hidden"}).encode())
    port = free_port()
    with receiving(reception, port):
        got = answers(port, request(hidden + b" " * (MOST_BYTES + 1 - len(hidden))))
        assert got.count(b"HTTP/1.1 ") == 1
        assert got.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nConnection: close\r\n" in got
        got = answers(port, request(b"{}"))
        assert got.startswith(b"HTTP/1.1 403 ")
