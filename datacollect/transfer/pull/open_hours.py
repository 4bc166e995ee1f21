"""Hours in which hosts and links carry data, by `open` and by limits that are 0 for hours.

What is closed is left out of a round's plan; a round ends just before something closes, or when
something opens, and all is planned again. So no session lasts into closed hours, and nobody's
patience runs meanwhile.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.clock import Clock, zone_of
from datacollect.files.kinds import shown
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.file import read_csv
from datacollect.problem.hourly_rates import HourlyRate
from datacollect.problem.recurring_hours import starts_of
from datacollect.problem.windows import RECURRING_DAYS, Window, spans_s
from datacollect.transfer.pull.core.core import DRAIN_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import tzinfo

    from datacollect.problem.link_table import LinkTable
    from datacollect.transfer.pull.config.file import Collection

Link: TypeAlias = tuple[str, str]

# So long before something closes no more is asked for, so that what was asked for comes; and all
# has ended by then, though instants are looked at now and then.
AHEAD_S = DRAIN_S + 0.5
DAY_S = 86_400.0


@dataclass
class Times:
    """Times at which something is open, for as long as it takes for all to recur.

    Attributes
    ----------
    said : tuple of Window, or HourlyRate
        Of a rate, it is closed while that is 0.
    zone : tzinfo
    """

    said: tuple[Window, ...] | HourlyRate
    zone: tzinfo
    _from_s: float = 0.0
    _spans: list[tuple[float, float]] = field(default_factory=list)

    def spans(self, unix_s: float) -> list[tuple[float, float]]:
        """Return when it is open, from an instant on, in seconds since 1970."""
        if not self._from_s <= unix_s < self._from_s + DAY_S:
            self._from_s = unix_s
            clock = Clock(datetime.fromtimestamp(unix_s, UTC), self.zone)
            found = self._open_s(clock, RECURRING_DAYS * DAY_S)
            self._spans = [(unix_s + begin, unix_s + end) for begin, end in found]
        return self._spans

    def is_open(self, at_s: float, now_s: float) -> bool:
        """Return whether it is open at an instant, and does not close at once."""
        return any(begin <= at_s and at_s + AHEAD_S < end for begin, end in self.spans(now_s))

    def changes(self, now_s: float) -> list[float]:
        """Return when it opens, or is about to close, from now on."""
        edges = [at for begin, end in self.spans(now_s) for at in (begin, end - AHEAD_S)]
        return [at for at in edges if at > now_s]

    def _open_s(self, clock: Clock, until_s: float) -> list[tuple[float, float]]:
        if not isinstance(self.said, HourlyRate):
            return spans_s(self.said, clock, until_s)
        starts, which = starts_of(self.said.hours, clock, until_s)
        spans: list[tuple[float, float]] = []
        for (begin, end), row in zip(pairwise([*starts, until_s]), which, strict=True):
            if not self.said.bytes_per_s[row]:
                continue
            if spans and spans[-1][1] == begin:
                spans[-1] = spans[-1][0], end
            else:
                spans.append((begin, end))
        return spans


class OpenHours:
    """Open links of a collection by hours; false where nothing ever closes.

    Parameters
    ----------
    collection : Collection
    wall_clock : callable
        Returns seconds since 1970, which may be set.

    Raises
    ------
    ProblemError
        The CSV file is not what it should be.
    """

    def __init__(
        self, collection: Collection, wall_clock: Callable[[], float] | None = None
    ) -> None:
        self.now_s = wall_clock or time.time
        self._zone: tzinfo = UTC if collection.timezone is None else zone_of(collection.timezone)
        self._destination = collection.destination
        network = collection.network
        self._out: defaultdict[str, list[Times]] = defaultdict(list)
        self._into: defaultdict[str, list[Times]] = defaultdict(list)
        self._links: defaultdict[Link, list[Times]] = defaultdict(list)
        for name, each in network["hosts"].items():
            both = [Times(each["open"], self._zone)] if each["open"] else []
            self._out[name] += [*both, *self._pauses(each["uplink_bytes_per_s"])]
            self._into[name] += [*both, *self._pauses(each["downlink_bytes_per_s"])]
        table = _table_of(collection)
        links = [link for link in network["links"] if link["open"]]
        has_hours = any(map(bool, (*self._out.values(), *self._into.values(), links)))
        # As rows a large table takes much room: only where something is closed at times.
        csv_links = _rows(*table) if table and (has_hours or any(table[0].windows)) else []
        if collection.timezone is None:
            _require_zones(csv_links)
        self._file_links = [*network["links"], *csv_links]
        for link in self._file_links:
            if link["open"]:
                self._links[link["from"], link["to"]].append(Times(link["open"], self._zone))
        every = (self._out, self._into, self._links)
        self._all = [times for of in every for each in of.values() for times in each]

    def __bool__(self) -> bool:
        return bool(self._all)

    def is_open(self, link: Link, at_s: float | None = None) -> bool:
        """Return whether a link carries data now, or at an instant, and does not close at once."""
        now_s = self.now_s()
        at_s = now_s if at_s is None else at_s
        return all(times.is_open(at_s, now_s) for times in self._of(link))

    def file_links(self, *, closed_too: bool = False) -> list[dict[str, Any]]:
        """Return the links that the file and its CSV name, those that are open now."""
        return [
            link
            for link in self._file_links
            if closed_too or self.is_open((link["from"], link["to"]))
        ]

    def next_change_s(self) -> float:
        """Return when something opens, or is about to close, in seconds since 1970."""
        now_s = self.now_s()
        return min((at for times in self._all for at in times.changes(now_s)), default=np.inf)

    def open_sources(self, links: Iterable[Link], at_s: float | None = None) -> set[str]:
        """Return the hosts with a way to the destination whose links are all open."""
        return hosts_with_a_way(
            [link for link in links if self.is_open(link, at_s)], self._destination
        )

    def opening_s(self, source: str, links: Iterable[Link]) -> float | None:
        """Return when a source has an open way; None: never, as far as hours recur."""
        now_s, links = self.now_s(), list(links)
        instants = {at for times in self._all for at, _ in times.spans(now_s) if at > now_s}
        opens = (at for at in sorted(instants) if source in self.open_sources(links, at))
        return next(opens, None)

    def last_opening(self) -> tuple[Link, float] | None:
        """Return the link that is the last to open, and when; None where none is closed now."""
        now_s = self.now_s()
        opens = []
        for link in ((each["from"], each["to"]) for each in self._file_links):
            spans = self._open_spans(link, now_s)
            if spans and spans[0][0] > now_s:
                opens.append((spans[0][0], link))
        if not opens:
            return None
        at_s, link = max(opens)
        return link, at_s

    def text(self, unix_s: float) -> str:
        """Write an instant as the collection's clocks show it."""
        return Clock(datetime.fromtimestamp(unix_s, UTC), self._zone).text(0.0)

    def why_never(self, source: str, links: Iterable[Link]) -> str:
        """Return why no data of a source can come, where no way from it is ever open all along."""
        way = _way(source, self._destination, list(links))
        at_s, told = self.now_s(), ""
        for tail, head in pairwise(way):
            spans = self._open_spans((tail, head), at_s)
            if not spans:
                return f"{tail} -> {head} is never open: correct its hours, or those of its ends"
            begin_s, end_s = spans[0]
            if told and begin_s > at_s:
                return (
                    f"{told} and {tail} -> {head} are never open at the same time: {tail} would "
                    f"have to store data from {self.text(at_s)} until {self.text(begin_s)}; give "
                    f"the agent of {tail} a spool and start with --slot, let their hours overlap, "
                    f"or collect at {tail} first"
                )
            told, at_s = f"{tail} -> {head}", max(begin_s, min(at_s, end_s))
        return f"the links {' -> '.join(way)} are never all open at the same time"

    def _open_spans(self, link: Link, from_s: float) -> list[tuple[float, float]]:
        """Return when a link is open, from an instant on."""
        now_s = self.now_s()
        spans = [(from_s, now_s + RECURRING_DAYS * DAY_S)]
        for times in self._of(link):
            spans = [
                (max(a, c), min(b, d))
                for a, b in spans
                for c, d in times.spans(now_s)
                if max(a, c) < min(b, d)
            ]
        return spans

    def _of(self, link: Link) -> list[Times]:
        tail, head = link
        return [*self._out.get(tail, ()), *self._into.get(head, ()), *self._links.get(link, ())]

    def _pauses(self, rate: float | HourlyRate | None) -> list[Times]:
        """Return when a limit lets anything pass, where it does not always."""
        has_pauses = isinstance(rate, HourlyRate) and 0 in rate.bytes_per_s
        return [Times(rate, self._zone)] if has_pauses and isinstance(rate, HourlyRate) else []


def hosts_with_a_way(links: Iterable[Link], destination: str) -> set[str]:
    """Return the hosts from which links lead to the destination.

    >>> sorted(hosts_with_a_way([("S", "R"), ("R", "D"), ("T", "S2")], "D"))
    ['R', 'S']
    """
    into: defaultdict[str, list[str]] = defaultdict(list)
    for tail, head in links:
        into[head].append(tail)
    found: set[str] = set()
    wanted = [destination]
    while wanted:
        for tail in into[wanted.pop()]:
            if tail not in found and tail != destination:
                found.add(tail)
                wanted.append(tail)
    return found


def _way(source: str, destination: str, links: list[Link]) -> list[str]:
    """Return a way of fewest links."""
    ways = [[source]]
    seen = {source}
    for way in ways:
        if way[-1] == destination:
            return way
        for tail, head in links:
            if tail == way[-1] and head not in seen:
                seen.add(head)
                ways.append([*way, head])
    return [source, destination]


def _require_zones(links: Iterable[Mapping[str, Any]]) -> None:
    for link in links:
        if any(window.zone is None for window in link["open"] or ()):
            ends = f"{shown(link['from'])} -> {shown(link['to'])}"
            raise ProblemError(
                f"bandwidth_csv: open of {ends}: hours of the "
                'day need the zone whose clocks show them; add timezone = "Europe/Zurich" at the '
                "top of the collection file"
            )


def _table_of(collection: Collection) -> tuple[LinkTable, list[str]] | None:
    """Return the CSV file with links, and the names that its indices stand for."""
    name = collection.network["bandwidth_csv"]
    if name is None:
        return None
    names = [
        collection.destination,
        *collection.hosts,
        *(collection.sources or {}),
        *collection.network["hosts"],
    ]
    index = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return read_csv(name, collection.folder, index, None, with_windows=True), list(index)


def _rows(table: LinkTable, names: list[str]) -> list[dict[str, Any]]:
    columns: Mapping[str, list[float]] = {
        "bandwidth_bytes_per_s": table.bandwidth_bytes_per_s[0].tolist(),
        "price_per_gb": table.price_per_gb.tolist(),
        **{key: table.rates[key].tolist() for key in RATE_COLUMNS},
    }
    ends = zip(table.link_from.tolist(), table.link_to.tolist(), strict=True)
    rows = [
        {"from": names[tail], "to": names[head], "open": None, "cap": False}
        | {key: None if np.isnan(column[i]) else column[i] for key, column in columns.items()}
        for i, (tail, head) in enumerate(ends)
    ]
    for row, windows in zip(rows, table.windows, strict=False):  # of none, where none are said
        row["open"] = windows or None
    return rows
