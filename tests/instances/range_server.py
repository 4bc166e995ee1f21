"""A web server on this machine that serves parts of files, and can be told to be unkind."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread

BLOCK_BYTES = 2**13


class Valve:
    """Lets half of each path through until it is opened, however long that takes.

    Whoever waits for the other half is hung up on when it is opened.

    Attributes
    ----------
    passed_bytes : int
        What went through of requests that came when it was open.
    """

    def __init__(self, *, is_open=False):
        self.passed_bytes = 0
        self._passed = {}  # of each path
        self._is_open, self._lock = Event(), Lock()
        if is_open:
            self.open()

    def open(self):
        self._is_open.set()

    def is_open(self):
        return self._is_open.is_set()

    def let_through(self, path, size, n_bytes, *, came_when_open):
        if came_when_open:
            with self._lock:
                self.passed_bytes += n_bytes
            return
        with self._lock:
            passed = self._passed.get(path, 0) + n_bytes
            if passed <= size // 2:
                self._passed[path] = passed
                return
        self._is_open.wait()
        raise ConnectionError("opened meanwhile")


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    knows_ranges = True
    valve = Valve(is_open=True)

    def handle(self):
        with suppress(ConnectionError):  # who was killed closes nothing
            super().handle()

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        # SimpleHTTPRequestHandler strips nothing of names but a last slash: hostile ones arrive.
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        size, came_when_open = len(data), self.valve.is_open()
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and self.knows_ranges:
            first = int(asked[1])
            last = min(int(asked[2]) if asked[2] else len(data) - 1, len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            data = data[first : last + 1]
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            for begin in range(0, len(data), BLOCK_BYTES):
                block = data[begin : begin + BLOCK_BYTES]
                self.valve.let_through(path, size, len(block), came_when_open=came_when_open)
                self.wfile.write(block)
        except ConnectionError:
            self.close_connection = True

    def log_message(self, *_):
        pass


@contextmanager
def serving(folder, *, knows_ranges=True, valve=None):
    """Serve a folder; yield the address."""
    valve = valve or Valve(is_open=True)

    class Handler(_Handler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

    Handler.knows_ranges, Handler.valve = knows_ranges, valve
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        valve.open()
        server.shutdown()
        thread.join()
        server.server_close()
