"""Sends a feed: one thread has the connection, and goes on where it breaks; `write` never waits."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.errors import (
    DatacollectError,
    InfeasibleError,
    ProblemError,
    TransferError,
)
from datacollect.feeds.formats import frames
from datacollect.feeds.formats.clock import SteadyClock
from datacollect.feeds.formats.feed_file import UDP, FeedFile
from datacollect.feeds.formats.frames import FrameError, Hello, welcome_of
from datacollect.feeds.formats.report import Delays, FeedCounts, FeedReport, FeedStopped
from datacollect.feeds.sender.core import SenderCore
from datacollect.feeds.sender.ending import require_end
from datacollect.feeds.sender.link import Link, opened_link, opener_of
from datacollect.feeds.sender.rate_seen import RateSeen
from datacollect.feeds.sender.store import Memory
from datacollect.feeds.sender.udp_feed import UdpFeed
from datacollect.feeds.sender.waking import Waker
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike
    from types import TracebackType
    from typing import Any

    from datacollect.feeds.sender.store import Store

# What is sent at once, while it is asked whether the connection takes more.
STEP_BYTES = 64 * 1024
# So long a feed waits for its first connection before it goes on without.
FIRST_WAIT_S = 3.0
# Between two tries to connect: at first, and at last.
FIRST_AGAIN_S, LAST_AGAIN_S = 0.5, 10.0
# So often clocks are compared, and the sender's counts are told.
COMPARE_EVERY_S, NOTE_EVERY_S = 10.0, 1.0
# Without a word for so long after it was asked for one, the receiver counts as gone.
SILENT_S = 60.0
LOOK_S = 0.2


def send(
    feed: FeedFile | str | PathLike[str] | Mapping[str, Any],
    *,
    tell: Callable[[str], None] | None = None,
) -> Feed | UdpFeed:
    """Begin a feed: what is written into it is brought to the agent that its file names.

    Parameters
    ----------
    feed : FeedFile, path-like or mapping
        A feed's file, or what it says.
    tell : callable, optional
        Takes lines that somebody would want to know at once, such as that a connection has broken.

    Returns
    -------
    Feed or UdpFeed
        By the file's transport; what can be done with them is the same.

    Raises
    ------
    ProblemError
        The file is not what it should be, the receiver's does not fit it, or the name is taken
        there.

    Examples
    --------
    >>> import datacollect as dc
    >>> with dc.feeds.send("scan7.toml") as out:  # doctest: +SKIP
    ...     for block in instrument:
    ...         behind_s = out.write(block)
    >>> dc.feeds.send("nowhere.toml")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: nowhere.toml: no such file; check the path
    """
    if isinstance(feed, (str, os.PathLike)):
        feed = FeedFile.from_file(feed)
    elif not isinstance(feed, FeedFile):
        feed = FeedFile.from_dict(feed)
    return (UdpFeed if feed.transport == UDP else Feed)(feed, tell or _unheard)


class Feed:
    """A feed that is being sent; made by `send`.

    Leaving its ``with`` block ends it, and waits until the receiver has written all.

    Attributes
    ----------
    report : FeedReport or None
        What the receiver has written down of it, once it has ended there.

    Examples
    --------
    >>> import datacollect as dc
    >>> with dc.feeds.send("scan7.toml") as out:  # doctest: +SKIP
    ...     out.write(b"x" * 4096)
    >>> print(out.counts.received, out.delays.quantile(0.99))  # doctest: +SKIP
    """

    def __init__(self, feed: FeedFile, tell: Callable[[str], None]) -> None:
        self.file, self._tell = feed, tell
        self._clock = SteadyClock()
        self._opener = opener_of(feed, tell)
        self._store = _store(feed)
        self._lock = threading.Lock()
        self._waker = Waker()
        self._rate_seen = RateSeen(feed.rate_bytes_per_s)
        self.report: FeedReport | None = None
        self._there: dict[str, Any] = {}
        self._failure: DatacollectError | None = None
        self._is_stopped = False
        self._is_closed = False
        self._moved_s = time.monotonic()
        self._core = SenderCore(self._store, feed.message_bytes, feed.buffer_bytes, feed.when_full)
        # What goes on with what another process has kept, and whether that had come to its end.
        self.goes_on_at_bytes = self._core.taken_bytes
        self.had_ended = self._core.is_ended
        self._placed = threading.Event()
        if self._core.is_placed:
            self._placed.set()
        self._tried, self._was_connected = threading.Event(), False
        self._thread = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
            # What is wrong with files shows at once; who is far away is not waited for.
            self._tried.wait(FIRST_WAIT_S)
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self._is_stopped = True
            self._waker.wake()
            if self._thread.is_alive():
                self._thread.join()
            self._let_go()
            raise

    def is_placed(self, within_s: float) -> bool:
        """Whether it is known where a source goes on that can be read again.

        After a loss of power only the receiver knows.

        Parameters
        ----------
        within_s : float
            How long it may take.

        Returns
        -------
        bool

        Raises
        ------
        FeedStopped
            The receiver does not take the feed.

        Examples
        --------
        >>> import datacollect as dc
        >>> out = dc.feeds.send("scan7.toml")  # doctest: +SKIP
        >>> out.is_placed(1.0)  # doctest: +SKIP
        True
        """
        is_placed = self._placed.wait(within_s)
        if not is_placed and self._failure is not None:
            raise FeedStopped(str(self._failure), self.counts)
        return is_placed

    @property
    def counts(self) -> FeedCounts:
        """Return what has become of its messages, as far as is known here.

        Returns
        -------
        FeedCounts
        """
        with self._lock:
            here = self._core.counts.copy()
        there = FeedCounts.from_dict(self._there.get("counts", {}))
        names = ("received", "received_bytes", "filled", "late", "duplicates")
        for name in names if self.report is None else (*names, "lost", "lost_bytes"):
            setattr(here, name, getattr(there, name))
        return here

    @property
    def delays(self) -> Delays:
        """Say how long after it was made each message was there, as far as the receiver has told.

        Returns
        -------
        Delays
        """
        return Delays.from_dict(self._there.get("delay", {"n": 0}))

    @property
    def clock(self) -> str:
        """Return how `delays` are measured; "": nothing has been told yet.

        Returns
        -------
        str
        """
        return safe_text(str(self._there.get("clock", "")))

    def write(self, block: bytes | bytearray | memoryview) -> float:
        """Take what the source has made, without waiting for the network.

        Parameters
        ----------
        block : bytes-like
            Of any length; messages of ``message_bytes`` are cut from it.

        Returns
        -------
        float
            How far behind it is: how long ago that was made that is sent next, seconds.

        Raises
        ------
        FeedStopped
            The feed has ended: the buffer was full, or the receiver takes no more.

        Examples
        --------
        >>> import datacollect as dc
        >>> out = dc.feeds.send("scan7.toml")  # doctest: +SKIP
        >>> behind_s = out.write(b"x" * 4096)  # doctest: +SKIP
        """
        now_ns = self._clock.now_ns()
        if self._failure is not None:
            raise FeedStopped(str(self._failure), self.counts)
        if self._is_closed:
            raise FeedStopped("the feed has ended here; begin another one", self.counts)
        with self._lock:
            self._core.write(block, now_ns)
            behind_s = self._core.behind_s(now_ns)
        self._waker.wake()
        said = self._rate_seen.made(len(block), now_ns)
        if said is not None:
            self._tell(said)
        return behind_s

    def close(self) -> None:
        """End the feed: wait until the receiver has written all, or has been away for too long.

        Raises
        ------
        FeedStopped
            The receiver has not got all that was kept.

        Examples
        --------
        >>> import datacollect as dc
        >>> out = dc.feeds.send("scan7.toml")  # doctest: +SKIP
        >>> out.close()  # doctest: +SKIP
        """
        if self._is_closed:
            return
        with self._lock, suppress(FeedStopped):
            self._core.end(self._clock.now_ns())
        self._waker.wake()
        self._moved_s = time.monotonic()
        while self._thread.is_alive():
            self._thread.join(LOOK_S)
            if time.monotonic() - self._moved_s > self.file.give_up_s:
                self._is_stopped = True
                self._waker.wake()
                self._thread.join()
        self._let_go()
        if self.report is None:
            raise FeedStopped(self._what_is_left(), self.counts)

    def abandon(self) -> None:
        """Let go of the feed at once: what a spill has goes on with the next process.

        Examples
        --------
        >>> import datacollect as dc
        >>> out = dc.feeds.send("scan7.toml")  # doctest: +SKIP
        >>> out.abandon()  # doctest: +SKIP
        """
        self._is_stopped = True
        self._waker.wake()
        self._thread.join()
        self._let_go()

    def __enter__(self) -> Feed:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End it; after an error of the source what was made until then is sent all the same."""
        if error is None:
            self.close()
        elif isinstance(error, FeedStopped) or self.file.spill is None:
            with suppress(FeedStopped):
                self.close()
        else:
            self.abandon()

    def _let_go(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._store.close(is_done=self.report is not None)
            self._waker.close()

    def _what_is_left(self) -> str:
        counts = self._core.counts
        left = counts.made - self._core.written
        why = f": {self._failure}" if self._failure else ": it could not be reached for too long"
        kept = (
            "they are lost; a spill would have kept them"
            if self.file.spill is None
            else f"they are kept in {self.file.spill}; the same again sends them"
        )
        return f"{left} messages did not reach {self.file.to.name}{why}; {kept}"

    # The thread of the connection ------------------------------------------------------------

    def _connected(self) -> Link:
        """Connect, and agree on where to go on.

        Raises
        ------
        ProblemError, RefusedError, FrameError
            To come again is of no use.
        InfeasibleError, TransferError
            It may help.
        """
        link = opened_link(self._opener, self.file, self._waker)
        try:
            self._greet(link)
        except BaseException:
            link.close()
            raise
        return link

    def _greet(self, link: Link) -> None:
        feed, clock = self.file, self._clock
        hello = Hello(
            feed.name,
            self._store.begun.stream,
            feed.transport,
            feed.rate_bytes_per_s,
            feed.message_bytes,
            feed.late_after_s,
            clock.boot,
            clock.base_ns,
        )
        begun_ns = clock.now_ns()
        link.send(hello.line())
        until_s = time.monotonic() + SILENT_S
        while True:
            heard = link.move()
            if heard:
                first, *others = heard
                self._hear_end(first)
                if self.report is not None:
                    return
                welcome = welcome_of(first)
                with self._lock:
                    self._core.connected(welcome.next, welcome.written)
                    self._know_place()
                self._tell_clock(link, begun_ns, welcome.at_ns)
                self._moved_s = time.monotonic()
                self._tell(f"connected\n{link.granted}")
                for tree in others:
                    self._hear(link, tree)
                return
            left_s = until_s - time.monotonic()
            if left_s <= 0 or self._is_stopped:
                raise TransferError(f"{feed.to.name}: no answer in time")
            link.wait(left_s, sending=not link.can_take_more)

    def _know_place(self) -> None:
        """Take note of where the source goes on, where that was not known before."""
        if self._core.is_placed and not self._placed.is_set():
            self.had_ended = self._core.is_ended
            self.goes_on_at_bytes = self._core.taken_bytes
            self._placed.set()

    def _run(self) -> None:
        """Send until all is written there, connecting again where that breaks."""
        again_s = FIRST_AGAIN_S
        try:
            while not self._is_over:
                begun_s = time.monotonic()
                try:
                    self._send_over(self._connected())
                except (InfeasibleError, TransferError) as error:
                    if isinstance(error, FrameError):  # to come again is of no use
                        raise ProblemError(f"{self.file.name}: {error}") from error
                    self._tell(f"{_how_it_is(self._was_connected)}: {error}")
                self._tried.set()
                if time.monotonic() - begun_s > LAST_AGAIN_S:  # it was of use
                    again_s = FIRST_AGAIN_S
                self._wait_before_again(again_s)
                again_s = min(again_s * 2, LAST_AGAIN_S)
        except DatacollectError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001 - whoever writes is told, whatever it is
            self._failure = TransferError(f"{self.file.name}: {type(error).__name__}: {error}")
        finally:
            self._tried.set()

    def _send_over(self, link: Link) -> None:
        """Send over a connection until it breaks, or all is there."""
        if self._was_connected:
            with self._lock:
                self._core.counts.reconnections += 1
        self._was_connected = True
        self._tried.set()
        try:
            self._talk(link)
            if self.report is not None:
                link.end()
        finally:
            link.close()

    @property
    def _is_over(self) -> bool:
        return self._is_stopped or self.report is not None

    def _wait_before_again(self, wait_s: float) -> None:
        until_s = time.monotonic() + wait_s
        while not self._is_over and time.monotonic() < until_s:
            time.sleep(min(LOOK_S, wait_s))

    def _talk(self, link: Link) -> None:
        """Send over a connection until all is there, or it breaks."""
        heard_s = asked_s = noted_s = time.monotonic()
        while not self._is_over:
            now_s = time.monotonic()
            for tree in link.move():
                heard_s = now_s
                self._hear(link, tree)
            if link.can_take_more:
                if now_s - asked_s >= COMPARE_EVERY_S:
                    asked_s = now_s
                    link.send(frames.time_frame(self._clock.now_ns()))
                if now_s - noted_s >= NOTE_EVERY_S:
                    noted_s = now_s
                    link.send(frames.note_frame(self._note(link)))
                with self._lock:
                    blocks = self._core.frames(STEP_BYTES)
                if blocks:
                    link.send(b"".join(blocks))
                    continue
            if now_s - heard_s > COMPARE_EVERY_S + SILENT_S:
                raise TransferError("the receiver no longer responds")
            link.wait(NOTE_EVERY_S, sending=not link.can_take_more)

    def _note(self, link: Link) -> dict[str, Any]:
        """Return what the receiver's report has of this end."""
        with self._lock:
            counts = self._core.counts.copy()
        note = {
            "counts": counts.to_dict(),
            "congestion": link.congestion,
            "granted": link.granted,
            "route": link.route,
        }
        seen = self._rate_seen.bytes_per_s
        return note if seen is None else {**note, "source_bytes_per_s": seen}

    def _hear(self, link: Link, tree: dict[str, Any]) -> None:
        """Take what the receiver says."""
        self._hear_end(tree)
        if "time" in tree:
            sent_ns, at_ns = _whole(tree, "time"), _whole(tree, "at_ns")
            self._tell_clock(link, sent_ns, at_ns)
        if "written" in tree:
            with self._lock:
                before = self._core.written
                self._core.told_written(_whole(tree, "written"))
                if self._core.written > before:
                    self._moved_s = time.monotonic()
        if isinstance(tree.get("report"), dict):
            self._take_report(tree["report"])

    def _hear_end(self, tree: dict[str, Any]) -> None:
        if "ended" in tree:
            try:
                report = FeedReport.from_dict(tree["ended"])
            except ProblemError as error:
                raise FrameError(f"malformed report of a feed by its receiver: {error}") from None
            with self._lock:
                self._core.has_ended_there(report.counts.made, report.counts.made_bytes)
                here, is_ended = self._core.counts.copy(), self._core.is_ended
                self._know_place()
            require_end(report.counts, here, is_ended=is_ended, receiver=self.file.to.name)
            self._take_report({"counts": report.counts.to_dict(), **tree["ended"]})
            self.report = report
        elif "why" in tree:
            kind = TransferError if tree.get("again") is True else FrameError
            raise kind(f"{self.file.to.name}: {safe_text(str(tree['why']))}")

    def _take_report(self, tree: dict[str, Any]) -> None:
        try:
            FeedCounts.from_dict(tree.get("counts"))
            Delays.from_dict(tree.get("delay"))
        except ProblemError as error:
            raise FrameError(str(error)) from None
        self._there = tree

    def _tell_clock(self, link: Link, sent_ns: int, at_ns: int) -> None:
        """Tell how far ahead the receiver's clock is, by a round trip."""
        round_trip_ns = self._clock.now_ns() - sent_ns
        ahead_ns = at_ns - sent_ns - round_trip_ns // 2
        link.send(frames.note_frame({**self._note(link), "clock": [ahead_ns, round_trip_ns]}))


def _store(feed: FeedFile) -> Store:
    if feed.spill is None:
        return Memory()
    # A database, which nobody else needs.
    from datacollect.feeds.sender.spill import Spill

    return Spill(feed.spill, feed.name, feed.message_bytes)


def _how_it_is(was_connected: bool) -> str:
    return "connecting again" if was_connected else "not connected yet; still trying"


def _whole(tree: dict[str, Any], name: str) -> int:
    value = tree.get(name)
    if type(value) is not int:
        raise FrameError(f"malformed line of a feed: {name}")
    return value


def _unheard(_: object) -> None:
    """Ignore a report that nobody wants."""
