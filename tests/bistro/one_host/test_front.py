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

from datacollect.bistro.one_host.front import Page, Passing, page_handlers
from datacollect.bistro.page.writing import write_page
from datacollect.errors import ProblemError
from datacollect.net.http_asking import Askers
from datacollect.net.tls import web_context
from datacollect.transfer.agent.shell.handling import handler_for


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
        passing = Passing("/log/", url, askers)
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
    Passing("/log/", url, Askers(web_context())).answer(away)
    assert (away.status, away.said["Retry-After"]) == (502, "2")


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
        Passing("/log/", url, askers := Askers(web_context())).answer(sent)
        askers.close()
    assert not sent.held_meanwhile
    shown = Exchange("GET", "/")
    handler_for("/", page_handlers(page))(shown)
    assert not shown.holds_place

    late = Dripping("POST", "/log/commit", b"entry")
    monkeypatch.setattr("datacollect.bistro.one_host.front.BODY_S", -1.0)
    Passing("/log/", url, Askers(web_context())).answer(late)
    assert late.status == 408


@pytest.mark.parametrize("method", ["CONNECT", "PUT", "TRACE"])
def test_method_that_servers_may_read_otherwise_is_not_passed_on(method):
    # Behind CONNECT some take all that comes, the next person's request, too, for its body.
    asked = Exchange(method, "/log/checkpoint")
    Passing("/log/", "http://127.0.0.1:9", Askers(web_context())).answer(asked)
    assert (asked.status, asked.said["Allow"]) == (405, "GET, HEAD, POST, OPTIONS")
