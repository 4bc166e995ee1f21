"""Readers of what strangers send: each text has one meaning for every program, or none.

Parsers differ in what they forgive: of a key that is given twice one takes the first value, one the
last; digits may be spaced, Base64 has spare bits. Whoever signs such a text says two things. Base64
is read by `datacollect.bistro.formats.log.notes.decoded`, numbers by
`datacollect.bistro.formats.log.checkpoints.whole`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from datacollect.errors import ProblemError
from datacollect.files.documents import decode, parse_json
from datacollect.files.documents import peer_json as lenient_json

# Bytes behind which no other JSON begins than UTF-8; its mark is skipped.
_OTHER_TEXT = (b"\xff\xfe", b"\xfe\xff", b"\0")


def peer_json(data: str | bytes | bytearray) -> Any:
    """Return what JSON says; None where it is none, or not for every parser.

    >>> peer_json(b'{"a": 1}'), peer_json(b'{"a": 1, "a": 2}'), peer_json(b'{"a": NaN}')
    ({'a': 1}, None, None)
    """
    try:
        text = data if isinstance(data, str) else bytes(data).decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    tree = lenient_json(text, has_unique_keys=True)
    return tree if _is_json(tree) else None


def json_file(data: bytes, name: str) -> Any:
    """Return what a file or an answer in JSON says.

    Parameters
    ----------
    data : bytes
    name : str
        What messages call it.

    Raises
    ------
    ProblemError
        It is no JSON, or not for every parser: a key is given twice, it is not UTF-8, or has a
        number or a letter that JSON has not.
    """
    if data.startswith(_OTHER_TEXT):
        raise ProblemError(f"{name}: must be UTF-8; save it as such")
    tree = parse_json(decode(data, name), name)
    if not _is_json(tree):
        raise ProblemError(
            f"{name}: has NaN, Infinity or half a character, which JSON does not allow; fetch the "
            "file again"
        )
    return tree


def hex_bytes(text: object, n_bytes: int) -> bytes | None:
    """Return bytes that are written in lowercase hexadecimal digits; None: they are not.

    >>> hex_bytes("4a", 1), hex_bytes("4A", 1), hex_bytes("4a ", 1)
    (b'J', None, None)
    """
    if not isinstance(text, str) or not re.fullmatch(f"[0-9a-f]{{{2 * n_bytes}}}", text):
        return None
    return bytes.fromhex(text)


def _is_json(tree: Any) -> bool:
    """Return whether a tree can be written as JSON in UTF-8."""
    try:
        json.dumps(tree, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True
