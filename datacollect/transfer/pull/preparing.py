"""Preparation of one source: reached, listed to its end, compared with what is there already.

Each source does so in a thread of its own, and waits for no other.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from datacollect.errors import IdentityError, StoreError, TransferError
from datacollect.net.deadline import Deadline
from datacollect.transfer.protocol.source import Known
from datacollect.transfer.pull.notices import LIST
from datacollect.transfer.pull.words import differs, unused, why_of
from datacollect.transfer.store.state.pieces import piece_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from datacollect.transfer.protocol.source import (
        Copy,
        LeftOut,
        Page,
        Peer,
        Reached,
        Segment,
        Source,
    )
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.pull.notices import Notices
    from datacollect.transfer.sources.agent.network import Network
    from datacollect.transfer.store.folder.log import Log
    from datacollect.transfer.store.source_check import ComparedWithSource
    from datacollect.transfer.store.store import Store

# Between two tries, at least and at most.
RETRY_S, LONGEST_RETRY_S = 0.5, 5.0
LEAVES_WITHIN_S = 10.0
_SERVES_NO_MORE = (
    "its agent serves no files any more, and did before: give its file `serve` again; if nothing "
    "more is wanted of it, name the others as [sources.NAME]"
)


class Cancelled(BaseException):
    """The pull is over: nothing more is to be done to its folder."""


class Gate:
    """Counts threads that are at work in the store, and lets none in once the pull is over.

    Attributes
    ----------
    turn : threading.Lock
        For what only one may do at a time: to take room.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self._cond = threading.Condition()
        self._n_inside = 0
        self._is_over = False
        self._to_end: list[Callable[[], None]] = []
        self._at_last: Callable[[], None] | None = None

    def __enter__(self) -> None:
        """Go in."""
        with self._cond:
            self.require_open()
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._cond:
            self._n_inside -= 1
            self._cond.notify_all()
            at_last = self._at_last if self._n_inside == 0 else None
        if at_last is not None:
            at_last()

    def close(self) -> None:
        """Let nobody in any more, and wait for those who are inside, but not for ever."""
        with self._cond:
            self._is_over = True
            to_end, self._to_end = self._to_end, []
        for end in to_end:
            end()
        with self._cond:
            # Nobody takes longer, but who waits for a disk or for a host that does not answer.
            self._cond.wait_for(lambda: self._n_inside == 0, LEAVES_WITHIN_S)

    def leave_last(self, call: Callable[[], None]) -> None:
        """Once nobody is inside, have this called: now, or by whoever is the last to leave."""
        with self._cond:
            self._is_over = True
            if self._n_inside > 0:
                self._at_last = call
                return
        call()

    def end_by(self, end: Callable[[], None]) -> None:
        """Have this called when the pull is over, so that who waits inside waits no longer."""
        with self._cond:
            self.require_open()
            self._to_end.append(end)

    def require_open(self) -> None:
        """Raise `Cancelled` where the pull is over."""
        if self._is_over:
            raise Cancelled


@dataclass
class Preparation:
    """One source until it is ready.

    Attributes
    ----------
    source : Source
    collection : Collection
    store : Store
    log : Log
    network : Network
        Tells when a relay becomes known over which the source might be reached.
    gate : Gate
    reached : dict of str to Reached
        Takes what the source has said, as soon as it is reached.
    notices : Notices
        Takes why a try has failed, and what a user wants to know at once.
    compared : dict of str to ComparedWithSource, optional
        Takes what came of comparing what is done with the source; None: nothing is compared.
    is_closed : callable
        Whether nothing can come from a host now, by its hours: that it does not answer then is no
        fault of its.
    """

    source: Source
    collection: Collection
    store: Store
    log: Log
    network: Network
    gate: Gate
    reached: dict[str, Reached]
    notices: Notices
    compared: dict[str, ComparedWithSource] | None = None
    is_closed: Callable[[str], bool] = lambda _: False
    # How far it got, at most: pages, answers about its files.
    _furthest: Counter[str] = field(default_factory=Counter)
    # For how long nothing has got further than ever.
    _silent_s: float = 0.0

    def run(self) -> bool:
        """Return whether the source is ready; False: nothing is wanted of it.

        Raises
        ------
        StoreError
            The destination folder fails.
        TransferError
            The source cannot be had: nothing has got on for `patience_s`, or another try cannot
            help.
        """
        limits = self.collection.limits
        wait_s = RETRY_S
        while True:
            self.gate.require_open()
            seen, furthest = self.network.wait_for_news(-1, 0.0), self._furthest.copy()
            try:
                return self._try(max(0.5, min(limits.timeout_s, self._left_s())))
            except StoreError:
                raise
            except TransferError as error:
                if error.is_final:
                    raise
                self._note_trouble(error)
                if self._furthest != furthest:
                    wait_s = RETRY_S
                if self.is_closed(self.source.name):  # it need not answer now
                    self._silent_s = 0.0
                if self._left_s() <= 0:
                    raise
            with self._silence():
                # Whatever was missing: a relay that becomes known may lead there.
                self.network.wait_for_news(seen, min(wait_s, self._left_s()))
            wait_s = min(2 * wait_s, LONGEST_RETRY_S)

    def _left_s(self) -> float:
        """Return what is left of the patience."""
        return self.collection.limits.patience_s - self._silent_s

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Count the time of this block as silence."""
        since_s = time.monotonic()
        try:
            yield
        finally:
            self._silent_s += time.monotonic() - since_s

    def _got_to(self, what: str, n: int) -> None:
        """It got so far; further than ever is a sign of life."""
        if n > self._furthest[what]:
            self._furthest[what], self._silent_s = n, 0.0

    def _try(self, timeout_s: float) -> bool:
        with self._asking("answer"):
            reached = self.source.reach(Deadline(timeout_s))
        if not self._note_reached(reached):
            return False
        self._list()
        self._settle_in(reached.relays)
        return True

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Ask the source; who does not answer is named."""
        with self._silence(), self.notices.asking(self.source.name, what):
            yield

    def _note_reached(self, reached: Reached) -> bool:
        """Note what a host has said; return whether its files are wanted."""
        name, ahead_s = self.source.name, reached.clock_ahead_s
        self.reached[name] = reached
        self.log.write(
            "host reached",
            host=name,
            over=list(reached.relays),
            clock_ahead_s=None if ahead_s is None else round(ahead_s, 3),
            relays_to=list(reached.relays_to),
        )
        if self.collection.sources is not None:
            return name in self.collection.sources
        with self.gate:
            # What was wanted once stays so: to serve nothing may be a slip of its owner's.
            if not reached.serves and self.store.state.fact(f"serves {name}"):
                raise IdentityError(f"{name}: {_SERVES_NO_MORE}")
            self.store.state.set_fact(f"serves {name}", int(reached.serves))
            self.store.state.set_wanted(name, reached.serves)
        return reached.serves

    def _note_trouble(self, error: TransferError) -> None:
        """Note why a try has failed, and say so the first time."""
        name, why = self.source.name, why_of(self.source.name, error)
        self.log.write("not reached", host=name, why=why)
        with self.gate:
            self.store.state.note_trouble(name, why)
        self.notices.has_failed(name, why)

    def _list(self) -> None:
        """List it, page by page into the state."""
        name = self.source.name
        with self.gate:
            listing = self.store.listing(name, self.collection.wanted(name))
            known = self.store.known(name) if self.source.is_cut_by_file else Known({})
        for n_pages, page in enumerate(self._pages(known), 1):
            with self.gate:
                listing.take(page)
            for note in page.notes:
                self.notices.report(f"note: {name}: {note}")
            self._got_to("pages", n_pages)
        with self.gate:
            patterns = listing.end()
        for pattern in patterns:
            self.notices.report(unused(name, pattern))
        self._tell_kept(listing.unconfirmed)

    def _tell_kept(self, unconfirmed: Sequence[LeftOut]) -> None:
        """Say which files are kept though the source does not confirm them: once for all."""
        if not unconfirmed:
            return
        with self.gate:
            done = self.store.state.done_paths(self.source.name)
        kept = [each for each in unconfirmed if each.name in done]
        if kept:
            is_asked = self.store.options.keep
            self.notices.kept(self.source.name, len(kept), kept[0].why, is_asked=is_asked)

    def _pages(self, known: Known) -> Iterator[Page]:
        """Yield the pages of its list."""

        def copy_of(path: str) -> Copy | None:
            with self.gate:
                return known.copy_of(path)

        pages = iter(self.source.list(known._replace(copy_of=copy_of)))
        while True:
            with self._asking(LIST):
                page = next(pages, None)
            if page is None:
                return
            yield page

    def _settle_in(self, relays: tuple[str, ...]) -> None:
        """Find out what is there already, and whether there is room for what is missing."""
        name = self.source.name
        given = self.collection.limits.piece_bytes
        size = piece_size(self.store.state.wanted_bytes(name)) if given is None else given
        with self.gate:
            rows = self.store.prepare(name, size, apart=self.source.is_cut_by_file)
        if rows or self.compared is not None:
            asking = _Asking(
                self.source, relays, self.gate, self._asking, partial(self._got_to, "answers")
            )
            try:
                with self.gate:
                    if rows:
                        self.store.compare(name, rows, asking.digests, self.gate.require_open)
                    self._check_with_source(asking)
            finally:
                asking.close()
        with self.gate, self.gate.turn:
            why = self.store.why_no_room(name, self.collection.limits.spare_bytes)
            if why is None:
                self.store.know(name)
            else:
                self.store.put_off(name, why)

    def _check_with_source(self, asking: _Asking) -> None:
        """Compare what is done with what the source has, once in a start, where that is wanted."""
        name = self.source.name
        if self.compared is None or name in self.compared:
            return
        found = self.store.check_with_source(name, asking.digests, self.gate.require_open)
        self.compared[name] = found
        self.log.write("compared with source", host=name, files=found.n_files, bytes=found.n_bytes)
        for each in found.differing:
            self.notices.report(differs(name, each))


class _Asking:
    """Asks a source for hashes, over a session that is opened when it is needed."""

    def __init__(
        self,
        source: Source,
        relays: tuple[str, ...],
        gate: Gate,
        asking: Callable[[str], AbstractContextManager[None]],
        got_to: Callable[[int], None],
    ) -> None:
        self._source, self._relays, self._gate = source, relays, gate
        self._asking, self._got_to = asking, got_to
        self._peer: Peer | None = None
        self._n_answers = 0

    def digests(self, segments: Sequence[Segment]) -> list[bytes | None] | None:
        """Return the BLAKE3 of segments at the source."""
        self._gate.require_open()
        with self._asking("answer about its files"):
            if self._peer is None:
                self._peer = self._source.open(self._relays)
                self._gate.end_by(self._peer.abort)
            found = self._peer.digests(segments)
        self._n_answers += 1
        self._got_to(self._n_answers)
        return found

    def close(self) -> None:
        """End the session."""
        if self._peer is not None:
            self._peer.close()
