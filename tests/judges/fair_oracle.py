"""Direct plans, computed once more: max-min fair rates by raising all together, event by event.

Plain loops over plain numbers, from the definition of progressive filling (Bertsekas and Gallager,
Data Networks, 2nd ed. 1992, section 6.5.2); nothing of the methods is used.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from datacollect.problem.problem import Problem

TINY = 1e-9


class Stretch(NamedTuple):
    """Between two instants: what holds back whom, as (kind, number) by source."""

    from_s: float
    to_s: float
    holds: dict[int, set[tuple[str, int]]]


def crossed(problem: Problem, host: int) -> list[tuple[str, int]]:
    """What a host's data cross on their link to the destination; every limit of the problem."""
    end = problem.destination_index
    (link,) = problem.link_indices([host], [end]).tolist()
    found = [("link", link), ("uplink", host), ("downlink", end)]
    members = enumerate(problem.shared_links)
    return found + [("shared", i) for i, links in members if link in links.tolist()]


def capacity(problem: Problem, resource: tuple[str, int], period: int) -> float:
    """Bytes per second of a resource in a period."""
    kind, number = resource
    if kind == "link":
        return float(problem.bandwidth_bytes_per_s[period, number])
    if kind == "shared":
        return float(problem.shared[number].bandwidth_bytes_per_s)
    column = {"uplink": "uplink_bytes_per_s", "downlink": "downlink_bytes_per_s"}[kind]
    return float(getattr(problem, column)[period, number])


def fair_rates(problem, sources, period):
    """Raise the rates of all sources together; return rates, and what stopped each."""
    ways = {s: crossed(problem, s) for s in sources}
    left = {r: capacity(problem, r, period) for way in ways.values() for r in way}
    rate, holds, level = {}, {}, 0.0
    while len(rate) < len(ways):
        users = {r: [s for s in ways if r in ways[s] and s not in rate] for r in left}
        rise = min(left[r] / len(users[r]) for r in left if users[r])
        level += rise
        for r in left:
            left[r] -= rise * len(users[r])
        full = {r for r in left if users[r] and left[r] <= TINY * level}
        for s, way in ways.items():
            stop = full & set(way)
            if s not in rate and stop:
                rate[s], holds[s] = level, stop
    return rate, holds


def direct_plan(problem: Problem) -> tuple[dict[int, float], list[Stretch]] | None:
    """When each source has sent everything, and what held it back when; None if never."""
    left = {p.source: float(p.n_bytes) for p in problem.parcels}
    release = {p.source: p.release_s for p in problem.parcels}
    changes = sorted({*problem.periods_s.tolist(), *release.values()})
    finish: dict[int, float] = {}
    stretches: list[Stretch] = []
    for start, end in pairwise([*changes, np.inf]):
        now = start
        while now < end and len(finish) < len(left):
            period = int(np.searchsorted(problem.periods_s, now, side="right")) - 1
            active = [s for s in left if s not in finish and release[s] <= now]
            if not active:
                break
            rate, holds = fair_rates(problem, active, period)
            ends = [now + left[s] / rate[s] for s in active if rate[s] > 0]
            until = min([end, *ends])
            if until == np.inf:
                return None
            stretches.append(Stretch(now, until, holds))
            for s in active:
                left[s] -= rate[s] * (until - now)
                if left[s] <= TINY * problem.total_bytes:
                    finish[s] = until
            now = until
    return finish, stretches
