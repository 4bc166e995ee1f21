"""Throttle of one limit: each sender asks it for a turn before bytes pass.

Turns are short, and come in the order in which they are asked for: those who share a limit get what
they ask for in proportion. Over any ten seconds nothing above the rate passes but what may come at
once after a pause, a hundredth of that.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC
from typing import TYPE_CHECKING

from datacollect.net.buckets import Bucket
from datacollect.problem.hourly_rates import HourlyRate
from datacollect.transfer.rates.spells import spell_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from datacollect.transfer.rates.spells import Rate

# What may pass at once after a pause: as long as a busy processor may keep anybody waiting.
BURST_S = 0.1
# One turn, and the least that is worth one.
TURN_S, LEAST_TURN_BYTES = 0.02, 1024
# Who has not asked for so long wants nothing at present.
ACTIVE_S = 1.0


class Throttle:
    """A limit in bytes per second, which sessions share; for any thread.

    Parameters
    ----------
    rate : float or HourlyRate
    zone : tzinfo
        Whose clocks show the hours.
    clock : callable
        Returns seconds, and never jumps.
    wall_clock : callable
        Returns seconds since 1970, which may be set.

    Examples
    --------
    >>> now = [0.0]
    >>> throttle = Throttle(1e6, clock=lambda: now[0])
    >>> throttle.turn_bytes(10**9)
    20000
    >>> throttle.owe(100_000), throttle.owe(20_000)
    (0.0, 0.02)
    """

    def __init__(
        self,
        rate: Rate,
        zone: tzinfo = UTC,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._rate, self._zone = rate, zone
        self._clock, self._wall_clock = clock, wall_clock
        self._lock = threading.Lock()
        self._spell = spell_of(rate, zone, wall_clock())
        self._since_s = wall_clock()
        per_s = self._spell.bytes_per_s
        self._bucket = Bucket(per_s, _most(per_s))
        # Who has asked last when, as far as that is not long ago.
        self._asked_s: dict[object, float] = {}
        self._counted_s, self._n_sessions = 0.0, 0

    @property
    def bytes_per_s(self) -> float:
        """The rate that counts now."""
        with self._lock:
            self._look()
            return self._bucket.per_s

    @property
    def most_bytes_per_s(self) -> float:
        """The highest rate at any hour."""
        return max(self._rate.bytes_per_s) if isinstance(self._rate, HourlyRate) else self._rate

    def join(self, n: int, who: object = None) -> None:
        """So many sessions more share it, or fewer; `who` wants nothing any more."""
        with self._lock:
            self._n_sessions += n
            self._asked_s.pop(who, None)

    def share_bytes_per_s(self, *, of_active: bool) -> float:
        """Return what each session gets: of all, or of those that want something at present."""
        with self._lock:
            self._look()
            if not of_active:
                return self._bucket.per_s / max(self._n_sessions, 1)
            now_s = self._clock()
            if now_s - self._counted_s >= ACTIVE_S / 4:
                self._counted_s = now_s
                self._asked_s = {
                    who: at_s for who, at_s in self._asked_s.items() if now_s - at_s < ACTIVE_S
                }
            return self._bucket.per_s / max(len(self._asked_s), 1)

    def turn_bytes(self, most_bytes: int) -> int:
        """Return how much of some bytes is one turn, at least one."""
        with self._lock:
            self._look()
            turn_bytes = max(int(self._bucket.per_s * TURN_S), LEAST_TURN_BYTES)
        return max(1, min(most_bytes, turn_bytes))

    def owe(self, n_bytes: float, who: object = None) -> float:
        """Let bytes pass, or count those that have; return how long to wait for it.

        `who` is one of those that join and share the rate, and wants as much as there is.
        """
        with self._lock:
            self._look()
            now_s = self._clock()
            if who is not None:
                self._asked_s[who] = now_s
            return self._bucket.owe(now_s, n_bytes)

    def give_back(self, n_bytes: float) -> None:
        """Bytes that were asked for do not pass."""
        with self._lock:
            self._bucket.give_back(n_bytes)

    def _look(self) -> None:
        """Find out whether another rate counts by now; clocks may be set back, too."""
        now_s = self._wall_clock()
        if self._since_s <= now_s < self._spell.until_s:
            return
        self._spell, self._since_s = spell_of(self._rate, self._zone, now_s), now_s
        per_s = self._spell.bytes_per_s
        if per_s != self._bucket.per_s:
            self._bucket.fill(self._clock(), per_s, _most(per_s))


def _most(bytes_per_s: float) -> float:
    return bytes_per_s * BURST_S
