"""The sender's core: which messages are sent, left out or dropped; reads no clock and no socket."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.feeds.formats.feed_file import DROP_NEW, DROP_OLD, STOP
from datacollect.feeds.formats.packets import HEAD
from datacollect.feeds.udp.drop_sets import drop_set
from datacollect.feeds.udp.guard import Guard, GuardLimits, Phase
from datacollect.feeds.udp.heads import heads_of, nonce_words
from datacollect.feeds.udp.pacing import Pacing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from datacollect.feeds.formats.udp_settings import UdpSettings
    from datacollect.feeds.udp.reports import ReceiverReport


# The guard's windows are long against this.
LOOK_EACH_S = 0.02
# Of packets in a row, and how many such are kept to be used again.
CHUNK_BYTES, MOST_SPARE = 2**20, 4


class _Chunk:
    """Packets in a row, some more than leave together: those from `at` on are to be sent.

    What is sent by one call of the system stands in a row, and no memory is asked for meanwhile: to
    touch new memory costs more than to send what is in it.
    """

    def __init__(self, packet_bytes: int) -> None:
        self._packet_bytes = packet_bytes
        self.most = max(CHUNK_BYTES // packet_bytes, 1)
        rows = np.empty((self.most, packet_bytes), np.uint8)
        self._data, self._contents = rows.reshape(-1).data, rows[:, HEAD.size :]
        heads = heads_of(self._data, packet_bytes)
        self._nonces, self._messages = heads["nonce"], heads["message"]
        self._packets, self._made_ns = heads["packet"], heads["made_ns"]
        self._nonce: NDArray[np.uint64] | None = None
        self.clear()

    def clear(self) -> None:
        """Have nothing in it."""
        self.at = self.n = 0
        # By how much the last message of all is shorter.
        self.short_bytes = 0
        # Up to where packets are numbered, and what the first of this chunk would be.
        self._numbered, self._first = 0, 0

    @property
    def is_full(self) -> bool:
        """Whether nothing can be added."""
        return self.n == self.most or self.short_bytes > 0

    @property
    def n_left(self) -> int:
        """How many are to be sent."""
        return self.n - self.at

    @property
    def made_ns(self) -> int:
        """When the next was made."""
        return int(self._made_ns[self.at])

    def add(
        self,
        nonce: NDArray[np.uint64],
        numbers: NDArray[np.int64],
        made_ns: int,
        contents: NDArray[np.uint8],
    ) -> None:
        """Add messages behind the others."""
        begin, self.n = self.n, self.n + len(numbers)
        if nonce is not self._nonce:
            self._nonces[begin:] = self._nonce = nonce
        self._messages[begin : self.n] = numbers
        self._made_ns[begin : self.n] = made_ns
        n_bytes = contents.shape[1]
        self._contents[begin : self.n, :n_bytes] = contents
        self.short_bytes = self._packet_bytes - HEAD.size - n_bytes

    def take(self, n: int, first: int) -> memoryview:
        """Return the next `n`, which are numbered from one on."""
        begin, self.at = self.at, self.at + n
        if self.at > self._numbered or first - begin != self._first:
            # All that stand here, since they nearly always leave in this order.
            self._numbered, self._first = self.n, first - begin
            self._packets[begin : self.n] = np.arange(first, self._first + self.n)
        stop = self.at * self._packet_bytes
        if self.at == self.n:
            stop -= self.short_bytes
        return self._data[begin * self._packet_bytes : stop]


@dataclass
class NotSent:
    """Messages that were made and not sent, by why.

    Attributes
    ----------
    on_purpose : int
        By the drop set.
    by_guard : int
    full : int
        The buffer was.
    unreachable : int
        While there was no connection to the receiver.
    """

    on_purpose: int = 0
    by_guard: int = 0
    full: int = 0
    unreachable: int = 0

    @property
    def n(self) -> int:
        """All together."""
        return self.on_purpose + self.by_guard + self.full + self.unreachable


class Sending:
    """Takes what a source makes, and says what leaves when.

    Parameters
    ----------
    settings : UdpSettings
    message_bytes : int
    packets_per_s : float
        Of the source.
    most_waiting : int
        Messages that may wait.
    when_full : str
    now_s : float
        By the clock of all that follows.

    Attributes
    ----------
    made, made_bytes : int
    n_sent : int
        Packets.
    not_sent : NotSent
    n_odd_reports : int
        Old or impossible ones, which count as none.
    phase : Phase
        What the guard does with input.
    ended : str or None
        Why nothing more is taken.
    """

    def __init__(
        self,
        settings: UdpSettings,
        message_bytes: int,
        packets_per_s: float,
        most_waiting: int,
        when_full: str,
        now_s: float,
    ) -> None:
        assert when_full in (STOP, DROP_NEW, DROP_OLD)
        self._settings, self._per_s = settings, packets_per_s
        self._message_bytes = message_bytes
        self._most_waiting, self._when_full = most_waiting, when_full
        self._drops = drop_set(settings.drop_set, settings.drop, settings.seed).drops
        self._waiting: deque[_Chunk] = deque()
        self._spare: list[_Chunk] = []
        # Whose last packets the caller is still sending.
        self._leaving: _Chunk | None = None
        self._n_waiting, self._nonce = 0, nonce_words(bytes(16))
        self.made = self.made_bytes = self.n_sent = self.n_odd_reports = 0
        # Packets of connections before this one.
        self._n_before = 0
        self.not_sent = NotSent()
        self.n_alarms = 0
        self.phase = Phase.WELL
        self.ended: str | None = None
        self._is_open = False
        self._begin(now_s)

    @property
    def guard(self) -> Guard:
        """Of the connection that is open, or was last."""
        return self._guard

    @property
    def alarm(self) -> str | None:
        """Return why the guard has fired; None where all is well."""
        alarm = self._guard.alarm
        return None if alarm is None else alarm.text

    @property
    def have_arrived(self) -> bool:
        """Return whether all that was sent over this connection has arrived, or was overtaken."""
        report = self._report
        return self.n_sent == self._n_before or (
            report is not None and report.n_packets >= self.n_sent - self._n_before
        )

    @property
    def n_waiting(self) -> int:
        """Messages that are to be sent."""
        return self._n_waiting

    def behind_s(self, now_s: float) -> float:
        """Return how long the oldest message waits to be sent."""
        return now_s - self._waiting[0].made_ns / 1e9 if self._n_waiting else 0.0

    def connected(self, now_s: float, nonce: bytes) -> None:
        """A connection is open: packets, which have its nonce, are numbered from 0 on."""
        self._n_before, self._nonce = self.n_sent, nonce_words(nonce)
        self._begin(now_s)
        self._is_open = True

    def disconnected(self) -> None:
        """There is none any more: what is made is lost, since it would come late.

        The guard hears nothing from now on, and says so.
        """
        self._is_open = False
        self.not_sent.unreachable += self._clear()

    def _begin(self, now_s: float) -> None:
        settings = self._settings
        limits = GuardLimits(
            settings.most_loss, settings.mean_bunch, settings.grace_s, settings.end_s
        )
        self._guard = Guard(limits, now_s)
        self._pacing = Pacing(self._per_s, HEAD.size + self._message_bytes)
        self._report: ReceiverReport | None = None
        self._look_at_s = now_s

    def make(self, data: bytes | memoryview, now_s: float, made_ns: int) -> None:
        """Take the next messages that a source makes; never waits.

        Where the feed has ended, `ended` says why; they count as made all the same.

        Parameters
        ----------
        data : bytes-like
            Whole messages; the last of all may be shorter.
        now_s : float
        made_ns : int
        """
        self.look(now_s)
        first, n = self.made, -(-len(data) // self._message_bytes)
        self.made += n
        self.made_bytes += len(data)
        numbers = self._left_by_drop_set(first, n)
        if self.ended is not None or self.phase is Phase.DROPPING:
            self.not_sent.by_guard += len(numbers)
        elif not self._is_open:
            self.not_sent.unreachable += len(numbers)
        else:
            self._wait(data, first, self._fitting(numbers), made_ns)

    def _left_by_drop_set(self, first: int, n: int) -> NDArray[np.int64]:
        """Return which of the next messages are not left out; the set counts all that is made."""
        numbers = np.arange(first, first + n)
        if not self._settings.drop:
            return numbers
        is_left = np.fromiter((not self._drops() for _ in range(n)), np.bool_, n)
        self.not_sent.on_purpose += n - int(is_left.sum())
        return numbers[is_left]

    def _fitting(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which of some new messages wait, once there is as much room as there may be."""
        room = self._most_waiting - self._n_waiting
        n_over = len(numbers) - room
        if n_over <= 0:
            return numbers
        if self._when_full == DROP_OLD:
            self.not_sent.full += n_over
            n_old = min(n_over, self._n_waiting)
            self._drop_oldest(n_old)
            return numbers[n_over - n_old :]
        if self._when_full == STOP:
            self.not_sent.full += 1
            self.not_sent.by_guard += n_over - 1
            self.ended = (
                f"{self._most_waiting} messages wait, and more are made than {self._per_s:g} a "
                "second with a quarter more to catch up; write the rate that the source has"
            )
        else:
            self.not_sent.full += n_over
        return numbers[:room]

    def _drop_oldest(self, n: int) -> None:
        self._n_waiting -= n
        while n:
            chunk = self._waiting[0]
            n_here = min(n, chunk.n_left)
            chunk.at += n_here
            n -= n_here
            if not chunk.n_left:
                self._waiting.popleft()

    def _wait(
        self, data: bytes | memoryview, first: int, numbers: NDArray[np.int64], made_ns: int
    ) -> None:
        """Have messages wait, as packets but for their numbers."""
        size = self._message_bytes
        n_whole = len(data) // size
        contents = np.frombuffer(data, np.uint8)[: n_whole * size].reshape(n_whole, size)
        whole = numbers[numbers < first + n_whole]
        at = 0
        while at < len(whole):
            chunk = self._open_chunk()
            some = whole[at : at + chunk.most - chunk.n]
            at += len(some)
            begin, stop = int(some[0]) - first, int(some[-1]) + 1 - first
            is_row = stop - begin == len(some)
            found = contents[begin:stop] if is_row else contents[some - first]
            chunk.add(self._nonce, some, made_ns, found)
        if len(whole) < len(numbers):
            rest = np.frombuffer(data, np.uint8)[n_whole * size :].reshape(1, -1)
            self._open_chunk().add(self._nonce, numbers[-1:], made_ns, rest)
        self._n_waiting += len(numbers)

    def _open_chunk(self) -> _Chunk:
        """Return the last chunk that waits; a new one where it is full."""
        if not self._waiting or self._waiting[-1].is_full:
            spare = self._spare.pop() if self._spare else _Chunk(HEAD.size + self._message_bytes)
            self._waiting.append(spare)
        return self._waiting[-1]

    def due(self, now_s: float) -> memoryview | None:
        """Return packets in a row, numbered, which are to leave now, together; None: none are.

        They are as they were until this is called again.
        """
        if self._leaving is not None:
            self._reuse(self._leaving)
            self._leaving = None
        if self.look(now_s) is Phase.DROPPING or self.ended is not None:
            self.not_sent.by_guard += self._clear()
        if not self._n_waiting:
            return None
        chunk = self._waiting[0]
        n = self._pacing.take(now_s, chunk.n - chunk.at)
        if not n:
            return None
        first = self.n_sent - self._n_before
        found = chunk.take(n, first)
        self.n_sent += n
        self._n_waiting -= n
        if chunk.at == chunk.n and chunk.is_full:
            self._leaving = self._waiting.popleft()
        self._guard.sent(now_s, first + n)
        return found

    def _reuse(self, chunk: _Chunk) -> None:
        """Keep the memory of a chunk whose packets have been sent."""
        if len(self._spare) < MOST_SPARE:
            chunk.clear()
            self._spare.append(chunk)

    def _clear(self) -> int:
        """Let go of all that waits; return how many messages that were."""
        n, self._n_waiting = self._n_waiting, 0
        self._waiting.clear()
        return n

    @property
    def next_s(self) -> float:
        """Return when more may leave, where more waits."""
        return self._pacing.next_s

    def report(self, now_s: float, report: ReceiverReport | None) -> None:
        """Take what the receiver has said."""
        if report is None or not report.can_follow(self._report, self.n_sent - self._n_before):
            self.n_odd_reports += 1
            return
        self._report = report
        self._guard.report(now_s, report.n_packets, report.n_lost, report.n_events, report.n_host)

    def look(self, now_s: float) -> Phase:
        """Have the guard look, not too often; return what it does with input."""
        if self.ended is not None or now_s < self._look_at_s:
            return self.phase
        self._look_at_s = now_s + LOOK_EACH_S
        before = self._guard.n_alarms
        self.phase = self._guard.look(now_s)
        self.n_alarms += self._guard.n_alarms - before
        if self.phase is Phase.ENDED:
            assert self._guard.alarm is not None
            self.ended = self._guard.alarm.text
        return self.phase
