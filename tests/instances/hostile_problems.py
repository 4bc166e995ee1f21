"""Random problems and plans at hostile scales: a byte to 2**62, 1e-3 to 1e13 B/s, up to 1e10 s."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from instances.varying_limits import with_varying_limits

import datacollect as dc
from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem

FEATURES = ("limits", "shared", "forecast", "release", "storage", "held")

# Bytes in all stay below this; rates from slow telemetry to more than any wire.
MOST_BYTES, LEAST_RATE, GREATEST_RATE = 2**62 - 1, 1e-3, 1e13

# Beside 0: a microsecond, minutes, today as a Unix time, three centuries.
INSTANTS_S = (1e-6, 0.1, 1.0, 600.0, 1e6, 1.7e9, 1e10)
# From one period to the next.
STEPS_S = (1e-6, 1e-3, 0.3, 1.0, 7.0, 3600.0)


def hostile_problem(rng: random.Random) -> Problem:
    """A problem of 2 to 5 hosts with some features; some are infeasible."""
    names = ["D", *(f"H{i}" for i in range(1, rng.randint(2, 5)))]
    has = {feature: rng.random() < 0.3 for feature in FEATURES}
    sizes = _sizes(rng, len(names) - 1)
    rate_of_all = 10 ** rng.uniform(-3, 13)
    spread = rng.choice([0.0, 1.0, 8.0])

    def rate() -> float:
        return min(max(rate_of_all * 10 ** rng.uniform(-spread, spread), LEAST_RATE), GREATEST_RATE)

    def limit() -> float:
        return rate() if has["limits"] and rng.random() < 0.5 else math.inf

    typical_s = max(sum(sizes), 1) / rate_of_all
    hosts = [
        Host(
            name,
            backlog_bytes=size,
            release_s=_instant(rng, typical_s) if has["release"] and size else 0.0,
            storage_bytes=_room(rng, sizes) if has["storage"] and name != "D" else math.inf,
            uplink_bytes_per_s=limit(),
            downlink_bytes_per_s=limit(),
        )
        for name, size in zip(names, [0, *sizes], strict=True)
    ]
    starts = _periods(rng, typical_s) if has["forecast"] else [0.0]
    pairs = [(a, b) for a in names[1:] for b in names if a != b]
    chosen = [pair for pair in pairs if rng.random() < 0.8]
    idle = 0.2 if len(starts) > 1 else 0.0
    links = [Link(a, b, [rate() * (rng.random() >= idle) for _ in starts]) for a, b in chosen]
    shared = [
        SharedBottleneck(f"wire{i}", rate(), rng.sample(chosen, rng.randint(1, len(chosen))))
        for i in range(rng.randint(1, 2) if has["shared"] and chosen else 0)
    ]
    held = list(_held(rng, hosts)) if has["held"] else []
    problem = Problem.from_hosts(hosts, links, "D", shared=shared, held=held, periods_s=starts)
    return with_varying_limits(problem)


def _sizes(rng: random.Random, n: int) -> list[int]:
    """Backlogs of all magnitudes, below 2**62 together."""
    most = rng.choice([3, 100, 10**6, 10**12, 10**16, MOST_BYTES])
    share = most // n
    sizes = [min(int(share ** rng.random()), share) for _ in range(n)]
    if rng.random() < 0.5:
        sizes[0] = share
    return sizes


def _instant(rng: random.Random, typical_s: float) -> float:
    return rng.choice([0.0, min(typical_s * rng.random(), 1e10), rng.choice(INSTANTS_S)])


def _periods(rng: random.Random, typical_s: float) -> list[float]:
    """Starts of two to four periods, soon or late."""
    at = min(rng.choice([typical_s / 3, *INSTANTS_S]), 1e10)
    starts = {0.0, at}
    for _ in range(rng.randint(0, 2)):
        at += rng.choice([min(typical_s / 3, 1e10), *STEPS_S])
        starts.add(at)
    return sorted(start for start in starts if start <= 1e10)


def _room(rng: random.Random, sizes: list[int]) -> float:
    return rng.choice([math.inf, 0.0, 1.0, float(rng.randint(0, sum(sizes)))])


def _held(rng: random.Random, hosts: list[Host]) -> Iterator[Held]:
    room = {host.name: host.storage_bytes for host in hosts}
    for source in hosts[1:]:
        holder = rng.choice(hosts)
        n_bytes = int(source.backlog_bytes * rng.random())
        if holder.name == source.name or n_bytes == 0:
            continue
        if holder.name == "D" or n_bytes <= room[holder.name]:
            room[holder.name] -= n_bytes
            yield Held(holder.name, source.name, 0, n_bytes)


def hostile_plan(rng: random.Random, problem: Problem) -> dc.Schedule:
    """A plan by any method, in any shape but slots."""
    chunk_s = rng.choice([None, None, 0.0, 1e-9, 1e-3, 1.0])
    method = rng.choice(["direct", "best-path", *["coordinated"] * 3])
    if method == "direct":
        return dc.direct(problem, at_a_time=rng.choice([None, None, 1]))
    if method == "best-path":
        return dc.best_path(problem, chunk_s=chunk_s)
    prefer = rng.choice(["relay-bytes", "relay-bytes", "storage"])
    return dc.coordinated(problem, chunk_s=chunk_s, prefer=prefer)


# So few links are planned fast with a thousand periods.
FEW_LINKS = 4


# Prices and many periods ------------------------------------------------------------------------


def with_prices(rng: random.Random, problem: Problem) -> Problem:
    """The same with prices of all magnitudes from 1e-12 per GB, some links for nothing."""
    lowest = rng.choice([-12.0, -9.0, -3.0, 0.0])
    prices = [
        10 ** rng.uniform(lowest, lowest + rng.choice([0.0, 1.0, 4.0])) if rng.random() < 0.8 else 0
        for _ in range(problem.n_links)
    ]
    return problem.replace(price_per_gb=prices)


def with_many_periods(rng: random.Random, problem: Problem) -> Problem:
    """The same with 10 to 100 periods, 1000 on few links, with about the first one's bandwidths."""
    n = int(10 ** rng.uniform(1, 3 if problem.n_links <= FEW_LINKS else 2))
    typical_s = max(problem.total_bytes, 1) / max(
        problem.bandwidth_bytes_per_s.max(initial=0), 1e-3
    )
    step_s = min(rng.choice([typical_s / n, *STEPS_S]), 1e10 / n)
    if step_s < 1e-6 * typical_s / n or step_s <= 0:
        step_s = min(typical_s / n, 1e10 / n)
    starts = [i * step_s for i in range(n)]
    first = problem.bandwidth_bytes_per_s[0]
    factors = [[rng.choice([0.0, 0.5, 1.0, rng.random()]) for _ in first] for _ in starts]
    factors[-1] = [1.0 for _ in first]
    return problem.replace(
        periods_s=starts,
        bandwidth_bytes_per_s=[first * row for row in factors],
        uplink_bytes_per_s=problem.uplink_bytes_per_s[0],
        downlink_bytes_per_s=problem.downlink_bytes_per_s[0],
    )


def money_plan(rng: random.Random, problem: Problem, deadline_s: float) -> dc.Schedule:
    """The plan that costs least among those that end in time."""
    chunk_s = rng.choice([None, 0.0])
    return dc.coordinated(problem, prefer="money", deadline_s=deadline_s, chunk_s=chunk_s)
