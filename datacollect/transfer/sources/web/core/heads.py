"""Heads of answers: status and headers, and what can be read off them."""

from __future__ import annotations

import base64
import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

from datacollect.files.media import looks_by_type
from datacollect.transfer.sources.web.core.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping

    import h11

    from datacollect.files.media import ContentKind

# To wait where a server says that it cannot now, and not how long.
BUSY_S, LONGEST_RETRY_S = 2.0, 24 * 3600.0
TOO_MANY = 429
BUSY = (408, 425, TOO_MANY, 502, 503, 504)
_SHA256 = re.compile(r"(?:^|,) ?sha-256=:((?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/=]{4}):", re.ASCII)
_HTTP = b"HTTP/"
# A longer head is judged by who reads HTTP.
MOST_HELD_BYTES = 64 * 1024
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_INFORMATIONAL = re.compile(rb"HTTP/\d\.\d 1\d\d")
_IDENTITY = re.compile(
    rb"^transfer-encoding:[ \t]*identity[ \t]*\r?\n", re.IGNORECASE | re.MULTILINE
)


class Head(NamedTuple):
    """Status and headers of an answer, names in lowercase."""

    status: int
    headers: Mapping[str, str]

    @property
    def length(self) -> int | None:
        """Bytes of the body, where it says so, and nothing else says where it ends."""
        if "transfer-encoding" in self.headers:
            return None
        text = self.headers.get("content-length", "")
        return int(text) if re.fullmatch(r"\d{1,19}", text, re.ASCII) else None

    @property
    def version(self) -> Version:
        """Return which version it is of."""
        return Version(self.headers.get("etag"), self.headers.get("last-modified"))

    @property
    def media(self) -> ContentKind | None:
        """Return which document it calls itself; None: none."""
        return looks_by_type(self.headers.get("content-type", ""))

    def sha256(self, *, is_all: bool) -> bytes | None:
        r"""Return the SHA-256 that it says of its body, or, where that is all, of the file.

        After RFC 9530 (2024).

        >>> Head(206, {"content-digest": "md5=:AA==:, sha-256=:AAE=:"}).sha256(is_all=False)
        b'\x00\x01'
        """
        for name in ("content-digest", *(("repr-digest",) if is_all else ())):
            if (found := _SHA256.search(self.headers.get(name, ""))) is not None:
                return base64.b64decode(found[1])
        return None

    @property
    def encoding(self) -> str | None:
        """Return how the body is encoded; None: not at all."""
        encoding = self.headers.get("content-encoding", "").strip().lower()
        return None if encoding in ("", "identity") else encoding


class HeadBytes:
    r"""Bytes of an answer on their way to who reads HTTP, without `Transfer-Encoding: identity`.

    It means nothing, and servers still send it: RFC 2616 (1999, 3.6) had it, RFC 9112 has not.

    >>> HeadBytes().passed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Identity\r\nA: b\r\n\r\nbody")
    b'HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody'
    """

    def __init__(self) -> None:
        self._held: bytes | None = b""  # of a head without an end; None: it has passed

    def passed(self, data: bytes) -> bytes:
        """Return what is passed on by now: heads once they are whole, and no others held back."""
        if self._held is None:
            return data
        held = self._held + data
        end = _END_OF_HEAD.search(held)
        begins_so = held[: len(_HTTP)] == _HTTP[: len(held)]
        if data and end is None and begins_so and len(held) < MOST_HELD_BYTES:
            self._held = held
            return b""
        if end is None:
            self._held = None
            return held
        head, rest = held[: end.end()], held[end.end() :]
        head = _IDENTITY.sub(b"", head)
        if _INFORMATIONAL.match(head):  # the head that counts follows
            self._held = b""
            return head + (self.passed(rest) if rest else b"")
        self._held = None
        return head + rest


def head_of(response: h11.Response) -> Head:
    """Return an answer's head; headers given twice have both values, which fit nothing."""
    found: dict[str, str] = {}
    for name, value in response.headers:
        key = name.decode("ascii", "replace")
        text = re.sub(r"\s+", " ", value.decode("latin-1"))
        found[key] = f"{found[key]}, {text}" if key in found else text
    return Head(response.status_code, found)


def wait_s(head: Head, now_unix_s: float) -> float | None:
    """Return how long to leave a server alone; None where it does not ask for that.

    >>> wait_s(Head(503, {"retry-after": "30"}), 0.0), wait_s(Head(200, {}), 0.0)
    (30.0, None)
    """
    if head.status not in BUSY:
        return None
    text = head.headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+", text, re.ASCII):
        return min(float(text), LONGEST_RETRY_S)  # however many digits: infinite at most
    try:
        later_s = parsedate_to_datetime(text).timestamp() - now_unix_s
    except (TypeError, ValueError, OverflowError):
        return BUSY_S
    return min(max(later_s, 0.0), LONGEST_RETRY_S)
