"""Time windows in which links and hosts are open: what files say, and when that is.

``"20:00-06:00"`` is open every night, ``"Mo-Fr 20:00-06:00, Sa Su 00:00-24:00"`` on working days
at night and on weekends all day. A day is that on which the window opens. Hours are those of a
clock, in the problem's time zone unless a window names its own; where clocks skip an hour it is the
instant at which they jump, where they show one twice it is the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.clock_times import HOUR
from datacollect.files.kinds import wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.files.clock import Clock
    from datacollect.files.kinds import Schema

DAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")
EVERY_DAY = frozenset(range(7))
MIDNIGHT = "24:00"

DAY_S = 86_400.0

# Among this many days is every combination of hours and days that recurs, though clocks
# change on one: a week twice, and a day at either end.
RECURRING_DAYS = 16

_DAY = "(?:mon?|tue?|wed?|thu?|fri?|sat?|sun?)"
# Days of the week, ranges of them, several; in whatever case.
SAID_DAYS = rf"{_DAY}(?:\s*-\s*{_DAY})?(?:\s+{_DAY}(?:\s*-\s*{_DAY})?)*"
_WINDOW = re.compile(
    rf"(?P<days>{SAID_DAYS})?\s*"
    rf"(?P<opens>{HOUR})\s*[-–]\s*(?P<closes>{HOUR}|{MIDNIGHT})(?:\s+(?P<zone>[A-Za-z]\S*))?",
    re.ASCII | re.IGNORECASE,
)
_RANGE = re.compile(rf"({_DAY})(?:\s*-\s*({_DAY}))?", re.IGNORECASE)
LIKE = 'write it like "20:00-06:00" or "Mo-Fr 20:00-06:00, Sa Su 00:00-24:00"'


@dataclass(frozen=True)
class Window:
    """Hours of some days.

    Attributes
    ----------
    opens, closes : str
        Hours of the day; one that is not later is that of the next day, ``"24:00"`` midnight.
    days : frozenset of int
        Days of the week on which it opens, Monday 0.
    zone : str or None
        IANA name of its time zone; None: the problem's.
    """

    opens: str
    closes: str
    days: frozenset[int] = EVERY_DAY
    zone: str | None = None


def windows_of(text: str | Sequence[str], place: str) -> tuple[Window, ...]:
    """Read windows: a text, in which commas or semicolons separate them, or a list of such.

    Raises
    ------
    ProblemError
        Something is no window; the message says how to write one.

    Examples
    --------
    >>> windows_of("Mo-We 20:00-6:00", "open")[0].days == frozenset({0, 1, 2})
    True
    """
    given = [text] if isinstance(text, str) else text
    if not isinstance(given, list | tuple) or not given:
        raise wrong(place, "must be windows of hours", text, LIKE)
    found: list[Window] = []
    for one in given:
        if not isinstance(one, str):
            raise wrong(place, "must be windows of hours", one, LIKE)
        found += [_window(part.strip(), place) for part in re.split("[,;]", one)]
    return tuple(found)


def _window(text: str, place: str) -> Window:
    said = _WINDOW.fullmatch(text)
    if said is None:
        raise wrong(place, "must be windows of hours", text, LIKE)
    opens, closes = (padded(said[key]) for key in ("opens", "closes"))
    if f"{opens}:00"[:8] == f"{closes}:00"[:8]:
        raise wrong(
            place, "must close at another hour than it opens", text, 'all day is "00:00-24:00"'
        )
    if said["zone"] is not None:
        # Only where it is needed: agents read rates by hours, few of them have any.
        from datacollect.files.clock import zone_of

        try:
            zone_of(said["zone"])
        except ProblemError as error:
            raise ProblemError(f"{place}: {error}") from None
    days = EVERY_DAY if said["days"] is None else days_of(said["days"])
    return Window(opens, closes, days, said["zone"])


def window_text(window: Window) -> str:
    """Write a window as files do.

    >>> window_text(windows_of("Sa Su 8:00-20:00 Europe/Zurich", "open")[0])
    'Sa Su 08:00-20:00 Europe/Zurich'
    """
    days = " ".join(DAYS[day].title() for day in sorted(window.days))
    parts = ("" if window.days == EVERY_DAY else days, f"{window.opens}-{window.closes}")
    return " ".join(part for part in (*parts, window.zone) if part)


def padded(hour: str) -> str:
    """Return an hour as ``08:00`` where ``8:00`` stands: texts then come in the order of time."""
    return hour.zfill(len(hour) + (hour.index(":") < 2))


def days_of(text: str) -> frozenset[int]:
    """Return the days of the week, Monday 0, that a text of `SAID_DAYS` names.

    >>> sorted(days_of("Fr-Mo We"))
    [0, 2, 4, 5, 6]
    """
    days: set[int] = set()
    for first, last in _RANGE.findall(text):
        begin = DAYS.index(first[:2].lower())
        end = DAYS.index(last[:2].lower()) if last else begin
        days |= {(begin + i) % 7 for i in range((end - begin) % 7 + 1)}
    return frozenset(days)


@dataclass(frozen=True)
class Windows:
    """The kind of the key ``open``."""

    def read(self, value: Any, place: str) -> tuple[Window, ...]:
        """Return the windows."""
        return windows_of(value, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of a text, or a list of texts."""
        text: Schema = {"type": "string", "pattern": HOUR}
        return {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}]}


def spans_s(windows: Iterable[Window], clock: Clock, until_s: float) -> list[tuple[float, float]]:
    """Return from when to when any of the windows is open, within 0 and `until_s`, in order.

    Examples
    --------
    >>> from datacollect.files.clock import Clock
    >>> clock = Clock.of("2026-11-22T22:00", "Europe/Zurich")
    >>> [(a / 3600, b / 3600) for a, b in spans_s([Window("20:00", "06:00")], clock, 86_400.0)]
    [(0.0, 8.0), (22.0, 24.0)]
    """
    every = sorted(
        span
        for window in windows
        for span in clock.spans(window.opens, window.closes, window.days, until_s, window.zone)
    )
    joined: list[tuple[float, float]] = []
    for begin, end in every:
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
