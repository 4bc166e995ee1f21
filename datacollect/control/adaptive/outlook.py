"""Forecast of the end, from the rates of connections now."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from datacollect.control.learned import learned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.control.adaptive.market import HostView

# Rates swing within seconds: a forecast moves by this part of the difference at each look, once a
# second.
FOLLOWS = 0.5
# A host whose connections bring this many times more than the others' is not behind their
# bottleneck: what it can do ends with its own data.
APART = 2.0
# A connection that such a host gives up brings others this part of what theirs bring on average:
# the wires that they share have no more to give than before.
BRINGS_MORE = 0.5
# How the time that remained related to the forecast, by the part that had arrived: where nine of
# ten began and ended (`datacollect/control/learned.json`). Early forecasts are late: what
# connections bring is seen a piece late.
_LEARNED = learned("forecasts")
PARTS: Sequence[float] = _LEARNED["parts"]
LOW: Sequence[float] = _LEARNED["low"]
HIGH: Sequence[float] = _LEARNED["high"]
# Where the end was predicted from known wires before the start, that is believed until a tenth has
# arrived, and what is seen from four tenths on; in between the mixture. Nine of ten runs then:
BELIEVED_UNTIL, SEEN_FROM = 0.1, 0.4
EXPECTED_LOW: Sequence[float] = _LEARNED["expected_low"]
EXPECTED_HIGH: Sequence[float] = _LEARNED["expected_high"]
TENTHS = 10


class EndForecast(NamedTuple):
    """Forecast of the end, made at an instant.

    Attributes
    ----------
    at_s : float
    done : float
        The part of all bytes that had arrived.
    makespan_s : float
    low_s, high_s : float
        Nine of ten makespans lie between them.
    """

    at_s: float
    done: float
    makespan_s: float
    low_s: float
    high_s: float


def remaining_s(views: Sequence[HostView], on_the_way_bytes: float = 0) -> float | None:
    """Return how long all work takes; None where nothing is known to bring any of it.

    Hosts share their work, by relaying, so that all are done together; but for those whose
    connections bring far more, which are done when they are, and leave their connections to the
    others. What connections were given and have not delivered comes first.
    """
    busy = [view for view in views if view.work_bytes > 0]
    left_over = 0
    while busy:
        rate = sum(view.total_bytes_per_s for view in busy)
        n = sum(view.connections for view in busy)
        if rate <= 0:
            return None
        more = BRINGS_MORE * left_over * rate / max(1, n)
        time_s = (on_the_way_bytes + sum(view.work_bytes for view in busy)) / (rate + more)
        apart = [
            view
            for view in busy
            if view.remaining_s < time_s and view.rate_bytes_per_s > APART * rate / max(1, n)
        ]
        if not apart:
            return time_s
        left_over += sum(view.connections for view in apart)
        busy = [view for view in busy if view not in apart]
    return 0.0


class Outlook:
    """Looks at hosts now and then, and tells when the last byte will come.

    Parameters
    ----------
    total_bytes : int
    expected_s : float, optional
        When all will be there, as it was predicted before the start.

    Attributes
    ----------
    forecast : EndForecast or None
        The last one; None before there is anything to judge by.
    noted : list of dict
        A forecast for each tenth that had arrived, for files: times to the millisecond.
    """

    def __init__(self, total_bytes: int, expected_s: float | None = None) -> None:
        self._total_bytes, self._expected_s = total_bytes, expected_s
        self._end_s: float | None = None
        self.forecast: EndForecast | None = None
        self.noted: list[dict[str, float]] = []

    def look(self, now_s: float, there_bytes: int, views: Sequence[HostView]) -> None:
        """Make a forecast, by what has arrived and what is known of hosts."""
        done = there_bytes / self._total_bytes if self._total_bytes else 1.0
        left_bytes = self._total_bytes - there_bytes
        waiting_bytes = sum(view.work_bytes for view in views)
        left_s = remaining_s(views, max(0, left_bytes - waiting_bytes))
        if left_s is None or done <= 0:
            return
        end_s = now_s + left_s
        before_s = end_s if self._end_s is None else self._end_s
        self._end_s = max(now_s, before_s + FOLLOWS * (end_s - before_s))
        end_s, row = self._believed_s(done), bisect_right(PARTS, done) - 1
        left_s = max(0.0, end_s - now_s)
        factors = (LOW, HIGH) if self._expected_s is None else (EXPECTED_LOW, EXPECTED_HIGH)
        between_s = (now_s + factor[row] * left_s for factor in factors)
        self.forecast = EndForecast(now_s, done, now_s + left_s, *between_s)
        if done >= (len(self.noted) + 1) / TENTHS:
            self.noted.append({k: round(v, 3) for k, v in self.forecast._asdict().items()})

    def _believed_s(self, done: float) -> float:
        """Mix what was predicted with what is seen, the more of it the more has arrived."""
        assert self._end_s is not None
        if self._expected_s is None:
            return self._end_s
        seen = (done - BELIEVED_UNTIL) / (SEEN_FROM - BELIEVED_UNTIL)
        seen = min(1.0, max(0.0, seen))
        return seen * self._end_s + (1 - seen) * self._expected_s
