"""HTTP server for few, by the standard library: strangers hold few places, and none for long."""

from __future__ import annotations

import errno
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.net.fan_out import start_thread
from datacollect.net.tcp_options import stop_accepting

if TYPE_CHECKING:
    from types import TracebackType

# Connections at a time. Where one more comes, the oldest that is not kept ends: who opens many and
# is silent loses his own.
MOST_CONNECTIONS = 64
# How long a request may take, and an answer where who asks is busy.
REQUEST_S, ANSWER_S = 10.0, 120.0
OUT_OF_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
WAIT_FOR_ROOM_S = 0.2


class FewServer(ThreadingHTTPServer):
    """Listens, and answers each request in a thread of its own: ``with FewServer(…) as server``.

    Parameters
    ----------
    address : (str, int)
        Of this host; port 0: any free one.
    handler : type
        A `FewHandler`.
    where : str
        What names the address, for messages: an option, or a key of a file.

    Raises
    ------
    ProblemError
        The address is not this host's, or the port is taken.
    """

    daemon_threads = True
    block_on_close = False
    # Who is not accepted at once tries again after a second: a crowd would keep others out.
    request_queue_size = 1024

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], where: str
    ) -> None:
        self.is_over = threading.Event()
        self._open: dict[socket.socket, None] = {}
        self._open_lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        try:
            super().__init__(address, handler)
        except OSError as error:
            why = error.strerror
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise ProblemError(f"{where}: {why}; write an address of this host") from None
            raise ProblemError(f"{where}: {why}; choose another port; 0 is any free one") from None
        self._thread = threading.Thread(target=self.serve_forever, name=where, daemon=True)

    def server_bind(self) -> None:
        """Bind without asking the name service what this host is called."""
        TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)

    @property
    def is_local(self) -> bool:
        """Return whether it listens on loopback."""
        host = str(self.server_address[0])
        return host == "::1" or host.startswith("127.")

    def __enter__(self) -> FewServer:
        """Begin; raise `TransferError` where there is no thread is available."""
        try:
            start_thread(self._thread)
        except BaseException:
            self.server_close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End: what is open is told by `is_over`."""
        self.is_over.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def server_close(self) -> None:
        """Listen no more."""
        stop_accepting(self.socket)
        super().server_close()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept; where files are short, not again and again at once."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in OUT_OF_ROOM:
                time.sleep(WAIT_FOR_ROOM_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin to answer; the oldest connection ends where there are too many."""
        with self._open_lock:
            oldest = next(iter(self._open)) if len(self._open) >= MOST_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
            self._open[request] = None
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def keep(self, request: socket.socket) -> None:
        """Let a connection be, which has shown that it may stay."""
        with self._open_lock:
            self._open.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self.keep(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: who asks comes and goes."""


class FewHandler(BaseHTTPRequestHandler):
    """Answers requests to read, and no others."""

    server: FewServer
    timeout = REQUEST_S
    server_version = "datacollect"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a request, unless it was meant for another host."""
        if self.is_for_us():
            self.reply()
        else:
            self.answer(403, "text/plain", b"ask by the address as it was told, or localhost\n")

    def reply(self) -> None:
        """Answer a request that is meant for this host."""
        raise NotImplementedError

    def answer(
        self, status: int, kind: str, data: bytes, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        """Answer with a body."""
        self.begin(status, kind, headers)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def begin(self, status: int, kind: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Send the head, without its end."""
        self.connection.settimeout(ANSWER_S)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        for name, value in headers:
            self.send_header(name, value)

    def is_for_us(self) -> bool:
        """Say whether a request names this host, and no page of elsewhere leads a browser here.

        What listens on loopback is asked by its address, or as ``localhost``.
        """
        host = self.headers.get("Host", "").strip().lower()
        name = host.rpartition(":")[0] if not host.endswith("]") else host
        if not host.rpartition(":")[2].isdigit():
            name = host
        is_number = name.startswith("[") or name.replace(".", "").isdigit()
        return not self.server.is_local or is_number or name in ("", "localhost")

    def log_message(self, *_: object) -> None:
        """Write no log: who looks is nobody's business."""
