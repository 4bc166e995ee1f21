"""Reception: who listens for hosts that join, on the loopback behind the organiser's front."""

from __future__ import annotations

import base64
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.log.notes import decoded
from datacollect.bistro.formats.log.one_meaning import peer_json
from datacollect.errors import DatacollectError, RefusedError
from datacollect.net.tcp_options import stop_accepting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.bistro.joining.guests import Guest, Guests
    from datacollect.net.keys import PrivateKey

MOST_BYTES = 64 * 1024
# What the organiser signs is for nothing else.
SIGNED = b"datacollect opened event\n"
POSTED, OPENED = "/posted", "/opened"
AGAIN_S = 1


class Reception:
    """Answers hosts that join.

    Parameters
    ----------
    guests : Guests
    organiser : PrivateKey
    came : function
        Told of each guest that has joined; from another thread.
    """

    def __init__(
        self, guests: Guests, organiser: PrivateKey, came: Callable[[Guest], None]
    ) -> None:
        self._guests, self._organiser, self._came = guests, organiser, came
        self._told: Callable[[Guest], dict[str, Any]] | None = None

    def open(self, told: Callable[[Guest], dict[str, Any]]) -> None:
        """Tell guests from now on what they need, by this function."""
        self._told = told

    def answer(self, path: str, tree: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and content of the answer to what was posted.

        Raises
        ------
        RefusedError
            It is refused.
        """
        number, mac = str(tree.get("number")), str(tree.get("mac"))
        if path == POSTED:
            guest = self._guests.join(number, str(tree.get("half")), mac, time.time())
            self._came(guest)
            return 200, {}
        if path != OPENED:
            raise RefusedError("there is nothing at this address", 404)
        signature = decoded(str(tree.get("signature"))) or b""
        guest = self._guests.require_joined(number, mac, signature)
        if self._told is None:
            return 202, {}
        payload = json.dumps({**self._told(guest), "number": number})
        signed = self._organiser.sign(SIGNED + payload.encode())
        return 200, {"payload": payload, "signature": base64.b64encode(signed).decode()}


@contextmanager
def receiving(reception: Reception, port: int) -> Iterator[None]:
    """Answer hosts at a port of the loopback within."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20

        def do_POST(self) -> None:
            status, tree = _answered(reception, self)
            body = json.dumps(tree).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if status not in (200, 202):
                # What was not read of a body is never taken for somebody else's request.
                self.send_header("Connection", "close")
            if status == 202:
                self.send_header("Retry-After", str(AGAIN_S))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="reception", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        stop_accepting(server.socket)
        server.server_close()


def _answered(reception: Reception, request: BaseHTTPRequestHandler) -> tuple[int, dict[str, Any]]:
    try:
        n_bytes = int(request.headers.get("Content-Length", "0"))
        if not 0 <= n_bytes <= MOST_BYTES:
            return 413, {"why": "the body is longer than any request here needs"}
        tree = peer_json(request.rfile.read(n_bytes))
        if not isinstance(tree, dict):
            raise ValueError
        return reception.answer(request.path, tree)
    except RefusedError as error:
        return error.status, {"why": str(error)}
    except (ValueError, OSError):
        return 400, {"why": "the request is malformed"}
    except DatacollectError as error:
        return 500, {"why": str(error)}
