"""An agent of few lines over TLS that can be honest, and misbehaves as its misbehaviours say.

It shares no code with the real one but the making of its certificate: what it answers is written
down here a second time, so that a mistake in the shared code does not hide itself.
"""

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from blake3 import blake3
from instances.ports import free_port
from transfer.hostile.json_lines import encoded

from datacollect.net.tls import fingerprint_of_file, make_certificate, server_context

MTIME_NS = 1_700_000_000_000_000_000
AS_LISTED, CHANGED, CUT_SHORT = 0, 1, 2


class Request(NamedTuple):
    """Request of the collector: which message, its query, its body, how often it was asked."""

    where: str
    query: dict
    body: bytes
    count: int


@dataclass
class Reply:
    """An answer that misbehaviours may change before it is sent.

    Attributes
    ----------
    status : bytes
        The first line.
    headers : list of (bytes, bytes)
        A value of None is filled in: the length of the body.
    body : bytes
    send : callable or None
        Takes the connection and the raw answer, and sends it in its own way.
    more : iterator of bytes or None
        What comes after the body, and never ends.
    """

    body: bytes
    status: bytes = b"HTTP/1.1 200 OK"
    headers: list = field(default_factory=lambda: [(b"Content-Length", None)])
    send: object = None
    more: object = None

    @property
    def raw(self):
        lines = [self.status]
        for name, value in self.headers:
            lines.append(name + b": " + (b"%d" % len(self.body) if value is None else value))
        return b"\r\n".join([*lines, b"", b""]) + self.body


class Gone(Exception):
    """The connection is to end now."""


class HostileAgent:
    """Serves `files` (path to bytes) from memory, as its misbehaviours let it.

    Parameters
    ----------
    name : str
    folder : Path
        For its certificate.
    files : dict of str to bytes
    misbehaviours : sequence
        Of `transfer.hostile.grammar`; changed to () it is honest.
    host : str
        Where it listens.

    Attributes
    ----------
    sent : dict of str to dict of (int, int) to set of bytes
        By path, offset and length: bytes that it has sent with their digest, as if they counted.
    listed : dict of str to set of int
        By path: the sizes that it has listed.
    calls : list of str
        What was asked.
    """

    features = ("detail", "reasons", "hashes")

    def __init__(self, name, folder, files, misbehaviours=(), host="127.0.0.1"):
        self.name, self.files, self.misbehaviours = name, dict(files), tuple(misbehaviours)
        self.folders = sorted({p.rsplit("/", 1)[0] for p in files if "/" in p} | {"nothing"})
        self.sent, self.listed, self.calls, self.counts = {}, {}, [], {}
        self.over = threading.Event()
        certificate, key = make_certificate(name, host)
        paths = folder / f"{name}.pem", folder / f"{name}.key"
        for path, text in zip(paths, (certificate, key), strict=True):
            path.write_bytes(text)
        self.fingerprint = fingerprint_of_file(paths[0])
        self.tls = server_context(*paths)
        # Not one of those that the kernel gives out: nobody else listens there while it is gone.
        self.host, self.port = host, free_port()
        self._open = []
        self.resume()

    @property
    def entry(self):
        """What a collection file says of it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return {"url": f"https://{host}:{self.port}", "fingerprint": self.fingerprint}

    def resume(self):
        """Listen, where it has listened before."""
        self.over.clear()
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, self.port), family=family)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, args=(self._listener,), daemon=True).start()

    def stop(self):
        """Be gone, with all connections."""
        self.over.set()
        for each in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                each.close()
        self._open.clear()

    def _listen(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._meet, args=(client,), daemon=True).start()

    def _meet(self, client):
        with contextlib.suppress(OSError, EOFError, ValueError, IndexError, Gone):
            try:
                client.settimeout(60)
                self._greet(client)
            finally:
                client.close()

    def _greet(self, client):
        count = self._count("greeting")
        for each in self._at_work("greeting", count):
            each.change(self, client)
        connection = self.tls.wrap_socket(client, server_side=True)
        self._open.append(connection)
        with contextlib.closing(connection), connection.makefile("rb") as stream:
            while not self.over.is_set():
                if not self._answer_one(connection, stream):
                    return

    def _count(self, where):
        self.counts[where] = self.counts.get(where, 0) + 1
        return self.counts[where]

    def _at_work(self, where, count):
        return [each for each in self.misbehaviours if each.where == where and each.is_due(count)]

    # Requests and answers ---------------------------------------------------------------------

    def _answer_one(self, connection, stream):
        line = stream.readline()
        if not line:
            return False
        _, target, _ = line.decode().split(" ", 2)
        length = 0
        while header := stream.readline().strip():
            key, _, value = header.partition(b":")
            length = int(value) if key.lower() == b"content-length" else length
        body = stream.read(length)
        parts = urlsplit(target)
        where = parts.path.removeprefix("/v1/").replace("agent", "facts")
        request = Request(where, parse_qs(parts.query), body, self._count(where))
        self.calls.append(where)
        reply = self.reply_to(request)
        self._note_sent(request, reply)
        if reply.send is not None:
            reply.send(self, connection, reply.raw)
        else:
            connection.sendall(reply.raw)
            for data in reply.more or ():
                connection.sendall(data)
        return True

    def reply_to(self, request):
        """Return the answer, with all that its misbehaviours make of it."""
        at_work = self._at_work(request.where, request.count)
        tree = self.tree_of(request)
        for each in at_work:
            if each.stage == "tree":
                tree = each.change(tree, request)
        for line in tree if request.where == "inventory" else ():
            if isinstance(line, dict) and isinstance(line.get("bytes"), int):
                self.listed.setdefault(str(line.get("path")), set()).add(line["bytes"])
        body = tree if isinstance(tree, bytes) else encoded(tree)
        for each in at_work:
            if each.stage == "body":
                body = each.change(body, request)
        reply = Reply(body)
        for each in at_work:
            if each.stage == "reply":
                each.change(reply, request)
        return reply

    def tree_of(self, request):
        """Return what it answers honestly: lines as a list, JSON as a dict, or bytes."""
        match request.where:
            case "facts":
                return {
                    "format": "datacollect-agent-facts/1",
                    "name": self.name,
                    "version": "0",
                    "time_s": time.time(),
                    "serves": True,
                    "relays_to": [],
                    "features": list(self.features),
                }
            case "inventory":
                return self.lines(detail="detail" in request.query)
            case "confirm":
                asked = [row[0] for row in json.loads(request.body)["files"]]
                gone = [path for path in asked if path not in self.files]
                return {"changed": [], "gone": gone, "unreadable": []}
            case "hash":
                rows = json.loads(request.body)["segments"]
                return b"".join(self._hash_of(row) for row in rows)
            case "read":
                return self._read(json.loads(request.body)["segments"])
        return {}

    def lines(self, *, detail):
        """Return the lines of its one page, the last with them."""
        places = [(path, self.file_line(path, detail=detail)) for path in self.files]
        if detail:
            places += [
                (f"{path}/", {"folder": path, "mode": 0o755, "mtime_ns": MTIME_NS})
                for path in self.folders
            ]
        places.sort(key=lambda place: place[0].encode())
        return [*(line for _, line in places), {"next": None}]

    def file_line(self, path, *, detail=True):
        """Return the line of a file."""
        line = {"path": path, "bytes": len(self.files[path]), "mtime_ns": MTIME_NS, "inode": 7}
        return line | ({"mode": 0o644} if detail else {})

    def _segment(self, row):
        path, _, _, _, offset, n_bytes = row
        return self.files.get(path, b"")[offset:][:n_bytes]

    def _hash_of(self, row):
        return bytes([AS_LISTED]) + blake3(self._segment(row)).digest()

    def _read(self, rows):
        parts = [(self._segment(row), row[5]) for row in rows]
        data = b"".join(part.ljust(n_bytes, b"\0") for part, n_bytes in parts)
        status = CUT_SHORT if any(len(part) < n_bytes for part, n_bytes in parts) else AS_LISTED
        return data + bytes([status]) + blake3(data).digest()

    def _note_sent(self, request, reply):
        """Keep what a collector may believe: bytes in their full length with their digest."""
        if request.where != "read":
            return
        rows = json.loads(request.body)["segments"]
        n_bytes = sum(row[5] for row in rows)
        data, tail = reply.body[:n_bytes], reply.body[n_bytes : n_bytes + 33]
        if tail[:1] != b"\0" or blake3(data).digest() != tail[1:]:
            return
        at = 0
        for path, *_, offset, length in rows:
            by_path = self.sent.setdefault(path, {})
            by_path.setdefault((offset, length), set()).add(data[at : at + length])
            at += length


# Ways to send, for misbehaviours ---------------------------------------------------------------


def drip(agent, connection, raw, *, step_s, n_bytes=1):
    """Send so many bytes at a time, and wait between them."""
    for i in range(0, len(raw), n_bytes):
        connection.sendall(raw[i : i + n_bytes])
        if agent.over.wait(step_s):
            raise Gone
    raise Gone


def stay_silent(agent, connection, raw=b""):
    """Keep the connection, and say nothing."""
    agent.over.wait(120)
    raise Gone


def reset(connection):
    """End a connection by a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    raise Gone


def half_close(connection):
    """End the connection without TLS's goodbye."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    raise Gone


def greet_slowly(agent, client, step_s, n_bytes=1):
    """Greet as TLS's server does, a few bytes at a time."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = agent.tls.wrap_bio(incoming, outgoing, server_side=True)
    while True:
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
            drip(agent, client, outgoing.read(), step_s=step_s, n_bytes=n_bytes)
        if outgoing.pending:
            data = outgoing.read()
            for i in range(0, len(data), n_bytes):
                client.sendall(data[i : i + n_bytes])
                if agent.over.wait(step_s):
                    raise Gone
        data = client.recv(65536)
        if not data:
            raise Gone
        incoming.write(data)
