"""Schedules made by hand, to be drawn: rates and stored bytes fit in the head."""

from __future__ import annotations

import numpy as np

from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem
from datacollect.schedule.data.transfers import Bottleneck, Route, Transfers
from datacollect.schedule.schedule import Schedule


def schedule_of(problem, routes, rows, **changes) -> Schedule:
    """Make a schedule from rows (route, hop, offset, bytes, start, finish)."""
    columns = np.array(rows, dtype=float).reshape(-1, 6).T
    names = ("route", "hop", "offset_bytes", "n_bytes", "start_s", "finish_s")
    schedule = Schedule(
        method="coordinated",
        destination=problem.destination,
        makespan_s=float(columns[5].max(initial=0.0)),
        lower_bound_s=15.0,
        slot_s=None,
        chunk_s=None,
        solver="by hand",
        problem_sha256=problem.sha256,
        routes=tuple(Route(hosts[0], tuple(hosts)) for hosts in routes),
        columns=Transfers.build(**dict(zip(names, columns, strict=True))),
    )
    return schedule.replace(**changes)


def relayed() -> tuple[Problem, Schedule]:
    """S2 sends half of its 2000 bytes through K, which stores them until 10 s.

    Rates in bytes/s, before and after 10 s: S1->D 100, 0; S2->D 50, 50; S2->K 100, 0; K->D 0, 100.
    """
    problem = Problem.from_hosts(
        [Host("D"), Host("K"), Host("S1", 1000), Host("S2", 2000), Host("idle")],
        [Link("S1", "D", 100), Link("S2", "D", 50), Link("S2", "K", 100), Link("K", "D", 100)],
        "D",
    )
    routes = [("S1", "D"), ("S2", "D"), ("S2", "K", "D")]
    rows = [
        (0, 0, 0, 1000, 0, 10),
        (1, 0, 0, 1000, 0, 20),
        (2, 0, 1000, 1000, 0, 10),
        (2, 1, 1000, 1000, 10, 20),
    ]
    bottleneck = Bottleneck("hosts", ("S2",), "S2 can send at most 1.2 kbit/s.")
    return problem, schedule_of(problem, routes, rows, slot_s=10.0, bottleneck=bottleneck)


def star(n: int, size: int = 1000) -> tuple[Problem, Schedule]:
    """N sources of 1 to n times `size` bytes send them at once, within 20 s each; s1 relays s0."""
    names = [f"s{i}" for i in range(n)] + ["D"]
    links = [Link(name, "D", 1e6) for name in names[:-1]] + [Link("s0", "s1", 1e6)]
    backlogs = [size * (i + 1) for i in range(n)] + [0]
    hosts = [Host(name, amount) for name, amount in zip(names, backlogs, strict=True)]
    problem = Problem.from_hosts(hosts, links, "D")
    routes = [("s0", "s1", "D"), *((name, "D") for name in names[1:-1])]
    rows = [(i, 0, 0, size * (i + 1), 0, 20) for i in range(n)]
    return problem, schedule_of(problem, routes, [*rows, (0, 1, 0, size, 0, 20)])
