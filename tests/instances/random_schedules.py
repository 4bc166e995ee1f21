"""Random schedules for Hypothesis: valid ones by construction, and any."""

from __future__ import annotations

import math
from itertools import pairwise

import hypothesis.strategies as st
from hypothesis import assume
from instances.hand_made import plan

from datacollect import Held, Host, Link, Problem, SharedBottleneck

# Chains: all data flow at one rate, each hop one chunk behind the one before. -------------------


@st.composite
def chains(draw, least_bytes):
    """A chain of hosts whose every limit is met exactly; transfers are cut at random bytes."""
    n_hops = draw(st.integers(1, 4))
    n_bytes = draw(st.integers(least_bytes, 10**15))
    duration_s = draw(st.floats(0.1, 1e6))
    share = draw(st.sampled_from([0.0, 0.01, 0.5]))
    chunk_s = duration_s * share
    release_s = draw(st.sampled_from([0.0, 0.3, 17.0]))
    hosts = ("S", *(f"K{i}" for i in range(1, n_hops)), "D")
    rate = n_bytes / duration_s
    # A chunk of more than a hundredth of the makespan counts as stored.
    room = 0 if share <= 0.01 else math.ceil(n_bytes * share)
    problem = Problem.from_hosts(
        [
            Host("S", n_bytes, release_s=release_s, uplink_bytes_per_s=rate),
            *(Host(name, 0, 0.0, room, rate, rate) for name in hosts[1:-1]),
            Host("D", downlink_bytes_per_s=rate),
        ],
        [Link(a, b, rate) for a, b in pairwise(hosts)],
        "D",
        shared=[SharedBottleneck("last", rate, [hosts[-2:]])],
    )
    rows = []
    for hop in range(n_hops):
        shares = sorted({0, 16, *draw(st.lists(st.integers(1, 15), max_size=4))})
        cuts = [n_bytes * share // 16 for share in shares]
        at_s = [release_s + hop * chunk_s + duration_s * (cut / n_bytes) for cut in cuts]
        rows += [
            ("S", " ".join(hosts), hop, cuts[i], cuts[i + 1] - cuts[i], at_s[i], at_s[i + 1])
            for i in range(len(cuts) - 1)
        ]
    return problem, rows, {"chunk_s": chunk_s, "lower_bound_s": duration_s}


# Any schedules, judged twice. -------------------------------------------------------------------

UNIT = 100  # bytes: amounts are multiples, so that no verdict hangs on the tolerance of one byte
ROUTES = [
    ("S", "S D"),
    ("S", "S K D"),
    ("T", "T K D"),
    ("S", "S T D"),
    ("T", "T S K D"),
    ("S", "K D"),
]


@st.composite
def cases(draw):
    """A small problem, and transfers that come near a valid schedule of it."""
    slot_s = draw(st.sampled_from([None, 1.0, 2.0]))
    step = int(slot_s or 1)
    backlog = {"S": 0, "T": 0}
    rows, held = [], []
    for source, route in draw(
        st.lists(st.sampled_from(ROUTES), min_size=1, max_size=3, unique=True)
    ):
        size, first = UNIT * draw(st.integers(1, 4)), backlog[source]
        backlog[source] += size
        if route.split()[0] != source:
            held.append(Held(route.split()[0], source, first, size))
        ready = draw(st.integers(0, 2)) * step
        for hop in range(len(route.split()) - 1):
            cuts = sorted(
                {0, size, *draw(st.lists(st.sampled_from(range(0, size, UNIT)), max_size=2))}
            )
            at = ready
            for a, b in pairwise(cuts):
                ends = at + draw(st.integers(1, 3)) * step
                rows.append((source, route, hop, first + a, b - a, float(at), float(ends)))
                at = ends + draw(st.sampled_from([0, 0, 0, step]))
            ready += draw(st.sampled_from([0, step, step, 2 * step, at - ready]))
    rate = st.sampled_from([50.0, 100.0, 150.0, 200.0, 400.0, 800.0])
    limit = st.one_of(st.just(math.inf), rate)
    room = st.one_of(st.just(math.inf), st.sampled_from([0, 50, 100, 150, 200, 300]))
    periods = [0.0, *draw(st.sampled_from([[], [], [1.0], [2.5], [1.5, 4.0]]))]
    pairs = sorted({pair for _, r in ROUTES for pair in pairwise(r.split())})
    hosts = [
        Host(name, backlog.get(name, 0), 0.0, draw(room), draw(limit), draw(limit))
        for name in "STKD"
    ]
    try:
        problem = Problem.from_hosts(
            hosts,
            [
                Link(a, b, draw(st.lists(rate, min_size=len(periods), max_size=len(periods))))
                for a, b in pairs
            ],
            "D",
            shared=[SharedBottleneck("wire", draw(rate), [("S", "K"), ("T", "K")])],
            held=held,
            periods_s=periods,
        )
    except ValueError:
        assume(False)
    chunk_s = None if slot_s else draw(st.sampled_from([None, 0.5, 1.0, 2.0]))
    return problem.replace(release_s=[draw(st.sampled_from([0.0, 0.0, 1.0])), 0.0, 0.0, 0.0]), plan(
        rows, slot_s=slot_s, chunk_s=chunk_s
    )
