"""The files of an event's page: the same ones for the same event, so that anybody can compare them.

The script is built beforehand, and is part of this package (`static`): its sources, and the lock
file of what is in it, are in the folder `src` beside it. Only the page itself is made for
an event: it holds the event's file, and names those whom the script may speak to.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from datacollect.bistro.page.privacy import with_privacy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.bistro.formats.event.event import Event

SCRIPT, STYLE, PAGE, LICENCES = "page.js", "style.css", "index.html", "licences.txt"
EVENT_FILE = "event.toml"
# For who serves it: what nginx is to send along.
HEADERS = "headers.conf"
SUMS = "SHA256SUMS"

# What stands between these is of an event whose keeper is its only witness; it says what
# `strength.ALONE` does.
_ALONE = re.compile(r"<!-- alone -->\n(.*?)<!-- end alone -->\n", re.DOTALL)

# What a page can say of itself; that no other page may frame it, only a header can.
_NOT_IN_A_PAGE = "frame-ancestors 'none'"


def page_files(event_data: bytes, event: Event, privacy: str | None = None) -> dict[str, bytes]:
    """Return the files of an event's page, by name.

    Parameters
    ----------
    event_data : bytes
        All bytes of the event's file.
    event : Event
        The same, with the amendments that are known: the page may speak to the bistros they add.
    privacy : str, optional
        The organiser's privacy notice; without one the page has its own.
    """
    static = files("datacollect.bistro.page") / "static"
    taken = {name: (static / name).read_bytes() for name in (SCRIPT, STYLE, LICENCES)}
    policy = policy_of(event)
    said = {
        "policy": policy.replace(f"; {_NOT_IN_A_PAGE}", ""),
        "name": event.name,
        "style": _integrity(taken[STYLE]),
        "script": _integrity(taken[SCRIPT]),
        "event": base64.b64encode(event_data).decode(),
    }
    page = _ALONE.sub(r"\1" if event.alone else "", (static / PAGE).read_text(encoding="utf-8"))
    for name, text in said.items():
        page = page.replace(f"@{name}@", html.escape(text))
    made = {
        **taken,
        # The last one: what a notice says is no name of ours.
        PAGE: with_privacy(page, privacy).encode(),
        EVENT_FILE: event_data,
        HEADERS: _as_nginx_has_them(headers_of(event)).encode(),
    }
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(made.items())]
    return {**made, SUMS: "".join(lines).encode()}


def policy_of(event: Event) -> str:
    """Return the page's Content-Security-Policy: nothing from elsewhere, nobody else spoken to.

    The script speaks to the event's services, bistros and log of verdicts alone.
    """
    urls = [each.url for each in event.services] + [each.url for each in event.bistros]
    if event.verdicts_url is not None:
        urls.append(event.verdicts_url)
    origins = dict.fromkeys("{0.scheme}://{0.netloc}".format(urlsplit(url)) for url in urls)
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "worker-src 'self'",
            f"connect-src {' '.join(origins)}",
            "base-uri 'none'",
            "form-action 'none'",
            _NOT_IN_A_PAGE,
            "require-trusted-types-for 'script'",
            "trusted-types datacollect",
        )
    )


def headers_of(event: Event) -> dict[str, str]:
    """Return the headers with which the page of an event is to be served, by name."""
    return {
        "Content-Security-Policy": policy_of(event),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        # What was changed in an emergency is seen at once.
        "Cache-Control": "no-cache",
    }


def _integrity(data: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(data).digest()).decode()}"


def read_headers(text: str) -> dict[str, str]:
    """Return the headers that a file `HEADERS` names, by name.

    >>> read_headers('add_header Referrer-Policy "no-referrer" always;')
    {'Referrer-Policy': 'no-referrer'}
    """
    return dict(re.findall(r'^add_header (\S+) "([^"]*)" always;$', text, re.MULTILINE))


def _as_nginx_has_them(headers: Mapping[str, str]) -> str:
    return "".join(f'add_header {name} "{value}" always;\n' for name, value in headers.items())
