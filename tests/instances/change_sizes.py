"""Sizes of a mutated schedule's changes, and their kinds."""

from __future__ import annotations

import math
import random
from typing import Any

Tree = dict[str, Any]


def ulps(at_s: float, n: int) -> float:
    for _ in range(abs(n)):
        at_s = math.nextafter(at_s, math.inf if n > 0 else -math.inf)
    return at_s


def shifted(rng: random.Random, at_s: float, scale_s: float) -> float:
    """An instant a little or a lot later or earlier; `scale_s` is what counts as long here."""
    sign = rng.choice([-1, 1])
    if rng.random() < 0.3:
        return ulps(at_s, sign * rng.randint(1, 8))
    by_s = rng.choice([1e-12, 1e-9, 1e-7, 1e-6, 1e-3, 0.1, 1.0])
    share = rng.choice([1e-9, 1e-7, 0.9e-6, 1.1e-6, 1e-5, 1e-3, 0.5, 1.0, 1.01])
    return at_s + sign * (by_s if rng.random() < 0.4 else share * scale_s)


def factor_near_1(rng: random.Random) -> float:
    """Near 1 more often than not."""
    near = [1e-12, 1e-9, 0.5e-6, 0.99e-6, 0.9999e-6, 1.0001e-6, 1.01e-6, 2e-6, 1e-5]
    if rng.random() < 0.7:
        return 1 + rng.choice([-1, 1]) * rng.choice(near)
    return rng.choice([0.5, 0.99, 1.01, 2.0, 10.0, 1e9])


def some_bytes(rng: random.Random, most: int) -> int:
    return min(most, rng.choice([1, 1, 2, 3, 10, max(1, most // 2), most]))


def one_of(rng: random.Random, schedule: Tree) -> Tree:
    return rng.choice(schedule["transfers"])


def same_bytes(schedule: Tree, row: Tree) -> list[Tree]:
    """The transfer and those that move the same bytes over the other hops of its route."""
    names = ("source", "route", "offset_bytes", "bytes")
    return [
        other for other in schedule["transfers"] if all(other[name] == row[name] for name in names)
    ]


def mend_makespan(schedule: Tree) -> None:
    rows = schedule["transfers"]
    ends = [row["finish_s"] for row in rows if row["hop"] == len(row["route"]) - 2]
    schedule["makespan_s"] = max([0.0, *ends])


def maybe_mend(rng: random.Random, schedule: Tree) -> str:
    if rng.random() < 0.8:
        mend_makespan(schedule)
        return ""
    return ", makespan kept"


def name_of(row: Tree) -> str:
    return f"{'-'.join(row['route'])} hop {row['hop']} at {row['offset_bytes']}"
