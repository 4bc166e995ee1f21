"""Connections to other servers: directly or through relays, with the usual checks of TLS."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from datacollect.errors import IdentityError, RefusedError, TransferError
from datacollect.net.addresses import addresses_of
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, dial, open_route, start_tls
from datacollect.net.tls import require_fingerprint, web_context
from datacollect.transfer.sources.web import certificates

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Sequence

    from datacollect.transfer.sources.web.core.messages import Connect


@dataclass(frozen=True)
class Dialler:
    """Opens connections for the sessions of one server, over one route.

    Attributes
    ----------
    name : str
        The server, as relays call it, and messages.
    tls, usual_tls : ssl.SSLContext
        For the server itself, and for where it leads on.
    fingerprint : str or None
    hops : callable
        Returns the relays of the route, each with a new ticket.
    refused : callable
        Takes what a relay refuses with.
    timeout_s : float
    has_ca : bool
        Whether the collection names who signed its certificate.
    """

    name: str
    tls: ssl.SSLContext
    usual_tls: ssl.SSLContext
    fingerprint: str | None
    hops: Callable[[], Sequence[RelayHop]]
    refused: Callable[[RefusedError], None]
    timeout_s: float
    has_ca: bool = False

    def dial(self, wanted: Connect, deadline: Deadline | None = None) -> socket.socket:
        """Connect.

        Raises
        ------
        TransferError
            It cannot be reached, or is another.
        """
        origin = wanted.origin
        deadline = deadline or Deadline(self.timeout_s)
        plain = self._plain(wanted, deadline)
        if origin.scheme == "http":
            plain.settimeout(self.timeout_s)
            return plain
        context = self.usual_tls if wanted.is_elsewhere else self.tls
        try:
            connection = start_tls(plain, context, origin.host, self.name, deadline)
        except IdentityError as error:
            if wanted.is_elsewhere:
                raise
            certificate = partial(self._certificate, wanted)
            helps = certificates.refusal(error, certificate, has_ca=self.has_ca)
            raise error if helps is None else IdentityError(f"{error}; {helps}") from None
        connection.settimeout(self.timeout_s)
        if self.fingerprint is not None and not wanted.is_elsewhere:
            try:
                require_fingerprint(connection, self.fingerprint, self.name)
            except BaseException:
                connection.close()
                raise
        return connection

    def _certificate(self, wanted: Connect) -> bytes | None:
        """Return the certificate that the server shows, whatever it is worth."""
        deadline = Deadline(self.timeout_s)
        with suppress(TransferError):
            plain = self._plain(wanted, deadline)
            unchecked = web_context(None, "any")
            with start_tls(plain, unchecked, wanted.origin.host, self.name, deadline) as connection:
                return connection.getpeercert(binary_form=True)
        return None

    def _plain(self, wanted: Connect, deadline: Deadline) -> socket.socket:
        host, port = wanted.origin.host, wanted.origin.port
        if hops := self.hops():
            try:
                return open_route(hops, self.name, (host, port), deadline=deadline)
            except RefusedError as error:
                self.refused(error)
                raise
        # What the collection's file names counts as written; where an answer leads to does not.
        places = addresses_of(host, port) if wanted.is_elsewhere else [(host, port)]
        return dial(places, self.name, deadline, what="server")
