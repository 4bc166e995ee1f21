"""State of a TCP connection in the kernel (Linux' TCP_INFO)."""

from __future__ import annotations

import socket
import struct

# Name, how it is packed, where it stands in struct tcp_info (linux/tcp.h), what it is divided by.
_FIELDS = (
    ("rtt_s", "I", 68, 1e6),
    ("rtt_variation_s", "I", 72, 1e6),
    ("window_segments", "I", 80, 1),
    ("segment_bytes", "I", 16, 1),
    ("unacknowledged_segments", "I", 24, 1),
    ("retransmits", "I", 100, 1),
    ("acknowledged_bytes", "Q", 120, 1),
    ("received_bytes", "Q", 128, 1),
    ("least_rtt_s", "I", 148, 1e6),
    ("delivery_bytes_per_s", "Q", 160, 1),
    ("busy_s", "Q", 168, 1e6),
    ("receiver_limited_s", "Q", 176, 1e6),
    ("send_buffer_limited_s", "Q", 184, 1e6),
    ("peer_window_bytes", "I", 228, 1),
)
# Bit 0: the last rate of delivery was limited by what there was to send.
_LIMITED_BYTE = 7
_TCP_INFO_BYTES = 232


def tcp_info(connection: socket.socket) -> dict[str, float]:
    """Return facts of a TCP connection; what this kernel does not know is left out.

    Keys: ``rtt_s``, ``rtt_variation_s``, ``least_rtt_s`` (round trips, seconds),
    ``window_segments``, ``segment_bytes``, ``unacknowledged_segments``, ``retransmits``,
    ``acknowledged_bytes``, ``received_bytes``, ``delivery_bytes_per_s``; ``busy_s`` (time with
    something to send), of it ``receiver_limited_s`` and ``send_buffer_limited_s`` (waiting for room
    at the other side, and at this one); ``peer_window_bytes`` (what the other side lets be sent at
    once); ``application_limited`` (1 where too little was there to send).
    """
    if not hasattr(socket, "TCP_INFO"):
        return {}
    try:
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:  # closed meanwhile, or no TCP
        return {}
    facts: dict[str, float] = {}
    for name, packed, offset, divisor in _FIELDS:
        if offset + struct.calcsize(packed) <= len(raw):
            (value,) = struct.unpack_from(packed, raw, offset)
            facts[name] = value / divisor if divisor != 1 else value
    facts["application_limited"] = raw[_LIMITED_BYTE] & 1
    return facts
