"""A mail server that notes what it is told."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class MailServer(socketserver.StreamRequestHandler):
    """Speaks as much SMTP as is needed; refuses one, and may end after some."""

    def handle(self):
        said = self.server.said
        self.wfile.write(b"220 ready\r\n")
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word == b"DATA":
                if len(said) >= self.server.most:
                    return
                self.wfile.write(b"354 go on\r\n")
                text = b""
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    text += line
                said.append(text.decode())
                self.wfile.write(b"250 taken\r\n")
            elif word == b"RCPT" and b"bob" in line and self.server.refuses_bob:
                self.wfile.write(b"550 no such mailbox\r\n")
            elif word == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 well\r\n")


@contextmanager
def mail_server() -> Iterator[socketserver.ThreadingTCPServer]:
    """Lend one at a free port; `said` is what it has taken, `most` how much it takes."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), MailServer) as server:
        server.daemon_threads = True
        server.said, server.most, server.refuses_bob = [], 100, False
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
