"""Time windows without the library: random problems, when links are open, and linear programs.

A window's instants are searched for on the clock, a quarter of an hour at a time: the first at
which it shows that hour of that day, or a later one. That is the instant at which clocks jump
over an hour, and the first time at which they show one twice. Programs have one commodity for
each source's own data and one for all that lies elsewhere; SciPy's HiGHS solves.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

DAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
QUARTER = timedelta(minutes=15)
HOUR_S = 3600.0
# Longer than plans of random problems take, mostly.
HORIZON_DAYS = 40

ZONES = (
    "UTC",
    "Europe/Zurich",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "America/Santiago",  # at midnight
)
# Clocks change there within days.
STARTS = ("2026-03-05", "2026-03-26", "2026-04-02", "2026-09-03", "2026-10-01", "2026-10-23")
QUIET = ("2026-01-12", "2026-06-01", "2026-12-28")


@dataclass(frozen=True)
class Hours:
    """A window: days on which it opens, hours and minutes as numbers of quarters, a zone."""

    days: tuple[int, ...]
    opens: int
    closes: int
    zone: str | None

    @property
    def text(self) -> str:
        """Write it as files do."""
        days = "" if len(self.days) == 7 else " ".join(DAYS[day] for day in self.days) + " "
        zone = f" {self.zone}" if self.zone else ""
        return f"{days}{_shown(self.opens)}-{_shown(self.closes)}{zone}"


def _shown(quarter: int) -> str:
    return f"{quarter // 4:02}:{quarter % 4 * 15:02}"


@dataclass
class Case:
    """A problem: a tree without windows, and the windows of hosts and of links by their ends."""

    tree: dict[str, Any]
    windows: dict[Any, tuple[Hours, ...]]

    def file(self) -> dict[str, Any]:
        """Return the tree of a problem file."""
        tree = copy.deepcopy(self.tree)
        for owner, hours in self.windows.items():
            part = tree["hosts"][owner] if isinstance(owner, str) else self._link(tree, owner)
            part["open"] = [each.text for each in hours]
        return tree

    @staticmethod
    def _link(tree: dict[str, Any], ends: tuple[str, str]) -> dict[str, Any]:
        return next(link for link in tree["links"] if (link["from"], link["to"]) == ends)

    @property
    def start(self) -> datetime:
        """The instant of 0 s."""
        local = datetime.fromisoformat(self.tree["start"])
        return local.replace(tzinfo=ZoneInfo(self.tree["timezone"])).astimezone(UTC)

    def groups(self) -> list[list[Any]]:
        """Return owners with equal windows together, hosts before links, in the file's order."""
        ends = [(link["from"], link["to"]) for link in self.tree["links"]]
        found: dict[tuple[Hours, ...], list[Any]] = {}
        for owner in (*self.tree["hosts"], *ends):
            if owner in self.windows:
                found.setdefault(self.windows[owner], []).append(owner)
        return list(found.values())


@lru_cache(maxsize=200_000)
def shows(day: date, quarter: int, zone: str) -> datetime:
    """Return the first instant at which a clock shows an hour of a day, or what is later."""
    wanted = datetime.combine(day, time()) + quarter * QUARTER
    where = ZoneInfo(zone)
    at = wanted.replace(tzinfo=UTC) - timedelta(hours=15)
    while at.astimezone(where).replace(tzinfo=None) < wanted:
        at += QUARTER
    return at


def spans(case: Case, hours: Hours, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield from when to when a window is open."""
    zone = hours.zone or case.tree["timezone"]
    day = case.start.date() - timedelta(days=3)
    while day <= until.date() + timedelta(days=2):
        if day.weekday() in hours.days:
            closing = hours.closes if hours.closes > hours.opens else hours.closes + 96
            yield shows(day, hours.opens, zone), shows(day, closing, zone)
        day += timedelta(days=1)


def open_by_link(case: Case, days: int) -> tuple[np.ndarray, np.ndarray]:
    """Return starts of stretches in seconds, and which links are open in each; last: the end."""
    start, until = case.start, case.start + timedelta(days=days)

    def since(at: datetime) -> float:
        return min(max((at - start).total_seconds(), 0.0), days * 24 * HOUR_S)

    known = {
        owner: [
            (since(a), since(b)) for each in hours for a, b in spans(case, each, until) if a < b
        ]
        for owner, hours in case.windows.items()
    }
    edges = {at for each in known.values() for span in each for at in span}
    starts = np.array(sorted({0.0, days * 24 * HOUR_S, *edges}))
    marks = {
        owner: np.array([any(a <= at < b for a, b in each) for at in starts[:-1]])
        for owner, each in known.items()
    }
    rows = []
    for link in case.tree["links"]:
        row = np.ones(len(starts) - 1, dtype=bool)
        for owner in (link["from"], link["to"], (link["from"], link["to"])):
            if owner in marks:
                row &= marks[owner]
        rows.append(row)
    return starts, np.array(rows).T


def listed(case: Case, days: int) -> dict[str, Any]:
    """Return the tree of a problem of periods: nothing is open after these days."""
    starts, is_open = open_by_link(case, days)
    tree = copy.deepcopy(case.tree)
    tree["periods_s"] = starts.tolist()
    for i, link in enumerate(tree["links"]):
        rate = link["bandwidth_bytes_per_s"]
        link["bandwidth_bytes_per_s"] = [*(rate * is_open[:, i]).tolist(), 0.0]
    return tree


# Programs -------------------------------------------------------------------------------------


class _Program:
    """A sparse linear program, written row by row."""

    def __init__(self) -> None:
        self.n = 0
        self.cost: dict[int, float] = {}
        self.most: dict[int, float] = {}
        self.rows: dict[str, list[tuple[dict[int, float], float]]] = {"eq": [], "ub": []}

    def column(self, most: float = np.inf, cost: float = 0.0) -> int:
        self.n += 1
        self.most[self.n - 1] = most
        if cost:
            self.cost[self.n - 1] = cost
        return self.n - 1

    def least(self) -> tuple[float, np.ndarray] | None:
        parts: dict[str, Any] = {}
        for name, rows in self.rows.items():
            if rows:
                at = [(i, j, v) for i, (row, _) in enumerate(rows) for j, v in row.items()]
                i, j, values = (np.array(column) for column in zip(*at, strict=True))
                parts[f"A_{name}"] = coo_array((values, (i, j)), shape=(len(rows), self.n)).tocsr()
                parts[f"b_{name}"] = np.array([side for _, side in rows])
        cost = np.zeros(self.n)
        cost[list(self.cost)] = list(self.cost.values())
        bounds = [(0, None if np.isinf(self.most[k]) else self.most[k]) for k in range(self.n)]
        found = linprog(cost, bounds=bounds, method="highs", **parts)
        return (float(found.fun), found.x) if found.status == 0 else None


def _program(
    case: Case, starts: np.ndarray, is_open: np.ndarray, n_pieces: int, goal: str, end_s: float
) -> float | None:
    """Solve for the first pieces: "length" of the last, or "money" until an instant."""
    hosts, links = case.tree["hosts"], case.tree["links"]
    destination = case.tree["destination"]
    total = float(sum(host.get("backlog_bytes", 0) for host in hosts.values()))
    program = _Program()
    longest_s = min(starts[n_pieces], end_s) - starts[n_pieces - 1]
    length = program.column(1.0, 1.0 if goal == "length" else 0.0)  # a part of the last piece
    kept: dict[str, int | None] = dict.fromkeys(hosts)
    own: dict[str, list[int]] = {name: [] for name in hosts}
    for piece in range(n_pieces):
        is_last = piece == n_pieces - 1
        lasts_s = longest_s if is_last else starts[piece + 1] - starts[piece]
        balance: dict[str, dict[int, float]] = {name: {} for name in hosts}
        for i, link in enumerate(links):
            if not is_open[piece, i] or link["from"] == destination:
                continue
            price = link.get("price_per_gb", 0.0) if goal == "money" else 0.0
            flow = program.column(cost=price)
            most = link["bandwidth_bytes_per_s"] * lasts_s / total
            room = ({flow: 1.0, length: -most}, 0.0) if is_last else ({flow: 1.0}, most)
            program.rows["ub"].append(room)
            balance[link["from"]][flow] = -1.0
            balance[link["to"]][flow] = 1.0
        for name, host in hosts.items():
            if name == destination:
                continue
            row = balance[name]
            if host.get("backlog_bytes"):
                leaves = program.column()
                row[leaves] = 1.0
                own[name].append(leaves)
            if kept[name] is not None:
                row[kept[name]] = 1.0
            kept[name] = None
            if not is_last and host.get("storage_bytes", 1) > 0:
                kept[name] = program.column(host.get("storage_bytes", np.inf) / total)
                row[kept[name]] = -1.0
            if row:
                program.rows["eq"].append((row, 0.0))
    for name, columns in own.items():
        if columns:
            share = hosts[name]["backlog_bytes"] / total
            program.rows["eq"].append((dict.fromkeys(columns, 1.0), share))
    found = program.least()
    if found is None:
        return None
    return found[0] * longest_s if goal == "length" else found[0] * total / 1e9


def earliest_s(case: Case, near_s: float | None = None, days: int = HORIZON_DAYS) -> float | None:
    """Return the earliest end of a fluid; None where it is not within some days.

    With `near_s` the stretch before that instant is tried first, and the one before it: programs
    decide, but fewer of them.
    """
    starts, is_open = open_by_link(case, days)
    low, high = 1, len(starts) - 1
    if near_s is not None and 0 < near_s < starts[-1]:
        guess = int(np.searchsorted(starts, near_s * (1 - 1e-9)))
        last_s = _program(case, starts, is_open, guess, "length", np.inf)
        if last_s is not None:
            before = guess > 1 and _program(case, starts, is_open, guess - 1, "length", np.inf)
            if guess == 1 or before is None:
                return float(starts[guess - 1] + last_s)
            high = guess - 1
        else:
            low = guess + 1
    if _program(case, starts, is_open, high, "length", np.inf) is None:
        return None
    while low < high:
        middle = (low + high) // 2
        if _program(case, starts, is_open, middle, "length", np.inf) is None:
            low = middle + 1
        else:
            high = middle
    last_s = _program(case, starts, is_open, high, "length", np.inf)
    assert last_s is not None
    return float(starts[high - 1] + last_s)


def least_money(case: Case, deadline_s: float, days: int = HORIZON_DAYS) -> float | None:
    """Return the least price of what has all arrived by a deadline."""
    starts, is_open = open_by_link(case, days)
    n_pieces = int(np.searchsorted(starts[:-1], deadline_s))
    return _program(case, starts, is_open, n_pieces, "money", deadline_s)


def slots_lead(case: Case, slot_s: float, days: int) -> set[str]:
    """Return the hosts from which links lead that are open for a whole slot some day."""
    starts, is_open = open_by_link(case, days)
    usable = []
    for i, link in enumerate(case.tree["links"]):
        for number in range(int(days * 24 * HOUR_S // slot_s)):
            first = np.searchsorted(starts, number * slot_s, side="right") - 1
            last = np.searchsorted(starts, (number + 1) * slot_s, side="left")
            if is_open[first:last, i].all():
                usable.append((link["from"], link["to"]))
                break
    stores = {n for n, h in case.tree["hosts"].items() if h.get("storage_bytes", 1) > 0}
    reached = {case.tree["destination"]}
    leaving: set[str] = set()
    while True:
        more = {a for a, b in usable if b in reached}
        if more <= leaving:
            return leaving
        leaving |= more
        reached |= more & stores


# Random problems ------------------------------------------------------------------------------


def random_case(seed: int) -> Case:
    """Return a problem of two sources, a relay and a destination, some of them with windows."""
    draws = random.Random(seed)
    zone = draws.choice(ZONES)
    day = draws.choice(STARTS if draws.random() < 0.6 else QUIET)
    hosts: dict[str, dict[str, Any]] = {
        "A": {"backlog_bytes": draws.randint(1, 400) * 10**8},
        "B": {"backlog_bytes": draws.choice([0, draws.randint(1, 400) * 10**8])},
        "K": {},
        "D": {},
    }
    for name in ("A", "B", "K"):
        if draws.random() < 0.4:
            hosts[name]["storage_bytes"] = draws.choice([0, draws.randint(1, 200) * 10**8])
    pairs = [("A", "D"), ("B", "D"), ("A", "K"), ("B", "K"), ("K", "D"), ("A", "B"), ("B", "A")]
    kept = [pair for pair in pairs if draws.random() < 0.7] or [("A", "D")]
    has_prices = draws.random() < 0.5
    links: list[dict[str, Any]] = []
    for tail, head in kept:
        link = {"from": tail, "to": head, "bandwidth_bytes_per_s": draws.randint(1, 9) * 250_000.0}
        if has_prices:
            link["price_per_gb"] = draws.randint(0, 5) * 0.01
        links.append(link)
    start = f"{day}T{draws.choice((0, 3, 6, 12, 12, 18, 21)):02}:{draws.choice((0, 0, 30)):02}:00"
    tree = {"destination": "D", "timezone": zone, "start": start, "hosts": hosts, "links": links}
    windows: dict[Any, tuple[Hours, ...]] = {}
    pool = [_random_windows(draws) for _ in range(3)]
    for owner in (*hosts, *kept):
        if draws.random() < 0.35:
            windows[owner] = draws.choice(pool)
    return Case(tree, windows or {kept[0]: pool[0]})


def _random_windows(draws: random.Random) -> tuple[Hours, ...]:
    return tuple(_random_hours(draws) for _ in range(draws.choice((1, 1, 2))))


def _random_hours(draws: random.Random) -> Hours:
    days = tuple(range(7))
    if draws.random() < 0.4:
        days = tuple(sorted(draws.sample(days, draws.randint(1, 5))))
    opens, lasts = 2 * draws.randrange(48), draws.choice((2, 4, 8, 20, 40, 60, 90, 94))
    closes = (opens + lasts) % 96 or 96
    return Hours(days, opens, closes, draws.choice(ZONES) if draws.random() < 0.25 else None)


def longer(hours: Iterable[Hours], end: str) -> tuple[Hours, ...]:
    """Return windows that close an hour later, or open an hour earlier: an hour beside each."""
    found: list[Hours] = []
    for each in hours:
        if end == "closes":
            first, days_on = each.closes, int(each.closes <= each.opens)
        else:
            first, days_on = each.opens - 4, 0
        days_on += first // 96
        first %= 96
        days = tuple(sorted((day + days_on) % 7 for day in each.days))
        found += [each, Hours(days, first, (first + 4) % 96 or 96, each.zone)]
    return tuple(found)
