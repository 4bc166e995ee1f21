"""Messages for files of other servers that cannot be had, each with what to do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote

from datacollect.net.safe_text import safe_text, without_secrets
from datacollect.transfer.sources.web.core.urls import expiry_unix_s

if TYPE_CHECKING:
    from datacollect.transfer.sources.web.core.heads import Head
    from datacollect.transfer.sources.web.core.urls import Target

# Of what a server says itself: so much is shown, and of a URL's query a value of this length is no
# word that it may say.
MOST_SAID, LEAST_SECRET = 160, 8
NO_RANGES = "sends whole files only: it must support ranges (Accept-Ranges: bytes)"
# Of RFC 9110, 15.5.20; relays say it to whoever speaks no TLS.
MISDIRECTED = 421
LET_IN = "name a user and a password in its URL, or have URLs signed"


def not_allowed(status: int, target: Target, now_unix_s: float) -> str:
    """Say that a server does not give a file, and whether its URL has expired."""
    expires_s = expiry_unix_s(target)
    if expires_s is not None and expires_s <= now_unix_s:
        when = datetime.fromtimestamp(expires_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"its URL expired at {when} ({status}); have it signed again"
    if "?" in target.path:
        return (
            f"the server denies access ({status}): its URL may have expired, or be for "
            "another method than GET; have it signed again"
        )
    return f"the server denies access ({status})"


def quoted(said: str | None, target: Target) -> str:
    """Return what a server says itself, to be put behind our words; without the URL's secrets.

    >>> from datacollect.transfer.sources.web.core.urls import target_of
    >>> quoted("0123abcd has expired", target_of("https://x.example/a?Signature=0123abcd"))
    " ('… has expired')"
    """
    if not said:
        return ""
    hidden = [value for _, value in parse_qsl(target.path.partition("?")[2])]
    hidden += [] if target.authorization is None else [target.authorization.partition(" ")[2]]
    for value in sorted(hidden, key=len, reverse=True):
        for text in (value, quote(value, safe="")):
            said = said.replace(text, "…") if len(text) >= LEAST_SECRET else said
    said = safe_text(without_secrets(" ".join(said.split())))
    return f" ('{said[:MOST_SAID]}{'…' if len(said) > MOST_SAID else ''}')"


def not_relayed() -> str:
    """Say that whoever has answered leads to no server without TLS."""
    return (
        f"the request was misdirected ({MISDIRECTED}): where a relay leads "
        "to a server without TLS, name it in `plain_http_to` of its file"
    )


def moved_without_a_word(head: Head) -> str:
    """Say that a server has a file elsewhere, and does not say where: S3, by a wrong region."""
    region = head.headers.get("x-amz-bucket-region")
    named = "" if region is None else f": {safe_text(region)}"
    return (
        f"the server has it elsewhere ({head.status}), and does not say where; where it is an "
        f"object store, the region of the bucket belongs in its URL{named}"
    )


def encoded(head: Head, encoding: str) -> str:
    """Say that a server sends a file encoded: compressed as it is sent, or stored so."""
    etag, vary = head.headers.get("etag", ""), head.headers.get("vary", "").lower()
    how = f"the server sends it encoded ({safe_text(encoding)}), though it was asked not to"
    if etag.startswith("W/") or "accept-encoding" in vary or head.length is None:
        return f"{how}: it compresses what it sends; turn compression off for these files"
    return (
        f"{how}: it is stored that way; give the bytes and the sha256 of what is stored in a "
        "manifest, which prove it"
    )


def endless_head(most_bytes: int) -> str:
    """Say that the head of an answer is longer than any that is meant."""
    return (
        f"the head of the server's response is longer than {most_bytes:,} bytes, which no web "
        f"server sends; check what stands between (a proxy, an error page)"
    )


def login_page(target: Target) -> str:
    """Say that a page has come instead of a file."""
    return (
        f"a login page? The server redirects to {target.shown}, which is HTML, instead of the "
        f"file; {LET_IN}. If it is the file, give its bytes and sha256 in a manifest"
    )
