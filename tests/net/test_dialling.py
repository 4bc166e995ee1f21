"""Connections that fail while they begin leave nothing open."""

from __future__ import annotations

import socket
import ssl
import struct

import pytest

from datacollect.errors import TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import start_tls


def test_a_peer_that_is_gone_already_leaves_no_socket_open():
    """Python's wrapping fails there, and forgets its own socket: a warning, and so an error."""
    context = ssl.create_default_context()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        there.close()
        with pytest.raises(TransferError, match="S1: the connection failed"):
            start_tls(here, context, "s1.example", "S1", Deadline(5))
