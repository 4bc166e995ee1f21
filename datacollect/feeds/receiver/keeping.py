"""Up to where a feed is on the disk, whichever way it comes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from datacollect.feeds.formats import frames

if TYPE_CHECKING:
    from datacollect.feeds.receiver.kept_feed import KeptFeed


class Keeping:
    """Keeps snapshots of a feed, until it is whole; one thread keeps, another one may finish.

    Attributes
    ----------
    is_whole : bool
        Whether the feed has ended, and its file has its name.
    """

    def __init__(self, kept: KeptFeed) -> None:
        self._kept = kept
        self.is_whole = kept.report.ended is not None
        self._written = kept.report.next
        self._keeping = threading.Lock()

    def keep(self, number: int, tree: dict[str, object], *, telling: bool) -> bytes:
        """Have all of a snapshot on the disk; return what the sender is told of that.

        Raises
        ------
        OSError
        """
        with self._keeping:
            if self.is_whole:  # by now, and its report is the last
                return b""
            self._kept.keep(tree, number)
            self._written = number
        told = {"counts": tree["counts"], "delay": tree["delay"], "clock": tree["clock"]}
        return frames.line_of({"written": number, **({"report": told} if telling else {})})

    def _finish_file(self, n_bytes: int, ended: str) -> None:
        """Give the file its name; no snapshot is kept after that."""
        with self._keeping:
            self._kept.finish(n_bytes, ended)
            self.is_whole = True

    def _ended(self) -> bytes:
        return frames.line_of({"ended": self._kept.report.to_dict()})
