"""A server of HTTP that strangers may call: bounded bodies, slow clients, addresses behind proxies.

aiohttp speaks HTTP; it is imported when a server starts.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from datacollect.bistro.http.connections import (
    CountingListener,
    Places,
    is_within,
    most_connections,
)
from datacollect.bistro.http.exchange import Reply
from datacollect.errors import ProblemError
from datacollect.net.addresses import origin_of
from datacollect.net.cross_origin import allowed, shared
from datacollect.net.names import host_port_text
from datacollect.net.tcp_options import stop_accepting
from datacollect.net.tls import server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractContextManager

    from aiohttp.web import BaseRequest, Response

    from datacollect.bistro.http.config import Listening
    from datacollect.bistro.http.config_fields import IPNetwork

BACKLOG = 4096
# How long a client may take for a head, or stay silent between requests; for a body; for TLS.
IDLE_S, BODY_S, HANDSHAKE_S = 75.0, 20.0, 20.0
# How long a server that ends waits for answers that are under way.
DRAIN_S = 5.0
# An answer is handed to the kernel and to memory at once: a client that reads slowly holds nobody.
MOST_UNSENT_BYTES = 2**20

# Pages may read all answers, and with them when to come again, and the time here.
SHARED = shared(("Date", "Retry-After"))
ALLOWED = allowed(("GET", "POST"), ("Content-Type",))

_WITH_PORT = re.compile(r"(\[(?P<v6>[^\]]*)\]|(?P<v4>[0-9.]+))(:[0-9]*)?")


class TooLongError(Exception):
    """A body is longer than it may be."""


class WebServer:
    """Listens, and has each request answered.

    Parameters
    ----------
    listening : Listening
    handle : coroutine function
        Answers a request.
    behind : sequence of networks
        Proxies, which may have more connections than others.

    Attributes
    ----------
    url : str
        Where it listens, once it does.
    """

    def __init__(
        self,
        listening: Listening,
        handle: Callable[[BaseRequest], Awaitable[Reply]],
        behind: Sequence[IPNetwork] = (),
    ) -> None:
        self._handle = handle
        self._behind = behind
        self._listening = listening
        self.url = ""
        self._tls = tls_context(listening)
        self._listener: asyncio.Server | None = None

    async def start(self, listener: CountingListener) -> None:
        """Serve from now on."""
        from aiohttp import web

        self._bound = listener
        listener.places = Places(most_connections(), self._behind)
        self.url = url_of(self._listening, listener)
        # It logs what clients do wrong, with a stack.
        silent = logging.getLogger(f"{__name__}.silent")
        silent.disabled = True
        self._web = web.Server(
            self._answer, access_log=None, logger=silent, keepalive_timeout=IDLE_S
        )
        timeout: Any = None if self._tls is None else HANDSHAKE_S
        self._listener = await asyncio.get_running_loop().create_server(
            self._web,
            sock=listener,
            ssl=self._tls,
            ssl_handshake_timeout=timeout,
            backlog=BACKLOG,
        )

    def reread_certificate(self) -> None:
        """Take the certificate anew: for connections from now on.

        Raises
        ------
        ProblemError
            It is none; the old one is kept.
        """
        if self._tls is not None and self._listening.tls is not None:
            tls_context(self._listening)
            self._tls.load_cert_chain(*self._listening.tls, password=b"")

    async def stop(self) -> None:
        """Take no more connections; end when what is under way is answered, or soon."""
        if self._listener is not None:
            stop_accepting(self._bound)
            self._listener.close()
            self._web.pre_shutdown()
            await self._web.shutdown(DRAIN_S)

    async def _answer(self, request: BaseRequest) -> Response:
        from aiohttp import web

        if request.transport is not None:
            request.transport.set_write_buffer_limits(MOST_UNSENT_BYTES)
        if request.method == "OPTIONS":
            return web.Response(status=204, headers=dict(SHARED + ALLOWED))
        # Who has not sent all of his request holds no place against others.
        with self._at_work(request) if request.content.is_eof() else nullcontext():
            reply = await self._handle(request)
        headers = {"Content-Type": reply.content_type, **dict(SHARED)}
        if reply.retry_after_s is not None:
            headers["Retry-After"] = str(reply.retry_after_s)
        response = web.Response(status=reply.status, body=reply.body, headers=headers)
        if not request.content.is_eof():
            # What it still sends nobody reads.
            response.force_close()
        return response

    def _at_work(self, request: BaseRequest) -> AbstractContextManager[None]:
        transport = request.transport
        connection = None if transport is None else transport.get_extra_info("socket")
        return nullcontext() if connection is None else self._bound.at_work(connection.fileno())


def tls_context(listening: Listening) -> ssl.SSLContext | None:
    """Return the context of TLS of a server's certificate; None: it speaks plain HTTP."""
    if listening.tls is None:
        return None
    return server_context(*listening.tls, "`tls` names them")


async def body_of(request: BaseRequest, most_bytes: int) -> bytes:
    """Return a request's body.

    Raises
    ------
    TooLongError
        It is longer than it may be.
    TimeoutError
        The client is too slow.
    """
    if (request.content_length or 0) > most_bytes:
        raise TooLongError
    body = b""
    if request.content.is_eof():  # most come with their head
        body = request.content.read_nowait()
    else:
        async with asyncio.timeout(BODY_S):
            while len(body) <= most_bytes and (part := await request.content.readany()):
                body += part
    if len(body) > most_bytes:
        raise TooLongError
    return body


def refused_body(error: Exception) -> Reply:
    """Return the answer to whoever sends no whole body that is short enough."""
    if isinstance(error, TooLongError):
        return Reply.words(413, "the body is longer than any request here needs")
    return Reply.words(408, "the body did not come in time; send it again")


def address_of(request: BaseRequest, behind: Sequence[IPNetwork]) -> str:
    """Return whom a request is counted for.

    What a proxy says counts only where it comes from one that is known: of the addresses that it
    names the last that is no such proxy itself, for all before that anybody could have written.
    """
    peer = request.remote or ""
    for text in reversed(",".join(request.headers.getall("X-Forwarded-For", [])).split(",")):
        if not is_within(peer, behind) or not text.strip():
            break
        peer = _without_port(text.strip())
    return origin_of(peer)


def _without_port(text: str) -> str:
    """Return the address that a proxy names; some write its port, too: each would be another."""
    found = _WITH_PORT.fullmatch(text)
    return (found["v6"] or found["v4"]) if found else text


def bound_socket(listening: Listening, *, is_shared: bool = False) -> CountingListener:
    """Return a socket that is bound, and listens once a server starts with it.

    Parameters
    ----------
    listening : Listening
    is_shared : bool
        Whether other sockets are bound to the same place: the kernel spreads connections over them.

    Raises
    ------
    ProblemError
        That cannot be; the message says why.
    """
    host, port = listening.address
    where = f"listen: {host_port_text(host, port)}"
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = rows[0]
        bound = CountingListener(family, kind)
    except OSError as error:
        raise ProblemError(f"{where}: {error.strerror}; write an address of this host") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise ProblemError(
            f"{where}: {error.strerror}; stop the program that listens there, or choose another "
            "port; port 0 is any free one"
        ) from None
    return bound


def url_of(listening: Listening, bound: socket.socket) -> str:
    """Return where a server can be reached, if its listening address is one that others reach."""
    scheme = "http" if listening.tls is None else "https"
    return f"{scheme}://{host_port_text(*bound.getsockname()[:2])}"
