"""Schedules and problems written by hand.

Rows of a schedule are (source, route, hop, offset, bytes, start, finish), the destination is D.
"""

from __future__ import annotations

import numpy as np
import pytest

from datacollect import Host, Link, Problem, SharedBottleneck
from datacollect.errors import ScheduleError
from datacollect.schedule.check.judge import check_schedule
from datacollect.schedule.data.transfers import Route, Transfers
from datacollect.schedule.schedule import Schedule


def plan(rows, *, slot_s=None, chunk_s=None, **changes):
    """A schedule to D; its makespan is the last finish of a last hop unless given."""
    arrivals = [finish for _, route, hop, _, _, _, finish in rows if hop == len(route.split()) - 2]
    keys = list(dict.fromkeys((row[0], tuple(row[1].split())) for row in rows))
    columns = Transfers.build(
        route=[keys.index((row[0], tuple(row[1].split()))) for row in rows],
        **{
            name: [row[i] for row in rows]
            for i, name in enumerate(("hop", "offset_bytes", "n_bytes", "start_s", "finish_s"), 2)
        },
    )
    known = {
        "method": "coordinated",
        "destination": "D",
        "makespan_s": max(arrivals, default=0.0),
        "lower_bound_s": 0.0,
        "solver": "hand",
        "problem_sha256": "",
        "routes": tuple(Route(source, hosts) for source, hosts in keys),
        "columns": columns,
    }
    if slot_s is None and chunk_s is None:
        chunk_s = 0.0
    return Schedule(slot_s=slot_s, chunk_s=chunk_s, **(known | changes))


def links(text):
    """Links from lines "S -> K 100"; several numbers are a forecast."""
    parsed = []
    for line in text.split(","):
        tail, _, head, *rates = line.split()
        numbers = [float(rate) for rate in rates]
        parsed.append(Link(tail, head, numbers[0] if len(numbers) == 1 else numbers))
    return parsed


def broken(problem, schedule):
    """The message of the first broken rule."""
    with pytest.raises(ScheduleError) as caught:
        check_schedule(problem, schedule)
    return str(caught.value)


def direct(*pieces, **options):
    """A schedule of S -> D alone, from pieces (bytes, start, finish)."""
    offsets = np.cumsum([0, *(size for size, _, _ in pieces)]).tolist()
    rows = [("S", "S D", 0, at, *piece) for at, piece in zip(offsets, pieces, strict=False)]
    return plan(rows, **options)


# A pipeline: S sends 600 bytes through K in chunks of 1 s, and 350 bytes itself. ------------------

PIPELINE = [
    ("S", "S K D", 0, 0, 600, 0.0, 6.0),
    ("S", "S K D", 1, 0, 600, 1.0, 7.0),
    ("S", "S D", 0, 600, 350, 0.0, 7.0),
]


def pipeline_problem(**host_options):
    """S -> K -> D carries 100 bytes/s, S -> D 50 bytes/s; S holds 950 bytes."""
    options = {name: host_options.get(name, {}) for name in "SKD"}
    return Problem.from_hosts(
        [
            Host("S", **({"backlog_bytes": 950} | options["S"])),
            Host("K", **options["K"]),
            Host("D", **options["D"]),
        ],
        links("S -> K 100, K -> D 100, S -> D 50, D -> S 50, K -> S 50"),
        "D",
        shared=[SharedBottleneck("wire", 150.0, [("K", "D"), ("S", "D")])],
    )
