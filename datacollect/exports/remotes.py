"""Names of hosts in addresses: each tool has its own letters for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.files.choices import ExportFormat

# Of all versions since 1.56: later ones take "+", "@" and other alphabets, too.
_RCLONE = re.compile(r"[A-Za-z0-9_.](?:[A-Za-z0-9_. -]*[A-Za-z0-9_.-])?")
# Names of the DNS and of files of hosts; an address of IPv6; then a port.
_URL = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*)|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?")
# What ssh refuses, and what would be an option.
_NO_SSH = re.compile(r"-|.*[\s'\"`$\\;&<>|(){}\x00-\x1f\x7f]", re.DOTALL)

_URL_RULE = (
    "names of hosts in URLs have letters a to z, digits, '.', '-' and '_'; others are written in "
    "punycode, as xn--…"
)
_RULES = {
    "rclone": "names of rclone's remotes have letters a to z, A to Z, digits, '_', '-', '.' and "
    "spaces, and begin and end with none of '-' and space",
    "rsync": "no host of ssh begins with '-', or has spaces, quotes or other signs of shells",
    "curl": _URL_RULE,
    "aria2": _URL_RULE,
}


def require_remote(kind: ExportFormat, host: str, template: str, address: str) -> None:
    """Refuse an address whose host, or remote, the tool would not take.

    Parameters
    ----------
    kind : str
        A format with a tool of its own.
    host : str
        Of the problem.
    template, address : str
        What was given for it, and what came of it.

    Raises
    ------
    ProblemError

    Examples
    --------
    >>> require_remote("rclone", "z", "{host}:{path}", "z:a")
    >>> require_remote("rclone", "zürich", "{host}:{path}", "zürich:a")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: --url for 'zürich': 'zürich' is no remote: names of rclone's \
remotes have letters a to z, A to Z, digits, '_', '-', '.' and spaces, and begin and end with none \
of '-' and space; give it another one: --url 'zürich=NAME:{path}'
    """
    name = _remote(kind, address)
    # What follows a slash in a host's name would be the beginning of a path.
    is_cut = "/" in host and "{host}" in _before_path(template)
    if name is None and not is_cut:
        return
    if name is None or is_cut:
        name = host
    elif _is_taken(kind, name):
        return
    what = "remote" if kind == "rclone" else "host"
    better = template.replace("{host}", "NAME") if "{host}" in template else "TEMPLATE"
    raise ProblemError(
        f"--url for {host!r}: {name!r} is no {what}: {_RULES[kind]}; give it another one: "
        f"--url '{host}={better}'"
    )


def _before_path(template: str) -> str:
    return template.partition("://")[2].partition("/")[0] or template.partition("/")[0]


def _remote(kind: ExportFormat, address: str) -> str | None:
    """Return whom an address names; None where that is this host, or a remote of no name."""
    scheme, is_url, rest = address.partition("://")
    if kind in ("curl", "aria2") or (kind == "rsync" and is_url and scheme.lower() == "rsync"):
        place = rest.partition("/")[0]
        return place.rpartition("@")[2] if scheme.lower() != "file" else None
    name, colon, _ = address.partition(":")
    if not colon or "/" in name or not name:
        return None
    return name.partition(",")[0] if kind == "rclone" else name.rpartition("@")[2] or name


def _is_taken(kind: ExportFormat, name: str) -> bool:
    if kind == "rclone":
        return _RCLONE.fullmatch(name) is not None
    if kind == "rsync":
        return _NO_SSH.match(name) is None
    return _URL.fullmatch(name) is not None
