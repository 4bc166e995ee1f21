"""Problems at hostile scales, and what they come to by sparse linear programs.

A byte to an exabyte, a bit to a hundred terabits per second, up to five hundred periods, slots. The
programs share no code with the library: a commodity for all data, a pool for each source's own,
pieces of time between changes, and SciPy's HiGHS on sparse matrices. Relays store without limit or
not at all, so that one commodity suffices.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

MOST_BYTES, SLOWEST, FASTEST = 10**18, 1 / 8, 1e14 / 8
MOST_PERIODS = 500

# Programs are solved to this part of all data, or of the end.
EXACT = 1e-5


@dataclass
class Pool:
    """Bytes that lie at a host from an instant on; those of others need its storage."""

    host: str
    n_bytes: int
    release_s: float = 0.0


@dataclass
class Case:
    """A problem as plain data: rates by link and piece of time."""

    tree: dict[str, Any]
    pools: list[Pool] = field(default_factory=list)

    @property
    def total(self) -> float:
        """All bytes that are to be moved."""
        return float(sum(pool.n_bytes for pool in self.pools))

    def changes_s(self) -> list[float]:
        """Instants at which something changes, the first 0."""
        return sorted({0.0, *self.tree.get("periods_s", []), *(p.release_s for p in self.pools)})

    def rate(self, link: dict[str, Any], at_s: float) -> float:
        """Bytes per second of a link in the piece of time that begins then."""
        return self.then(link["bandwidth_bytes_per_s"], at_s)

    def then(self, rates: float | list[float], at_s: float) -> float:
        """What is one number, or one per period, in the piece of time that begins then."""
        if not isinstance(rates, list):
            return float(rates)
        starts = self.tree["periods_s"]
        return float(rates[int(np.searchsorted(starts, at_s, side="right")) - 1])


def random_case(seed: int, *, priced: bool = False) -> Case:
    """Return a problem whose data need about as long as its periods last, or much longer."""
    draws = random.Random(seed)
    names = [f"h{i}" for i in range(draws.randint(1, 4))]
    typical = 10 ** draws.uniform(math.log10(SLOWEST), math.log10(FASTEST))
    size = max(1, int(10 ** draws.uniform(0, math.log10(MOST_BYTES))))
    n_periods = draws.choices([1, 2, 3, 7, 40, MOST_PERIODS], [8, 4, 4, 4, 2, 1])[0]
    end_s = size / typical * 10 ** draws.uniform(-1, 1)
    starts = [0.0]
    while len(starts) < n_periods:
        starts.append(starts[-1] + end_s / n_periods * draws.choice([0.1, 1, 1, 2]))
    starts = [start for start in starts if start <= 1e14]
    starts = sorted(set(starts))
    hosts: dict[str, dict[str, Any]] = {"D": {}}
    for name in names:
        # Less than the programs are exact to would be nothing to them, and have to arrive.
        few = max(1, size // 5000)
        n_bytes = draws.choice([0, few, max(1, size // 1000), draws.randint(few, size), size])
        hosts[name] = {"backlog_bytes": n_bytes}
        if draws.random() < 0.3:
            hosts[name]["storage_bytes"] = 0
        if draws.random() < 0.2:
            hosts[name]["uplink_bytes_per_s"] = _near(draws, typical)
        if draws.random() < 0.2 and end_s < 1e14:
            hosts[name]["release_s"] = draws.choice([end_s / 3, starts[-1]])
    if draws.random() < 0.2:
        hosts["D"]["downlink_bytes_per_s"] = _near(draws, typical)
    links = []
    for tail in names:
        for head in [*names, "D"]:
            if tail != head and (head == "D" or draws.random() < 0.6):
                rates = [0.0 if draws.random() < 0.15 else _near(draws, typical) for _ in starts]
                link = {"from": tail, "to": head, "bandwidth_bytes_per_s": rates}
                if len(starts) == 1:
                    link["bandwidth_bytes_per_s"] = rates[0] or typical
                if priced:
                    link["price_per_gb"] = draws.choice([0, 0, 1, 2.5, 1e3])
                links.append(link)
    tree = {"destination": "D", "hosts": hosts, "links": links}
    if len(starts) > 1:
        tree["periods_s"] = starts
        _vary_limits(random.Random(f"limits {seed}"), hosts, len(starts))
    pools = [
        Pool(name, host["backlog_bytes"], host.get("release_s", 0.0))
        for name, host in hosts.items()
        if host.get("backlog_bytes", 0)
    ]
    return Case(tree, pools)


def _vary_limits(draws: random.Random, hosts: dict[str, dict[str, Any]], n_periods: int) -> None:
    """Now and then a limit has a number per period, in the last one some capacity."""
    for host in hosts.values():
        for key in ("uplink_bytes_per_s", "downlink_bytes_per_s"):
            if key in host and draws.random() < 0.6:
                factors = [draws.choice([0.0, 0.5, 1.0, 1.0, 2.0]) for _ in range(n_periods - 1)]
                host[key] = [min(host[key] * part, FASTEST) for part in [*factors, 1.0]]


def _near(draws: random.Random, typical: float) -> float:
    """A rate that is like the others, mostly."""
    rate = typical * draws.choice([1e-3, 0.3, 0.5, 1, 1, 2, 10])
    return min(max(rate, SLOWEST), FASTEST)


# Programs ---------------------------------------------------------------------------------------


TOLERANCES = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")


class _Program:
    """Rows and columns of a sparse linear program, in parts of all data."""

    def __init__(self) -> None:
        self.n_columns = 0
        self.cost: list[tuple[int, float]] = []
        self.rows: dict[str, list[tuple[list[tuple[int, float]], float]]] = {"eq": [], "ub": []}

    def column(self) -> int:
        self.n_columns += 1
        return self.n_columns - 1

    def add(self, kind: str, row: list[tuple[int, float]], side: float) -> None:
        if row or kind == "eq":
            self.rows[kind].append((row, side))

    def least(self) -> tuple[float, np.ndarray] | None:
        cost = np.zeros(self.n_columns)
        for column, value in self.cost:
            cost[column] += value
        unit = np.abs(cost).max(initial=0.0) or 1.0
        parts: dict[str, Any] = {}
        for kind, rows in self.rows.items():
            if rows:
                entries = [(i, c, v) for i, (row, _) in enumerate(rows) for c, v in row]
                i, c, v = zip(*entries, strict=True) if entries else ((), (), ())
                shape = (len(rows), self.n_columns)
                parts[f"A_{kind}"] = coo_array((v, (i, c)), shape=shape).tocsr()
                parts[f"b_{kind}"] = np.array([side for _, side in rows])
        # As tight as it can be: its own 1e-7 are 13 kB of 130 GB, which take their time where the
        # last bytes have to pass a slow host.
        tight = dict.fromkeys(TOLERANCES, 1e-10)
        found = linprog(cost / unit, bounds=(0, None), method="highs", options=tight, **parts)
        if found.status not in (0, 2):
            found = linprog(cost / unit, bounds=(0, None), method="highs", **parts)
        return (float(found.fun) * unit, found.x) if found.status == 0 else None


def _program(
    case: Case, starts: list[float], lengths: list[float], last: int | None
) -> tuple[_Program, int, list[tuple[int, float]]]:
    """Return the program of all data, a column for what is missing, and each crossing's price.

    With `last`, that column is the length of the last piece, as a part of its own.
    """
    total, hosts = case.total, list(case.tree["hosts"])
    program = _Program()
    missing, prices = program.column(), []
    kept: dict[str, int] = {}
    own: dict[int, int] = {}
    arrived: list[tuple[int, float]] = []
    for piece, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        ends: dict[str, list[tuple[int, float]]] = {name: [] for name in hosts}
        into: dict[str, list[int]] = {name: [] for name in hosts}
        out: dict[str, list[int]] = {name: [] for name in hosts}

        def limit(columns: list[int], rate: float) -> None:
            row = [(column, 1.0) for column in columns]
            capacity = rate * length / total  # noqa: B023 - called in this round only
            if last == piece:  # noqa: B023 - as above
                program.add("ub", [*row, (missing, -capacity)], 0.0)
            else:
                program.add("ub", row, min(capacity, 1e6))

        for link in case.tree["links"]:
            rate = case.rate(link, start)
            if rate > 0:
                flow = program.column()
                prices.append((flow, link.get("price_per_gb", 0.0)))
                ends[link["from"]].append((flow, 1.0))
                ends[link["to"]].append((flow, -1.0))
                out[link["from"]].append(flow)
                into[link["to"]].append(flow)
                limit([flow], rate)
        for name, host in case.tree["hosts"].items():
            if "uplink_bytes_per_s" in host and out[name]:
                limit(out[name], case.then(host["uplink_bytes_per_s"], start))
            if "downlink_bytes_per_s" in host and into[name]:
                limit(into[name], case.then(host["downlink_bytes_per_s"], start))
        for number, pool in enumerate(case.pools):
            if pool.release_s > start:
                continue
            left = program.column()  # of the pool, after this piece
            leaves = program.column()
            row = [(left, 1.0), (leaves, 1.0)]
            if number in own:
                program.add("eq", [*row, (own[number], -1.0)], 0.0)
            else:
                program.add("eq", row, pool.n_bytes / total)
            own[number] = left
            ends[pool.host].append((leaves, -1.0))
        for name in hosts:
            if name == "D":
                arrived += [(column, -value) for column, value in ends[name]]
                continue
            row = ends[name]
            if name in kept:
                row = [*row, (kept.pop(name), -1.0)]
            if case.tree["hosts"][name].get("storage_bytes") != 0 and piece + 1 < len(starts):
                kept[name] = program.column()
                row = [*row, (kept[name], 1.0)]
            program.add("eq", row, 0.0)
    if last is None:
        arrived.append((missing, 1.0))
    program.add("eq", arrived, 1.0)
    return program, missing, prices


def earliest_s(case: Case) -> float | None:
    """The earliest end of all; None if something never arrives."""
    if not case.total:
        return 0.0
    changes = case.changes_s()
    first = max(i for i, at_s in enumerate(changes) if any(p.release_s == at_s for p in case.pools)
                or i == 0)  # fmt: skip
    ends = [*changes[1:], np.inf]

    def arrives_by(last: int) -> bool:
        starts = changes[: last + 1]
        lengths = [b - a for a, b in pairwise([*starts, ends[last]])]
        program, missing, _ = _program(case, starts, lengths, None)
        program.cost = [(missing, 1.0)]
        found = program.least()
        return found is not None and found[0] <= 1e-9

    low, high = first, len(changes) - 1
    while low < high:  # the first piece in which the last byte may arrive
        middle = (low + high) // 2
        low, high = (low, middle) if arrives_by(middle) else (middle + 1, high)
    return _end_in(case, changes, low)


def _end_in(case: Case, changes: list[float], last: int) -> float | None:
    """The least length of the last piece, counted in what all data need at the links' rates."""
    starts = changes[: last + 1]
    rates = [case.rate(link, starts[-1]) for link in case.tree["links"]]
    unit_s = case.total / (max(rates, default=0.0) or 1.0)
    lengths = [*(b - a for a, b in pairwise(starts)), unit_s]
    program, length, _ = _program(case, starts, lengths, last)
    program.cost = [(length, 1.0)]
    found = program.least()
    return None if found is None else starts[-1] + found[0] * unit_s


def least_money(case: Case, end_s: float) -> float | None:
    """The least price by which all arrives until an instant."""
    starts = [at_s for at_s in case.changes_s() if at_s < end_s]
    lengths = [b - a for a, b in pairwise([*starts, end_s])]
    program, missing, prices = _program(case, starts, lengths, None)
    program.cost = prices
    program.add("ub", [(missing, 1.0)], 0.0)
    found = program.least()
    return None if found is None else found[0] * case.total / 1e9
