"""Ends of TCP connections along a route: congestion control, buffers, what may be under way.

Each agent on the route tells its own in a header of its answer to ``CONNECT``: of the connection
that the request came by, ``near``, and of the one onwards, ``far``::

    Datacollect-Ends: near cubic send=87040 receive=131072 window=14480, far bbr asked=65536 …
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.net.tcp_info import tcp_info

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER = "Datacollect-Ends"
NEAR, FAR = "near", "far"

_NUMBERS = ("asked", "send", "receive", "window")
_END = re.compile(r"(near|far) ([A-Za-z0-9_-]{1,16})((?: (?:asked|send|receive|window)=\d{1,15})*)")


@dataclass(frozen=True)
class HopEnd:
    """One end of a connection.

    Attributes
    ----------
    congestion : str
        Congestion control; "" where it is not known.
    asked_bytes : int or None
        Buffers that were asked for; None: none, they grow by themselves.
    send_bytes, receive_bytes : int
        Buffers that were granted. Of what was asked for Linux grants twice as much, half of it for
        what it notes about the data.
    window_bytes : int or None
        What may be under way from here: the smaller of congestion window and the other side's
        window. None: the kernel does not say.
    """

    congestion: str
    asked_bytes: int | None
    send_bytes: int
    receive_bytes: int
    window_bytes: int | None

    @property
    def text(self) -> str:
        """As a header says it.

        >>> HopEnd("bbr", None, 87040, 131072, 14480).text
        'bbr send=87040 receive=131072 window=14480'
        """
        values = (self.asked_bytes, self.send_bytes, self.receive_bytes, self.window_bytes)
        given = zip(_NUMBERS, values, strict=True)
        numbers = [f"{name}={value}" for name, value in given if value is not None]
        return " ".join([self.congestion or "unknown", *numbers])


def hop_end(connection: socket.socket, asked_bytes: int | None = None) -> HopEnd:
    """Return what the kernel says of this end of a connection.

    Raises
    ------
    OSError
        It is closed.
    """
    congestion = ""
    if hasattr(socket, "TCP_CONGESTION"):
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        congestion = raw.partition(b"\0")[0].decode("ascii", "replace")
    facts = tcp_info(connection)
    window_bytes = None
    if "window_segments" in facts and "segment_bytes" in facts:
        window_bytes = int(facts["window_segments"] * facts["segment_bytes"])
        # Kernels before 5.4 leave it 0.
        window_bytes = min(window_bytes, int(facts.get("peer_window_bytes", 0)) or window_bytes)
    return HopEnd(
        congestion,
        asked_bytes,
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        window_bytes,
    )


def ends_text(ends: Mapping[str, HopEnd]) -> str:
    """Return the value of the header.

    >>> ends_text({"near": HopEnd("bbr", 65536, 131072, 131072, None)})
    'near bbr asked=65536 send=131072 receive=131072'
    """
    return ", ".join(f"{side} {end.text}" for side, end in ends.items())


def ends_of(text: str) -> dict[str, HopEnd]:
    """Return what a header says; of what is no such text nothing.

    >>> ends_of("near bbr send=1 receive=2 window=3, far <odd>")
    {'near': HopEnd(congestion='bbr', asked_bytes=None, send_bytes=1, receive_bytes=2, \
window_bytes=3)}
    """
    found = {}
    for part in text[:1000].split(", "):
        match = _END.fullmatch(part)
        if match is not None:
            pairs = (pair.split("=") for pair in match[3].split())
            numbers = {name: int(value) for name, value in pairs}
            if "send" in numbers and "receive" in numbers:
                found[match[1]] = HopEnd(
                    match[2],
                    numbers.get("asked"),
                    numbers["send"],
                    numbers["receive"],
                    numbers.get("window"),
                )
    return found
