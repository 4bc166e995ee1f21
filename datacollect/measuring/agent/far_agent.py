"""The other end of a test, which has to show who it is before anything is sent to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.net.addresses import addresses_of
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import dial, start_tls
from datacollect.net.http_heads import request_head
from datacollect.net.names import host_port_text
from datacollect.net.tls import client_context, require_fingerprint

if TYPE_CHECKING:
    import ssl

CONNECT_S = 10.0


@dataclass(frozen=True)
class FarAgent:
    """An agent at an address of this agent's ``connect_to``.

    Attributes
    ----------
    name : str
        As ``connect_to`` calls it.
    address : (str, int)
    fingerprint : str
        Of its certificate, by the ticket.
    token : str
        The ticket for it.
    congestion : str or None
    """

    name: str
    address: tuple[str, int]
    fingerprint: str
    token: str
    congestion: str | None = None

    def connected(self) -> ssl.SSLSocket:
        """Return a connection to it over TLS.

        Raises
        ------
        TransferError
            It cannot be reached, or is another: then nothing was sent but TLS's greeting.
        """
        deadline = Deadline(CONNECT_S)
        plain = dial(addresses_of(*self.address), self.name, deadline, congestion=self.congestion)
        connection = start_tls(plain, client_context(), self.address[0], self.name, deadline)
        try:
            require_fingerprint(connection, self.fingerprint, self.name)
        except BaseException:
            connection.close()
            raise
        return connection

    def request(self, method: str, path: str, n_bytes: int) -> bytes:
        """Return the head of a request that its ticket allows."""
        headers = [("Authorization", f"Bearer {self.token}"), ("Content-Length", str(n_bytes))]
        return request_head(method, path, host_port_text(*self.address), headers)
