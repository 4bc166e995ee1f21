"""Page of feeds: what it shows, and what is new on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from datacollect.pictures.live_views import LiveView

if TYPE_CHECKING:
    from collections.abc import Sequence

# Those that hold numbers begin with "#", see live.js.
COLUMNS = ("feed", "#rate", "#made", "#received", "#lost", "#behind", "#99 % within")

_BODY = """<p id="state" role="status">not connected yet</p>
<table id="feeds"></table>"""


class Shown(Protocol):
    """A feed that is shown."""

    def row(self) -> tuple[str, ...]:
        """Return what stands below `COLUMNS`."""


class FeedsNews:
    """Tells pages how far feeds are; for all threads."""

    def __init__(self, feeds: Sequence[Shown]) -> None:
        self._feeds = feeds

    def news(self, told: dict[str, Any]) -> str | None:
        """Return what a page does not know yet, as JSON; None where there is nothing.

        Parameters
        ----------
        told : dict
            What the page knows; this function keeps it.
        """
        rows = [each.row() for each in self._feeds]
        if told.get("rows") == rows:
            return None
        told["rows"] = rows
        return json.dumps({"columns": COLUMNS, "rows": rows})


FEEDS_VIEW = LiveView("feeds", "datacollect.feeds.page", _BODY, "feeds.css", "feeds.js")
