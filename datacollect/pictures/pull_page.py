"""Page of a pull while it goes on: routes and rates, planned against done, who is stuck and why."""

from __future__ import annotations

import json
import math
import threading
import time
from bisect import bisect_left
from datetime import datetime
from typing import TYPE_CHECKING, Any

from datacollect.files.units import counted, format_bytes, format_duration, format_rate
from datacollect.numbers.pace import about_duration, about_rate, percent_words
from datacollect.pictures.live_views import LiveView
from datacollect.pictures.writing import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.transfer.pull.progress.story import PullStory
    from datacollect.transfer.store.history import History, PlannedRoute

_BODY = """<p id="state" role="status">not connected yet</p>
<p id="headline"></p>
<progress id="part" max="1" value="0" aria-label="Part of all bytes that is there"></progress>
<dl id="facts"></dl>
<section aria-labelledby="h-stuck">
<h2 id="h-stuck">Stuck</h2>
<ul id="stuck"></ul>
</section>
<section aria-labelledby="h-course">
<h2 id="h-course">Planned against done</h2>
<div id="chart" role="img" aria-label="Bytes over time; the table below says the same"></div>
<p id="key"><span class="done">done</span> <span class="planned">planned</span>
<span class="end">planned end</span> <span class="between">in eight of ten cases</span></p>
<table id="course"></table>
</section>
<section aria-labelledby="h-routes">
<h2 id="h-routes">Routes</h2>
<table id="routes"></table>
</section>
<section aria-labelledby="h-events">
<h2 id="h-events">What went wrong</h2>
<ul id="events"></ul>
</section>"""

PULL_VIEW = LiveView(
    "pull",
    "datacollect.pictures",
    _BODY,
    "pull_live.css",
    "pull_live.js",
)

# Rates of now are means over so long, or between the last two notes.
NOW_S = 10.0
MOST_ROUTES, MOST_EVENTS, MOST_STUCK = 40, 20, 50
# Instants of the curves, and of the table beside them.
N_POINTS, N_ROWS = 160, 10
# Round times, in seconds.
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
# What is shown is made anew so often, and after so many times what that takes.
LEAST_S, TIMES = 0.9, 10.0


class PullFeed:
    """Tells pages what is new of a pull since what each was told; for all threads.

    Parameters
    ----------
    story : PullStory
    """

    def __init__(self, story: PullStory) -> None:
        self._story = story
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}
        self._next_s = 0.0
        # What had come in all by each note of the history, added up once.
        self._of: History | None = None
        self._totals: list[int] = []
        self._planned: tuple[tuple[PlannedRoute, ...], float, list[float]] | None = None

    def news(self, told: dict[str, Any]) -> str | None:
        """Return what a page does not know yet, as JSON; None where there is nothing.

        Parameters
        ----------
        told : dict
            What the page knows; this function keeps it.
        """
        with self._lock:
            self._look()
            new = {name: text for name, text in self._texts.items() if told.get(name) != text}
        told |= new
        rows = [f'"{name}": {text}' for name, text in new.items()]
        return "{" + ", ".join(rows) + "}" if rows else None

    def _look(self) -> None:
        begun_s = time.monotonic()
        with self._story.lock:
            if begun_s < self._next_s and self._story.answer is None:
                return
            tree = self._tree()
        self._texts = {
            name: json.dumps(value, ensure_ascii=True, allow_nan=False)
            for name, value in tree.items()
        }
        now_s = time.monotonic()
        self._next_s = now_s + max(LEAST_S, TIMES * (now_s - begun_s))

    def _tree(self) -> dict[str, Any]:
        """Return all that is shown; the story stands still meanwhile."""
        story, far, history = self._story, self._story.far, self._story.history
        self._add_up(history)
        ended = story.answer
        now_s = history.ended_s or time.time() - story.begun_s
        part = far.n_bytes / far.all_bytes if far.all_bytes else 0.0
        return {
            "headline": self._headline(),
            "part": round(part, 4),
            "facts": self._facts(now_s),
            "stuck": self._stuck(),
            "chart": self._chart(now_s),
            "course": self._course(now_s),
            "routes": self._routes(now_s),
            "events": [
                [format_duration(at_s), visible(text)]
                for at_s, _, text in story.events[: -MOST_EVENTS - 1 : -1]
            ],
            "ended": None
            if ended is None
            else "The pull has ended: all is there."
            if ended["complete"]
            else "The pull has ended, and some data are not available.",
        }

    def _add_up(self, history: History) -> None:
        """Add up what has come with each new note."""
        if history is not self._of:
            self._of, self._totals = history, []
        for at in range(len(self._totals), len(history.times_s)):
            self._totals.append(sum(row[at] for row in history.arrived_bytes.values()))

    def _headline(self) -> str:
        far = self._story.far
        if not far.all_files:
            return "Nothing is listed yet."
        files = f"{far.n_files} of {counted(far.all_files, 'file')}"
        return (
            f"{percent_words(far.n_bytes, far.all_bytes)} is there: {format_bytes(far.n_bytes)} "
            f"of {format_bytes(far.all_bytes)}, {files}."
        )

    def _facts(self, now_s: float) -> list[list[str]]:
        story, history, far = self._story, self._story.history, self._story.far
        facts = [["begun", _clock(story.begun_s)], ["so far", format_duration(now_s)]]
        if history.method:
            facts.append(["method", history.method])
        if history.predicted_s is not None:
            facts.append(["planned end", _clock(story.begun_s + history.predicted_s)])
            if history.between_s is not None:
                low_s, high_s = history.between_s
                between = f"{_clock(story.begun_s + low_s)} to {_clock(story.begun_s + high_s)}"
                facts.append(["in eight of ten cases", between])
        left_s = story.pace.left_s(far.all_bytes - far.n_bytes)
        if story.answer is None and story.pace.rate is not None:
            facts.append(["rate", about_rate(story.pace.rate)])
        if story.answer is None and left_s is not None and far.all_bytes > far.n_bytes:
            least_s, most_s = left_s
            clock = [_clock(time.time() + each) for each in left_s]
            words = clock[0] if clock[0] == clock[1] else " to ".join(clock)
            left = {about_duration(least_s), about_duration(most_s)}
            facts.append(["end at recent rates", f"{words} ({' to '.join(sorted(left, key=len))})"])
        if far.refetched and sum(far.refetched.values()):
            again = ", ".join(f"{format_bytes(n)} ({why})" for why, n in far.refetched.items() if n)
            facts.append(["received twice", again])
        return facts

    def _stuck(self) -> list[list[str]]:
        story, far = self._story, self._story.far
        rows = [[name, f"given up: {why}"] for name, why in story.given_up.items()]
        rows += [
            [name, why] for name, why in sorted(far.troubles.items()) if name not in story.given_up
        ]
        known = {name for name, _ in rows}
        rows += [[name, "not listed to its end yet"] for name in far.awaited if name not in known]
        shown = [[visible(name), visible(why)] for name, why in rows[:MOST_STUCK]]
        if len(rows) > MOST_STUCK:
            shown.append([f"{len(rows) - MOST_STUCK} more", "as the log says"])
        return shown

    # Curves -----------------------------------------------------------------------------------

    def _done(self, at_s: float) -> float:
        """Return what had come by an instant."""
        assert self._of is not None
        times_s, totals = self._of.times_s, self._totals
        at = bisect_left(times_s, at_s)
        if at >= len(times_s):
            return totals[-1] if totals else 0
        if at == 0:
            return totals[0] * (at_s / times_s[0] if times_s[0] > 0 else 1.0)
        part = (at_s - times_s[at - 1]) / (times_s[at] - times_s[at - 1])
        return totals[at - 1] + part * (totals[at] - totals[at - 1])

    def _scale_s(self, now_s: float) -> float:
        """Return up to when is drawn: now, and the planned end with its interval."""
        history = self._story.history
        ends: list[float] = [history.predicted_s or 0.0, *(history.between_s or ())]
        return max(now_s, *ends, 1.0)

    def _chart(self, now_s: float) -> dict[str, Any]:
        history = self._story.history
        end_s = self._scale_s(now_s)
        at_s = [end_s * k / N_POINTS for k in range(N_POINTS + 1)]
        done = [[s, self._done(s)] for s in (*(x for x in at_s if x < now_s), now_s)]
        planned = [[s, n] for s, n in zip(at_s, self._planned_at(end_s), strict=True)]
        most = max(done[-1][1], *(n for _, n in planned), 1.0)
        return {
            "end_s": end_s,
            "most": most,
            "done": [[round(s, 2), round(n)] for s, n in done],
            "planned": [[round(s, 2), round(n)] for s, n in planned] if history.planned else [],
            "predicted_s": history.predicted_s,
            "between_s": history.between_s,
            "ticks_s": [[s, format_duration(s)] for s in _ticks(end_s, 4, STEPS_S)],
            "ticks": [[n, format_bytes(n)] for n in _ticks(most)],
        }

    def _planned_at(self, end_s: float) -> Sequence[float]:
        """Return what was planned to be there at each instant of the curve."""
        planned = tuple(self._story.history.planned)
        if self._planned is None or self._planned[:2] != (planned, end_s):
            rows = [_planned_by(planned, end_s * k / N_POINTS) for k in range(N_POINTS + 1)]
            self._planned = planned, end_s, rows
        return self._planned[2]

    def _course(self, now_s: float) -> dict[str, Any]:
        """Return the curves as a table, by time from the start."""
        history = self._story.history
        rows = []
        for s in dict.fromkeys([*(x for x in _ticks(now_s, N_ROWS, STEPS_S) if x < now_s), now_s]):
            planned = _planned_by(history.planned, s) if history.planned else None
            rows.append(
                [
                    format_duration(s),
                    "not planned" if planned is None else format_bytes(round(planned)),
                    format_bytes(round(self._done(s))),
                ]
            )
        return {
            "caption": "Bytes that were planned to be there, and that had come, in this start",
            "columns": ["time", "#planned", "#done"],
            "rows": rows,
        }

    def _routes(self, now_s: float) -> dict[str, Any]:
        story, history = self._story, self._story.history
        planned: dict[tuple[str, ...], int] = {}
        for each in history.planned:
            planned[each.hosts] = planned.get(each.hosts, 0) + each.n_bytes
        first, last, span_s = _stretch(history.times_s)
        is_still = not history.times_s or now_s - history.times_s[last] > 2 * NOW_S + span_s
        is_over = is_still or story.answer is not None
        found = []
        for hosts in history.arrived_bytes.keys() | planned.keys():
            row = history.arrived_bytes.get(hosts, [0])
            came = row[last] - row[first] if len(row) > 1 else 0
            rate = 0.0 if is_over or span_s <= 0 else came / span_s
            found.append((hosts, rate, row[-1], planned.get(hosts)))
        found.sort(key=lambda each: (-each[1], -each[2], each[0]))
        end = story.destination
        rows = [_route_row(" → ".join((*each[0], end)), now_s, each) for each in found]
        if len(rows) > MOST_ROUTES:
            others = found[MOST_ROUTES:]
            total = (
                (),
                sum(each[1] for each in others),
                sum(each[2] for each in others),
                sum(each[3] or 0 for each in others) or None,
            )
            rows = [*rows[:MOST_ROUTES], _route_row(f"{len(others)} others", now_s, total)]
        return {
            "caption": "Bytes that came in this start, by route",
            "columns": ["route", "#rate now", "#mean rate", "#came", "#planned"],
            "rows": rows,
        }


def _stretch(times_s: Sequence[float]) -> tuple[int, int, float]:
    """Return which notes rates of now are taken between, and the time between them.

    >>> _stretch([]), _stretch([1.0]), _stretch([1.0, 6.0, 11.0, 16.0])
    ((0, 0, 0.0), (0, 0, 0.0), (1, 3, 10.0))
    """
    if len(times_s) < 2:
        return 0, 0, 0.0
    last = len(times_s) - 1
    first = max(0, min(last - 1, bisect_left(times_s, times_s[last] - NOW_S)))
    return first, last, times_s[last] - times_s[first]


def _route_row(name: str, now_s: float, found: tuple[Any, float, int, int | None]) -> list[str]:
    _, rate, n_bytes, planned = found
    return [
        visible(name),
        format_rate(rate),
        format_rate(n_bytes / max(now_s, 1e-9)),
        format_bytes(n_bytes),
        "not planned" if planned is None else format_bytes(planned),
    ]


def _planned_by(planned: Sequence[PlannedRoute], at_s: float) -> float:
    """Return what plans expected to be there at an instant.

    >>> from datacollect.transfer.store.history import PlannedRoute
    >>> [_planned_by([PlannedRoute(("S",), 100, 2.0, 4.0)], s) for s in (1.0, 3.0, 9.0)]
    [0.0, 50.0, 100.0]
    """
    return math.fsum(
        each.n_bytes * min(max((at_s - each.start_s) / (each.finish_s - each.start_s), 0.0), 1.0)
        for each in planned
    )


def _ticks(most: float, n: int = 4, steps: Sequence[float] = ()) -> list[float]:
    """Return round numbers from 0 on, about so many; of `steps` where some fits.

    >>> _ticks(9.0), _ticks(130.0), _ticks(130.0, 4, STEPS_S)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 50.0, 100.0], [0.0, 30.0, 60.0, 90.0, 120.0])
    """
    rough = 0.8 * most / n
    power = 10.0 ** math.floor(math.log10(rough))
    decimal = (each * power for each in (1, 2, 5, 10) if each * power >= rough)
    step = next((each for each in steps if each >= rough), next(decimal))
    return [float(step * k) for k in range(int(most / step + 1e-9) + 1)]


def _clock(at_s: float) -> str:
    """Return the time of day here, with the day where it is not today's."""
    at, today = datetime.fromtimestamp(at_s).astimezone(), datetime.now().astimezone()
    return at.strftime("%H:%M:%S" if at.date() == today.date() else "%a %d %b, %H:%M")
