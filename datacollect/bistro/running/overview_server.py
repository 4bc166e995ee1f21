"""The organiser's page: how far an event is, on this host alone, for who has its token."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from datacollect.bistro.running.standing import STANDING_FILE
from datacollect.net.live_page import LivePage

if TYPE_CHECKING:
    from pathlib import Path

STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/overview.js": ("overview.js", "text/javascript; charset=utf-8"),
    "/overview.css": ("overview.css", "text/css; charset=utf-8"),
}


def overview_page(folder: Path, port: int) -> LivePage:
    """Return the page that follows an event.

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
    """
    assets = files("datacollect.bistro.running").joinpath("overview")
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

    return LivePage(static, news, port)
