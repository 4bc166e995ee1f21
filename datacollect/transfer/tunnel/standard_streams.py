"""Carries a tunnel's bytes by standard input and output, as ``ssh -o ProxyCommand`` wants it."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.errors import TransferError

if TYPE_CHECKING:
    from datacollect.transfer.tunnel.tunnel import Tunnel

STDIN, STDOUT = 0, 1
BLOCK_BYTES = 256 * 1024


def carry(tunnel: Tunnel, source: int = STDIN, sink: int = STDOUT) -> None:
    """Pass bytes on until both directions have ended.

    Where the other side ends first, `sink` is closed, and what is read goes on to it.

    Parameters
    ----------
    tunnel : Tunnel
    source, sink : int
        File descriptors; they stay as they are, blocking or not: others may share them.

    Raises
    ------
    TransferError
        It was cut off.
    """
    threading.Thread(target=_send, args=(tunnel, source), daemon=True).start()
    with suppress(OSError):  # a reset: why is known below
        while data := tunnel.socket.recv(BLOCK_BYTES):
            try:
                _write(sink, data)
            except OSError as error:
                tunnel.cut("nobody reads what arrives")
                raise TransferError(f"standard output: {error.strerror}") from None
    # Whoever reads it learns that nothing more comes.
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sink)
    os.close(nothing)
    tunnel.wait()


def _send(tunnel: Tunnel, source: int) -> None:
    with suppress(OSError):  # the tunnel has ended, and says why
        while data := os.read(source, BLOCK_BYTES):
            tunnel.socket.sendall(data)
        tunnel.socket.shutdown(socket.SHUT_WR)


def _write(sink: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(sink, left) :]
