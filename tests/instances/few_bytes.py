"""Random problems of few bytes, with bottlenecks that several links share."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from instances.varying_limits import with_varying_limits

from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
from datacollect.problem.problem import Problem

FEATURES = {
    "release": 0.25,
    "periods": 0.35,
    "limits": 0.25,
    "storage": 0.35,
    "shared": 0.8,
    "held": 0.25,
    "odd": 0.5,
}


def few_bytes(rng: random.Random) -> Problem:
    """A problem of 3 to 6 hosts with some features; some are infeasible."""
    unit = rng.choice([1, 1, 1, 1, 1, 7, 1000])
    names = ["D", *(f"H{i}" for i in range(1, rng.randint(3, 6)))]
    has = {feature: rng.random() < often for feature, often in FEATURES.items()}

    def number(least: int) -> float:
        odd = rng.random() if has["odd"] else 0.0
        return (rng.randint(least, 8) + odd) * unit

    def limit() -> float:
        return number(1) if has["limits"] and rng.random() < 0.5 else math.inf

    periods = [0.0]
    if has["periods"]:
        periods += sorted(rng.sample([0.3, 1.0, 1.5, 2.0, 3.0, 4.5, 5.0], rng.randint(1, 2)))
    hosts = [
        Host(
            name,
            backlog_bytes=0 if name == "D" else int(number(0) * rng.randint(0, 3)),
            release_s=rng.choice([0.0, 0.3, 1.0, 1.25, 2.0]) if has["release"] else 0.0,
            storage_bytes=rng.randint(0, 6) * unit
            if has["storage"] and rng.random() < 0.6 and name != "D"
            else math.inf,
            uplink_bytes_per_s=limit(),
            downlink_bytes_per_s=limit(),
        )
        for name in names
    ]
    pairs = [(a, b) for a in names[1:] for b in names if a != b]
    chosen = [pair for pair in pairs if rng.random() < 0.75] or pairs
    least = 0 if has["periods"] else 1
    links = [Link(a, b, [number(least) for _ in periods]) for a, b in chosen]
    shared = [
        SharedBottleneck(f"wire{i}", number(1), rng.sample(chosen, rng.randint(1, len(chosen))))
        for i in range(rng.choice([1, 2, 3, 4, 6]) if has["shared"] else 0)
    ]
    held = list(_held(rng, hosts, unit)) if has["held"] else []
    problem = Problem.from_hosts(hosts, links, "D", shared=shared, held=held, periods_s=periods)
    return with_varying_limits(problem)


def _held(rng: random.Random, hosts: list[Host], unit: int) -> Iterator[Held]:
    room = {host.name: host.storage_bytes for host in hosts}
    for source in hosts[1:]:
        holder, n_bytes = rng.choice(hosts), rng.randint(1, 3) * unit
        if holder.name == source.name or n_bytes > source.backlog_bytes:
            continue
        if n_bytes <= room[holder.name]:
            room[holder.name] -= n_bytes
            yield Held(holder.name, source.name, 0, n_bytes)
