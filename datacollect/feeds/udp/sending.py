"""The sender's core: which messages are sent, left out or dropped; reads no clock and no socket."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from datacollect.feeds.formats.feed_file import DROP_NEW, DROP_OLD, STOP
from datacollect.feeds.formats.packets import HEAD
from datacollect.feeds.udp.drop_sets import drop_set
from datacollect.feeds.udp.guard import Guard, GuardLimits, Phase
from datacollect.feeds.udp.pacing import Pacing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.feeds.formats.udp_settings import UdpSettings
    from datacollect.feeds.udp.reports import ReceiverReport


# The guard's windows are long against this.
LOOK_EACH_S = 0.02


class Waiting(NamedTuple):
    """A message that is to be sent."""

    number: int
    made_s: float
    made_ns: int
    data: bytes


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
        packets_per_s: float,
        most_waiting: int,
        when_full: str,
        now_s: float,
    ) -> None:
        assert when_full in (STOP, DROP_NEW, DROP_OLD)
        self._settings, self._per_s = settings, packets_per_s
        self._most_waiting, self._when_full = most_waiting, when_full
        self._drops = drop_set(settings.drop_set, settings.drop, settings.seed).drops
        self._waiting: deque[Waiting] = deque()
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
        return len(self._waiting)

    def behind_s(self, now_s: float) -> float:
        """Return how long the oldest message waits to be sent."""
        return now_s - self._waiting[0].made_s if self._waiting else 0.0

    def connected(self, now_s: float) -> int:
        """A connection is open: packets are numbered from 0 on. Return the next message's number.

        Of what waits, all is sent yet.
        """
        self._n_before = self.n_sent
        self._begin(now_s)
        self._is_open = True
        return self._waiting[0].number if self._waiting else self.made

    def disconnected(self) -> None:
        """There is none any more: what is made is lost, since it would come late.

        The guard hears nothing from now on, and says so.
        """
        self._is_open = False
        self.not_sent.unreachable += len(self._waiting)
        self._waiting.clear()

    def _begin(self, now_s: float) -> None:
        settings = self._settings
        limits = GuardLimits(
            settings.most_loss, settings.mean_bunch, settings.grace_s, settings.end_s
        )
        self._guard = Guard(limits, now_s)
        self._pacing = Pacing(self._per_s)
        self._report: ReceiverReport | None = None
        self._look_at_s = now_s

    def make(self, messages: Sequence[bytes], now_s: float, made_ns: int) -> None:
        """Take the next messages that a source makes; never waits.

        Where the feed has ended, `ended` says why; they count as made all the same.
        """
        self.look(now_s)
        for data in messages:
            number = self.made
            self.made += 1
            self.made_bytes += len(data)
            # The set counts all that is made.
            if self._drops():
                self.not_sent.on_purpose += 1
            elif self.ended is not None or self.phase is Phase.DROPPING:
                self.not_sent.by_guard += 1
            elif not self._is_open:
                self.not_sent.unreachable += 1
            elif len(self._waiting) < self._most_waiting or self._has_room():
                self._waiting.append(Waiting(number, now_s, made_ns, data))

    def _has_room(self) -> bool:
        """Make room, if that is what is to be done."""
        self.not_sent.full += 1
        if self._when_full == DROP_OLD:
            self._waiting.popleft()
            return True
        if self._when_full == STOP:
            self.ended = (
                f"{self._most_waiting} messages wait, and more are made than {self._per_s:g} a "
                "second with a quarter more to catch up; write the rate that the source has"
            )
        return False

    def due(self, now_s: float) -> list[Waiting]:
        """Return what is to leave now, together."""
        if self.look(now_s) is Phase.DROPPING or self.ended is not None:
            self.not_sent.by_guard += len(self._waiting)
            self._waiting.clear()
        n = self._pacing.take(now_s, len(self._waiting))
        return [self._waiting.popleft() for _ in range(n)]

    def packets(self, due: list[Waiting], nonce: bytes, now_s: float) -> list[bytes]:
        """Return the packets of what leaves, numbered."""
        first = self.n_sent - self._n_before
        self.n_sent += len(due)
        self._guard.sent(now_s, first + len(due))
        return [
            HEAD.pack(nonce, each.number, first + i, each.made_ns) + each.data
            for i, each in enumerate(due)
        ]

    @property
    def wait_s(self) -> float:
        """Return how long until more may leave, where more waits."""
        return self._pacing.wait_s

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
