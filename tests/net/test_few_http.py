"""The server for few: who comes to it and says nothing, says too much, or comes from elsewhere."""

from __future__ import annotations

import http.client
import socket
from contextlib import ExitStack

import pytest

from datacollect.errors import ProblemError
from datacollect.net import few_http
from datacollect.net.few_http import MOST_CONNECTIONS, FewHandler, FewServer


class Hello(FewHandler):
    def reply(self):
        self.answer(200, "text/plain", b"hello")


@pytest.fixture
def server():
    with FewServer(("127.0.0.1", 0), Hello, "--metrics 0") as made:
        yield made


def get(server, host="127.0.0.1"):
    connection = http.client.HTTPConnection(*server.server_address, timeout=20)
    connection.request("GET", "/", headers={"Host": host})
    with connection.getresponse() as answer:
        return answer.status, answer.read()


def test_who_opens_many_and_is_silent_shuts_nobody_out(server):
    """The oldest ends for each that comes beyond the limit; so few are ever open."""
    with ExitStack() as held:
        silent = [
            held.enter_context(socket.create_connection(server.server_address))
            for _ in range(3 * MOST_CONNECTIONS)
        ]
        assert get(server) == (200, b"hello")
        silent[0].settimeout(20)
        assert silent[0].recv(1) == b""
        assert len(server._open) <= MOST_CONNECTIONS


def test_who_takes_no_answer_or_drips_a_request_holds_no_place_for_long(monkeypatch):
    monkeypatch.setattr(FewHandler, "timeout", 0.2)
    with (
        FewServer(("127.0.0.1", 0), Hello, "x") as server,
        socket.create_connection(server.server_address) as slow,
    ):
        slow.sendall(b"GET / HT")
        slow.settimeout(20)
        assert slow.recv(100) == b""


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00" * 40 + b"\r\n\r\n",
        b"GET " + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2000 + b"\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n",
    ],
    ids=["TLS", "long", "headers", "version", "method"],
)
def test_what_is_no_request_to_read_is_refused_and_the_next_is_answered(server, raw):
    with socket.create_connection(server.server_address, timeout=20) as connection:
        try:
            connection.sendall(raw)
            answer = connection.recv(9)
        except ConnectionError:
            answer = b""
    # Before HTTP/1.0 answers had no head: that says nothing but an error.
    assert b" 200" not in answer
    assert b"hello" not in answer
    assert get(server) == (200, b"hello")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("127.0.0.1:80", 200), ("localhost", 200), ("LOCALHOST:9", 200), ("[::1]:80", 200)),
        *(("evil.example", 403), ("evil.example:80", 403), ("localhost.evil.example", 403)),
    ],
)
def test_a_page_of_elsewhere_that_leads_a_browser_here_reads_nothing(server, host, status):
    assert get(server, host)[0] == status


def test_a_port_that_is_taken_and_an_address_of_others_are_named(server):
    with pytest.raises(ProblemError, match=r"--page 7: .* in use; choose another port"):
        FewServer(server.server_address, Hello, "--page 7")
    with pytest.raises(ProblemError, match=r"metrics.listen: .*; write an address of this host"):
        FewServer(("192.0.2.1", 0), Hello, "metrics.listen")


def test_where_files_are_short_it_waits_and_goes_on(server, monkeypatch):
    """Not again and again at once, which would take a processor."""
    waits = []
    monkeypatch.setattr(few_http.time, "sleep", waits.append)
    real, failures = socket.socket.accept, [24, 24]

    def accept(listener):
        if failures and listener is server.socket:
            raise OSError(failures.pop(), "Too many open files")
        return real(listener)

    monkeypatch.setattr(socket.socket, "accept", accept)
    assert get(server) == (200, b"hello")
    assert waits == [few_http.WAIT_FOR_ROOM_S] * 2
