"""Requests about sealed pieces to an agent, over one TLS connection: of collectors and relays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from datacollect.errors import RefusedError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import REFUSAL_BYTES, naming_peer, open_route, start_tls
from datacollect.net.http_client import HttpChannel
from datacollect.net.http_heads import request_head
from datacollect.net.safe_text import safe_text
from datacollect.net.tls import client_context, fingerprint_of, require_fingerprint

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from datacollect.net.dialling import RelayHop
    from datacollect.transfer.rates.pacer import Pacer

_NOT_IN_HOSTS = re.compile(r"[^\w.-]", re.ASCII)
NO_BODY = 204


class Conversation:
    """Requests that are answered in their order; for one thread, but for `abort`.

    Parameters
    ----------
    name : str
        The agent, for messages.
    address : tuple of str and int
    fingerprint : str or None
        Of its certificate.
    hops : sequence of RelayHop, optional
        Relays, the nearest first.
    tls : ssl.SSLContext, optional
        By default one that trusts the fingerprint alone.
    timeout_s : float
        Of connecting, and of each answer.
    pacer : Pacer, optional
        Limits that what comes keeps to.

    Attributes
    ----------
    fingerprint : str
        Of the certificate by which it answers.

    Raises
    ------
    IdentityError
        Another answers there.
    TransferError
        It cannot be reached.
    """

    def __init__(
        self,
        name: str,
        address: tuple[str, int],
        fingerprint: str | None,
        *,
        hops: Sequence[RelayHop] = (),
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 20.0,
        pacer: Pacer | None = None,
    ) -> None:
        self.name, self._timeout_s = name, timeout_s
        deadline = Deadline(timeout_s)
        plain = open_route(hops, name, address, deadline=deadline)
        connection = start_tls(plain, tls or client_context(), address[0], name, deadline)
        try:
            with naming_peer(name):
                require_fingerprint(connection, fingerprint, name)
                self.fingerprint = fingerprint_of(connection.getpeercert(binary_form=True) or b"")
        except BaseException:
            connection.close()
            raise
        self._channel = HttpChannel(connection, name, timeout_s, pacer)

    @property
    def received_bytes(self) -> int:
        """Bytes of pieces that have come."""
        return self._channel.received_bytes

    @property
    def is_quiet(self) -> bool:
        """Return whether it may be used again."""
        return self._channel.is_quiet

    def ask(
        self, target: str, ticket: str, body: bytes, most: int, timeout_s: float | None = None
    ) -> bytes:
        """Return the answer to a request.

        Raises
        ------
        RefusedError
            The agent refuses; with its status.
        TransferError
            The connection is lost, or the answer is malformed.
        """
        self.send(target, ticket, body)
        return self.receive(most, timeout_s)

    def send(self, target: str, ticket: str, body: bytes) -> None:
        """Send a request; its answer is received later."""
        headers = [("Authorization", f"Bearer {ticket}"), ("Content-Length", str(len(body)))]
        host = re.sub(_NOT_IN_HOSTS, "-", self.name)
        self._channel.send(request_head("POST", target, host, headers) + body)

    def receive(self, most: int, timeout_s: float | None = None) -> bytes:
        """Return the next answer, of so many bytes at most."""
        head = self._channel.head(Deadline(timeout_s or self._timeout_s))
        if head.status == NO_BODY:
            return b""
        if head.status != 200:
            self._refused(head.status, head.length)
        if head.length is not None and most >= head.length:
            data = bytearray(head.length)
            self._channel.fill(memoryview(data))
            return bytes(data)
        return self._channel.body(head.length, most, Deadline(self._timeout_s))

    def _refused(self, status: int, length: int | None) -> None:
        body = self._channel.body(length, REFUSAL_BYTES, Deadline(self._timeout_s))
        text = safe_text(body.decode(errors="replace").strip())
        raise RefusedError(f"{self.name}: refuses ({status}): {text}", status)

    def __enter__(self) -> Conversation:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def abort(self) -> None:
        """End it from another thread; what waits in it fails."""
        self._channel.abort()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
