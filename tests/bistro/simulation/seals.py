"""Seals that cost nothing and are the same in each run; age's have their own tests.

Whoever has the bytes could read them: what matters here is what becomes of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import BinaryIO

from instances.events import marked_by

from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.log.content import content_code
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.sealing.sealed import Inner, Opened, Readable
from datacollect.errors import ProblemError


def content_of(inner: Inner, file: bytes) -> bytes:
    """Return the code of a content."""
    code = content_code(inner.secret, inner.header)
    code.update(file)
    return code.digest()


def sealed(inner: Inner, file: bytes, nonce: int = 0) -> bytes:
    """Return what stands for a sealed file; each nonce makes another one."""
    assert inner.ticket_signature is not None
    parts = (inner.header, inner.secret, inner.ticket_signature, file)
    return json.dumps([nonce, *(part.hex() for part in parts)]).encode()


def open_sealed(ciphertext: Readable, out: BinaryIO, _: Sequence[str]) -> Opened:
    """Take the place of `datacollect.bistro.formats.sealing.sealed.open_sealed`."""
    data = b""
    while part := ciphertext.read():
        data += part
    try:
        _, *parts = json.loads(data)
        header, secret, signature, file = (bytes.fromhex(each) for each in parts)
    except (ValueError, TypeError):
        raise ProblemError("it is damaged") from None
    out.write(file)
    inner = Inner(header, secret, signature)
    return Opened(inner, len(file), content_of(inner, file))


def commitment_to(
    event: Event, salt: bytes, data: bytes, content: bytes, owner: bytes, ticket: int
) -> Commitment:
    """Return what commits to a ciphertext, its content and its owner, by a ticket's mark."""
    made = Commitment(event.id, salt, len(data), sha256(data).digest(), content, owner)
    return marked_by(event, made, ticket)
