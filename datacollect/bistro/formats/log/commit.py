"""Request to commit: entries, and the ticket that admits them, in JSON (``POST /commit``)."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.errors import ProblemError
from datacollect.files.documents import peer_json
from datacollect.net.keys import TOKEN_LENGTH

COMMIT_PATH = "/commit"
# What one request may bring.
MOST_ENTRIES = 1000
# Each entry in quotes, with a comma and room for spaces; a ticket, and what stands around.
MOST_COMMIT_BYTES = MOST_ENTRIES * (2 * ENTRY_BYTES + 16) + TOKEN_LENGTH + 1024


class Commit(NamedTuple):
    """What somebody wants to be committed to; `is_list`: the answer is to be a list, too."""

    entries: tuple[bytes, ...]
    is_list: bool
    ticket: str | None


def commit_body(entry: bytes, ticket: str | None) -> bytes:
    """Return what is sent to a service to commit to an entry.

    >>> commit_body(bytes(2), None)
    b'{"entry": "0000"}'
    """
    tree = {"entry": entry.hex()} | ({} if ticket is None else {"ticket": ticket})
    return json.dumps(tree).encode()


def read_commit(body: bytes) -> Commit:
    """Return what a request to commit asks for; raise `ProblemError` where it is none.

    >>> read_commit(commit_body(bytes(32), "v4.public.x")).ticket
    'v4.public.x'
    """
    tree = peer_json(body)
    if not isinstance(tree, dict) or not {"entry"} <= tree.keys() <= {"entry", "ticket"}:
        raise ProblemError('the body must be JSON, {"entry": HEX or [HEX, …], "ticket": TOKEN}')
    given, ticket = tree["entry"], tree.get("ticket")
    texts = given if isinstance(given, list) else [given]
    if not isinstance(ticket, str | None):
        raise ProblemError("ticket must be text")
    if not 1 <= len(texts) <= MOST_ENTRIES:
        raise ProblemError(f"entry must be 1 to {MOST_ENTRIES} entries, got {len(texts)}")
    return Commit(tuple(map(_entry, texts)), isinstance(given, list), ticket)


def _entry(text: Any) -> bytes:
    try:
        entry = bytes.fromhex(text)
    except (TypeError, ValueError):
        entry = b""
    if len(entry) != ENTRY_BYTES or entry.hex() != text:
        raise ProblemError(f"an entry must be {2 * ENTRY_BYTES} lowercase hexadecimal digits")
    return entry
