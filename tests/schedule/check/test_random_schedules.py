"""The judge of schedules against random ones: built valid, broken once, or judged a second time."""

from __future__ import annotations

import re
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given
from instances.hand_made import plan
from instances.random_schedules import cases, chains
from judges.contract_check import judge

from datacollect import Host, Link, Problem
from datacollect.errors import ScheduleError
from datacollect.schedule.check.judge import check_schedule


def verdict(problem, schedule):
    """The message of the first broken rule, or None."""
    try:
        check_schedule(problem, schedule)
    except ScheduleError as error:
        return str(error)
    return None


@given(chains(least_bytes=20))
def test_chain_that_meets_every_limit_exactly_is_valid(chain):
    problem, rows, options = chain
    check_schedule(problem, plan(rows, **options))


def moved(row, by_s):
    return (*row[:5], row[5] + by_s, row[6] + by_s)


LACKS = "(missing|do not): bytes? "
# What each does to a row, and what the message must then speak of.
CHANGES = {
    "drop": (lambda *_: [], LACKS),
    "double": (lambda row, _: [row, row], "no byte may travel a hop twice"),
    "one byte later": (lambda row, _: [(*row[:3], row[3] + 1, *row[4:])], ""),
    "one byte less": (lambda row, _: [(*row[:4], row[4] - 1, *row[5:])], LACKS),
    "early": (lambda row, chunk_s: [moved(row, -1.01 * chunk_s - 0.01 * (row[6] - row[5]))], ""),
    "twice as fast": (lambda row, _: [(*row[:6], (row[5] + row[6]) / 2)], ""),
    "backwards": (lambda row, _: [(*row[:5], row[6], row[5])], "finish_s must be after start_s"),
}


@pytest.mark.parametrize("change", CHANGES)
@given(chains(least_bytes=10_000), st.randoms(use_true_random=False))
def test_chain_with_one_transfer_changed_is_invalid(change, chain, random):
    """Enough bytes that the change concerns more of them than the one per route tolerated."""
    problem, rows, options = chain
    i = random.randrange(len(rows))
    alter, words = CHANGES[change]
    changed = [*rows[:i], *alter(rows[i], options["chunk_s"]), *rows[i + 1 :]]
    message = verdict(problem, plan(changed, **options))
    assert message is not None
    assert re.search(words, message)


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


@given(
    st.integers(1, 10**12), st.integers(1, 30), st.integers(1, 3), st.sampled_from([0.1, 0.7, 60.0])
)
def test_slots_with_bytes_rounded_in_any_way_are_valid(n_bytes, n_slots, n_relays, slot_s):
    """n bytes in m slots: one transfer on the first hop, one per slot on the others."""
    hosts = ("S", *(f"K{i}" for i in range(n_relays)), "D")
    per_slot = -(-n_bytes // n_slots) + 1  # and what the boundary of a slot leaves of a byte
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
        # The byte that a slot's end cuts leaves when all of it has come.
        cuts = [n_bytes * i // n_slots for i in range(n_slots + 1)]
        rows += [
            ("S", route, hop, a, b - a, (i + hop) * slot_s, (i + hop + 1) * slot_s)
            for i, (a, b) in enumerate(pairwise(cuts))
            if a < b
        ]
    check_schedule(problem, plan(rows, slot_s=slot_s))
    late = plan([moved(row, 0.25 * slot_s) for row in rows], slot_s=slot_s)
    assert "off the grid" in verdict(problem, late)


@given(cases())
def test_two_judges_agree(case):
    problem, schedule = case
    contract = judge(problem.to_dict(), schedule.to_dict())
    library = verdict(problem, schedule)
    assert (contract is None) == (library is None), (contract, library)
