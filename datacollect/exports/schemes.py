"""URL schemes: each one's own rules for escaping names, and what FTS can take of them.

A web server decodes ``%20``, XRootD does not: what is encoded for it is not found, or becomes a
file of that literal name (tried: XRootD 5.5, ``xrdcp``). In copies from server to server it puts
the name between options of its own, so that ``&tpc.src=`` in it is one (tried). Between FTS and
XRootD there are four more readers, and a name is safe only where all of them leave it alone:

- FTS's REST server reads addresses by Python's ``urlparse``, without white space around them, and
  writes what it has read into its database: ``lib/JobBuilder.py`` of
  https://github.com/cern-fts/fts-rest-flask, 2024. ``urlparse`` drops line breaks, tabs and a last
  ``#``.
- The database has 1100 characters for an address: ``source_surl`` and ``dest_surl`` in
  ``src/db/schema/mysql/fts-schema-9.1.0.sql`` of https://github.com/cern-fts/fts3, 2024.
- FTS's server writes the command of each transfer as one text and divides it at spaces:
  ``ExecuteProcess::getArgv``, ``src/server``, the same repository.
- gfal2, which copies, decodes ``%`` in paths of ``root://``, in older versions by other rules than
  today: ``prepare_url`` in ``src/plugins/xrootd/gfal_xrootd_plugin_utils.cpp`` of
  https://github.com/cern-fts/gfal2 (2.21 tried).
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

# XRootD's client takes what stands in a path as it is.
AS_IS = ("root", "roots", "xroot", "xroots")
# RFC 3986, which WebDAV and S3 follow.
ENCODED = ("https", "http", "davs", "dav", "s3s", "s3")

LONGEST_FOR_FTS = 1100

_UNSAYABLE = re.compile(r"[?&% \x00-\x1f\x7f-\x9f]")
_WHY = {
    "?": "XRootD takes what follows for options",
    "&": "XRootD takes what follows for options in copies from server to server",
    "%": "gfal2 decodes it, XRootD does not",
    " ": "FTS divides its commands there",
}


def scheme_of(address: str) -> str:
    """Return an address's scheme in lowercase; empty where there is none.

    >>> scheme_of("root://{host}//data/{path}"), scheme_of("s1:data/{path}")
    ('root', '')
    """
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", address)
    return found[1].lower() if found else ""


def written(address: str, name: str) -> str:
    """Return how a name stands in addresses of this one's scheme.

    >>> written("root://x//{path}", "a b"), written("https://x/{path}", "a b")
    ('a b', 'a%20b')
    """
    return name if scheme_of(address) in AS_IS else quote(name, safe="/")


def why_not_for_fts(address: str, names: tuple[str, ...]) -> str | None:
    """Return why FTS could not reach what an address means; None if it can.

    Parameters
    ----------
    address : str
    names : tuple of str
        What has been put into the template.

    Examples
    --------
    >>> why_not_for_fts("root://x//data/a?b", ("x", "a?b"))
    "root:// cannot say '?': XRootD takes what follows for options"
    >>> why_not_for_fts("davs://x/data/a%3Fb", ("x", "a?b"))
    """
    scheme = scheme_of(address)
    return (
        _why_unreachable(address, scheme)
        or _why_unsayable(scheme, names)
        or _why_not_whole(address)
    )


def _why_unreachable(address: str, scheme: str) -> str | None:
    """Say what FTS's server would refuse at once (``validate_url``, lib/JobBuilder_utils.py)."""
    if not scheme or scheme == "file":
        return f"FTS needs addresses such as root://host//{{path}}, got {address!r}"
    try:
        parts = urlsplit(address)
    except ValueError as error:
        return f"FTS needs a URL, got {address!r}: {error}"
    if not parts.hostname:
        return f"FTS needs a host after {scheme}://, got {address!r}"
    if not parts.path or (parts.path == "/" and not parts.query):
        return f"FTS needs a path after the host, got {address!r}"
    return None


def _why_unsayable(scheme: str, names: tuple[str, ...]) -> str | None:
    if scheme in ENCODED:
        return None
    for name in names:
        if scheme not in AS_IS:
            if quote(name, safe="/") != name:
                return f"how {scheme}:// says {name!r} differs between storage systems"
        elif found := _UNSAYABLE.search(name):
            why = _WHY.get(found[0], "FTS drops control characters")
            return f"{scheme}:// cannot say {found[0]!r}: {why}"
    return None


def _why_not_whole(address: str) -> str | None:
    if len(address) > LONGEST_FOR_FTS:
        return f"FTS keeps {LONGEST_FOR_FTS} characters of an address, this has {len(address)}"
    if " " in address:
        return f"FTS divides its commands at spaces, got {address!r}"
    if address.endswith("#") or address.strip() != address:
        return f"FTS drops {address[-1]!r} at the end of an address"
    return None
