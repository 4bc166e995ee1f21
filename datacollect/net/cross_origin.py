"""CORS headers (Fetch standard), which let pages of any origin read answers in browsers.

Only for what has no owner by the connection: all is public, or guarded by a token that the page
must send itself. Browsers never add cookies or certificates here, for no answer allows credentials.
So a page of whatever origin can do nothing that its author could not do alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Chromium asks again after two hours, whatever is said.
_MOST_AGE_S = 7200


def shared(exposed: Sequence[str]) -> list[tuple[str, str]]:
    """Return the headers of an answer that any page may read, with those headers of it.

    >>> shared(["Date"])[1]
    ('Access-Control-Expose-Headers', 'Date')
    """
    return [
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Expose-Headers", ", ".join(exposed)),
    ]


def allowed(methods: Sequence[str], headers: Sequence[str]) -> list[tuple[str, str]]:
    """Return the headers that answer a browser's question whether a page may ask in such a way."""
    return [
        ("Access-Control-Allow-Methods", ", ".join(methods)),
        ("Access-Control-Allow-Headers", ", ".join(headers)),
        ("Access-Control-Max-Age", str(_MOST_AGE_S)),
    ]
