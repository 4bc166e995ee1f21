"""Short questions to servers that answer well, and to all that do not."""

from __future__ import annotations

import random
import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from datacollect.errors import TransferError
from datacollect.net.dialling import dial
from datacollect.net.http_asking import Answer, Asker, Askers
from datacollect.net.tcp_options import stop_accepting
from datacollect.net.tls import web_context

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextmanager
def answering(*answers: bytes, closes: bool = True):
    """Yield the URL of a server that answers each request so; connections end after `closes`."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            waiting = [*answers]
            with suppress(OSError):
                while waiting:
                    connection, _ = listener.accept()
                    with connection:
                        while waiting:
                            request = connection.recv(65_536)
                            if not request:
                                break
                            asked.append(request)
                            with suppress(OSError):
                                connection.sendall(waiting.pop(0))
                            if closes:
                                break

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/a", asked
        # A thread that waits in `accept` would keep the port for ever.
        stop_accepting(listener)
        thread.join()


def test_answer_has_status_body_and_when_to_come_again():
    busy = b"HTTP/1.1 429 Many\r\nContent-Length: 4\r\nRetry-After: 7\r\n\r\nbusy"
    with answering(busy) as (url, asked), Asker(url) as asker:
        headers = {"content-length": "4", "retry-after": "7"}
        assert asker.post("/commit", b"{}", "application/json") == Answer(
            429, b"busy", 7.0, headers
        )
    assert asked[0].startswith(b"POST /a/commit HTTP/1.1\r\nHost: 127.0.0.1:")
    assert asked[0].endswith(b"Content-Length: 2\r\n\r\n{}")


def test_connection_is_kept_and_made_again_where_it_was_closed_meanwhile():
    with answering(OK, OK, closes=False) as (url, asked), Asker(url) as asker:
        assert [asker.get("/1").body, asker.get("/2").body] == [b"ok", b"ok"]
    assert len(asked) == 2
    with answering(OK, OK) as (url, asked), Asker(url) as asker:
        assert [asker.get("/1").body, asker.get("/2").body] == [b"ok", b"ok"]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "connection closed before"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "connection closed before"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "connection closed in the middle"),
        (b"HTTP/1.1 200 OK\r\n\r\nwithout end", "has neither Content-Length nor chunks"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "the limit is"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "malformed HTTP response",
        ),
        (CHUNKED, "connection closed in the middle"),
        (CHUNKED + b"5\r\nab", "connection closed in the middle"),
        (CHUNKED + b"2\r\nok\r\n", "connection closed in the middle"),
        (CHUNKED + b"2\r\nok\r\n0\r\n", "connection closed in the middle"),
        (CHUNKED + b"2\r\nok\r\n0\r\nX: y\r\n", "connection closed in the middle"),
        (CHUNKED + b"zz\r\nok\r\n0\r\n\r\n", "a chunk has no size"),
        (CHUNKED + b"-2\r\nok\r\n0\r\n\r\n", "a chunk has no size"),
        (CHUNKED + b"0x2\r\nok\r\n0\r\n\r\n", "a chunk has no size"),
        (CHUNKED + b"\r\n0\r\n\r\n", "a chunk has no size"),
        (CHUNKED + b"3e9\r\n", "more than 1000"),
        (CHUNKED + b"f" * 15 + b"\r\n", "more than 1000"),
        (CHUNKED + b"f" * 900 + b"\r\n", "a chunk has no size"),
        (CHUNKED + b"1" * 40_000, "is too long"),
        (CHUNKED + b"1;" + b"x" * 40_000, "is too long"),
        (CHUNKED + b"1\r\nab\r\n0\r\n\r\n", "a chunk exceeds its size"),
        (CHUNKED + b"1\r\na\r\n" * 2000, "more than 1000"),
        (CHUNKED + b"0\r\n" + b"X: y\r\n" * 9000, "are too long"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 40_000, "is too long"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "unexpected status 100"),
        (bytes(range(256)) * 100, ""),
    ],
)
def test_what_is_no_answer_is_a_failure_that_names_the_server(raw, why):
    with answering(raw) as (url, _), Asker(url) as asker, pytest.raises(TransferError) as error:
        asker.get("/x", 1000)
    assert why in str(error.value)
    assert "127.0.0.1" in str(error.value)


@pytest.mark.parametrize(
    "chunks",
    [
        b"b\r\nhello world\r\n0\r\n\r\n",
        b"5\r\nhello\r\n06 ; a=b\r\n world\r\n000\r\n\r\n",
        b"B;x\r\nhello world\r\n0;last\r\nTrailer: 1\r\nOther: 2\r\n\r\n",
        b"".join(b"1\r\n%c\r\n" % each for each in b"hello world") + b"0\r\n\r\n",
    ],
)
def test_answer_in_chunks_is_read_to_its_end_and_the_connection_kept(chunks):
    with answering(CHUNKED + chunks, OK, closes=False) as (url, asked), Asker(url) as asker:
        headers = {"transfer-encoding": "chunked"}
        assert asker.get("/1", 11) == Answer(200, b"hello world", None, headers)
        assert asker.get("/2").body == b"ok"
    assert len(asked) == 2


def test_connection_is_kept_for_the_next_question_of_whoever_asks():
    with answering(OK, OK, OK, closes=False) as (url, asked):
        askers = Askers(web_context())
        for _ in range(2):
            with askers.of(url) as asker:
                assert asker.get("/x").body == b"ok"
        # One that is in use is nobody else's, and is closed after its question.
        with askers.of(url) as asker, askers.of(url) as other:
            assert other is not asker
            askers.close()
            assert asker.get("/x").body == b"ok"
        assert asker._channel is None
    assert len(asked) == 3


@pytest.fixture
def dialled(monkeypatch):
    """Yield the connections that were made, by number."""
    made = []

    def counting(*args, **how):
        made.append(len(made))
        return dial(*args, **how)

    monkeypatch.setattr("datacollect.net.http_asking.dial", counting)
    return made


def test_any_requests_share_a_connection(dialled):
    with answering(OK, OK, closes=False) as (url, asked), Asker(url) as asker:
        assert asker.ask("POST", "/1", {"A": "b"}, (), 0).body == b"ok"
        assert asker.ask("DELETE", "/2", {}).body == b"ok"
    assert len(dialled) == 1
    assert [each.split()[0] for each in asked] == [b"POST", b"DELETE"]


def test_connection_that_has_ended_meanwhile_is_made_again_before_a_request_is_sent(dialled):
    """A request that may change something is sent once: none is lost on a dead connection."""
    with answering(OK, OK) as (url, asked), Asker(url) as asker:
        assert asker.ask("POST", "/1", {}, (), 0).body == b"ok"
        while asker._channel is not None and asker._channel.is_quiet:
            pass  # until the end has come
        assert asker.ask("POST", "/2", {}, (), 0).body == b"ok"
    assert len(dialled) == 2
    assert len(asked) == 2


def test_what_comes_unasked_is_no_answer_to_the_next_request(dialled):
    """A server that answers twice would else answer the next request beforehand."""
    false = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfalse"
    with answering(OK + false, OK, closes=False) as (url, _), Asker(url) as asker:
        assert asker.ask("POST", "/1", {}, (), 0).body == b"ok"
        assert asker.ask("POST", "/2", {}, (), 0).body == b"ok"
    assert len(dialled) == 2


def test_redirection_is_an_answer_that_nobody_follows():
    raw = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    with answering(raw) as (url, asked), Asker(url) as asker:
        assert asker.get("/x").status == 302
    assert len(asked) == 1


def test_silence_ends():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Asker(url, timeout_s=0.05) as asker, pytest.raises(TransferError, match="took longer"):
            asker.get("/x")


def test_plain_server_where_tls_is_wanted_is_a_failure():
    with (
        answering(OK) as (url, _),
        Asker(url.replace("http:", "https:")) as asker,
        pytest.raises(TransferError),
    ):
        asker.get("/x")


@pytest.mark.parametrize("answer", [OK, CHUNKED + b"1\r\no\r\n1\r\nk\r\n0\r\nA: b\r\n\r\n"])
def test_noise_is_a_failure_or_an_answer(answer):
    chance = random.Random(7)
    for _ in range(60):
        raw = bytearray(answer)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(raw))
            raw[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
        with answering(bytes(raw)) as (url, _), Asker(url) as asker, suppress(TransferError):
            assert isinstance(asker.get("/x"), Answer)
