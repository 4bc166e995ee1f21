"""The judge of schedules: very large and very small numbers, and what rounding may do."""

from __future__ import annotations

import re
from itertools import pairwise

from instances.hand_made import PIPELINE, broken, direct, links, pipeline_problem, plan

from datacollect import Host, Problem
from datacollect.schedule.check.judge import check_schedule


def test_a_petabyte_is_counted_to_the_byte():
    """10^15 bytes in 1000 transfers over two hops; the last lacks one byte."""
    n, size = 1000, 10**12
    problem = Problem.from_hosts(
        [Host("S", n * size), Host("K", storage_bytes=10 * size), Host("D")],
        links("S -> K 1e10, K -> D 1e10"),
        "D",
    )
    rows = [
        ("S", "S K D", hop, i * size, size, (i + hop) * 100.0, (i + hop + 1) * 100.0)
        for hop in range(2)
        for i in range(n)
    ]
    check_schedule(problem, plan(rows))
    rows[-1] = (*rows[-1][:4], size - 1, *rows[-1][5:])
    message = broken(problem, plan(rows))
    assert "arrives at 'K' must leave for 'D', missing: byte 999999999999999 of 'S'" in message


def test_slow_link_beside_fast_ones_is_judged_as_strictly():
    """Nine orders of magnitude apart; 2 bytes/s too many for 10 s on the slow one."""
    problem = Problem.from_hosts(
        [Host("S", 10**11), Host("T", 30), Host("D")], links("S -> D 1e9, T -> D 1"), "D"
    )
    rows = [("S", "S D", 0, i * 10**9, 10**9, i, i + 1.0) for i in range(100)]
    check_schedule(problem, plan([*rows, ("T", "T D", 0, 0, 30, 0.0, 30.0)]))
    message = broken(problem, plan([*rows, ("T", "T D", 0, 0, 30, 0.0, 10.0)]))
    assert re.search(
        "link 'T' -> 'D': .* 3 bytes/s together from 0 s to 10 s, .* 1 bytes/s: 20 bytes", message
    )


def test_one_byte_per_transfer_is_tolerated_and_no_more():
    """3 bytes/s for 10 transfers of 1 s: 4 bytes each exceed it by one each, 5 by two each."""
    for size, valid in ((3, True), (4, True), (5, False)):
        problem = Problem.from_hosts([Host("S", 10 * size), Host("D")], links("S -> D 3"), "D")
        schedule = direct(*((size, i * 1.0, i + 1.0) for i in range(10)))
        if valid:
            check_schedule(problem, schedule)
        else:
            assert re.search("10 transfers .*: 20 bytes too many", broken(problem, schedule))


def test_transfers_that_overlap_by_rounding_are_valid():
    """0.1 + 0.2 > 0.3: one transfer ends a rounding error after the next begins."""
    problem = Problem.from_hosts([Host("S", 2 * 10**9), Host("D")], links("S -> D 1e10"), "D")
    check_schedule(problem, direct((10**9, 0.2, 0.1 + 0.2), (10**9, 0.3, 0.4)))


def test_instants_rounded_at_petabytes_per_second_are_no_overlap():
    """At 100 s the last digit of an instant is 1.4e-14 s: 142 bytes at 10^16 bytes/s."""
    n, size = 1000, 10**15
    problem = Problem.from_hosts([Host("S", n * size), Host("D")], links("S -> D 1e16"), "D")
    pieces = [(size, i * 0.1, i * 0.1 + 0.1) for i in range(n)]
    assert any(a[2] > b[1] for a, b in pairwise(pieces))
    check_schedule(problem, direct(*pieces, slot_s=0.1))
    check_schedule(problem, direct(*pieces))


def test_cut_through_at_petabits_per_second_stores_nothing_but_rounding():
    """4.4 * 10^14 bytes/s, 17 s after time 0: the last digit of an amount is about a byte."""
    size, half = 386_937_487_576_809, 290_203_115_682_606
    problem = Problem.from_hosts(
        [Host("S", size), Host("K", storage_bytes=0), Host("D")],
        links("S -> K 442214271516353.1, K -> D 442214271516353.1"),
        "D",
    )
    rows = [
        ("S", "S K D", 0, 0, size, 17.0, 17.875),
        ("S", "S K D", 1, 0, half, 17.0, 17.65625),
        ("S", "S K D", 1, half, size - half, 17.65625, 17.875),
    ]
    check_schedule(problem, plan(rows, chunk_s=0.0))
    assert plan(rows, chunk_s=0.0).peak_storage_bytes == {}


def test_instants_on_the_grid_may_be_written_with_ten_digits():
    """Slots of a third of a second: 10^12 bytes in each, which 3e-11 s more or less are 100 of."""
    problem = Problem.from_hosts([Host("S", 3 * 10**12), Host("D")], links("S -> D 3e12"), "D")
    pieces = [(10**12, 0.0, 0.3333333334), (10**12, 0.3333333333, 0.6666666667)]
    check_schedule(problem, direct(*pieces, (10**12, 0.6666666666, 1.0), slot_s=1 / 3))


def test_bandwidths_measured_again_are_what_counts():
    """The schedule was made for another problem; only what it does matters."""
    schedule = plan(PIPELINE, chunk_s=1.0, problem_sha256="of another problem")
    problem = pipeline_problem()
    check_schedule(
        problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * 2), schedule
    )
    slower = problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s / 2)
    assert "link 'S' -> 'K': 1 transfer at up to 100 bytes/s" in broken(slower, schedule)
