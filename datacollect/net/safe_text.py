"""Texts of peers, made safe for messages and logs."""

from __future__ import annotations

MOST_CHARACTERS = 300


def safe_text(text: str) -> str:
    r"""Escape what is not printable, and shorten what is long.

    >>> safe_text("no\x1b[31m"), len(safe_text("x" * 1000))
    ('no\\x1b[31m', 300)
    """
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 1] + "…"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
