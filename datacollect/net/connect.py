"""CONNECT: the request that a relay opens a connection by. Bytes only; others send them."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.net.hop_ends import HEADER, ends_of, ends_text
from datacollect.net.http_heads import END, MOST_HEAD_BYTES, request_head
from datacollect.net.names import host_and_port, host_port_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.net.hop_ends import HopEnd

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
USER = "ticket"

# The port in a request for a host by name that means the port of the relay's own file.
AS_CONFIGURED = 443

_LINE = re.compile(rb"CONNECT ([!-~]{1,300}) HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~]*)")


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """A request to connect: the next host and its port, as written, the token or None."""

    host: str
    port: int
    token: str | None


def connect_request(name: str, token: str, port: int = AS_CONFIGURED) -> bytes:
    """Return the bytes that ask an agent to connect to the next host.

    >>> connect_request("S2", "v4.public.x").splitlines()[0]
    b'CONNECT S2:443 HTTP/1.1'
    """
    target = host_port_text(name, port)
    if not re.fullmatch(r"[!-~]{1,260}", target):
        raise ProblemError(
            "a name in a request to connect must be of visible ASCII characters, with its port at "
            f"most 260, got {shown(name)}"
        )
    return request_head("CONNECT", target, target, [("Proxy-Authorization", f"Bearer {token}")])


def parse_connect(head: bytes) -> ConnectRequest:
    """Return the request to connect; raise `ProblemError` where it is anything else.

    A body, lines that are folded, and whatever else could be read in two ways are refused.

    >>> parse_connect(connect_request("S2", "v4.public.x"))
    ConnectRequest(host='S2', port=443, token='v4.public.x')
    """
    if len(head) > MOST_HEAD_BYTES or not head.endswith(END):
        raise ProblemError(f"a request to connect has at most {MOST_HEAD_BYTES} bytes")
    first, *lines = head[: -len(END)].split(b"\r\n")
    found = _LINE.fullmatch(first)
    if not found:
        raise ProblemError("without TLS, this agent answers only CONNECT requests")
    headers: dict[str, str] = {}
    for line in lines:
        header = _HEADER.fullmatch(line)
        if not header:
            raise ProblemError("a header line is malformed")
        name = header[1].decode().lower()
        if name in headers or name in ("content-length", "transfer-encoding"):
            raise ProblemError(
                f"header {shown(name)} is not allowed in a request to connect, or is given twice"
            )
        headers[name] = header[2].decode().strip()
    host, port = _target(found[1].decode())
    return ConnectRequest(host, port, token_of(headers.get("proxy-authorization")))


def token_of(authorization: str | None) -> str | None:
    """Return the token of a header ``Bearer TOKEN`` or ``Basic``, the token as password.

    >>> token_of("Bearer v4.public.x")
    'v4.public.x'
    >>> token_of("Basic " + base64.b64encode(b"ticket:v4.public.x").decode())
    'v4.public.x'
    """
    scheme, _, value = (authorization or "").partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value or None
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            return None
        return password if user == USER and password else None
    return None


def refusal(status: int, text: str) -> bytes:
    """Return an answer that refuses, with its reason in one line."""
    body = f"{text}\n".encode()
    asks = f'Proxy-Authenticate: Basic realm="{USER}"\r\n' if status == 407 else ""
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"Content-Type: text/plain; charset=utf-8\r\n{asks}"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def established(ends: Mapping[str, HopEnd]) -> bytes:
    """Return the answer that says that the connection is open, and by which sockets."""
    header = f"{HEADER}: {ends_text(ends)}\r\n" if ends else ""
    return ESTABLISHED[:-2] + header.encode() + b"\r\n"


def answered_ends(head: bytes) -> dict[str, HopEnd]:
    """Return what an answer says of sockets; of older agents nothing."""
    found = re.search(rb"\r\n%b:[ \t]*([ -~]*)\r\n" % HEADER.encode(), head, re.IGNORECASE)
    return {} if found is None else ends_of(found[1].decode())


def answered_status(head: bytes) -> int:
    """Return the status of a relay's answer."""
    found = re.match(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: |\r\n)", head)
    if not found:
        raise ProblemError("malformed response to CONNECT; did an agent answer?")
    return int(found[1])


def _target(text: str) -> tuple[str, int]:
    try:
        return host_and_port(text)
    except ProblemError as error:
        raise ProblemError(f"a CONNECT request names a wrong target, which {error}") from None
