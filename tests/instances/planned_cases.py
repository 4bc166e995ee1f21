"""Small random problems with plans by the public methods, each from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from instances.varying_limits import with_varying_limits

from datacollect import (
    Held,
    Host,
    Link,
    Problem,
    Schedule,
    SharedBottleneck,
    best_path,
    coordinated,
    direct,
)
from datacollect.errors import DatacollectError

Tree = dict[str, Any]


def planned(seed: int) -> tuple[Tree, Tree]:
    """Trees of a problem and of a plan for it."""
    for attempt in range(1000):
        rng = random.Random(f"plan {seed} {attempt}")
        try:
            problem = random_problem(rng)
            schedule = _plan(rng, problem)
        except DatacollectError:
            continue  # infeasible, or this method has no answer
        # A plan of nothing has nothing to mutate; now and then it is worth judging.
        if len(schedule.to_dict()["transfers"]) or rng.random() < 0.02:
            return problem.to_dict(), schedule.to_dict()
    raise AssertionError(f"seed {seed}: no problem that can be planned")


def random_problem(rng: random.Random) -> Problem:
    unit = rng.choice([1, 1, 1000, 1_000_003, 10**9])
    names = ["D", *(f"H{i}" for i in range(1, rng.randint(2, 5)))]
    # Each problem has some of the features: with all at once most plans fall to the same rule.
    has = {
        feature: rng.random() < 0.3
        for feature in ("release", "periods", "limits", "storage", "shared", "held", "odd")
    }

    def number(least: int) -> float:
        odd = rng.random() if has["odd"] else 0.0
        return (rng.randint(least, 8) + odd) * unit

    def limit(feature: str) -> float:
        return number(1) if has[feature] and rng.random() < 0.5 else float("inf")

    late_s = 1e9 if has["release"] and rng.random() < 0.1 else 0.0
    periods = [0.0]
    if has["periods"]:
        periods += sorted(rng.sample([0.3, 1.0, 1.5, 2.0, 3.0, 5.0], rng.randint(1, 2)))
    hosts = [
        Host(
            name,
            backlog_bytes=0 if name == "D" else int(number(0) * rng.randint(0, 2)),
            release_s=late_s + rng.choice([0.0, 0.3, 1.0, 1.25, 2.0]) if has["release"] else 0.0,
            storage_bytes=rng.randint(0, 6) * unit
            if has["storage"] and rng.random() < 0.6
            else float("inf"),
            uplink_bytes_per_s=limit("limits"),
            downlink_bytes_per_s=limit("limits"),
        )
        for name in names
    ]
    pairs = [(a, b) for a in names for b in names if a != b and a != "D"]
    chosen = [pair for pair in pairs if rng.random() < 0.75] or pairs
    least = 0 if has["periods"] else 1
    links = [Link(a, b, [number(least) for _ in periods]) for a, b in chosen]
    shared = [
        SharedBottleneck(f"wire{i}", number(1), sorted(rng.sample(chosen, min(2, len(chosen)))))
        for i in range(rng.randint(1, 2) if has["shared"] and chosen else 0)
    ]
    held = list(_held(rng, hosts, unit)) if has["held"] else []
    problem = Problem.from_hosts(hosts, links, "D", shared=shared, held=held, periods_s=periods)
    return with_varying_limits(problem)


def _held(rng: random.Random, hosts: list[Host], unit: int) -> Iterator[Held]:
    for source in hosts[1:]:
        holder, n_bytes = rng.choice(hosts), rng.randint(1, 3) * unit
        if holder.name != source.name and n_bytes <= source.backlog_bytes:
            yield Held(holder.name, source.name, 0, n_bytes)


def _plan(rng: random.Random, problem: Problem) -> Schedule:
    method = rng.choice([direct, best_path, coordinated, coordinated])
    late = max(problem.release_s, default=0.0) > 1e6
    if method is direct:
        return direct(problem)
    shape = rng.choice(["default", "chunk"] if late else ["default", "chunk", "slot"])
    if shape == "slot":
        return method(problem, slot_s=rng.choice([0.1, 0.25, 0.3, 0.5, 1.0]))
    if shape == "chunk":
        return method(problem, chunk_s=rng.choice([0.0, 0.0, 0.001, 0.01, 0.1, 1.0]))
    return method(problem)
