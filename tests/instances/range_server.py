"""A web server on this machine that serves parts of files, and can be told to be unkind."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

BLOCK_BYTES = 2**13


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    knows_ranges = True
    pause_s = 0.0

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
                self.wfile.write(data[begin : begin + BLOCK_BYTES])
                time.sleep(self.pause_s)
        except ConnectionError:
            self.close_connection = True

    def log_message(self, *_):
        pass


@contextmanager
def serving(folder, *, knows_ranges=True, pause_s=0.0):
    """Serve a folder; yield the address. After each block it waits for `pause_s`."""

    class Handler(_Handler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

    Handler.knows_ranges, Handler.pause_s = knows_ranges, pause_s
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
