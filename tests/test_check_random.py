"""The judge of schedules against random ones: built valid, broken once, or judged a second time."""

from __future__ import annotations

import math
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hand_made import plan
from hypothesis import assume, given, settings
from naive_check import broken_rules

from datacollect import Held, Host, Link, Problem, SharedBottleneck
from datacollect.check import check_schedule
from datacollect.errors import ScheduleError


def verdict(problem, schedule):
    """The message of the first broken rule, or None."""
    try:
        check_schedule(problem, schedule)
    except ScheduleError as error:
        return str(error)
    return None


# Chains: all data flow at one rate, each hop one chunk behind the one before. -------------------


@st.composite
def chains(draw, least_bytes):
    """A chain of hosts whose every limit is met exactly; transfers are cut at random bytes."""
    n_hops = draw(st.integers(1, 4))
    n_bytes = draw(st.integers(least_bytes, 10**15))
    duration_s = draw(st.floats(0.1, 1e6))
    chunk_s = duration_s * draw(st.sampled_from([0.0, 0.01, 0.5]))
    release_s = draw(st.sampled_from([0.0, 0.3, 17.0]))
    hosts = ("S", *(f"K{i}" for i in range(1, n_hops)), "D")
    rate = n_bytes / duration_s
    problem = Problem.from_hosts(
        [
            Host("S", n_bytes, release_s=release_s, uplink_bytes_per_s=rate),
            *(Host(name, 0, 0.0, 0, rate, rate) for name in hosts[1:-1]),
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


@given(chains(least_bytes=20))
def test_chain_that_meets_every_limit_exactly_is_valid(chain):
    problem, rows, options = chain
    check_schedule(problem, plan(rows, **options))


def moved(row, by_s):
    return (*row[:5], row[5] + by_s, row[6] + by_s)


# What each does to a row, and what the message must then speak of.
CHANGES = {
    "drop": (lambda *_: [], "missing: "),
    "double": (lambda row, _: [row, row], "no byte may travel a hop twice"),
    "one byte later": (lambda row, _: [(*row[:3], row[3] + 1, *row[4:])], ""),
    "one byte less": (lambda row, _: [(*row[:4], row[4] - 1, *row[5:])], "missing: byte "),
    "early": (lambda row, chunk_s: [moved(row, -1.01 * chunk_s - 0.01 * (row[6] - row[5]))], ""),
    "twice as fast": (lambda row, _: [(*row[:6], (row[5] + row[6]) / 2)], ""),
    "backwards": (lambda row, _: [(*row[:5], row[6], row[5])], "finish_s must be after start_s"),
}


@pytest.mark.parametrize("change", CHANGES)
@settings(max_examples=40)
@given(chains(least_bytes=10_000), st.randoms(use_true_random=False))
def test_chain_with_one_transfer_changed_is_invalid(change, chain, random):
    """Enough bytes that the change concerns more of them than the one per transfer tolerated."""
    problem, rows, options = chain
    i = random.randrange(len(rows))
    alter, words = CHANGES[change]
    changed = [*rows[:i], *alter(rows[i], options["chunk_s"]), *rows[i + 1 :]]
    message = verdict(problem, plan(changed, **options))
    assert message is not None
    assert words in message


@given(chains(least_bytes=10_000), st.floats(1e-6, 1.0))
def test_chain_with_wrong_makespan_or_slower_link_is_invalid(chain, share):
    problem, rows, options = chain
    schedule = plan(rows, **options)
    assert "makespan_s" in verdict(
        problem, schedule.replace(makespan_s=schedule.makespan_s * (1 + share) + 1e-6)
    )
    n_bytes = int(problem.backlog_bytes.sum())
    narrow = problem.bandwidth_bytes_per_s * (1 - share)
    assume(n_bytes * share > schedule.n_transfers + 1 and share > 2e-6)
    assert "link" in verdict(problem.replace(bandwidth_bytes_per_s=narrow), schedule)


@settings(max_examples=50)
@given(
    st.integers(1, 10**12), st.integers(1, 30), st.integers(1, 3), st.sampled_from([0.1, 0.7, 60.0])
)
def test_slots_with_bytes_rounded_in_any_way_are_valid(n_bytes, n_slots, n_relays, slot_s):
    """n bytes in m slots: one transfer on the first hop, one per slot on the others."""
    hosts = ("S", *(f"K{i}" for i in range(n_relays)), "D")
    per_slot = -(-n_bytes // n_slots) + 1  # a byte more, where one hop rounds up, the next down
    problem = Problem.from_hosts(
        [
            Host("S", n_bytes),
            *(Host(name, storage_bytes=per_slot) for name in hosts[1:-1]),
            Host("D"),
        ],
        [Link(a, b, n_bytes / n_slots / slot_s) for a, b in pairwise(hosts)],
        "D",
    )
    route = " ".join(hosts)
    rows = [("S", route, 0, 0, n_bytes, 0.0, n_slots * slot_s)]
    for hop in range(1, len(hosts) - 1):
        # The byte at a slot's end may leave with its first part; later hops round down.
        cuts = [
            -(-n_bytes * i // n_slots) if hop == 1 else n_bytes * i // n_slots
            for i in range(n_slots + 1)
        ]
        rows += [
            ("S", route, hop, a, b - a, (i + hop) * slot_s, (i + hop + 1) * slot_s)
            for i, (a, b) in enumerate(pairwise(cuts))
            if a < b
        ]
    check_schedule(problem, plan(rows, slot_s=slot_s))
    late = plan([moved(row, 0.25 * slot_s) for row in rows], slot_s=slot_s)
    assert "off the grid" in verdict(problem, late)


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


WORDS = {
    "release": "before the release",
    "causality": "at relay",
    "capacity": "its capacity is",
    "storage": "it stores",
}


@settings(max_examples=400)
@given(cases())
def test_two_judges_agree(case):
    problem, schedule = case
    rules = broken_rules(problem, schedule)
    message = verdict(problem, schedule)
    assert (message is None) == (not rules), (rules, message)
    if message is not None:
        assert any(WORDS[rule] in message for rule in rules)
