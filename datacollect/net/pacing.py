"""Pacing by the kernel: how fast the packets of one connection may leave (Linux 4.13, tcp(7))."""

from __future__ import annotations

import socket
import struct

# linux/asm-generic/socket.h; Python's socket module does not name it.
SO_MAX_PACING_RATE = 47


def set_pacing_rate(connection: socket.socket, bytes_per_s: float) -> None:
    """Let packets of a connection leave no faster, in steps even and small."""
    rate = struct.pack("Q", int(bytes_per_s) or 1)
    connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
