"""Texts of peers, made safe for messages and logs."""

from __future__ import annotations

import re

MOST_CHARACTERS = 300
_SECRETS = re.compile(r"v4\.public\.[\w\-.]+|(https?://[^\s?#'\"]*)[?#][^\s'\"]*")
_PASSWORDS = re.compile(r"(https?://)[^\s/@'\"]*@")


def safe_text(text: str) -> str:
    r"""Escape what is not printable, and shorten what is long.

    >>> safe_text("no\x1b[31m"), len(safe_text("x" * 1000))
    ('no\\x1b[31m', 300)
    """
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 1] + "…"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def without_secrets(text: str) -> str:
    """Return a text with tickets, passwords, and with what follows the ? of URLs, left out.

    >>> without_secrets("GET https://x.example/a?X-Signature=1 with v4.public.abc failed")
    'GET https://x.example/a?… with v4.public.… failed'
    >>> without_secrets("https://me:secret@x.example/")
    'https://…@x.example/'
    """
    text = _PASSWORDS.sub(r"\1…@", text)
    return _SECRETS.sub(lambda m: f"{m[1]}?…" if m[1] else "v4.public.…", text)
