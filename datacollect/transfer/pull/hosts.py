"""Hosts of a pull: listed at once, each ready by itself, or given up in the end.

A source whose files have changed is listed again; what rounds have left of it tells, with what is
listed, what is to be fetched.
"""

from __future__ import annotations

import queue
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.errors import StoreError
from datacollect.net.fan_out import LOOK_S, Begun, Outcome
from datacollect.net.safe_text import without_secrets
from datacollect.transfer.pull.answering import StartUse
from datacollect.transfer.pull.core.todo import Remains, SourceWork
from datacollect.transfer.pull.notices import Notices
from datacollect.transfer.pull.preparing import Cancelled, Gate, Preparation
from datacollect.transfer.pull.progress.pull_progress import PullProgress, progress_of
from datacollect.transfer.pull.words import named, why_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.transfer.protocol.source import Reached, Source
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.pull.core.core import CollectorCore
    from datacollect.transfer.sources.agent.network import Network
    from datacollect.transfer.store.folder.log import Log
    from datacollect.transfer.store.source_check import ComparedWithSource
    from datacollect.transfer.store.store import Store

# So often in one start a source whose files have changed is listed and fetched again.
MOST_RELISTINGS = 3
# Once a source is ready, others that are as quick may join the first plan: for so long, or for as
# long as the first has taken. Whoever comes later makes all be planned again, for some seconds.
SETTLE_S, SETTLE_MOST_S = 0.5, 5.0


@dataclass
class Hosts:
    """All hosts of a collection: who is asked, who is ready to be fetched from, who is given up.

    Parameters
    ----------
    collection : Collection
    sources : mapping of str to Source
        All hosts of the collection: also those that only relay.
    network : Network
    store : Store
    log : Log
    watch : callable
        Called several times a second with what looks how far it is.
    report : callable
        Takes lines that a user wants to know at once.
    gate : Gate
    is_closed : callable
        Whether nothing can come from a host now, by its hours.

    Attributes
    ----------
    reached : dict of str to Reached
        What each has said.
    remains : Remains
        What rounds have left.
    ready : set of str
        Sources that are listed to their end.
    new : set of str
        Of them those that no round has been planned with.
    ended : dict of str to str
        Sources that were given up, and why.
    compared : dict of str to ComparedWithSource, optional
        What came of comparing what is done with its source; None: nothing is compared.
    use : StartUse
        What the rounds that are over have moved.
    """

    collection: Collection
    sources: Mapping[str, Source]
    network: Network
    store: Store
    log: Log
    watch: Callable[[Callable[[], PullProgress]], None]
    report: Callable[[str], None]
    gate: Gate = field(default_factory=Gate)
    is_closed: Callable[[str], bool] = lambda _: False
    reached: dict[str, Reached] = field(default_factory=dict)
    remains: Remains = field(default_factory=Remains)
    ready: set[str] = field(default_factory=set)
    new: set[str] = field(default_factory=set)
    ended: dict[str, str] = field(default_factory=dict)
    compared: dict[str, ComparedWithSource] | None = None
    use: StartUse = field(default_factory=StartUse)
    _telling: Notices = field(init=False)
    _outcomes: queue.SimpleQueue[Outcome[bool]] = field(default_factory=queue.SimpleQueue)
    _preparing: dict[str, Begun[bool]] = field(default_factory=dict)
    _relistings: Counter[str] = field(default_factory=Counter)
    _most_settle_s: float = SETTLE_MOST_S

    def __post_init__(self) -> None:
        self._telling = Notices(self.collection.limits, self.report)

    # Asking -----------------------------------------------------------------------------------

    def ask(self, name: str) -> None:
        """Have a host reached, and listed if it is wanted."""
        preparation = Preparation(
            self.sources[name],
            self.collection,
            self.store,
            self.log,
            self.network,
            self.gate,
            self.reached,
            self._telling,
            self.compared,
            self.is_closed,
        )
        self.ready.discard(name)
        self._preparing[name] = Begun(name, lambda _: preparation.run(), self._outcomes.put)

    def ask_again(self, name: str) -> None:
        """List a source again whose files have changed meanwhile."""
        if self._relistings[name] < MOST_RELISTINGS and name not in self.ended:
            self._relistings[name] += 1
            self.ask(name)

    def end(self, name: str, why: str) -> None:
        """Give a source up, and say so at once."""
        self.ended[name] = why = without_secrets(why)
        self.store.state.note_trouble(name, why)
        self.log.write("source given up", source=name, why=why)
        self.report(f"given up: {named(name, why)}")

    def end_all(self, why: str) -> None:
        """Give up all that is wanted and has not come."""
        waiting = {name for name, *_ in self.store.state.waiting()}
        waiting |= {each.name for each in self.store.state.wanted() if not each.is_listed}
        for name in sorted(waiting - self.ended.keys()):
            self.end(name, why)

    # Waiting ----------------------------------------------------------------------------------

    def wait(self, until_s: float, *, everything: bool = False) -> None:
        """Wait until something is ready to be fetched, and what is as quick; or nothing comes.

        Until an instant of the monotonic clock, and no longer.
        """
        begun_s, since_s = time.monotonic(), None
        # Later nobody knows how long who is to come will take.
        most_s, self._most_settle_s = self._most_settle_s, SETTLE_S
        while self.any_awaited() and time.monotonic() < until_s:
            if self.new and not everything:
                since_s = since_s or time.monotonic()
                settle_s = max(SETTLE_S, min(since_s - begun_s, most_s))
                left_s = since_s + settle_s - time.monotonic()
                if left_s <= 0:
                    return
            else:
                left_s = LOOK_S
            left_s = max(0.0, min(left_s, until_s - time.monotonic()))
            try:
                self._take(self._outcomes.get(timeout=left_s))
            except queue.Empty:
                for begun in self._preparing.values():
                    begun.look()
                self.look()
                continue
            if not self.new and not everything and any(map(self._needed, self._fetchable())):
                return

    def any_awaited(self) -> bool:
        """Return whether a host may still change what comes of it.

        One that is wanted, or not tried yet.

        A relay that is away is tried as long as others have something to do, and no longer.
        """
        failed = self._telling.failed
        return any(self._is_wanted(n) or n not in failed for n in list(self._preparing))

    def take_in(self) -> None:
        """Take in what has become of sources by now."""
        while not self._outcomes.empty():
            self._take(self._outcomes.get_nowait())

    def look(self, core: CollectorCore | None = None) -> None:
        """Let whoever watches look how far it is, and say who does not answer."""
        self._telling.look(core)
        self.watch(
            lambda: progress_of(
                self.store.state,
                core,
                filter(self._is_wanted, list(self._preparing)),
                self.ended,
                self.use,
                self._telling.troubles(core),
            )
        )

    def _take(self, outcome: Outcome[bool]) -> None:
        """Take in what became of a source."""
        name, error = outcome.name, outcome.error
        self._preparing.pop(name, None)
        if isinstance(error, StoreError):
            raise error
        if error is None and outcome.value:
            self.ready.add(name)
            self.new.add(name)
            self.remains.listed(name)
        if error is None or isinstance(error, Cancelled):
            return
        if self._is_wanted(name):
            self.end(name, why_of(name, error))
        else:
            self.log.write("not reached", host=name, why=why_of(name, error))

    def _is_wanted(self, name: str) -> bool:
        return any(each.name == name for each in self.store.state.wanted())

    # What is to be fetched --------------------------------------------------------------------

    def work(self) -> dict[str, SourceWork]:
        """Return what is to be fetched from each source that has anything."""
        work = {}
        for name in self._fetchable():
            if needed := self._needed(name):
                layout = self.store.layout(name)
                pieces = tuple(layout.pieces.tolist()), tuple(layout.piece_bytes.tolist())
                work[name] = SourceWork(*pieces, needed, layout.kin)
        return work

    def any_new_work(self) -> bool:
        """Return whether there is something to fetch that no round was planned with."""
        if any(self._needed(name) for name in self.new & set(self._fetchable())):
            return True
        self.new.clear()
        return False

    def _needed(self, name: str) -> frozenset[int]:
        return self.remains.needed(name, self.store.needed(name))

    def _fetchable(self) -> list[str]:
        known = set(self.store.known_sources())
        return sorted(known & self.ready - self.ended.keys())

    def require_any_room(self) -> None:
        """Stop where nothing of all that is wanted fits.

        Raises
        ------
        StoreError
            Says which disks are too full.
        """
        if not (put_off := self.store.put_off_sources()):
            return
        waiting = {name for name, *_ in self.store.state.waiting()}
        if put_off.keys() >= self.ready & waiting:
            raise StoreError("; ".join(put_off.values()))
