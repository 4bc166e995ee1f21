"""TLS whose two directions end one by one (sans I/O): bytes in, bytes out, no socket.

A direction ends with close_notify (RFC 8446, 6.1: since TLS 1.3 the other one goes on). An end of
the connection without it is none of the direction: something was cut off, by whoever.

`ssl.SSLSocket` cannot do that: to close its one direction it reads from the socket, and throws away
what still comes.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing import TypeAlias

    Data: TypeAlias = bytes | bytearray | memoryview

# A record of TLS has so much at most.
RECORD_BYTES = 16 * 1024


class TlsStream:
    """One side of a connection: what it is given goes in, what is to be sent comes out.

    All methods raise `ssl.SSLError` where the other side does not keep to TLS.

    Parameters
    ----------
    context : ssl.SSLContext
    server_side : bool
    host : str, optional
        Of clients: whom they greet.

    Attributes
    ----------
    is_ended : bool
        Whether the other side has said that nothing more comes.
    """

    def __init__(
        self, context: ssl.SSLContext, *, server_side: bool, host: str | None = None
    ) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._in, self._out, server_side=server_side, server_hostname=host
        )
        self._ahead = b""
        self._may_read = True  # something has come since nothing more could be read
        self.is_ended = False

    @property
    def protocol(self) -> str | None:
        """Return what both sides have agreed to speak (ALPN)."""
        return self._tls.selected_alpn_protocol()

    @property
    def certificate(self) -> bytes | None:
        """The other side's, DER."""
        return self._tls.getpeercert(binary_form=True)

    def feed(self, data: Data) -> None:
        """Take in what has come."""
        self._in.write(data)
        self._may_read = True

    def greet(self) -> bool:
        """Go on with the greeting; whether it is done. Else more has to come."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def read_into(self, room: memoryview) -> int:
        """Put what can be read into a buffer, a record at most; return its bytes.

        0: the other side has ended, see `is_ended`, or more has to come.
        """
        if self._ahead:
            n_bytes = min(len(room), len(self._ahead))
            room[:n_bytes] = self._ahead[:n_bytes]
            self._ahead = self._ahead[n_bytes:]
            return n_bytes
        return self._decrypted_into(room)

    def fill(self, room: memoryview) -> int:
        """Put all that can be read into a buffer, as far as it goes; return its bytes."""
        filled, most = 0, len(room)
        while filled < most and (n_bytes := self.read_into(room[filled:])):
            filled += n_bytes
        return filled

    def put_back(self, data: bytes) -> None:
        """Have bytes read again that were read too early."""
        self._ahead = data + self._ahead

    def write(self, data: Data) -> None:
        """Have bytes sent: all of them, see `to_send`."""
        self._tls.write(data)

    def end(self) -> None:
        """Say that nothing more comes. What the other side sends can be read on."""
        # Python then looks for the other's close_notify, and loses what it finds instead.
        block = memoryview(bytearray(RECORD_BYTES))
        while n_bytes := self._decrypted_into(block):
            self._ahead += block[:n_bytes]
        with suppress(ssl.SSLWantReadError):  # it is not waited for
            self._tls.unwrap()

    def to_send(self) -> bytes:
        """Return what is to be sent now; it is sent by the caller."""
        return self._out.read() if self._out.pending else b""

    def _decrypted_into(self, room: memoryview) -> int:
        # To find out that nothing is there costs an exception.
        if self.is_ended or not self._may_read:
            return 0
        try:
            # Into a buffer it returns a number, whatever types say.
            n_bytes = cast("int", self._tls.read(len(room), room))
        except ssl.SSLWantReadError:
            self._may_read = False
            return 0
        except ssl.SSLZeroReturnError:
            n_bytes = 0
        self.is_ended = n_bytes == 0
        return n_bytes
