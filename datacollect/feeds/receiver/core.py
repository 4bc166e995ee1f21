"""The receiver of one feed (sans I/O): frames in, what is to be written and answered out.

What it knows is its report. Where something that it says is to be written cannot be, it is thrown
away, and another one begins with the last report that was kept: the sender sends from there again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError
from datacollect.feeds.formats import frames
from datacollect.feeds.formats.frames import FrameError, Frames
from datacollect.feeds.formats.report import FeedCounts
from datacollect.files.documents import peer_json
from datacollect.files.kinds import is_number

if TYPE_CHECKING:
    from datacollect.feeds.formats.clock import SteadyClock
    from datacollect.feeds.formats.frames import Hello
    from datacollect.feeds.formats.report import FeedReport

# How delays are measured where both ends run on one host.
ONE_CLOCK = "one clock"
# What a sender tells of itself, and the report has beside its own.
TOLD = frozenset(("source_bytes_per_s", "congestion", "granted", "route"))
MOST_TOLD = 2.0**62
# Of numbers that only the sender knows.
COUNTED_THERE = ("sent", "reconnections", "restarts")


@dataclass(frozen=True)
class Write:
    """Bytes have to stand at a place of the feed's file."""

    offset: int
    blocks: list[memoryview]


@dataclass(frozen=True)
class Hole:
    """Messages will not come: they are to be listed, from one on; so many bytes of the file."""

    message: int
    n: int
    offset: int
    n_bytes: int


@dataclass(frozen=True)
class Reply:
    """A line for the sender."""

    line: bytes


@dataclass(frozen=True)
class Finish:
    """All is there: the file has so many bytes, and gets its name."""

    n_bytes: int


Action: TypeAlias = "Write | Hole | Reply | Finish"


class ReceiverCore:
    """Takes a feed over one connection.

    Parameters
    ----------
    report : FeedReport
        As it was kept; it is this one's from now on.
    hello : Hello
    clock : SteadyClock
        Of this host; it is read by the caller.

    Attributes
    ----------
    report : FeedReport
    """

    def __init__(self, report: FeedReport, hello: Hello, clock: SteadyClock) -> None:
        self.report = report
        self._message_bytes, self._late_after_s = hello.message_bytes, hello.late_after_s
        self._frames = Frames(hello.message_bytes)
        self._clock = clock
        # This host's clock less the sender's; None: not known yet.
        self._ahead_ns: int | None = None
        if hello.boot == clock.boot:
            self._ahead_ns = clock.base_ns - hello.base_ns
            self.report.clock = ONE_CLOCK
        self._is_over = False

    def take(self, data: bytes, now_ns: int) -> list[Action]:
        """Take what has come.

        Raises
        ------
        FrameError
            The sender does not keep to the format, nor to the order of messages.
        """
        done: list[Action] = []
        for kind, number, stamp, content in self._frames.take(data):
            if self._is_over and kind == frames.NOTE:
                continue
            if self._is_over and kind != frames.TIME:
                raise FrameError("something comes after the end of a feed")
            if kind == frames.DATA:
                self._message(number, stamp, content, now_ns, done)
            elif kind == frames.MISSING:
                self._missing(number, stamp, frames.whole_number(content), done)
            elif kind == frames.END:
                self._end(number, stamp, done)
            elif kind == frames.TIME:
                tree = {"time": number, "at_ns": now_ns}
                done.append(Reply(frames.line_of(tree)))
            else:
                self._note(bytes(content))
        return done

    def _expect(self, number: int) -> None:
        if number != self.report.next:
            raise FrameError(f"message {number} of a feed comes instead of {self.report.next}")

    def _message(
        self, number: int, made_ns: int, content: memoryview, now_ns: int, done: list[Action]
    ) -> None:
        self._expect(number)
        report, n_bytes = self.report, len(content)
        if not n_bytes:
            raise FrameError("a message of a feed has no bytes")
        counts, offset = report.counts, number * self._message_bytes
        if counts.made_bytes != offset:
            raise FrameError("messages of a feed come after a shorter one, which must be the last")
        last = done[-1] if done else None
        if isinstance(last, Write):  # they come in order: this one stands behind it
            last.blocks.append(content)
        else:
            done.append(Write(offset, [content]))
        report.next = number + 1
        counts.made, counts.made_bytes = number + 1, offset + n_bytes
        counts.received += 1
        counts.received_bytes += n_bytes
        if self._ahead_ns is not None:
            delay_s = (now_ns - self._ahead_ns - made_ns) / 1e9
            report.delays.add(delay_s)
            counts.late += delay_s > report.delays.least_s + self._late_after_s

    def _missing(self, first: int, n: int, n_bytes: int, done: list[Action]) -> None:
        self._expect(first)
        counts, offset = self.report.counts, first * self._message_bytes
        whole_bytes = n * self._message_bytes
        if counts.made_bytes != offset or not whole_bytes - self._message_bytes < n_bytes:
            raise FrameError("malformed list of a feed's missing messages")
        if n < 1 or n_bytes > whole_bytes or first + n >= frames.NUMBER_STOP:
            raise FrameError("malformed list of a feed's missing messages")
        done.append(Hole(first, n, offset, n_bytes))
        self.report.next = first + n
        counts.made, counts.made_bytes = first + n, offset + n_bytes
        counts.lost += n
        counts.lost_bytes += n_bytes
        counts.filled += n

    def _end(self, made: int, made_bytes: int, done: list[Action]) -> None:
        self._expect(made)
        if made_bytes != self.report.counts.made_bytes:
            raise FrameError("the end of a feed names another number of bytes than have arrived")
        self._is_over = True
        done.append(Finish(made_bytes))

    def _note(self, content: bytes) -> None:
        """Take what the sender tells: nothing of it is believed beyond its form."""
        tree = peer_json(content)
        if not isinstance(tree, dict):
            raise FrameError("malformed note of a feed: no JSON object")
        try:
            counts = FeedCounts.from_dict(tree.get("counts"))
        except ProblemError as error:
            raise FrameError(str(error)) from None
        told = {name: getattr(counts, name) for name in COUNTED_THERE}
        self.report.counts = replace(self.report.counts, **told)
        self._compare_clocks(tree.get("clock"))
        for name in TOLD & tree.keys():
            value = tree[name]
            if not isinstance(value, str) and not (is_number(value) and abs(value) < MOST_TOLD):
                raise FrameError(f"malformed note of a feed: its value of {name}")
            self.report.more[name] = value

    def _compare_clocks(self, told: Any) -> None:
        if told is None:
            return
        is_pair = isinstance(told, list) and len(told) == 2 and all(map(_is_time, told))
        if not is_pair or told[1] < 0:
            raise FrameError("malformed clock of a feed")
        if self.report.clock == ONE_CLOCK:
            return
        self._ahead_ns, round_trip_ns = told
        self.report.clock = (
            f"two clocks, compared over a round trip of {round_trip_ns / 1e6:.2f} ms: accurate to "
            f"half of that"
        )


def _is_time(told: Any) -> bool:
    return type(told) is int and abs(told) < frames.NUMBER_STOP
