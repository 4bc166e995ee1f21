"""Connections to other servers: directly or through relays, with the usual checks of TLS."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.documents import document_name
from datacollect.errors import ProblemError, TransferError
from datacollect.transfer.agent.addresses import addresses_of
from datacollect.transfer.wire.session import Hop, open_way, telling
from datacollect.transfer.wire.tls import require_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from datacollect.transfer.web.messages import Connect


def web_context(ca: Path | None, fingerprint: str | None) -> ssl.SSLContext:
    """Return what sessions with a server need: usual checks, or those of a pinned fingerprint.

    Parameters
    ----------
    ca : Path or None
        Who has signed its certificate, PEM; None: whom this host trusts.
    fingerprint : str or None
        Who has signed it does not matter; the caller compares.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        name = "" if ca is None else f"{document_name(ca)}: "
        raise ProblemError(f"{name}must hold certificates, PEM: {reason}") from None
    if fingerprint is not None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass(frozen=True)
class Dialler:
    """Opens connections for the sessions of one server, over one way.

    Attributes
    ----------
    name : str
        The server, as relays call it, and messages.
    tls, usual_tls : ssl.SSLContext
        For the server itself, and for where it leads on.
    fingerprint : str or None
    hops : callable
        Returns the relays on the way, each with a new ticket.
    timeout_s : float
    """

    name: str
    tls: ssl.SSLContext
    usual_tls: ssl.SSLContext
    fingerprint: str | None
    hops: Callable[[], Sequence[Hop]]
    timeout_s: float

    def dial(self, wanted: Connect) -> socket.socket:
        """Connect.

        Raises
        ------
        TransferError
            It cannot be reached, or is another.
        """
        origin = wanted.origin
        plain = self._plain(wanted)
        if origin.scheme == "http":
            return plain
        context = self.usual_tls if wanted.is_elsewhere else self.tls
        try:
            with telling(self.name):
                connection = context.wrap_socket(plain, server_hostname=origin.host)
        except TransferError as error:
            plain.close()
            if "certificate" not in str(error) or wanted.is_elsewhere:
                raise
            raise TransferError(
                f"{error}; where it is the right server, name who signed it by ca, or its "
                "fingerprint"
            ) from None
        except BaseException:
            plain.close()
            raise
        if self.fingerprint is not None and not wanted.is_elsewhere:
            try:
                require_fingerprint(connection, self.fingerprint, self.name)
            except BaseException:
                connection.close()
                raise
        return connection

    def _plain(self, wanted: Connect) -> socket.socket:
        host, port = wanted.origin.host, wanted.origin.port
        if hops := self.hops():
            return open_way(hops, self.name, (host, port), timeout_s=self.timeout_s)
        # What the collection's file names counts as written; where an answer leads to does not.
        places = addresses_of(host, port) if wanted.is_elsewhere else [(host, port)]
        why = ""
        for place in places:
            try:
                connection = socket.create_connection(place, timeout=self.timeout_s)
            except OSError as error:
                why = error.strerror or str(error)
            else:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
        raise TransferError(
            f"{self.name}: cannot be reached at {host}:{port}: {why}; is the server running, and "
            "may this host connect to it?"
        )
