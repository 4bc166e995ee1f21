"""Heads of HTTP messages: framing, parsing, and those of requests written. Bytes only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import ProblemError
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

END = b"\r\n\r\n"
# What a head may have, from the first byte to the last.
MOST_HEAD_BYTES = 16 * 1024


class HeadReader:
    r"""Takes bytes until a head is whole, and not a byte further.

    Examples
    --------
    >>> reader = HeadReader()
    >>> reader.wanted_of(b"CONNECT x"), reader.take(b"CONNECT x"), reader.is_whole
    (9, None, False)
    >>> reader.wanted_of(b"\r\n\r\nmore")
    4
    """

    def __init__(self) -> None:
        self.data = b""
        self.is_whole = False

    @property
    def room_bytes(self) -> int:
        """Return how many more bytes it may have."""
        return MOST_HEAD_BYTES - len(self.data)

    def wanted_of(self, ahead: bytes) -> int:
        """Return how many of the bytes that come next belong to the head."""
        end = (self.data[-3:] + ahead).find(END)
        if end < 0:
            return min(len(ahead), self.room_bytes)
        return end + len(END) - len(self.data[-3:])

    def take(self, data: bytes) -> None:
        """Take bytes, of which `wanted_of` has said that they belong to it."""
        self.data += data
        self.is_whole = self.data.endswith(END)

    @property
    def is_too_long(self) -> bool:
        """Return whether it has all that it may have, and no end."""
        return not self.is_whole and self.room_bytes <= 0


class ResponseHead(NamedTuple):
    """Status and headers of an answer, names in lowercase; those given twice have both values."""

    status: int
    headers: Mapping[str, str]

    @property
    def length(self) -> int | None:
        """Bytes of the body, where it says so."""
        text = self.headers.get("content-length", "")
        return int(text) if re.fullmatch(r"\d{1,18}", text, re.ASCII) else None

    @property
    def is_chunked(self) -> bool:
        """Return whether the body comes in chunks, which end it (RFC 9112, section 7.1, 2022)."""
        return self.headers.get("transfer-encoding", "").lower() == "chunked"


def request_head(
    method: str, target: str, host: str, headers: Iterable[tuple[str, str]] = ()
) -> bytes:
    r"""Return the head of a request in HTTP/1.1.

    Parameters
    ----------
    method, target : str
    host : str
        As `Host` names it.
    headers : iterable of (str, str)
        The others, in their order.

    Examples
    --------
    >>> request_head("GET", "/measure/clock", "192.0.2.1:4433", [("Accept", "*/*")])
    b'GET /measure/clock HTTP/1.1\r\nHost: 192.0.2.1:4433\r\nAccept: */*\r\n\r\n'
    """
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk_length(line: bytes) -> int | None:
    """Return how many bytes a chunk has, by the line before it; None: it is no such line.

    >>> chunk_length(b"1a; name=value"), chunk_length(b"0x1a"), chunk_length(b"")
    (26, None, None)
    """
    found = re.fullmatch(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[^\r\n]*)?", line)
    return int(found[1], 16) if found else None


def response_head(raw: bytes) -> ResponseHead:
    r"""Return what the whole head of an answer says.

    Raises
    ------
    ProblemError
        It is no HTTP.

    Examples
    --------
    >>> response_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").length
    5
    """
    import h11

    view = h11.Connection(h11.CLIENT, max_incomplete_event_size=len(raw) + 1)
    view.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    view.send(h11.EndOfMessage())
    try:
        view.receive_data(raw)
        answer = view.next_event()
    except h11.RemoteProtocolError as error:
        raise ProblemError(f"malformed HTTP response: {safe_text(str(error))}") from None
    if not isinstance(answer, h11.Response | h11.InformationalResponse):
        raise ProblemError("unexpected HTTP response")
    headers: dict[str, str] = {}
    for name, value in answer.headers:
        key = name.decode("ascii", "replace")
        text = re.sub(r"\s+", " ", value.decode("latin-1"))
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return ResponseHead(answer.status_code, headers)
