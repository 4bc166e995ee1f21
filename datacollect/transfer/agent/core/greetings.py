"""Greetings: the first bytes of a relayed connection, before the rest passes unseen.

The next host of a way speaks TLS, or is a relay that is asked to connect onwards. So the client
says a ClientHello or a CONNECT, and the next host answers as TLS or as HTTP does. A relay looks at
no more than that. To plain services, such as SMTP, SSH or a database, it passes one greeting at
most, and nothing of what they say (RFC 8446, 4.1.2 and 5.1).
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

from datacollect.errors import ProblemError
from datacollect.net.connect import answered_status, connect_request, parse_connect
from datacollect.net.http_heads import END, MOST_HEAD_BYTES
from datacollect.net.keys import HEADER

ALERT, HANDSHAKE = 0x15, 0x16
CLIENT_HELLO, SERVER_HELLO = 1, 2
RECORD_HEAD_BYTES, MOST_RECORD_BYTES = 5, 2**14
# Of a ClientHello at least: its head, a version, 32 random bytes, and three lengths.
LEAST_HELLO_BYTES = 42
# As far as anything has to be looked at.
MOST_GREETING_BYTES = RECORD_HEAD_BYTES + MOST_RECORD_BYTES
_TOKEN = re.compile(re.escape(HEADER) + r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?")
_NO_HELLO = "malformed ClientHello, or one in several TLS records"
_NO_TLS = "the next host does not speak TLS"


class Awaited(Enum):
    """Bytes that a relay waits for; `ALL`: bytes pass both ways; `END`: only the next host's."""

    GREETING = auto()
    TLS_ANSWER = auto()
    HTTP_ANSWER = auto()
    ALL = auto()
    END = auto()

    @property
    def is_of_client(self) -> bool:
        """Return whether the client has to say it."""
        return self is Awaited.GREETING


class Seen(NamedTuple):
    """Greeting that was awaited: so many bytes of it, and what is awaited then."""

    n_bytes: int
    then: Awaited


def seen_of(awaited: Awaited, ahead: bytes) -> Seen | None:
    r"""Return what the bytes that come next are; None: more have to come.

    Raises
    ------
    ProblemError
        They are not what is awaited.

    Examples
    --------
    >>> asked = connect_request("S2", "v4.public.x")
    >>> seen_of(Awaited.GREETING, asked[:9]), seen_of(Awaited.GREETING, asked).then
    (None, <Awaited.HTTP_ANSWER: 3>)
    >>> seen_of(Awaited.GREETING, b"EHLO me\r\n")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: this agent passes only TLS and CONNECT requests
    """
    if awaited is Awaited.TLS_ANSWER:
        return _tls_answer(ahead)
    if awaited is Awaited.HTTP_ANSWER:
        return _http_answer(ahead)
    if ahead[:1] == bytes((HANDSHAKE,)):
        return _hello(ahead)
    if _begins(ahead, b"CONNECT "):
        return _request(ahead)
    raise ProblemError("this agent passes only TLS and CONNECT requests")


def _hello(ahead: bytes) -> Seen | None:
    """See a ClientHello: its record, its own head, and the version that all have."""
    expected = (HANDSHAKE, 3, None, None, None, CLIENT_HELLO, None, None, None, 3, 3)
    if any(want not in (None, byte) for byte, want in zip(ahead, expected, strict=False)):
        raise ProblemError(_NO_HELLO)
    if len(ahead) < len(expected):
        return None
    n_bytes, of_hello = int.from_bytes(ahead[3:5], "big"), int.from_bytes(ahead[6:9], "big")
    if not LEAST_HELLO_BYTES <= n_bytes <= MOST_RECORD_BYTES or of_hello + 4 != n_bytes:
        raise ProblemError(_NO_HELLO)
    whole = RECORD_HEAD_BYTES + n_bytes
    return Seen(whole, Awaited.TLS_ANSWER) if len(ahead) >= whole else None


def _request(ahead: bytes) -> Seen | None:
    """See a request to connect that says where to and by which ticket, in our own words alone."""
    n_bytes = _head_bytes(ahead)
    if n_bytes is None:
        return None
    request = parse_connect(ahead[:n_bytes])
    token = request.token or ""
    ours = connect_request(request.host, token, request.port)
    if ours != ahead[:n_bytes] or not _TOKEN.fullmatch(token):
        raise ProblemError("a CONNECT request holds a target and a ticket, and nothing else")
    return Seen(n_bytes, Awaited.HTTP_ANSWER)


def _tls_answer(ahead: bytes) -> Seen | None:
    """See that TLS answers, by a ServerHello or an alert; both pass with what follows."""
    if ahead[0] not in (HANDSHAKE, ALERT) or ahead[1:2] not in (b"", b"\x03"):
        raise ProblemError(_NO_TLS)
    if len(ahead) <= RECORD_HEAD_BYTES:
        return None
    is_hello = ahead[0] == HANDSHAKE and ahead[5] == SERVER_HELLO
    is_alert = ahead[0] == ALERT and ahead[3:5] == b"\0\2" and ahead[5] in (1, 2)
    if not is_hello and not is_alert:
        raise ProblemError(_NO_TLS)
    return Seen(0, Awaited.ALL)


def _http_answer(ahead: bytes) -> Seen | None:
    """See the answer of the next relay: once it has connected, its client greets whom it has."""
    if not _begins(ahead, b"HTTP/1."):
        raise ProblemError("the next host is not a relay")
    n_bytes = _head_bytes(ahead)
    if n_bytes is None:
        return None
    is_connected = answered_status(ahead[:n_bytes]) == 200
    return Seen(n_bytes, Awaited.GREETING) if is_connected else Seen(0, Awaited.END)


def _head_bytes(ahead: bytes) -> int | None:
    end = ahead.find(END)
    if end >= 0:
        return end + len(END)
    if len(ahead) >= MOST_HEAD_BYTES:
        raise ProblemError(f"a head has at most {MOST_HEAD_BYTES} bytes")
    return None


def _begins(ahead: bytes, words: bytes) -> bool:
    return ahead[: len(words)] == words[: len(ahead)]
