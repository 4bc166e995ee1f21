"""Files that never come, each named; others of their server that come in the same start."""

import os
import re
import socket
import socketserver
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from instances.web_answers import manifest, paths_of, whys
from instances.web_servers import RESET, tiny_server

from datacollect.methods.execution import PULLS
from datacollect.transfer.pull import planning
from datacollect.transfer.pull.core import under_way

STALLS = {"a0": "silent", "a1": "half", "a2": "slow", "a3": "silent"}
GOOD = {f"z{n}": os.urandom(100_000) for n in range(3)}
FILES = {name: os.urandom(100_000) for name in STALLS} | GOOD


@pytest.mark.slow
def test_files_that_stall_for_ever_keep_no_others_of_their_server_waiting(
    pulled, arrived, monkeypatch
):
    """Two connections, four of them before the good ones; 10 s and 60 s, only faster."""
    monkeypatch.setattr(planning, "PULLS", replace(PULLS, longest_wait_s=0.2))
    monkeypatch.setattr(under_way, "STALL_S", 0.6)
    with tiny_server(FILES, stalls=STALLS) as tiny:
        answer = pulled(tiny, paths_of(tiny), connections=2, patience_s=8.0)
        assert arrived() == GOOD
        assert whys(answer).keys() == STALLS.keys()
        # Failed four times, or patience ended: whichever is first.
        assert all(
            re.match("no data, or too little, (arrives on request|arrived when requested)", why)
            for why in whys(answer).values()
        )
        tiny.stalls.clear()
        assert pulled(tiny, paths_of(tiny)).complete
    assert arrived() == FILES


@pytest.mark.slow
def test_files_that_are_silent_before_they_are_listed_are_asked_for_after_all_others(
    pulled, arrived
):
    """Eight connections list: thirty that are silent would keep them longer than patience."""
    silent = {f"a{n:02}": b"" for n in range(30)}
    is_over = threading.Event()

    def respond(path, _):
        return is_over.wait() and RESET if path in silent else None

    with tiny_server(silent | GOOD, respond=respond) as tiny:
        try:
            answer = pulled(tiny, paths_of(tiny), patience_s=5.0, timeout_s=1.0)
        finally:
            is_over.set()
    assert arrived() == GOOD
    assert whys(answer).keys() == silent.keys()
    # Which of the two clocks strikes first is chance.
    told = re.compile("the step took longer than 1 s|no data within the time limit")
    assert all(told.match(why) for why in whys(answer).values())


def busy_for(files, status, wait_s):
    """Answer for first bytes alone until so many seconds after the first other request."""
    until_s = []

    def respond(path, headers):
        if headers.get("Range") == "bytes=0-0":
            return None
        now_s = time.monotonic()
        until_s.append(now_s + wait_s)
        return (status, {"Retry-After": str(wait_s)}, b"") if now_s < until_s[0] else None

    return tiny_server(files, respond=respond)


@pytest.mark.slow
@pytest.mark.parametrize(("status", "wait_s"), [(429, 1), (503, 4)])
def test_a_server_that_says_when_to_come_back_is_waited_for(pulled, arrived, status, wait_s):
    """Below its patience, and as long: what it asks for is no silence."""
    with busy_for(GOOD, status, wait_s) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=4.0)
    assert answer.complete, answer.missing
    assert arrived() == GOOD


@pytest.mark.slow
def test_who_asks_to_wait_for_longer_than_patience_is_named_with_both_numbers(pulled, arrived):
    with busy_for(GOOD, 503, 30) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=4.0)
    assert whys(answer).keys() == GOOD.keys()
    for why in whys(answer).values():
        assert re.search(r"wait (30|2[0-9]) s( more \(Retry-After\), and|;) patience_s is 4", why)
        assert "set a longer patience_s" in why


def test_who_asks_for_longer_before_anything_is_listed_is_named_so_too(pulled):
    with tiny_server(GOOD, respond=lambda *_: (503, {"Retry-After": "30"}, b"")) as tiny:
        answer = pulled(tiny, paths_of(tiny), patience_s=4.0)
    assert whys(answer).keys() == GOOD.keys()
    for why in whys(answer).values():
        assert re.search(
            r"asks to wait (30|2[0-9]) s more \(Retry-After\), and patience_s is 4: start again",
            why,
        )


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [False, True])
def test_the_only_file_of_a_server_is_named_by_its_path(pulled, tmp_path, is_known):
    """It resets every connection, before and after the file is listed."""
    files = {"only.bin": GOOD["z0"]}
    with tiny_server(files, respond=lambda *_: RESET) as tiny:
        known = {"url": tiny.url, "manifest": manifest(tmp_path, files)}
        answer = pulled(tiny, known if is_known else paths_of(tiny), patience_s=4.0)
    assert [each.path for each in answer.missing] == ["only.bin"]
    assert "reset" in answer.missing[0].why


# Servers without ranges ------------------------------------------------------------------------


class Whole(socketserver.BaseRequestHandler):
    """Sends the whole file, whatever is asked for; counts what the kernel has taken of it."""

    def handle(self):
        # So small that what is counted is little more than what the other side has room for.
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        try:
            while self.request.recv(65536):
                self.server.n_requests += 1
                data = memoryview(self.server.data)
                self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data))
                while data:
                    n_bytes = self.request.send(data[:16384])
                    self.server.sent_bytes += n_bytes
                    data = data[n_bytes:]
        except OSError:
            pass


@contextmanager
def whole_server(data):
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Whole)
    server.daemon_threads, server.data = True, data
    server.n_requests = server.sent_bytes = 0
    server.url = f"http://127.0.0.1:{server.server_address[1]}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("connections", [4, 8])
@pytest.mark.parametrize("n_bytes", [300_000, 8_000_000])
def test_a_server_that_sends_whole_files_sends_one_once(pulled, tmp_path, connections, n_bytes):
    """However many connections ask for its pieces: small ones fit into the sockets' buffers."""
    files = {"f": bytes(n_bytes)}
    with whole_server(files["f"]) as server:
        entry = {"url": server.url, "manifest": manifest(tmp_path, files)}
        answer = pulled(server, entry, connections=connections, piece_bytes=65536)
        assert "whole files only" in whys(answer)["f"]
        assert server.n_requests == 1
        assert server.sent_bytes <= n_bytes
