"""An agent of few lines that serves files from memory, relays, and lies where it is told to."""

import contextlib
import json
import socket
import ssl
import threading
import time
from urllib.parse import parse_qs, urlsplit

from blake3 import blake3
from instances.ports import free_port

from datacollect.net.connect import ESTABLISHED, parse_connect
from datacollect.net.tls import fingerprint_of_file, make_certificate, server_context
from datacollect.transfer.protocol import messages

MOST_PAGES = 12


class LyingAgent:
    """Serves `files` (path to bytes); attributes say which lies it tells.

    Attributes
    ----------
    corrupt : set of str
        Paths whose bytes are not those that it hashed.
    changing : dict of str to int
        Paths that change so many times, each time when they are read.
    extra_lines : list of str
        Names that its inventory lists besides, with one byte each.
    ahead_s : float
        By how much its clock is wrong.
    connect_to : dict of str to (str, int)
    left_out : list of (str, str)
        What its inventory leaves out, and why.
    drips : dict of str to float
        By the beginning of a target, the seconds between two bytes of its answers.
    refuses : int or None
        The status with which it answers all that needs a ticket.
    first_byte_s : float
        What it takes before it answers a request for bytes of files.
    awaits, tells : dict of str to threading.Event
        By the beginning of a target: what it waits for before it answers, and whom it tells that it
        was asked.
    page_s : float or None
        What it takes before it answers with one more name of its list.
    pages_without_end : bool
        Whether there are always more names, which lead to no files; a dozen, for tests to end.
    """

    def __init__(
        self,
        name,
        folder,
        files=None,
        connect_to=None,
        *,
        port=0,
        keeps_certificate=False,
        **lies,
    ):
        self.name, self.files, self.connect_to = name, dict(files or {}), dict(connect_to or {})
        self.corrupt, self.changing, self.extra_lines, self.ahead_s = set(), {}, [], 0.0
        self.slow_s, self.calls, self.called = 0.0, [], name
        self.sizes = {}  # what it lists instead of what there is
        self.left_out, self.drips, self.refuses, self.first_byte_s = [], {}, None, 0.0
        self.page_s, self.pages_without_end = None, False
        self.awaits, self.tells = {}, {}
        vars(self).update(lies)
        self.versions = dict.fromkeys(self.files, 1)
        certificate, key = make_certificate(name, "127.0.0.1")
        paths = folder / f"{name}.pem", folder / f"{name}.key"
        if not keeps_certificate:
            for path, text in zip(paths, (certificate, key), strict=True):
                path.write_bytes(text)
        self.fingerprint = fingerprint_of_file(paths[0])
        self._tls = server_context(*paths)
        # Not one of those that the kernel gives out: once it is gone, nobody else listens there.
        self._listener = socket.create_server(("127.0.0.1", port or free_port()))
        self.address = self._listener.getsockname()
        self._open, self._is_gone = [], False
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def entry(self):
        """What a collection file says of it."""
        return {"url": f"https://127.0.0.1:{self.address[1]}", "fingerprint": self.fingerprint}

    def stop(self):
        """Be gone, with all connections."""
        self._is_gone = True
        for each in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)
            each.close()

    def _listen(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._meet, args=(client,), daemon=True).start()

    def _meet(self, client):
        try:
            client.settimeout(30)
            if client.recv(1, socket.MSG_PEEK) == b"\x16":
                connection = self._tls.wrap_socket(client, server_side=True)
                self._open.append(connection)
                self._serve(connection)
            else:
                self._relay(client)
        except (OSError, ssl.SSLError, EOFError, ValueError):
            client.close()

    def _relay(self, client):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1) or b"\r\n\r\n"
        wanted = parse_connect(head)
        self.calls.append(("CONNECT", wanted.host))
        other = socket.create_connection(self.connect_to[wanted.host])
        self._open.append(other)
        if self._is_gone:  # meanwhile
            other.close()
            raise OSError
        client.sendall(ESTABLISHED)
        threading.Thread(target=self._pump, args=(client, other), daemon=True).start()
        self._pump(other, client)

    def _pump(self, one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            one.close(), other.close()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            self._answer_all(connection, stream)

    def _answer_all(self, connection, stream):
        while line := stream.readline():
            method, target, _ = line.decode().split(" ", 2)
            headers = {}
            while line := stream.readline().strip():
                key, _, value = line.decode().partition(":")
                headers[key.lower()] = value.strip()
            body = stream.read(int(headers.get("content-length", 0)))
            self.calls.append((method, target))
            for begin, event in self.tells.items():
                if target.startswith(begin):
                    event.set()
            for begin, event in self.awaits.items():
                if target.startswith(begin):
                    event.wait(60)
            time.sleep(self.slow_s + (self.first_byte_s if target == "/v1/read" else 0.0))
            status, answer = self._answer(target, body)
            head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(answer)}\r\n\r\n".encode()
            self._send(connection, head + answer, target)

    def _send(self, connection, raw, target):
        every_s = next((s for begin, s in self.drips.items() if target.startswith(begin)), None)
        if every_s is None:
            connection.sendall(raw)
            return
        for byte in raw:
            connection.sendall(bytes([byte]))
            time.sleep(every_s)

    def _entry(self, path):
        data = self.files.get(path, b"x")
        size = self.sizes.get(path, len(data))
        return messages.FileEntry(path, size, self.versions.get(path, 1), 1)

    def _answer(self, target, body):
        if target == "/v1/agent":
            return 200, messages.facts_body(
                messages.AgentFacts(
                    self.called,
                    "0",
                    time.time() + self.ahead_s,
                    bool(self.files),
                    tuple(self.connect_to),
                )
            )
        if self.refuses is not None:
            return self.refuses, b"the ticket does not count"
        if target == "/v1/sessions":
            return 200, messages.sessions_body([])
        if target.startswith("/v1/inventory") and self.page_s is not None:
            time.sleep(self.page_s)
            return 200, self._small_page(parse_qs(urlsplit(target).query).get("after", [""])[0])
        if target.startswith("/v1/inventory"):
            names = sorted(
                [*self.files, *self.extra_lines], key=lambda n: n.encode(errors="replace")
            )
            lines = [messages.entry_line(self._entry(path)) for path in names]
            # As no honest agent would write it: lone surrogates as JSON has them.
            lines += [
                json.dumps({"left_out": name, "why": why}).encode() + b"\n"
                for name, why in self.left_out
            ]
            return 200, b"".join(lines) + messages.last_line(None)
        if target == "/v1/confirm":
            asked = messages.parse_confirm(body)
            changed = [f.path for f in asked if f.path in self.files and f != self._entry(f.path)]
            gone = [f.path for f in asked if f.path not in self.files]
            return 200, messages.confirmation_body(
                messages.WireConfirmation(tuple(changed), tuple(gone))
            )
        return 200, self._read(messages.parse_read(body))

    def _small_page(self, after):
        """One name, and where the next page begins."""
        if self.pages_without_end:
            name = f"{int(after or 0) + 1:09}"
            more = name if int(name) < MOST_PAGES else None
            return messages.entry_line(self._entry(name)) + messages.last_line(more)
        name, *more = sorted(name for name in self.files if name > after)
        return messages.entry_line(self._entry(name)) + messages.last_line(name if more else None)

    def _read(self, read):
        data, status = bytearray(), 0
        for segment in read.segments:
            path = segment.file.path
            whole = self.files.get(path, b"")
            if self.changing.get(path, 0) > 0:
                self.changing[path] -= 1
                self.versions[path] += 1
            part = whole[segment.offset_bytes :][: segment.n_bytes]
            if segment.file != self._entry(path):
                status = 1
            elif len(part) < segment.n_bytes:
                status = 2
            data += part.ljust(segment.n_bytes, b"\0")
        digest = blake3(bytes(data)).digest()
        if data and any(segment.file.path in self.corrupt for segment in read.segments):
            data[0] ^= 1
        return bytes(data) + bytes([status]) + digest
