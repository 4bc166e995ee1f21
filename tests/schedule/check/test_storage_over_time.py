"""The judge of schedules: what several routes store at once, between the instants of their own."""

from __future__ import annotations

import math

import pytest
from instances.hand_made import broken, links, plan

from datacollect import Held, Host, Problem
from datacollect.schedule.check.judge import check_schedule


def problem_with_room(storage_bytes, s_bytes):
    """S sends through K, which holds 1000 bytes of T besides; every link is fast."""
    return Problem.from_hosts(
        [Host("S", s_bytes), Host("T", 1000), Host("K", storage_bytes=storage_bytes), Host("D")],
        links("S -> K 1e6, K -> D 1e6, S -> D 1e6, T -> D 1e6"),
        "D",
        held=[Held("K", "T", 0, 1000)],
    )


def judged(storage_bytes, rows, **options):
    """Whether K has room enough."""
    s_bytes = sum(row[4] for row in rows if row[0] == "S" and row[2] == 0)
    problem, schedule = problem_with_room(storage_bytes, s_bytes), plan(rows, **options)
    try:
        check_schedule(problem, schedule)
    except ValueError:
        assert "host 'K': it stores" in broken(problem, schedule)
        return False
    return True


def test_two_that_fill_and_empty_at_rates_that_are_no_whole_numbers():
    """From T 1000 bytes leave in 2000 s, at half a byte per second; from S 15 come until 10 s.

    At 10 s are 995 + 15 there; from then on both leave.
    """
    rows = [
        ("T", "K D", 0, 0, 1000, 0.0, 2000.0),
        ("S", "S K D", 0, 0, 15, 0.0, 10.0),
        ("S", "S K D", 1, 0, 15, 10.0, 20.0),
    ]
    assert judged(1010, rows)
    assert not judged(1009, rows)


@pytest.mark.parametrize(
    ("leave", "enough_bytes"),
    [
        # At 1.45 s 25 bytes of S are more than the chunk; then T's leave faster than S's come.
        ((1.45, 1.6), 1025),
        # At 1.48 s 40 bytes of S are more than the chunk, at 1.5 s 50, but none of T are left.
        ((1.48, 1.5), 1040),
    ],
)
def test_a_chunk_that_is_full_amid_a_transfer(leave, enough_bytes):
    """S sends 50 bytes in 0.5 s, then 500 in 1 s: a chunk of 1 s is 500 bytes from 0.5 s to 2.5 s.

    At 1.4 s, 500 bytes have come. A chunk of 1 s is short, as the last byte arrives at 100 s.
    """
    rows = [
        ("T", "K D", 0, 0, 1000, *leave),
        ("S", "S K D", 0, 0, 50, 0.0, 0.5),
        ("S", "S K D", 0, 50, 500, 0.5, 1.5),
        ("S", "S K D", 1, 0, 550, 60.0, 65.5),
        ("S", "S D", 0, 550, 100, 0.0, 100.0),
    ]
    assert judged(enough_bytes, rows, chunk_s=1.0)
    # Instants are rounded, which may be a part of a byte.
    assert not judged(enough_bytes - 2, rows, chunk_s=1.0)


@pytest.mark.parametrize(("storage_bytes", "enough"), [(1000, True), (999, False)])
def test_all_that_ever_passes_is_one_byte_too_many(storage_bytes, enough):
    """K has 1000 bytes of S from 1 s to 2 s, and nothing else ever."""
    rows = [("S", "S K D", 0, 0, 1000, 0.0, 1.0), ("S", "S K D", 1, 0, 1000, 2.0, 3.0)]
    problem = problem_with_room(1000, 1000).replace(held=(), backlog_bytes=[1000, 0, 0, 0])
    problem = problem.replace(storage_bytes=[math.inf, math.inf, storage_bytes, math.inf])
    if enough:
        check_schedule(problem, plan(rows))
    else:
        assert "1000 bytes of other hosts' data at 1 s" in broken(problem, plan(rows))
