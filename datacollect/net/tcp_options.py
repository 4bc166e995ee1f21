"""Options of TCP connections: buffers, keep-alives, how they end (tcp(7), socket(7))."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

# After so long without a byte the other side is asked whether it is there; so often, so far apart.
KEEP_ALIVE_S, ASKED_EVERY_S, ASKED_TIMES = 60, 15, 4


def keep_alive(connection: socket.socket) -> None:
    """Have a connection fail within minutes where the other side has vanished without a word."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEP_ALIVE_S),
        ("TCP_KEEPINTVL", ASKED_EVERY_S),
        ("TCP_KEEPCNT", ASKED_TIMES),
    ):
        if hasattr(socket, name):  # not everywhere under this name
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def set_buffers(connection: socket.socket, n_bytes: int) -> None:
    """Ask for buffers to send and to receive; before it listens or connects.

    Linux keeps twice as much, for what it notes about the data, and at most what ``rmem_max`` and
    ``wmem_max`` of ``/proc/sys/net/core`` allow. Both stay as they are from then on.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, n_bytes)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, n_bytes)


def reset_on_close(connection: socket.socket, *, on: bool = True) -> None:
    """Let closing tell the other side that something was cut off, or, not `on`, that all is well.

    The kernel closes connections, too, where their process was killed.
    """
    with suppress(OSError):  # not connected any more
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", on, 0))


def without_pacing(connection: socket.socket) -> None:
    """Have a connection over loopback send at once: nothing is lost there, nor queues.

    BBR paces what it sends, by timers and in smaller parts.
    """
    if hasattr(socket, "TCP_CONGESTION"):
        with suppress(OSError):  # Linux always has it, and others need not
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def stop_accepting(listener: socket.socket) -> None:
    """Have a listener accept nobody any more, by whichever copy; its owner then closes it.

    A program that another thread starts holds a copy of it until its exec. Closed alone, it would
    listen on in that copy, and whoever wants its port next would be told that it is in use.
    """
    with suppress(OSError):  # it does not listen yet
        listener.shutdown(socket.SHUT_RDWR)


def loopback_pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a connection over loopback: of TCP, which alone knows resets.

    Raises
    ------
    OSError
        No more can be opened.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        outer = socket.create_connection(listener.getsockname())
        try:
            while True:
                inner, address = listener.accept()
                # Any program of this host may have come first.
                if address == outer.getsockname():
                    break
                inner.close()
            for each in (outer, inner):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                without_pacing(each)
        except BaseException:
            outer.close()
            raise
    return outer, inner
