"""The receiver of a feed by UDP (sans I/O): packets beside a connection over TLS, which reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.feeds.formats.frames import FrameError
from datacollect.feeds.formats.udp_settings import UDP_TABLE
from datacollect.feeds.receiver.core import Finish, Hole, ReceiverCore
from datacollect.feeds.udp.receiving import Receiving

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from datacollect.feeds.formats.clock import SteadyClock
    from datacollect.feeds.formats.frames import Hello
    from datacollect.feeds.formats.report import FeedReport
    from datacollect.feeds.receiver.core import Action
    from datacollect.feeds.udp.heads import Heads
    from datacollect.feeds.udp.receiving import Place, UdpTerms


class UdpReceiverCore(ReceiverCore):
    """Takes a feed over one connection, and the packets that it announces.

    Parameters
    ----------
    report : FeedReport
        As it was kept; it is this one's from now on.
    hello : Hello
    clock : SteadyClock
    feed : UdpTerms
    now_s : float
        By the clock of `packets`.

    Attributes
    ----------
    receiving : Receiving
    end_bytes : int or None
        How many bytes were made, once the sender has said so.
    """

    def __init__(
        self, report: FeedReport, hello: Hello, clock: SteadyClock, feed: UdpTerms, now_s: float
    ) -> None:
        super().__init__(report, hello, clock)
        self.receiving = Receiving(feed, report.next, now_s)
        self.end_bytes: int | None = None
        counts = report.counts
        # What had come behind what is decided has to come again, or is missing.
        counts.made, counts.made_bytes = (
            report.next,
            min(counts.made_bytes, report.next * hello.message_bytes),
        )
        self._n_twice_before = counts.duplicates
        # When messages came, and when each was made, ns: of those that were not counted yet.
        self._ages_ns: list[tuple[int, NDArray[np.int64]]] = []

    # Packets -------------------------------------------------------------------------------------

    def packets(self, now_ns: int, heads: Heads, last_bytes: int, n_host: int) -> list[Place]:
        """Take packets that have come together; return where those that are new go."""
        receiving = self.receiving
        receiving.n_host = max(receiving.n_host, n_host)
        places = receiving.take(now_ns / 1e9, heads, last_bytes)
        made_ns = heads["made_ns"]
        # Whoever sends says when: of what is absurd the sum may be, too, and no more.
        self._ages_ns += [
            (now_ns, made_ns[place.at : place.at + place.n].astype(np.int64)) for place in places
        ]
        return places

    # What is known of them -----------------------------------------------------------------------

    def count(self) -> None:
        """Bring the report up to date; what lies beyond its `next` counts as it came so far."""
        self._count_delays()
        receiving, counts, size = self.receiving, self.report.counts, self._message_bytes
        counts.duplicates = self._n_twice_before + receiving.n_twice
        if self.end_bytes is None and receiving.n_received:
            # Of a shorter last message nobody knows yet that it is one.
            counts.made = receiving.next
            counts.made_bytes = max(receiving.next * size - (size - receiving.last_bytes), 0)

    def _count_delays(self) -> None:
        ages_ns, self._ages_ns = self._ages_ns, []
        if not ages_ns or self._ahead_ns is None:
            return
        ahead_ns = self._ahead_ns
        took_ns = [at_ns - ahead_ns - made_ns for at_ns, made_ns in ages_ns]
        delays_s = np.concatenate(took_ns) / 1e9
        self.report.delays.add_all(delays_s)
        least_s = self.report.delays.least_s
        self.report.counts.late += int((delays_s > least_s + self._late_after_s).sum())

    def holes(self) -> list[Hole]:
        """Return what is missing for good, and was not returned before."""
        size, found = self._message_bytes, []
        for run in self.receiving.take_holes():
            offset, n_bytes = run.first * size, run.n * size
            if self.end_bytes is not None:
                n_bytes = min(n_bytes, self.end_bytes - offset)
            counts = self.report.counts
            counts.lost += run.n
            counts.lost_bytes += n_bytes
            counts.filled += run.n
            found.append(Hole(run.first, run.n, offset, n_bytes))
        return found

    def decide(self) -> None:
        """Move the report on to what is decided; all holes below were returned before."""
        report, counts = self.report, self.report.counts
        self.count()
        report.next = self.receiving.decided
        counts.received = report.next - counts.lost
        below = report.next * self._message_bytes
        if self.end_bytes is not None and report.next == counts.made:
            below = self.end_bytes
        elif report.next == self.receiving.next:
            below = counts.made_bytes
        counts.received_bytes = below - counts.lost_bytes

    def close(self) -> None:
        """The connection has ended: what has not come by now is missing."""
        self.receiving.end()

    # The connection over TLS ---------------------------------------------------------------------

    def _message(self, *_: Any) -> None:
        raise FrameError("malformed feed by udp: a message comes over TCP")

    def _missing(self, *_: Any) -> None:
        raise FrameError("malformed feed by udp: it lists missing messages")

    def _end(self, made: int, made_bytes: int, done: list[Action]) -> None:
        size = self._message_bytes
        short = made * size - made_bytes
        if made < self.receiving.next or not (0 <= short < size or made == made_bytes == 0):
            raise FrameError(
                "the end of a feed names fewer messages, or other bytes, than have arrived"
            )
        has_last = made == self.receiving.next and self.receiving.n_received
        if has_last and short != size - self.receiving.last_bytes:
            raise FrameError("the end of a feed names another length than its last message has")
        if made > self.receiving.feed.most_messages:
            raise FrameError("the end of a feed names more messages than the receiver has room for")
        self._is_over = True
        counts = self.report.counts
        counts.made, counts.made_bytes, self.end_bytes = made, made_bytes, made_bytes
        self.receiving.end(made)
        done.append(Finish(made_bytes))


def udp_values(told: Any) -> dict[str, Any]:
    """Return what a sender has said of its table ``udp``.

    Raises
    ------
    FrameError
        It is none.
    """
    try:
        return UDP_TABLE.read(told, "udp")
    except ProblemError as error:
        raise FrameError(f"malformed note of a feed: {error}") from None
