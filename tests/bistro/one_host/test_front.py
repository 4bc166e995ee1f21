"""The front of an event: a page as it is served, and requests that are passed on."""

from __future__ import annotations

import gzip
import os
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from instances.events import event_bytes

from datacollect.bistro.one_host.front import SHORT_BYTES, Page, Passing, Room, page_handlers
from datacollect.bistro.page.writing import write_page
from datacollect.errors import ProblemError, TransferError
from datacollect.net.http_asking import Askers
from datacollect.net.tls import web_context
from datacollect.transfer.agent.shell.handling import handler_for

ROOM = Room(2**20)


class Exchange:
    """A request, and what it was answered."""

    address = "192.0.2.7"

    def __init__(self, method: str, target: str, body: bytes = b"", **headers: str) -> None:
        self.method, self.target, self._body = method, target, body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.body_bytes = len(body)
        self.holds_place = True

    def hold_place(self, holds: bool) -> None:
        self.holds_place = holds

    def read(self) -> bytes:
        body, self._body = self._body, b""
        return body

    def answer(self, status, headers=(), body=b""):
        self.status, self.said, self.body = status, dict(headers), body

    def stream(self, status, headers, n_bytes, blocks):
        self.answer(status, headers, b"".join(blocks))
        assert len(self.body) == n_bytes


@pytest.fixture
def page(tmp_path):
    (tmp_path / "event.toml").write_bytes(event_bytes())
    write_page(tmp_path / "event.toml", tmp_path / "page")
    return tmp_path / "page"


def test_page_is_served_whole_with_its_headers_also_packed(page):
    handlers = page_handlers(page)
    for target in ("/", "/index.html?x=1"):
        asked = Exchange("GET", target)
        handler_for(target, handlers)(asked)
        assert (asked.status, asked.body) == (200, (page / "index.html").read_bytes())
        assert asked.said["Content-Type"] == "text/html; charset=utf-8"
        assert asked.said["X-Content-Type-Options"] == "nosniff"
    packed = Exchange("GET", "/page.js", accept_encoding="gzip, br")
    handler_for("/page.js", handlers)(packed)
    assert packed.said["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == (page / "page.js").read_bytes()
    assert "connect-src" in packed.said["Content-Security-Policy"]
    event = Exchange("GET", "/event.toml")
    handler_for("/event.toml", handlers)(event)
    assert event.body == event_bytes()
    # What agents answer themselves is none of the page's.
    assert handler_for("/v1/agent", handlers) is None


def test_page_that_was_written_anew_is_shown_and_one_that_is_gone_is_said(page):
    handlers = page_handlers(page)
    (page / "style.css").write_text("p { color: red }")
    asked = Exchange("GET", "/style.css")
    handler_for("/style.css", handlers)(asked)
    assert asked.body == b"p { color: red }"
    (page / "style.css").unlink()
    handler_for("/style.css", handlers)(asked)
    assert asked.status == 404
    handler_for("/", handlers)(asked := Exchange("POST", "/", b"x"))
    assert asked.status == 405


def test_folder_without_a_page_is_refused(tmp_path):
    with pytest.raises(ProblemError, match=r"front.page: .*datacollect event page EVENT -o DIR"):
        page_handlers(tmp_path)


def test_file_that_grows_is_read_once_for_all_who_ask_and_kept_once(tmp_path, monkeypatch):
    # As stamps do each minute: many who ask at a time must not be as many copies.
    file, n_read = tmp_path / "stamps.jsonl", []
    file.write_bytes(b"0\n")

    def read(path):
        n_read.append(path)
        time.sleep(0.02)
        with path.open("rb") as opened:
            return opened.read()

    monkeypatch.setattr(Path, "read_bytes", read)
    shown = Page(file, {})
    for grown in (b"0\n", b"0\n1\n"):
        n_read.clear()
        file.write_bytes(grown)
        os.utime(file, ns=(len(grown), len(grown)))
        asked = [Exchange("GET", "/", accept_encoding="gzip" * (i % 2)) for i in range(8)]
        threads = [Thread(target=shown.answer, args=(each,)) for each in asked]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert {each.body for each in asked[::2]} == {grown}
        assert {gzip.decompress(each.body) for each in asked[1::2]} == {grown}
        assert len(n_read) == 1


@contextmanager
def server(seen):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, body, self.headers["X-Forwarded-For"]))
            self.send_response(429)
            self.send_header("Retry-After", "3")
            self.send_header("Content-Type", "text/x")
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"soon")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()


def test_request_is_passed_on_with_whom_it_is_counted_for_and_the_answer_comes_back():
    seen: list = []
    askers = Askers(web_context())
    with server(seen) as url:
        passing = Passing("/log/", url, askers, ROOM)
        # Whose address it is nobody can say himself.
        sent = Exchange("POST", "/log/commit?a=1", b"entry", x_forwarded_for="203.0.113.1")
        passing.answer(sent)
        assert (sent.status, sent.body) == (429, b"soon")
        assert {"retry-after": "3", "content-type": "text/x"}.items() <= sent.said.items()
        assert "content-length" not in sent.said
        assert seen == [("/commit?a=1", b"entry", "192.0.2.7")]
        long = Exchange("POST", "/log/commit")
        long.body_bytes = 2**21
        passing.answer(long)
        assert long.status == 413
        askers.close()
    away = Exchange("GET", "/log/checkpoint")
    Passing("/log/", url, Askers(web_context()), ROOM).answer(away)
    assert (away.status, away.said["Retry-After"]) == (502, "2")


class Answering(BaseHTTPRequestHandler):
    """Answers what it was given, or less than it promises."""

    protocol_version = "HTTP/1.1"
    body, n_cut = b"", 0

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body[: len(self.body) - self.n_cut])
        self.close_connection = self.n_cut > 0

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering(body: bytes, n_cut: int = 0):
    handler = type("Handler", (Answering,), {"body": body, "n_cut": n_cut})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()


def test_answer_of_any_length_comes_by_and_by():
    """As the list of 50 000 tickets does, which a destination elsewhere is sent."""
    body, n_at_once = os.urandom(20 * 2**20), []
    with answering(body) as url:
        passing = Passing("/join/", url, askers := Askers(web_context()), ROOM)

        class Slow(Exchange):
            def stream(self, status, headers, n_bytes, blocks):
                parts = [*blocks]
                n_at_once.extend(map(len, parts))
                self.answer(status, headers, b"".join(parts))

        for _ in range(2):  # the connection serves the next one, too
            passing.answer(asked := Slow("GET", "/join/opened"))
            assert (asked.status, asked.body == body) == (200, True)
        askers.close()
    assert max(n_at_once) <= SHORT_BYTES


def test_answer_that_is_cut_short_is_none():
    for n_bytes, ends in ((100, "said"), (2**20, "raised")):
        with answering(bytes(n_bytes), n_cut=10) as url:
            passing = Passing("/log/", url, askers := Askers(web_context()), ROOM)
            asked = Exchange("GET", "/log/checkpoint")
            if ends == "said":
                passing.answer(asked)
                assert asked.status == 502
            else:  # by then its length was promised: the connection ends
                with pytest.raises(TransferError):
                    passing.answer(asked)
            askers.close()


def test_bodies_together_take_no_more_than_there_is_room_for():
    room, seen = Room(100), []
    with server(seen) as url:
        passing = Passing("/log/", url, askers := Askers(web_context()), room)

        class Meanwhile(Exchange):
            def read(self) -> bytes:
                # While this one is being read another one comes, and is sent away.
                if self._body:
                    other = Exchange("POST", "/log/commit", bytes(41))
                    passing.answer(other)
                    assert (other.status, other.said["Retry-After"]) == (503, "2")
                    passing.answer(last := Exchange("POST", "/log/commit", bytes(40)))
                    assert last.status == 429
                return super().read()

        passing.answer(Meanwhile("POST", "/log/commit", bytes(60)))
        # What went wrong keeps no room either.
        gone = Exchange("POST", "/log/commit", bytes(100))
        gone.read = lambda: (_ for _ in ()).throw(TransferError("gone"))
        with pytest.raises(TransferError):
            passing.answer(gone)
        passing.answer(whole := Exchange("POST", "/log/commit", bytes(100)))
        askers.close()
    assert whole.status == 429
    assert [len(body) for _, body, _ in seen] == [40, 60, 100]
    assert room.left_bytes == 100


class Dripping(Exchange):
    """A client that has promised a body, and sends a byte now and then."""

    held_meanwhile = True

    def read(self) -> bytes:
        self.held_meanwhile = self.held_meanwhile and self.holds_place
        return super().read()


def test_who_drips_a_body_or_an_answer_holds_no_place_against_others(page, monkeypatch):
    seen: list = []
    with server(seen) as url:
        sent = Dripping("POST", "/log/commit", b"entry")
        Passing("/log/", url, askers := Askers(web_context()), ROOM).answer(sent)
        askers.close()
    assert not sent.held_meanwhile
    shown = Exchange("GET", "/")
    handler_for("/", page_handlers(page))(shown)
    assert not shown.holds_place

    late = Dripping("POST", "/log/commit", b"entry")
    monkeypatch.setattr("datacollect.bistro.one_host.front.BODY_S", -1.0)
    Passing("/log/", url, Askers(web_context()), ROOM).answer(late)
    assert late.status == 408


@pytest.mark.parametrize("method", ["CONNECT", "PUT", "TRACE"])
def test_method_that_servers_may_read_otherwise_is_not_passed_on(method):
    # Behind CONNECT some take all that comes, the next person's request, too, for its body.
    asked = Exchange(method, "/log/checkpoint")
    Passing("/log/", "http://127.0.0.1:9", Askers(web_context()), ROOM).answer(asked)
    assert (asked.status, asked.said["Allow"]) == (405, "GET, HEAD, POST, OPTIONS")
