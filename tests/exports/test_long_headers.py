"""Servers behind gateways send many headers, of which aria2 logs two kilobytes: files arrive."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import need
from instances.exported_scripts import Scripts, data_of

N_BYTES = 3000


class Handler(BaseHTTPRequestHandler):
    """Files by names such as ``late-8000``: how many bytes of other headers come first, or last."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.path.strip("/")
        how, _, n_bytes = name.partition("-")
        data = data_of(name, N_BYTES)
        own = {"Content-Length": str(N_BYTES), "ETag": '"a"', "Content-Type": "text/plain"}
        status = 200
        if how == "moved":
            how, status, own = "late", 302, {"Location": f"/page-{n_bytes}", "Content-Length": "0"}
            data = b""
        elif how == "page":
            how, own["Content-Type"] = "late", "text/html"
        elif how == "open":  # it ends where the connection does
            how, data = "late", data[: N_BYTES // 2]
            del own["Content-Length"]
        elif how == "gone":
            how, status = "late", 404
        elif how == "other":
            how, data, own["Content-Length"] = "late", data + b"x", str(N_BYTES + 1)
        self.send_response(status)
        pads = [(f"X-{i}", "p" * 44) for i in range(int(n_bytes) // 50)]
        pads.append(("X-Rest", "p" * (int(n_bytes) % 50)))
        for key, value in [*own.items(), *pads] if how == "early" else [*pads, *own.items()]:
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = "Content-Length" not in own

    def log_message(self, *_):
        pass


@contextmanager
def served(handler=Handler):
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("knows_hashes", [False, True])
@pytest.mark.parametrize("tool", ["aria2", "curl"])
def test_files_arrive_however_long_their_headers_are(tmp_path, tool, knows_hashes):
    need(tool)
    sizes = (0, 1000, 3000, 8000, 16000)
    names = tuple(f"{how}-{n_bytes}" for how in ("early", "late") for n_bytes in sizes)
    scripts = Scripts(tmp_path, tool, names, N_BYTES, knows_hashes)
    with served() as url:
        scripts.write(url)
        code, said = scripts.start()
    assert code == 0, said
    assert scripts.has_arrived()


@pytest.mark.slow
def test_wherever_the_log_ends_within_the_headers_that_prove_something(tmp_path):
    """Each byte of the length's line may be the last that is shown."""
    need("aria2")
    names = tuple(f"late-{n_bytes}" for n_bytes in range(1750, 1960, 5))
    scripts = Scripts(tmp_path, "aria2", names, N_BYTES)
    with served() as url:
        scripts.write(url)
        code, said = scripts.start()
    assert code == 0, said
    assert scripts.has_arrived()


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("moved", r"a login page\? The log of its headers ends before their type"),
        ("open", f"of no stated length ended after {N_BYTES // 2} of {N_BYTES} bytes"),
        ("gone", "status 404"),
        ("other", r"the file is longer than 3000 bytes|has 3001 bytes by now"),
    ],
)
def test_what_the_log_does_not_show_is_no_proof(tmp_path, how, why):
    need("aria2")
    scripts = Scripts(tmp_path, "aria2", (f"{how}-8000",), N_BYTES)
    with served() as url:
        scripts.write(url)
        code, said = scripts.start()
    assert code == 1
    assert re.search(why, said), said
    assert scripts.is_missing()
