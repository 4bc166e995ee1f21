"""UDP between hosts that know each other by TLS: packets go where the other end has shown itself.

Who asks for packets names a port, over TLS; they go to the address at which that was done, and
nowhere else. A few greetings go first, with numbers that nobody can guess: only where the other end
can say them over TLS, and so receives what is sent to that address and port, more is sent.
"""

from __future__ import annotations

import errno
import secrets
import socket
import time
from typing import TYPE_CHECKING

from datacollect.errors import RefusedError, TransferError

if TYPE_CHECKING:
    from collections.abc import Callable

GREETINGS = 3
# Of IP with UDP.
HEADERS_BYTES = {socket.AF_INET: 28, socket.AF_INET6: 48}
# linux/in.h, linux/in6.h: packets are never cut in two on the way.
DO_NOT_CUT = {
    socket.AF_INET: (socket.IPPROTO_IP, 10, 2),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 23, 2),
}
# The socket that was there before may last until it has looked.
PORT_FREE_S, LOOKED_AFTER_S = 1.0, 0.05


def greeting_number(first: int) -> int:
    """Return a number from one on, twice as large at most, that nobody guesses.

    >>> 2**31 <= greeting_number(2**31) < 2**32
    True
    """
    return first + secrets.randbelow(first)


def none_has_arrived(name: str, n: int, port: int, failure: str = "") -> TransferError:
    """Return the failure of greetings none of which the other end has said."""
    why = f" ({failure})" if failure else ""
    return TransferError(
        f"{name}: none of {n} UDP packets to port {port} has arrived{why}; "
        "open that UDP port for this host in the firewalls on the way, and forward it where a "
        "router translates addresses"
    )


def connected_udp(place: tuple[str, int], name: str) -> socket.socket:
    """Return a socket whose packets go to one place, whole.

    Raises
    ------
    TransferError
        None go there.
    """
    family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        made.setsockopt(*DO_NOT_CUT[family])
        made.connect(place)
    except OSError as error:
        made.close()
        raise TransferError(
            f"{name}: UDP packets cannot be sent to this agent: {error.strerror}"
        ) from None
    return made


def bound_udp(
    address: tuple[str, int], table: str, prepare: Callable[[socket.socket], None]
) -> socket.socket:
    """Return a socket that packets come to.

    Parameters
    ----------
    address : (str, int)
        Port 0: any free one.
    table : str
        Of an agent's file, in which the port stands.
    prepare : callable
        Sets options of the socket before packets come.

    Raises
    ------
    RefusedError
        It cannot be opened.
    """
    host, port = address
    ends_s = time.monotonic() + PORT_FREE_S
    while True:
        try:
            return _opened(host, port, prepare)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= ends_s:
                raise RefusedError(
                    f"UDP port {port} of this host cannot be opened: {error.strerror}; stop the "
                    f"program that uses it, or write another udp_port into [{table}], and start "
                    "the agent again",
                    503,
                ) from None
        time.sleep(LOOKED_AFTER_S)


def _opened(host: str, port: int, prepare: Callable[[socket.socket], None]) -> socket.socket:
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE)
    family, kind, _, _, place = rows[0]
    opened = socket.socket(family, kind)
    try:
        prepare(opened)
        opened.bind(place)
    except BaseException:
        opened.close()
        raise
    return opened
