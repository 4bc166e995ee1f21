"""Clock times: of the second 0 of a plan, and of what recurs every day, daylight saving included.

Inside the library time is in seconds from the plan's start. Here clock times become such seconds
and back, in one time zone (IANA names, by `zoneinfo`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.clock_times import HOUR
from datacollect.files.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Collection

_HOURS = re.compile(HOUR, re.ASCII)


def present() -> datetime:
    """Return the present, to the second; tests put another in its place."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Clock:
    """Clock of a time zone while a plan is carried out.

    Parameters
    ----------
    start : datetime
        The instant of 0 s, with its offset.
    zone : tzinfo
        Where clock times without an offset, and hours of the day, are.
    is_next : bool
        Whether the start was said as an hour of the day: another instant tomorrow.

    Examples
    --------
    >>> clock = Clock.of("2026-11-22T20:00:00+01:00", "Europe/Zurich")
    >>> clock.seconds("2026-11-23T06:00", "release_s"), clock.text(5400)
    (36000.0, 'Sun 2026-11-22 21:30:00 +01:00')
    """

    start: datetime
    zone: tzinfo
    is_next: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, start: str | datetime, timezone: str | None, place: str = "start") -> Clock:
        """Return the clock of a file's ``start`` and ``timezone``.

        An hour of the day, such as ``"20:00"``, is the next one from now on.

        Raises
        ------
        ProblemError
            There is no such zone or time, the time has neither offset nor zone, or offset and
            zone contradict each other.
        """
        if isinstance(start, str) and _HOURS.fullmatch(start):
            if timezone is None:
                raise ProblemError(
                    f"{place} = '{start}' is an hour of the day, so it needs a time zone; add "
                    'timezone = "Europe/Zurich"'
                )
            now = cls(present(), zone_of(timezone))
            return cls(now.moment(now.seconds(start, place)), now.zone, is_next=True)
        instant = _of_calendar(
            start if isinstance(start, datetime) else parsed(start, place), place
        )
        zone = None if timezone is None else zone_of(timezone)
        if instant.tzinfo is None:
            if zone is None:
                raise ProblemError(
                    f"{place} must have an offset from UTC, or timezone be given, got "
                    f"'{instant.isoformat()}'; add +01:00, or timezone = \"Europe/Zurich\""
                )
            return cls(local_instant(instant, zone, place), zone)
        if zone is None:
            return cls(instant, instant.tzinfo)
        if instant.astimezone(zone).utcoffset() != instant.utcoffset():
            raise ProblemError(
                f"{place} must have the offset of timezone, {_offset(instant.astimezone(zone))} in "
                f"'{timezone}' then, got '{instant.isoformat()}'; correct one, or leave the offset "
                "out"
            )
        return cls(instant, zone)

    def seconds(self, when: str | datetime, place: str) -> float:
        """Return the seconds from the start to a clock time, or to the next such hour of the day.

        Raises
        ------
        ProblemError
            It is no clock time, lies before the start, or does not exist or exists twice where
            clocks change.
        """
        if isinstance(when, str) and _HOURS.fullmatch(when):
            return self._next(when, place)
        instant = self._instant(when, place)
        elapsed_s = self._since_start(instant)
        if elapsed_s < 0:
            raise ProblemError(
                f"{place} must not lie before the start, {self.text(0)}, got "
                f"'{instant.isoformat(sep=' ')}'; correct one of them"
            )
        return elapsed_s

    def is_before_start(self, when: str, place: str) -> bool:
        """Return whether a clock time lies before the start, which no hour of the day does.

        Raises
        ------
        ProblemError
            It is no clock time, or does not exist or exists twice where clocks change.
        """
        is_hour = _HOURS.fullmatch(when) is not None
        return not is_hour and self._since_start(self._instant(when, place)) < 0

    def _instant(self, when: str | datetime, place: str) -> datetime:
        instant = _of_calendar(when if isinstance(when, datetime) else parsed(when, place), place)
        return local_instant(instant, self.zone, place) if instant.tzinfo is None else instant

    def later(self, by_s: float) -> Clock:
        """Return the clock of what starts later by this time."""
        return Clock(self._at(by_s), self.zone)

    def moment(self, at_s: float) -> datetime:
        """Return the date and time that a clock shows at an instant, with its offset from UTC."""
        return self._at(at_s)

    def text(self, at_s: float) -> str:
        """Write what a clock shows at an instant, to the second, with its offset from UTC."""
        instant = self._at(at_s)
        return f"{instant:%a %Y-%m-%d %H:%M:%S} {_offset(instant)}"

    def iso(self, at_s: float) -> str:
        """Write an instant as ISO 8601, to the second, with its offset from UTC."""
        return self._at(at_s).isoformat(timespec="seconds")

    def each_day(self, hours: str, until_s: float) -> list[tuple[date, float]]:
        """Return the seconds at which a clock shows an hour of each day, from 0 to `until_s`.

        On a day when clocks skip the hour, or all of the day, it is when they would have shown it,
        the first instant after the gap; where they show it twice, the first time.

        Examples
        --------
        >>> clock = Clock.of("2026-03-28T12:00", "Europe/Zurich")
        >>> [s / 3600 for _, s in clock.each_day("02:30", 40 * 3600)]
        [14.0, 37.5]
        """
        day = self._at(0).date()
        found: list[tuple[date, float]] = []
        while True:
            try:
                at_s = (_recurring(day, hours, self.zone) - self.start).total_seconds()
                following = day + timedelta(days=1)
            except OverflowError:
                raise _beyond_calendars(until_s) from None
            if at_s > until_s:
                return found
            if at_s >= 0:
                found.append((day, at_s))
            day = following

    def spans(
        self, opens: str, closes: str, days: Collection[int], until_s: float, zone: str | None
    ) -> list[tuple[float, float]]:
        """Return from when to when it is between two hours, within 0 and `until_s`.

        Hours that clocks skip or show twice are as in `each_day`.

        Parameters
        ----------
        opens, closes : str
            Hours of the day; a `closes` that is not later is that of the next day, and so is 24:00.
        days : collection of int
            Days of the week on which it opens, Monday 0.
        until_s : float
        zone : str or None
            Where clocks show these hours; by default where this clock is.

        Examples
        --------
        >>> clock = Clock.of("2026-10-24T12:00", "Europe/Zurich")
        >>> [(a / 3600, b / 3600) for a, b in clock.spans("20:00", "6:00", [5], 2e5, None)]
        [(8.0, 19.0)]
        """
        where = self.zone if zone is None else zone_of(zone)
        last = timedelta(
            days=closes == "24:00" or _at_hours(date.min, closes) <= _at_hours(date.min, opens)
        )
        end = time(0) if closes == "24:00" else _at_hours(date.min, closes).time()
        # Windows that opened yesterday may be open, and zones lie a day apart at most.
        day = self._at(0).astimezone(where).date() - timedelta(days=2)
        found: list[tuple[float, float]] = []
        while True:
            try:
                begin_s = self._since_start(_recurring(day, opens, where))
                end_s = self._since_start(_recurring(day + last, f"{end:%H:%M:%S}", where))
                following = day + timedelta(days=1)
            except OverflowError:
                raise _beyond_calendars(until_s) from None
            if begin_s >= until_s:
                return found
            if day.weekday() in days and max(begin_s, 0.0) < min(end_s, until_s):
                found.append((max(begin_s, 0.0), min(end_s, until_s)))
            day = following

    def _next(self, hours: str, place: str) -> float:
        day = self._at(0).date()
        for ahead in range(3):
            naive = _at_hours(day + timedelta(days=ahead), hours)
            if _recurring(naive.date(), f"{naive:%H:%M:%S}", self.zone) < self.start:
                continue
            return self._since_start(local_instant(naive, self.zone, place))
        raise AssertionError(f"no {hours} within three days")

    def _since_start(self, instant: datetime) -> float:
        # By UTC: within one zone Python subtracts what clocks show, as if they never changed.
        return (instant.astimezone(UTC) - self.start.astimezone(UTC)).total_seconds()

    def _at(self, at_s: float) -> datetime:
        # By UTC: sums of local times forget that clocks change.
        try:
            shift = timedelta(seconds=at_s)
            return (self.start.astimezone(UTC) + shift).astimezone(self.zone)
        except OverflowError:
            raise _beyond_calendars(at_s) from None


def instant_text(at_s: float, clock: Clock | None) -> str:
    """Show an instant as the problem counts time: by the clock, or in seconds from the start.

    Clocks are read to the second; what they show is followed by how long after the start that is.

    Examples
    --------
    >>> instant_text(18_050.0, None)
    '18050 s'
    >>> instant_text(18_050.0, Clock.of("2026-11-22T20:00+01:00", None))
    'Mon 2026-11-23 01:00:50 +01:00 (18050 s after the start)'
    """
    # Ten digits, but never an exponent below 10^15: nobody reads 1.805e+04 as a time.
    seconds = f"{float(f'{at_s:.10g}'):.15g} s"
    return seconds if clock is None else f"{clock.text(at_s)} ({seconds} after the start)"


def duration_or_instant(at_s: float, clock: Clock | None) -> str:
    """Show an instant in an answer: by the clock, or how long after the start it is.

    >>> duration_or_instant(18_050.0, None), duration_or_instant(5.0, None)
    ('5 h 00 min (18050 s)', '5 s')
    """
    text = instant_text(at_s, clock)
    duration = format_duration(at_s)
    return text if clock is not None or text == duration else f"{duration} ({text})"


def deadline_text(deadline_s: float, clock: Clock | None) -> str:
    """Name a deadline at the head of a sentence.

    >>> deadline_text(4000.0, None)
    'deadline_s = 4000'
    """
    if clock is None:
        return f"deadline_s = {float(f'{deadline_s:.10g}'):.15g}"
    return f"the deadline, {instant_text(deadline_s, clock)},"


def _beyond_calendars(at_s: float) -> ProblemError:
    return ProblemError(f"no calendar reaches {at_s:.15g} s after the start; leave start out")


def _of_calendar(instant: datetime, place: str) -> datetime:
    """Return a clock time that every time zone can show; refuse others."""
    if not MINYEAR < instant.year < MAXYEAR:
        raise ProblemError(
            f"{place} must lie in the years {MINYEAR + 1} to {MAXYEAR - 1}, got "
            f"'{instant.isoformat(sep=' ')}'; correct it"
        )
    return instant


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name; raise `ProblemError` where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ProblemError(
            f"timezone must be an IANA name such as Europe/Zurich, got {name[:60]!r}"
            + nearest_hint(name[:60], available_timezones())
        ) from None


def parsed(text: str, place: str) -> datetime:
    """Return the date and time that ISO 8601 says."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ProblemError(
            f"{place} must be a date and time, got {text[:60]!r}; write it like "
            "2026-11-22T20:00:00+01:00"
        ) from None


def local_instant(naive: datetime, zone: tzinfo, place: str) -> datetime:
    """Return the instant of a local time; refuse one that clocks skip, or show twice."""
    first, second = (naive.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return first
    shown = naive.isoformat(sep=" ", timespec="minutes")
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != naive:
        raise ProblemError(
            f"{place}: clocks in {zone} skip {shown}; write a later time, or one with its offset "
            "from UTC"
        )
    raise ProblemError(
        f"{place}: clocks in {zone} show {shown} twice; write {naive.isoformat(timespec='minutes')}"
        f"{_offset(first)} for the first time or {_offset(second)} for the second"
    )


def _recurring(day: date, hours: str, zone: tzinfo) -> datetime:
    naive = _at_hours(day, hours)
    first, second = (naive.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    skipped = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != naive
    if not skipped:
        return first.astimezone(UTC)
    # In a gap the offsets before and after it straddle the change: between them lies its instant.
    return _change_between(second.astimezone(UTC), first.astimezone(UTC), zone)


def _change_between(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """Return the instant, to the second, at which a zone's offset changes between two instants."""
    old = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


def _at_hours(day: date, hours: str) -> datetime:
    found = _HOURS.fullmatch(hours)
    assert found, hours
    hour, minute, second = (int(part or 0) for part in found.groups())
    return datetime.combine(day, time(hour, minute, second))


def _offset(instant: datetime) -> str:
    return instant.isoformat()[-6:]
