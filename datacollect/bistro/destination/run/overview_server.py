"""The organiser's page: how far an event is, on this host alone, for who has its token."""

from __future__ import annotations

import json
import re
import secrets
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from datacollect.bistro.destination.run.standing import STANDING_FILE
from datacollect.files.documents import not_written, write_owned
from datacollect.pictures.live_page import LivePage

if TYPE_CHECKING:
    from pathlib import Path

STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/overview.js": ("overview.js", "text/javascript; charset=utf-8"),
    "/overview.css": ("overview.css", "text/css; charset=utf-8"),
}
TOKEN_FILE, TOKEN_BYTES = "page.token", 24
TOKEN = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)
# What others than its owner may do with a file.
OTHERS = 0o077


def overview_page(folder: Path, port: int) -> LivePage:
    """Return the page that follows an event; its address stays the same after a new start.

    Parameters
    ----------
    folder : Path
        Of the destination, where it leaves how far the event is.
    port : int
        0: any free one.

    Raises
    ------
    ProblemError
        The port is taken.
    NotWrittenError
        The token cannot be kept.
    """
    assets = files("datacollect.bistro.destination.run").joinpath("overview")
    static = {
        path: (assets.joinpath(name).read_bytes(), kind) for path, (name, kind) in STATIC.items()
    }
    standing = folder / STANDING_FILE

    def news(told: dict[str, Any]) -> str | None:
        written = standing.stat().st_mtime_ns if standing.exists() else None
        if written is None or written == told.get("written"):
            return None
        told["written"] = written
        return json.dumps(json.loads(standing.read_bytes()))

    return LivePage(static, news, port, token=_kept_token(folder / TOKEN_FILE))


def _kept_token(path: Path) -> str:
    """Return the token of an earlier start; a new one where there is none that others cannot read.

    Raises
    ------
    NotWrittenError
    """
    with suppress(OSError, ValueError):
        found = path.read_text("ascii")
        if TOKEN.fullmatch(found) and not path.stat().st_mode & OTHERS:
            return found
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        path.unlink(missing_ok=True)
        write_owned(path, token.encode(), mode=0o600, new=True)
    except OSError as error:
        raise not_written(path, error) from None
    return token
