"""Web servers of other people: a real nginx on a free port, and a tiny one that can be unkind."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from instances.ports import free_port

from datacollect.net.tls import fingerprint_of_file, make_certificate

_CONFIG = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    gzip on; gzip_types *; gzip_min_length 1;
    {http}
    server {{
        listen 127.0.0.1:{port} {ssl};
        {certificate}
        root {root};
        {more}
    }}
}}
"""


@dataclass
class Nginx:
    """A running nginx: its port, its certificate's fingerprint and file."""

    folder: Path
    root: Path
    port: int
    fingerprint: str | None
    process: subprocess.Popen

    @property
    def url(self) -> str:
        scheme = "https" if self.fingerprint else "http"
        return f"{scheme}://127.0.0.1:{self.port}/"

    @property
    def certificate(self) -> Path:
        return self.folder / "cert.pem"

    def requests(self) -> list[str]:
        """Return the lines of its log."""
        return (self.folder / "access.log").read_text().splitlines()


@contextmanager
def nginx(
    folder: Path, *, tls: bool = True, more: str = "", http: str = "", port: int | None = None
):
    """Run nginx, which serves ``folder/root``; it ends with the block.

    `more` is said of the server, `http` of all servers.
    """
    root = folder / "root"
    root.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    certificate, fingerprint = "", None
    if tls:
        if not (folder / "cert.pem").exists():
            cert, key = make_certificate("W", "127.0.0.1")
            (folder / "cert.pem").write_bytes(cert)
            (folder / "key.pem").write_bytes(key)
        names = f"{folder}/cert.pem; ssl_certificate_key {folder}/key.pem;"
        certificate = f"ssl_certificate {names}"
        fingerprint = fingerprint_of_file(folder / "cert.pem")
    config = folder / "nginx.conf"
    config.write_text(
        _CONFIG.format(
            folder=folder,
            port=port,
            ssl="ssl" if tls else "",
            certificate=certificate,
            root=root,
            more=more,
            http=http,
        )
    )
    # As root it would serve as another user, who cannot read what tests write.
    user = ["-g", "user root;"] if os.geteuid() == 0 else []
    command = [shutil.which("nginx"), "-c", str(config), "-p", str(folder), *user]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port, process)
        yield Nginx(folder, root, port, fingerprint, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def wait_for_port(port: int, process: subprocess.Popen) -> None:
    """Wait until something listens, a minute at least."""
    for _ in range(3000):
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        assert process.poll() is None, "it has ended"
        time.sleep(0.02)
    raise AssertionError("it does not listen")


SECRET = b"the secret of a bucket"
RESET = "the connection is reset"


@dataclass
class TinyServer:
    """Files in memory; presigned if `presigned`, and as unkind as it is told to be.

    Attributes
    ----------
    answers : dict
        By path: what a request is answered with, one after the other, instead of the file: a
        status, or (status, headers, body).
    respond : callable or None
        Takes the path and the headers of a request, before anything else; returns such an answer, a
        `RESET`, or None: as usual.
    calls : list of (str, str, dict)
        Method, path with query, and headers of what was asked.
    """

    files: dict[str, bytes]
    presigned: bool = False
    knows_ranges: bool = True
    etags: bool = True
    answers: dict[str, list] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    truncated: dict[str, int] = field(default_factory=dict)  # path: answers that are cut short
    respond: Callable | None = None
    calls: list = field(default_factory=list)
    # Path: how more than a byte of it never comes: "silent", "half" of it, or "slow".
    stalls: dict[str, str] = field(default_factory=dict)
    is_over: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def sign(self, path: str, expires_s: float) -> str:
        """Return a URL that counts until then."""
        return f"{self.url}{path}?Expires={expires_s:.0f}&Signature={_signature(path, expires_s)}"

    def etag(self, path: str) -> str:
        return f'"{hashlib.md5(self.files[path]).hexdigest()}-{self.versions.get(path, 0)}"'


def _signature(path: str, expires_s: float) -> str:
    text = f"{path}\n{expires_s:.0f}".encode()
    return hmac.new(SECRET, text, hashlib.sha256).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tiny: TinyServer

    def handle(self):
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self):
        tiny, parts = self.tiny, urlsplit(self.path)
        path = unquote(parts.path[1:])
        tiny.calls.append(("GET", self.path, dict(self.headers)))
        answer = tiny.respond and tiny.respond(path, self.headers)
        if answer == RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1" + bytes(7))
            self.close_connection = True
            self.connection.close()
        elif answer or tiny.answers.get(path):
            answer = answer or tiny.answers[path].pop(0)
            status, headers, body = answer if isinstance(answer, tuple) else (answer, {}, b"no")
            self.answer(status, headers, body)
        elif tiny.presigned and not self.is_signed(path, parts.query):
            self.answer(403, {}, b"<Error><Message>Request has expired</Message></Error>")
        elif path not in tiny.files:
            self.answer(404, {}, b"no such key")
        else:
            self.send_file(path)

    def is_signed(self, path, query):
        found = {key: values[0] for key, values in parse_qs(query).items()}
        try:
            expires_s = float(found["Expires"])
        except (KeyError, ValueError):
            return False
        is_right = hmac.compare_digest(found.get("Signature", ""), _signature(path, expires_s))
        return is_right and expires_s > time.time()

    def send_file(self, path):
        tiny = self.tiny
        data = tiny.files[path]
        headers = {"Last-Modified": formatdate(tiny.versions.get(path, 0), usegmt=True)}
        if tiny.etags:
            headers["ETag"] = tiny.etag(path)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        fits = self.headers.get("If-Range", headers.get("ETag")) == headers.get("ETag")
        status = 200
        if asked and tiny.knows_ranges and fits:
            first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
            if first >= len(data):
                self.answer(416, {"Content-Range": f"bytes */{len(data)}"}, b"")
                return
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            data, status = data[first : last + 1], 206
        if path in tiny.stalls and len(data) > 1:
            self.stall(tiny.stalls[path], status, headers, data)
            return
        is_cut = len(data) > 1 and tiny.truncated.get(path, 0) > 0
        if is_cut:
            tiny.truncated[path] -= 1
        self.answer(status, headers, data, len(data) // 2 if is_cut else None)

    def stall(self, how, status, headers, data):
        """Send what never comes to its end; until the server stops."""
        self.close_connection = True
        if how != "silent":
            body = data[: len(data) // 2] if how == "half" else b""
            self.answer(status, {**headers, "Content-Length": str(len(data))}, body)
        while how == "slow" and not self.tiny.is_over.wait(0.1):
            self.wfile.write(data[:10])
        self.tiny.is_over.wait()

    def answer(self, status, headers, body, cut=None):
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body[:cut])
        except ConnectionError:
            self.close_connection = True
        if cut is not None:
            self.close_connection = True

    def log_message(self, *_):
        pass


@contextmanager
def tiny_server(files: dict[str, bytes], **how):
    """Serve files from memory on a free port of loopback."""
    tiny = TinyServer(files, **how)
    handler = type("Handler", (_Handler,), {"tiny": tiny})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    tiny.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield tiny
    finally:
        tiny.is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()
