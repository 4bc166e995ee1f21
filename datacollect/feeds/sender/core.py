"""The sender of one feed (sans I/O, but for its store): what is made in, frames out.

Everything that was made is kept, or missing and told to the receiver in its place; what is kept is
let go of when the receiver says that it is written.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.errors import StoreError
from datacollect.feeds.formats import frames
from datacollect.feeds.formats.feed_file import DROP_OLD, STOP
from datacollect.feeds.formats.frames import FrameError
from datacollect.feeds.formats.report import FeedCounts, FeedStopped
from datacollect.feeds.sender.missing import MissingRuns, Run
from datacollect.feeds.sender.store import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.feeds.sender.store import Store

# So near to each other messages count as made together, where it is asked how far behind it is.
TOGETHER_NS = 10_000_000


class SenderCore:
    """Numbers and stamps what is made, and says what is to be sent next.

    Parameters
    ----------
    store : Store
        With what it holds of this feed already.
    message_bytes, buffer_bytes : int
    when_full : str

    Attributes
    ----------
    counts : FeedCounts
        Of this end: what was received the receiver counts.
    is_ended : bool
        Whether the source has ended.
    written : int
        Before which the receiver has all.
    """

    def __init__(self, store: Store, message_bytes: int, buffer_bytes: int, when_full: str) -> None:
        begun = store.begun
        self._store = store
        self._message_bytes, self._buffer_bytes = message_bytes, buffer_bytes
        self._when_full = when_full
        self._tail = begun.tail
        self._missing = MissingRuns()
        for run in begun.missing:
            self._missing.add(run)
        # What was dropped as it was made, while the disk did not even take note of that.
        self._unsaved: list[Run] = []
        # Dropped before the receiver has said what it has of an earlier sender.
        self._dropped_unasked: list[Run] = []
        self.counts = FeedCounts(
            made=begun.made,
            made_bytes=begun.made_bytes,
            lost=begun.lost,
            lost_bytes=begun.lost_bytes,
            restarts=begun.restarts,
        )
        self.is_ended = self._is_ending = begun.is_ended
        self.written = self._next = self._highest = begun.written
        self._is_end_sent, self._is_end_saved = False, begun.is_ended
        # Messages that were made together: the first behind them, and when.
        self._made: deque[tuple[int, int]] = deque()
        for oldest in store.read(begun.written, begun.made, 1):
            self._made.append((begun.made, oldest.made_ns))
        # Why the disk did not keep what was made last.
        self._refusal = ""
        self._unplaced, self._is_asked = begun.unplaced, False

    # The source ------------------------------------------------------------------------------

    @property
    def taken_bytes(self) -> int:
        """Bytes that were made so far, those that are no whole message yet among them."""
        return self.counts.made_bytes + len(self._tail)

    def write(self, block: bytes | bytearray | memoryview, now_ns: int) -> None:
        """Take what the source has made.

        Raises
        ------
        FeedStopped
            It cannot be kept: the feed ends here. Or it has ended.
        """
        if self.is_ended:
            raise FeedStopped("the feed has ended; begin another one", self.counts.copy())
        data, size = self._tail + bytes(block), self._message_bytes
        n = len(data) // size
        tail = data[n * size :]
        contents = [data[i * size : (i + 1) * size] for i in range(n)]
        self._take(contents, tail, now_ns)

    def end(self, now_ns: int) -> None:
        """Take note that the source has ended; what is no whole message is one all the same."""
        if self.is_ended:
            return
        contents = [self._tail] if self._tail else []
        self._is_ending = True
        self._take(contents, b"", now_ns)
        self.is_ended = True
        self._save()

    def behind_s(self, now_ns: int) -> float:
        """Return how long ago the oldest message was made that was not sent yet, seconds."""
        while self._made and self._made[0][0] <= self._next:
            self._made.popleft()
        return max(now_ns - self._made[0][1], 0) / 1e9 if self._made else 0.0

    def _take(self, contents: Sequence[bytes], tail: bytes, now_ns: int) -> None:
        """Keep messages as far as there is room, and do with the others what the file says."""
        kept = self._fitting(contents)
        if kept and not self._add(contents[:kept], tail if kept == len(contents) else b"", now_ns):
            kept = 0
        elif not contents and tail != self._tail:
            self._add([], tail, now_ns)
        rest = contents[kept:]
        if rest and self._when_full == STOP:
            self._stop(rest, tail)
        if rest and self._when_full == DROP_OLD and self._make_room(len(rest)):
            fitting = self._fitting(rest)
            left = rest[:-fitting] if fitting else rest
            # What comes behind all of them does not come behind these.
            self._lose(left, b"" if fitting else tail)
            if fitting and not self._add(rest[-fitting:], tail, now_ns):
                self._lose(rest[-fitting:], tail)
        elif rest:
            self._lose(rest, tail)
        self._tail = tail

    def _fitting(self, contents: Sequence[bytes]) -> int:
        """Return how many of some messages there is room for, from either end."""
        left_bytes = self._buffer_bytes - self._store.kept_bytes
        return max(min(left_bytes // self._message_bytes, len(contents)), 0)

    def _add(self, contents: Sequence[bytes], tail: bytes, now_ns: int) -> bool:
        """Keep messages; whether that was possible."""
        first = self.counts.made
        messages = [Message(first + i, now_ns, each) for i, each in enumerate(contents)]
        try:
            self._save_runs()
            self._store.add(messages, tail, ends=self._is_ending and bool(messages))
        except StoreError as error:
            self._refusal = str(error)
            return False
        self.counts.made += len(messages)
        self.counts.made_bytes += sum(map(len, contents))
        if self._made and now_ns - self._made[-1][1] < TOGETHER_NS:
            self._made[-1] = (self.counts.made, self._made[-1][1])
        elif messages:
            self._made.append((self.counts.made, now_ns))
        return True

    def _lose(self, contents: Sequence[bytes], tail: bytes) -> None:
        """Count messages as made and missing."""
        if contents:
            n_bytes = sum(map(len, contents))
            self._drop(Run(self.counts.made, len(contents), n_bytes), tail)
            self.counts.made += len(contents)
            self.counts.made_bytes += n_bytes

    def _drop(self, run: Run, tail: bytes) -> None:
        """Count messages as missing that come next."""
        self._count_lost(run)
        try:
            self._save_runs()
            self._store.drop(run, tail, ends=self._is_ending)
        except StoreError as error:
            self._refusal = str(error)
            self._unsaved.append(run)

    def _count_lost(self, run: Run) -> None:
        self._missing.add(run)
        self.counts.lost += run.n
        self.counts.lost_bytes += run.n_bytes

    def _save_runs(self) -> None:
        """Take note of what was dropped while that was impossible."""
        while self._unsaved:
            run = self._unsaved[0]
            # What was made behind the last of them is no part of what came behind the others.
            is_last = run.stop == self.counts.made
            tail = self._tail if is_last else b""
            self._store.drop(run, tail, ends=self._is_ending and is_last)
            del self._unsaved[0]

    def _save(self) -> None:
        """Note what is not noted yet, as far as the disk lets it."""
        with suppress(StoreError):
            self._save_runs()
            if self.is_ended and not self._is_end_saved:
                self._store.end()
                self._is_end_saved = True

    def _make_room(self, n: int) -> bool:
        """Drop the oldest messages that were not sent yet, so many; whether there were any."""
        dropped = 0
        at = self._next
        while dropped < n and at < self.counts.made:
            run = self._missing.at(at)
            if run is not None:
                at = run.stop
                continue
            stop = self._missing.after(at) or self.counts.made
            count = min(stop - at, n - dropped)
            run = Run(at, count, count * self._message_bytes)
            try:
                self._save_runs()
                self._store.drop_kept(run)
            except StoreError:
                break
            self._count_lost(run)
            if not self._is_asked:
                self._dropped_unasked.append(run)
            dropped += count
            at += count
        return dropped > 0

    def _stop(self, contents: Sequence[bytes], tail: bytes) -> None:
        """End the feed: what cannot be kept is the last that is counted as made."""
        self._is_ending = True
        self._lose([*contents, *([tail] if tail else [])], b"")
        self._tail = b""
        self.is_ended = True
        self._save()
        why = self._refusal or (
            f"the buffer is full of {self._store.kept_bytes} bytes that the receiver has not "
            "written yet; give it a larger buffer_bytes, or a path that keeps up, or write "
            'when_full = "drop-new"'
        )
        raise FeedStopped(f"the feed ends: {why}", self.counts.copy())

    # The receiver ----------------------------------------------------------------------------

    @property
    def has_something(self) -> bool:
        """Return whether something is to be sent."""
        return self._next < self._stop_before or (self.is_ended and not self._is_end_sent)

    @property
    def _stop_before(self) -> int:
        """Before which message all may be told: who goes on with the feed has to know of it."""
        if self._unsaved:
            return self._unsaved[0].first
        return self.counts.made

    def connected(self, number: int, written: int) -> None:
        """Go on with the message that the receiver wants next.

        Raises
        ------
        FrameError
            It wants what it had, or what was never made.
        """
        stop = number if self._unplaced is None else min(number, self._unplaced)
        if self._unplaced is not None and self.written <= written == number:
            self._place(number)
        if not self.written <= written <= number <= self.counts.made:
            raise FrameError(
                f"the receiver has {number} messages of this feed, {written} of them on its disk, "
                f"but {self.counts.made} were made and {self.written} were on its disk: a disk "
                "has lost something; begin another feed, by another name"
            )
        self._take_back(stop)
        self._next, self._is_end_sent = number, False
        self._highest = max(self._highest, number)
        self.told_written(written)

    def _take_back(self, stop: int) -> None:
        """Count as not lost what was dropped and lies before `stop`: an earlier sender sent it."""
        self._is_asked = True
        n = sum(max(min(run.stop, stop) - run.first, 0) for run in self._dropped_unasked)
        self._dropped_unasked.clear()
        if n:
            self.counts.lost -= n
            self.counts.lost_bytes -= n * self._message_bytes
            with suppress(StoreError):  # the next process then counts them as lost
                self._store.take_back(n, n * self._message_bytes)

    @property
    def is_placed(self) -> bool:
        """Whether it is known which number the next message has; only the receiver may know it."""
        return self._unplaced is None

    def _place(self, number: int) -> None:
        """Go on behind what the receiver has: more than the spill, after a loss of power.

        Raises
        ------
        StoreError
        """
        first, counts = self._unplaced, self.counts
        assert first is not None
        n = max(number - first, 0)
        self._store.place(number)
        self._unplaced = None
        if n:
            self._missing.move(first, n, self._message_bytes)
        self._unsaved = [Run(run.first + n, run.n, run.n_bytes) for run in self._unsaved]
        self._made = deque((stop + n, made_ns) for stop, made_ns in self._made)
        counts.made += n
        counts.made_bytes += n * self._message_bytes

    def has_ended_there(self, made: int, made_bytes: int) -> None:
        """Take note that the receiver has the end, too, which a loss of power cost here."""
        if self._unplaced == self.counts.made <= made and not self._tail:
            self._store.place(made)
            self._unplaced = None
            self.counts.made, self.counts.made_bytes = made, made_bytes
            self.is_ended = self._is_ending = True

    def told_written(self, number: int) -> None:
        """Let go of what the receiver has written."""
        if not self.written <= number <= self._next:
            raise FrameError(
                f"the receiver's count of written messages must be {self.written} to "
                f"{self._next}, got {number}"
            )
        self.written = number
        self._missing.forget(number)
        with suppress(StoreError):  # it is let go of the next time
            self._store.release(number)

    def frames(self, most_bytes: int) -> list[bytes]:
        """Return what is to be sent next, of about so many bytes; nothing: there is nothing."""
        found: list[bytes] = []
        self._save()
        stop_before = self._stop_before
        while most_bytes > 0 and self._next < stop_before:
            run = self._missing.at(self._next)
            if run is not None:
                found.append(self._missing_frame(run, min(run.stop, stop_before)))
                continue
            stop = min(self._missing.after(self._next) or stop_before, stop_before)
            messages = self._store.read(self._next, stop, most_bytes)
            assert messages, "what is neither kept nor missing"
            for each in messages:
                found.append(frames.data_frame(*each))
                most_bytes -= len(found[-1])
            self._next += len(messages)
            self.counts.sent += max(self._next - max(self._highest, messages[0].number), 0)
            self._highest = max(self._highest, self._next)
        is_over = self._is_end_saved and self._next == self.counts.made
        if is_over and not self._is_end_sent:
            found.append(frames.note_frame({"counts": self.counts.to_dict()}))
            found.append(frames.end_frame(self.counts.made, self.counts.made_bytes))
            self._is_end_sent = True
        return found

    def _missing_frame(self, run: Run, stop: int) -> bytes:
        """Say that messages of a run do not come, from the next on; only its last may be short."""
        n = stop - self._next
        n_bytes = n * self._message_bytes
        if stop == run.stop:
            n_bytes -= run.n * self._message_bytes - run.n_bytes
        frame = frames.missing_frame(self._next, n, n_bytes)
        self._next = stop
        return frame
