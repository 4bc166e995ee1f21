"""The story of a pull while it goes on: told by its log and its progress, for pages and metrics."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.numbers.pace import Pace
from datacollect.transfer.pull.progress.pull_progress import PullProgress
from datacollect.transfer.store.history import TROUBLES, HistoryReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.transfer.store.history import History

NOTHING = PullProgress(0, 0, 0, 0)
# What went wrong, as pages show it: of the newest so many.
MOST_EVENTS = 50


@dataclass
class PullStory:
    """Facts known of a pull by now; the methods may be called from any thread.

    Attributes
    ----------
    lock : threading.RLock
        Whoever reads more than one attribute holds it.
    destination, collection : str
        The host that collects, and what the collection is called in tickets; empty: not begun.
    begun_s : float
        Seconds since 1970.
    far : PullProgress
    pace : Pace
        Of bytes that have come.
    reader : HistoryReader
    given_up : dict of str to str
        Sources, and why.
    counts : Counter of str
        What went wrong, by the words of `TROUBLES`.
    events : list of (float, str, str)
        The newest of it: when, from the start, what, and about whom and why.
    moved_s : float or None
        When something last came, seconds since 1970.
    answer : dict or None
        What the pull has said in the end.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    destination: str = ""
    collection: str = ""
    begun_s: float = field(default_factory=time.time)
    far: PullProgress = NOTHING
    pace: Pace = field(default_factory=Pace)
    reader: HistoryReader = field(default_factory=HistoryReader)
    given_up: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    events: list[tuple[float, str, str]] = field(default_factory=list)
    moved_s: float | None = None
    answer: Mapping[str, Any] | None = None

    @property
    def history(self) -> History:
        """Return what was planned, what came when."""
        return self.reader.history

    def hear(self, line: Mapping[str, Any]) -> None:
        """Take a line of the pull's log, as it is written."""
        with self.lock:
            n_before = len(self.history.troubles)
            self.reader.take(line)
            what = line["what"]
            if what == "pull begins":
                self.begun_s = time.time() - float(line["s"])
                self.destination, self.collection = line["destination"], line["collection"]
            elif what == "pull ends":
                self._end(line)
            elif what == "source given up":
                # Of one that a round gives up it is written twice.
                is_known = line["source"] in self.given_up
                self.given_up[line["source"]] = line["why"]
                n_before += is_known
            if len(self.history.troubles) > n_before:
                self._note_event(line)

    def look(self, far: PullProgress) -> None:
        """Take how far it is."""
        with self.lock:
            if sum(far.routes.values()) > sum(self.far.routes.values()):
                self.moved_s = time.time()
            self.far = far
            if far.all_files:
                self.pace.note(time.monotonic(), far.n_bytes)

    def _note_event(self, line: Mapping[str, Any]) -> None:
        words = TROUBLES[line["what"]]
        self.counts[words] += 1
        about = line.get("source") or " → ".join(line.get("hosts", ())[:-1])
        self.events.append((float(line["s"]), words, f"{about}: {line.get('why') or words}"))
        del self.events[:-MOST_EVENTS]

    def _end(self, line: Mapping[str, Any]) -> None:
        self.answer = line
        routes = {tuple(each["hosts"]): each["bytes"] for each in line["routes"]}
        # All that has come, to the byte: what the last look saw was on its way.
        n_files, n_bytes = line["files"], line["bytes"]
        self.look(
            PullProgress(
                n_files,
                n_bytes,
                max(n_files, self.far.all_files),
                max(n_bytes, self.far.all_bytes),
                given_up=self.far.given_up,
                routes=routes,
                refetched=line["refetched"],
            )
        )
