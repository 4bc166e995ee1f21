"""JSON as nobody should write it: raw bytes anywhere, halves of surrogate pairs, NaN."""

import json


class Raw(bytes):
    """Bytes that stand for a value as they are."""


def text_of(value):
    """Return the bytes of a value."""
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, dict):
        pairs = (json.dumps(key).encode() + b":" + text_of(each) for key, each in value.items())
        return b"{" + b",".join(pairs) + b"}"
    if isinstance(value, list | tuple):
        return b"[" + b",".join(map(text_of, value)) + b"]"
    return json.dumps(value).encode()


def encoded(tree):
    """Return the body of an answer: a list is the lines of a page."""
    if isinstance(tree, list):
        return b"".join(
            bytes(line) if isinstance(line, Raw) else text_of(line) + b"\n" for line in tree
        )
    return text_of(tree)
