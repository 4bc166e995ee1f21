"""Request to commit: entries, the ticket that admits them, its signature (``POST /commit``)."""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.bistro.formats.log.notes import decoded
from datacollect.bistro.formats.log.one_meaning import hex_bytes, peer_json
from datacollect.errors import ProblemError
from datacollect.net.keys import SIGNATURE_BYTES, TOKEN_LENGTH

COMMIT_PATH = "/commit"
_KEYS = {"entry", "ticket", "signature"}
# What one request may bring.
MOST_ENTRIES = 1000
# Each entry in quotes, with a comma and room for spaces; a ticket, and what stands around.
MOST_COMMIT_BYTES = MOST_ENTRIES * (2 * ENTRY_BYTES + 16) + TOKEN_LENGTH + 1024


class Commit(NamedTuple):
    """Request to commit to entries; `is_list`: the answer is to be a list, too.

    `signature` is the ticket's over `commit_statement` of all entries; empty without a ticket.
    """

    entries: tuple[bytes, ...]
    is_list: bool
    ticket: str | None
    signature: bytes = b""


def commit_body(entry: bytes, ticket: str | None, signature: bytes = b"") -> bytes:
    """Return what is sent to a service to commit to an entry.

    >>> commit_body(bytes(2), None)
    b'{"entry": "0000"}'
    """
    tree = {"entry": entry.hex()}
    if ticket is not None:
        tree |= {"ticket": ticket, "signature": base64.b64encode(signature).decode()}
    return json.dumps(tree).encode()


def read_commit(body: bytes) -> Commit:
    """Return what a request to commit asks for; raise `ProblemError` where it is none.

    >>> read_commit(commit_body(bytes(32), "v4.public.x", bytes(64))).ticket
    'v4.public.x'
    """
    tree = peer_json(body)
    if not isinstance(tree, dict) or not {"entry"} <= tree.keys() <= _KEYS:
        raise ProblemError(
            'the body must be JSON, {"entry": HEX or [HEX, …], "ticket": TOKEN, '
            '"signature": BASE64}'
        )
    given, ticket = tree["entry"], tree.get("ticket")
    texts = given if isinstance(given, list) else [given]
    if not isinstance(ticket, str | None):
        raise ProblemError("ticket must be text")
    if not 1 <= len(texts) <= MOST_ENTRIES:
        raise ProblemError(f"entry must be 1 to {MOST_ENTRIES} entries, got {len(texts)}")
    signature = _signature(tree["signature"]) if "signature" in tree else b""
    return Commit(tuple(map(_entry, texts)), isinstance(given, list), ticket, signature)


def _signature(text: Any) -> bytes:
    raw = decoded(text) if isinstance(text, str) else None
    if raw is None or len(raw) != SIGNATURE_BYTES:
        raise ProblemError(f"signature must be {SIGNATURE_BYTES} bytes in Base64")
    return raw


def _entry(text: Any) -> bytes:
    entry = hex_bytes(text, ENTRY_BYTES)
    if entry is None:
        raise ProblemError(f"an entry must be {2 * ENTRY_BYTES} lowercase hexadecimal digits")
    return entry
