"""Values in JSON from peers, checked for type, length and encoding."""

from __future__ import annotations

import json
from typing import Any

from datacollect.errors import ProblemError
from datacollect.files.documents import peer_json
from datacollect.files.kinds import shown
from datacollect.net.safe_text import safe_text

PATH_BYTES = 4096

# Sizes and numbers of files fit into 63 bits; times of files may lie anywhere that a kernel says.
NUMBER_STOP = 2**63
TIME_STOP_NS = 2**96

# Names are paths, of which each byte may have been escaped.
MOST_NAME_CHARACTERS = 4 * PATH_BYTES


# One for all: a page of an inventory has ten thousand objects.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def json_body(tree: Any) -> bytes:
    """Return JSON as it travels: short, in UTF-8."""
    return _ENCODER.encode(tree).encode()


def parse_object(body: bytes | bytearray) -> dict[str, Any]:
    """Return the JSON object that a body holds."""
    tree = peer_json(body)
    if not isinstance(tree, dict):
        raise ProblemError("the body must be a JSON object")
    return tree


def is_path(path: str) -> bool:
    r"""Return whether a path stays within its folder by what it says, links aside.

    >>> is_path("run7/a.tar"), is_path("../a"), is_path("a//b"), is_path("\ud800")
    (True, False, False, False)
    """
    try:
        long = len(path.encode()) > PATH_BYTES
    except UnicodeEncodeError:
        return False
    return not long and "\0" not in path and not {"", ".", ".."} & set(path.split("/"))


def is_whole(number: object, least: int = 0, stop: int = NUMBER_STOP) -> bool:
    """Return whether it is a whole number within bounds, and neither true nor false."""
    return type(number) is int and least <= number < stop


def is_time_ns(number: object) -> bool:
    """Return whether it can be the time of a file."""
    return is_whole(number, -TIME_STOP_NS, TIME_STOP_NS + 1)


def name_text(name: str) -> str:
    r"""Return a name as it may be stored: halves of surrogate pairs escaped, and not too long.

    >>> name_text("a\ud800")
    'a\\ud800'
    """
    text = name[:MOST_NAME_CHARACTERS].encode(errors="backslashreplace").decode()
    return text.replace("\0", "\\x00")


def require_words(tree: dict[str, Any], key: str) -> str:
    """Return what an object says in words, fit for messages and logs."""
    text = tree.get(key)
    if not isinstance(text, str):
        raise ProblemError(f"{key} must be text, got {shown(text)}")
    return safe_text(text)


def require_list(tree: dict[str, Any], key: str, most: int) -> list[Any]:
    """Return a list of an object."""
    items = tree.get(key)
    if not isinstance(items, list):
        raise ProblemError(f"{key} must be a list, got {shown(items)}")
    if len(items) > most:
        raise ProblemError(f"{key}: at most {most} are allowed, got {len(items)}")
    return items


def require_paths(tree: dict[str, Any], key: str, most: int) -> tuple[str, ...]:
    """Return a list of paths within a folder."""
    paths = require_list(tree, key, most)
    for path in paths:
        if not isinstance(path, str) or not is_path(path):
            raise ProblemError(f"{key} must hold paths within the folder, got {shown(path)}")
    return tuple(paths)
