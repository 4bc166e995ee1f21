"""Rates over time from a pull's log: what was planned, what arrived, what went wrong."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.transfer.protocol.file_names import STATE_FOLDER
from datacollect.transfer.store.folder.log import LOG_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

    from datacollect.numbers.arrays import FloatArray
    from datacollect.schedule.schedule import Schedule

# How often arrivals are noted; less often the longer a pull takes.
NOTED_S, NOTED_PART = 0.5, 1 / 500
MOVED = "bytes by route"
# What is drawn where it happened.
TROUBLES = {
    "session ended": "connection lost",
    "session stuck": "connection stuck",
    "source given up": "source given up",
    "files retired": "files changed",
    "file set aside": "file refused",
}


class RouteTotals:
    """Adds up what arrives on each route, and says when that is to be noted.

    Examples
    --------
    >>> moved = RouteTotals()
    >>> moved.opened(1, ("S1", "R"))
    >>> moved.arrived({1: 700})
    >>> moved.line()
    [[['S1', 'R'], 700]]
    """

    def __init__(self) -> None:
        self._routes: dict[int, tuple[str, ...]] = {}
        self._seen: Counter[int] = Counter()
        self._bytes: Counter[tuple[str, ...]] = Counter()
        self._next_s = 0.0

    def opened(self, session: int, hosts: tuple[str, ...]) -> None:
        """Note which hosts a session passes, the destination aside."""
        self._routes[session] = hosts

    def arrived(self, arrived_bytes: Mapping[int, int]) -> None:
        """Note all that sessions have received since they were opened."""
        for session, n_bytes in arrived_bytes.items():
            self._bytes[self._routes[session]] += n_bytes - self._seen[session]
            self._seen[session] = n_bytes

    def is_due(self, now_s: float) -> bool:
        """Return whether to note it now."""
        if now_s < self._next_s:
            return False
        self._next_s = now_s + max(NOTED_S, now_s * NOTED_PART)
        return True

    def line(self) -> list[list[Any]]:
        """Return what a log's line says: hosts and bytes of each route, since the round's start."""
        return [[list(hosts), n_bytes] for hosts, n_bytes in sorted(self._bytes.items())]


def planned_routes(schedule: Schedule) -> list[list[Any]]:
    """Return what a log's line says of a plan: hosts, bytes, start and end of each route."""
    found: dict[tuple[str, ...], list[float]] = {}
    columns = schedule.columns
    for number, hop, n_bytes, start_s, finish_s in zip(
        columns.route.tolist(),
        columns.hop.tolist(),
        columns.n_bytes.tolist(),
        columns.start_s.tolist(),
        columns.finish_s.tolist(),
        strict=True,
    ):
        route = schedule.routes[number].hosts
        if hop != len(route) - 2:
            continue
        total = found.setdefault(route, [0, start_s, finish_s])
        total[0] += n_bytes
        total[1:] = min(total[1], start_s), max(total[2], finish_s)
    return [
        [list(route[:-1]), int(n_bytes), float(start_s), float(finish_s)]
        for route, (n_bytes, start_s, finish_s) in sorted(found.items())
    ]


@dataclass(frozen=True)
class PlannedRoute:
    """Expectation of a plan for a route: bytes between two instants."""

    hosts: tuple[str, ...]
    n_bytes: int
    start_s: float
    finish_s: float

    def until(self, time_s: float) -> PlannedRoute:
        """Return what was expected until an instant, later than its start."""
        if time_s >= self.finish_s:
            return self
        part = (time_s - self.start_s) / (self.finish_s - self.start_s)
        return replace(self, n_bytes=round(self.n_bytes * part), finish_s=time_s)


@dataclass
class History:
    """One start of a pull.

    Attributes
    ----------
    method : str
    times_s : list of float
        When was noted what had come, seconds from the start.
    arrived_bytes : dict of tuple of str to list of int
        What had come by each route by then, in all; a route is its hosts but the destination.
    planned : list of PlannedRoute
        By the plans that promised, the first on known bandwidths and those after more sources
        were ready, each until the next; empty where there was none.
    promised_at_s : float
        When the last of these plans was made.
    predicted_s : float or None
        When the end was expected.
    between_s : (float, float) or None
        Between which instants in eight of ten cases, where the plan could say so.
    ended_s : float or None
        When it ended; None: it was killed, or is at work.
    troubles : list of (float, str)
    refetched : dict of str to int
        Bytes that were received twice, by the reason, such as "sent twice"; known at the end.
    """

    method: str = ""
    times_s: list[float] = field(default_factory=list)
    arrived_bytes: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    planned: list[PlannedRoute] = field(default_factory=list)
    promised_at_s: float = 0.0
    predicted_s: float | None = None
    between_s: tuple[float, float] | None = None
    ended_s: float | None = None
    troubles: list[tuple[float, str]] = field(default_factory=list)
    refetched: dict[str, int] = field(default_factory=dict)

    def rates(self) -> dict[tuple[str, ...], FloatArray]:
        """Return bytes per second of each route, shape (n_times - 1,), between two notes."""
        spans = np.diff(np.array(self.times_s))
        return {
            hosts: np.diff(np.array(n_bytes, dtype=float)) / spans
            for hosts, n_bytes in self.arrived_bytes.items()
        }

    def planned_rate(self, time_s: float) -> float:
        """Return the bytes per second that the plan expected at an instant, on all routes."""
        return sum(
            each.n_bytes / (each.finish_s - each.start_s)
            for each in self.planned
            if each.start_s <= time_s < each.finish_s
        )

    def since_promise(self) -> History:
        """Return what was planned and what has come since the last plan that promised."""
        since_s = self.promised_at_s
        first = max(0, sum(time_s <= since_s for time_s in self.times_s) - 1)
        return replace(
            self,
            times_s=self.times_s[first:],
            arrived_bytes={hosts: row[first:] for hosts, row in self.arrived_bytes.items()},
            planned=[each for each in self.planned if each.start_s >= since_s],
            troubles=[each for each in self.troubles if each[0] >= since_s],
        )

    def note(self, time_s: float, routes: list[Any], before: Mapping[tuple[str, ...], int]) -> None:
        """Take a line in; `before`: what earlier rounds of this start had brought."""
        if self.times_s and time_s <= self.times_s[-1]:
            return
        now = {tuple(hosts): int(n) for hosts, n in routes}
        self.times_s.append(time_s)
        for hosts in self.arrived_bytes.keys() | now.keys() | before.keys():
            row = self.arrived_bytes.setdefault(hosts, [0] * (len(self.times_s) - 1))
            row.append(before.get(hosts, 0) + now.get(hosts, 0))


def history_of(folder: str | PathLike[str]) -> History:
    """Return the last start of the pull into a folder by which anything came.

    Raises
    ------
    ProblemError
        Nothing has ever come there.
    """
    path = Path(folder) / STATE_FOLDER / LOG_FILE
    found = None
    for history in _starts(path):
        if len(history.times_s) > 1:
            found = history
    if found is None:
        raise ProblemError(
            f"{folder}: nothing has arrived in this folder that could be drawn; name the folder "
            "of `datacollect pull --into`"
        )
    return found


def start_of(path: Path, from_byte: int) -> History:
    """Return the start whose lines begin at a byte of a log, as far as they are whole."""
    *_, last = _starts(path, from_byte)
    return last


def _starts(path: Path, from_byte: int = 0) -> Iterator[History]:
    """Yield what each start has logged, as far as its lines are whole."""
    reader = HistoryReader()
    for line in _lines(path, from_byte):
        before = reader.history
        reader.take(line)
        if reader.history is not before:
            yield before
    yield reader.history


class HistoryReader:
    """Takes a log line by line.

    Attributes
    ----------
    history : History
        Of the last start, as far as it has got.

    Examples
    --------
    >>> reader = HistoryReader()
    >>> reader.take({"what": "pull begins", "s": 0.0, "method": "direct"})
    >>> reader.take({"what": MOVED, "s": 2.0, "routes": [[["S1"], 700]]})
    >>> reader.history.arrived_bytes
    {('S1',): [700]}
    """

    def __init__(self) -> None:
        self.history = History()
        self._before: Counter[tuple[str, ...]] = Counter()
        self._last: dict[tuple[str, ...], int] = {}

    def take(self, line: Mapping[str, Any]) -> None:
        """Take the next line."""
        what, time_s, history = line.get("what"), float(line.get("s", 0.0)), self.history
        if what == "pull begins":
            self.history = History(str(line.get("method", "")))
            self._before, self._last = Counter(), {}
        elif what == "planned":
            self._before.update(self._last)  # each round counts from zero
            self._last = {}
            _take_plan(history, line, time_s)
        elif what == MOVED:
            history.note(time_s, line["routes"], self._before)
            self._last = {tuple(hosts): int(n) for hosts, n in line["routes"]}
        elif what == "pull ends":
            _take_end(history, line, time_s)
        elif what in TROUBLES and (what != "session ended" or line.get("why")):
            history.troubles.append((time_s, TROUBLES[what]))


def _take_end(history: History, line: Mapping[str, Any], time_s: float) -> None:
    history.ended_s = time_s
    refetched = line.get("refetched", {}).items()
    history.refetched = {str(why): int(n) for why, n in refetched if n}
    if history.predicted_s is None and line.get("predicted_makespan_s") is not None:
        # Told from when the pull began to work, and it worked for makespan_s.
        begun_s = time_s - float(line["makespan_s"])
        history.predicted_s = begun_s + float(line["predicted_makespan_s"])


def _take_plan(history: History, line: Mapping[str, Any], time_s: float) -> None:
    if line.get("makespan_s") is None or (history.planned and not line.get("promises")):
        return
    history.predicted_s = time_s + float(line["makespan_s"])
    between_s = line.get("between_s")
    history.between_s = between_s and (time_s + between_s[0], time_s + between_s[1])
    history.promised_at_s = time_s
    history.planned = [each.until(time_s) for each in history.planned if each.start_s < time_s] + [
        PlannedRoute(tuple(hosts), int(n_bytes), time_s + start_s, time_s + finish_s)
        for hosts, n_bytes, start_s, finish_s in line.get("expected", [])
        if finish_s > start_s
    ]


def _lines(path: Path, from_byte: int) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            file.seek(from_byte)
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except ValueError:  # half a line: it was killed
            continue
        if isinstance(found, dict):
            yield found
