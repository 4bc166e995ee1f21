"""The guard of a feed by UDP: a circuit breaker (RFC 8084) that warns, then drops, then ends.

UDP does not slow down by itself. The receiver reports each tenth of a second how often packets in a
row were missing: loss events, for queues that overflow lose several at once. The guard fires where
more of them come than the loss that was declared bearable explains, by chance no more often than
once in ten million looks; where nothing comes any more; never where losses are just unevenly
spread.

Whoever makes the data is told, and has a while to act. What is lost after half of that decides
whether it was transient; if not, input is dropped, which relieves the path, and then the feed ends.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from datacollect.feeds.formats.udp_settings import END_S, GRACE_S, MOST_LOSS

WINDOWS_S = (0.3, 1.0, 3.0, 10.0)
# As often, at most, a window shows so many loss events by chance alone.
CHANCE = 1e-7
SILENT_S = 1.0
# Bunches of more than so many times their declared mean count as they are.
LARGER = 3.0
# Windows begin with the report before them: stamps are a little early or late.
_EARLY_S = 0.02


class Reason(Enum):
    """Reason why the guard has fired."""

    PATH = "path"
    HOST = "host"
    SILENT = "silent"
    LOST = "lost"


class Phase(Enum):
    """Phase of the guard: what is done with input."""

    WELL = "well"
    WARNED = "warned"
    DROPPING = "dropping"
    ENDED = "ended"


@dataclass(frozen=True)
class GuardLimits:
    """Limits on what a path may lose.

    Attributes
    ----------
    most_loss : float
        Part of the packets.
    mean_bunch : float
        How many are lost together, on average.
    grace_s : float
        How long whoever makes the data has, to act.
    end_s : float
        After so long without remedy the feed ends.
    """

    most_loss: float = MOST_LOSS
    mean_bunch: float = 1.0
    grace_s: float = GRACE_S
    end_s: float = END_S


@dataclass(frozen=True)
class Alarm:
    """That the guard has fired.

    Attributes
    ----------
    reason : Reason
    at_s : float
    text : str
        What is wrong, and what helps.
    """

    reason: Reason
    at_s: float
    text: str


class _Seen(NamedTuple):
    """Sums of a report: packets up to the newest, losses, their runs, times a host had no room."""

    n_packets: int
    n_lost: int
    n_events: int
    n_host: int


class Guard:
    """Judges reports.

    Parameters
    ----------
    limits : GuardLimits
    began_s : float
        By the clock of all that follows.

    Attributes
    ----------
    alarm : Alarm or None
        Why it is not well.
    n_alarms : int
        How often it has fired.

    Examples
    --------
    At 1000 packets a second, of which 3 % are lost one by one:

    >>> guard = Guard(GuardLimits(most_loss=0.01), 0.0)
    >>> for i in range(1, 21):
    ...     guard.report(i / 10, 100 * i, 3 * i, 3 * i, 0)
    ...     if guard.look(i / 10) is not Phase.WELL:
    ...         break
    >>> guard.alarm.at_s, guard.alarm.reason
    (1.1, <Reason.PATH: 'path'>)
    """

    def __init__(self, limits: GuardLimits, began_s: float) -> None:
        self._limits = limits
        self._times_s = [began_s]
        self._seen = [_Seen(0, 0, 0, 0)]
        self._dropping = False
        self._heard_s = self._moved_s = began_s
        self._n_sent = 0
        self.alarm: Alarm | None = None
        self.n_alarms = 0

    def sent(self, now_s: float, n_packets: int) -> None:
        """Take that so many packets have been sent in all."""
        if self._n_sent <= self._seen[-1].n_packets:
            # All before had arrived: what is on its way is so from now on.
            self._moved_s = now_s
        self._n_sent = n_packets

    def report(self, now_s: float, n_packets: int, n_lost: int, n_events: int, n_host: int) -> None:
        """Take what the receiver says, in all.

        Parameters
        ----------
        now_s : float
        n_packets : int
            Sent, up to the newest that has arrived.
        n_lost, n_events : int
            Missing ones among these, and runs of them.
        n_host : int
            How often its host had no room for what came.
        """
        if n_packets > self._seen[-1].n_packets:
            self._moved_s = now_s
        self._heard_s = now_s
        self._times_s.append(now_s)
        self._seen.append(_Seen(n_packets, n_lost, n_events, n_host))
        if len(self._seen) > 1000:
            first = bisect_left(self._times_s, now_s - 2 * WINDOWS_S[-1])
            del self._times_s[:first], self._seen[:first]

    def look(self, now_s: float) -> Phase:
        """Return what is done with input now."""
        if self.alarm is None:
            self._fire(now_s)
        elif self._is_in_grace(now_s):
            return Phase.WARNED
        elif not self._dropping and self._was_transient(now_s):
            self.alarm = None
            self._reset(now_s, self._seen[-1])
        elif now_s >= self.alarm.at_s + self._limits.end_s:
            return Phase.ENDED
        else:
            self._dropping = True
            return Phase.DROPPING
        return Phase.WELL if self.alarm is None else Phase.WARNED

    def _reset(self, now_s: float, seen: _Seen) -> None:
        """Forget what was before."""
        self._times_s, self._seen = [now_s], [seen]
        self._dropping = False

    def _fire(self, now_s: float) -> None:
        found = self._found(now_s)
        if found is not None:
            self.alarm = Alarm(found[0], now_s, found[1])
            self.n_alarms += 1

    def _found(self, now_s: float) -> tuple[Reason, str] | None:
        if now_s - self._heard_s > SILENT_S:
            return Reason.SILENT, (
                f"the receiver has not reported for {SILENT_S:g} s; check that its agent runs "
                "and that the path works"
            )
        if self._n_sent > self._seen[-1].n_packets and now_s - self._moved_s > SILENT_S:
            return Reason.LOST, (
                f"nothing that was sent for {SILENT_S:g} s has arrived; check that the path works"
            )
        for window_s in WINDOWS_S:
            seen = self._since(now_s - window_s)
            if not is_chance(seen.n_events, self._expected(seen)):
                lost = (
                    f"{seen.n_lost} of {seen.n_packets} packets in {window_s:g} s, at "
                    f"{seen.n_events} times"
                )
                return _why(lost, seen.n_host, self._limits.most_loss)
        return None

    def _expected(self, seen: _Seen) -> float:
        """Return how many loss events are bearable among so many packets.

        Where far more are lost together than was declared, each event weighs as much more.
        """
        bunch = self._limits.mean_bunch
        # Of reordered packets some are missing for a while: both may become fewer.
        if seen.n_events > 0 and seen.n_lost > LARGER * bunch * seen.n_events:
            bunch = seen.n_lost / seen.n_events
        return seen.n_packets * self._limits.most_loss / bunch

    def _since(self, begin_s: float) -> _Seen:
        """Return how much has come since an instant."""
        at = bisect_left(self._times_s, begin_s - _EARLY_S)
        first, last = self._seen[min(at, len(self._seen) - 1)], self._seen[-1]
        return _Seen(*(b - a for a, b in zip(first, last, strict=True)))

    def _is_in_grace(self, now_s: float) -> bool:
        return self.alarm is not None and now_s < self.alarm.at_s + self._limits.grace_s

    def _was_transient(self, now_s: float) -> bool:
        """Return whether the later half of the grace was as it should be."""
        half_s = self._limits.grace_s / 2
        seen = self._since(now_s - half_s)
        all_arrived = self._n_sent <= self._seen[-1].n_packets
        return (
            now_s - self._heard_s <= SILENT_S
            and (seen.n_packets > 0 or all_arrived)
            and seen.n_events <= math.ceil(self._expected(seen))
        )


def is_chance(n_events: int, expected: float) -> bool:
    """Return whether so many events, or more, may come by chance where so many are expected.

    Of Poisson's distribution each term above the mean is at most m / (k + 1) of the one before:
    P(X >= k) <= P(X = k) / (1 - m / (k + 1)), which never says too little, and little too much.

    >>> is_chance(30, 10.0), is_chance(40, 10.0), is_chance(0, 0.0)
    (True, False, True)
    """
    if n_events <= expected:
        return True
    if not expected:
        return False
    exponent = n_events * math.log(expected) - expected - math.lgamma(n_events + 1)
    return exponent - math.log1p(-expected / (n_events + 1)) > math.log(CHANCE)


def _why(lost: str, n_host: int, most_loss: float) -> tuple[Reason, str]:
    if n_host:
        return Reason.HOST, (
            f"the receiver's host is too slow: {n_host} times it had no room for what came, "
            f"{lost}; raise net.core.rmem_max there, let its agent run before others, or use a "
            "faster disk"
        )
    return Reason.PATH, (
        f"the path loses more than most_loss = {most_loss:g}: {lost}; send less, or leave a part "
        "out by a drop set"
    )
