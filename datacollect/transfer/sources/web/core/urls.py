"""URLs of other servers: where they lead, and what of them may be shown."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urljoin, urlsplit

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown_text
from datacollect.net.names import host_port_text

PORTS = {"https": 443, "http": 80}
LONGEST_URL = 8000


class Origin(NamedTuple):
    """A server: scheme, host in lowercase, port."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Return what the header Host says.

        >>> Origin("https", "::1", 8443).authority, Origin("http", "x.example", 80).authority
        ('[::1]:8443', 'x.example')
        """
        full = host_port_text(self.host, self.port)
        return full.removesuffix(f":{PORTS[self.scheme]}")


@dataclass(frozen=True)
class Target:
    """Target of a request: what is asked for, and where.

    Attributes
    ----------
    origin : Origin
    path : str
        As it stands in a request: percent-encoded, with its query.
    authorization : str or None
        For the header of this name, at this origin alone.
    """

    origin: Origin
    path: str
    authorization: str | None = None

    @property
    def shown(self) -> str:
        """The URL without its query, for messages."""
        bare = f"{self.origin.scheme}://{self.origin.authority}{self.path.partition('?')[0]}"
        return shown_text(bare)

    @property
    def mark(self) -> str:
        """A short text for the address, without scheme and query, which no other address has."""
        bare = f"{self.origin.authority}{self.path.partition('?')[0]}"
        return hashlib.sha256(bare.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        """Show no secrets, wherever it is printed."""
        return f"Target({self.shown!r})"


def target_of(url: str) -> Target:
    """Return where a URL leads.

    Raises
    ------
    ProblemError
        It is no URL of a web server; what it holds is not in the message.

    Examples
    --------
    >>> target = target_of("https://me:secret@Bucket.example/a%20b?X-Signature=1")
    >>> target.origin, target.path, target
    (Origin(scheme='https', host='bucket.example', port=443), '/a%20b?X-Signature=1',
     Target('https://bucket.example/a%20b'))
    """
    rule = "must be https://HOST/… or http://HOST/…"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ProblemError(f"{rule}, got something else") from None
    if parts.scheme not in PORTS or not host or not re.fullmatch(r"[!-~]+", host):
        raise ProblemError(f"{rule}, got {parts.scheme[:10] or 'no scheme'}://{host or ''}")
    if parts.fragment or len(url) > LONGEST_URL:
        raise ProblemError(f"{rule}, without #, of at most {LONGEST_URL} characters")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    if parts.query:
        path += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    origin = Origin(parts.scheme, host.lower(), port or PORTS[parts.scheme])
    return Target(origin, path, authorization)


def file_below(base: Target, path: str) -> Target:
    """Return where a file lies below a folder's URL.

    >>> file_below(target_of("https://x.example/data?v=2"), "a b/c#.tar").path
    '/data/a%20b/c%23.tar?v=2'
    """
    folder, mark, query = base.path.partition("?")
    return Target(
        base.origin, f"{folder.rstrip('/')}/{quote(path)}{mark}{query}", base.authorization
    )


def redirected(target: Target, location: str) -> Target:
    """Return where an answer leads on; what is secret stays with its own server.

    Raises
    ------
    ProblemError
        It leads to no web server.
    """
    here = f"{target.origin.scheme}://{target.origin.authority}{target.path}"
    bare = target_of(urljoin(here, location.partition("#")[0]))
    own = target.authorization if bare.origin == target.origin else None
    return Target(bare.origin, bare.path, own)


def name_in(target: Target) -> str:
    """Return the last part of a URL's path: what its file is called.

    >>> name_in(target_of("https://x.example/bucket/a%20b.tar?X-Signature=1"))
    'a b.tar'
    """
    return unquote(target.path.partition("?")[0].rpartition("/")[2])


def expiry_unix_s(target: Target) -> float | None:
    """Return when a presigned URL expires, where it says so itself: as S3, GCS or Azure write it.

    >>> expiry_unix_s(target_of("https://x.example/a?X-Amz-Date=20260101T000000Z&X-Amz-Expires=60"))
    1767225660.0
    >>> expiry_unix_s(target_of("https://x.example/a?Expires=1767225660"))
    1767225660.0
    >>> expiry_unix_s(target_of("https://x.example/a?se=2026-01-01T00%3A01%3A00Z&sig=x"))
    1767225660.0
    """
    query = {key.lower(): value for key, value in parse_qsl(target.path.partition("?")[2])}
    try:
        for maker in ("x-amz", "x-goog"):
            if f"{maker}-expires" in query:
                signed = datetime.fromisoformat(query[f"{maker}-date"])
                return signed.timestamp() + int(query[f"{maker}-expires"])
        if "expires" in query:
            return float(query["expires"])
        if "se" in query and "sig" in query:
            return datetime.fromisoformat(query["se"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    return None
