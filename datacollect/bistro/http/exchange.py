"""Requests of a process that speaks HTTP to the log owner, and its replies.

They may be one process. Between two, a message is its length (u32, big-endian), the length of its
head, the head in JSON, and a body of bytes; messages of one moment go together.
"""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from datacollect.bistro.formats.event.tickets import Admitted, Shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"
BYTES_TYPE = "application/octet-stream"

# Messages wait so long for others.
TOGETHER_S = 0.002
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """A request.

    Attributes
    ----------
    kind : str
        ``"get"``, or the path of what is posted, without its slash.
    address : str
        Whom it is counted for.
    body : bytes
        What is posted; of a commit, entries of 32 bytes one behind the other.
    path : str
        What is to be got, with its slash; of a commit ``"list"`` where a list is to be answered.
    ticket : Shown, Admitted or None
        What came of a ticket; or what is in it, once its signature was verified.
    """

    kind: str
    address: str = ""
    body: bytes = b""
    path: str = ""
    ticket: Shown | Admitted | None = None

    @property
    def head(self) -> list[Any]:
        """All but the body, for JSON."""
        head, ticket = [self.kind, self.address, self.path], self.ticket
        if isinstance(ticket, Admitted):
            return [*head, ticket.id, ticket.key, ticket.token_sha256.hex()]
        return head if ticket is None else [*head, ticket.token, ticket.signature.hex()]

    @classmethod
    def of(cls, head: Sequence[Any], body: bytes) -> Asked:
        """Return the request of a head and a body."""
        ticket: Shown | Admitted | None = None
        match head[3:]:
            case [number, key, token_sha256]:
                ticket = Admitted(number, key, bytes.fromhex(token_sha256))
            case [token, signature]:
                ticket = Shown(token, bytes.fromhex(signature))
        kind, address, path = head[:3]
        return cls(kind, address, body, path, ticket)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; `retry_after_s`: when to come again, in whole seconds."""

    status: int
    body: bytes
    content_type: str = TEXT_TYPE
    retry_after_s: int | None = None

    @classmethod
    def words(cls, status: int, text: str, retry_after_s: int | None = None) -> Reply:
        """Return an answer of a line."""
        return cls(status, f"{text}\n".encode(), TEXT_TYPE, retry_after_s)

    @classmethod
    def refusing(cls, status: int, text: str, retry_after_s: float | None) -> Reply:
        """Return the refusal that a core asks for."""
        return cls.words(status, text, None if retry_after_s is None else math.ceil(retry_after_s))


class Keeper(Protocol):
    """Process that keeps the log, or leads to it."""

    async def ask(self, asked: Asked) -> Reply:
        """Return the answer to a request, in every case."""


def packed(head: list[Any], body: bytes) -> bytes:
    """Return a message.

    >>> packed([1], b"a").hex()
    '00000008000000035b315d61'
    """
    text = json.dumps(head).encode()
    n_bytes = _LENGTH_BYTES + len(text) + len(body)
    return n_bytes.to_bytes(4, "big") + len(text).to_bytes(4, "big") + text + body


async def messages(reader: asyncio.StreamReader) -> AsyncIterator[tuple[list[Any], bytes]]:
    """Yield heads and bodies of messages until the other side has gone."""
    while True:
        try:
            n_bytes = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
            data = await reader.readexactly(n_bytes)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        stop = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")
        yield json.loads(data[_LENGTH_BYTES:stop]), data[stop:]


class Together:
    """Writes messages of one moment at once."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._waiting: list[bytes] = []

    def send(self, head: list[Any], body: bytes = b"") -> None:
        """Have a message written soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_later(TOGETHER_S, self._write)
        self._waiting.append(packed(head, body))

    def _write(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        if not self._writer.is_closing():
            self._writer.write(data)
