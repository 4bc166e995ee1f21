"""The judge of schedules: storage and forecasts."""

from __future__ import annotations

import math
import re

import pytest
from instances.hand_made import PIPELINE, broken, direct, links, pipeline_problem, plan

import datacollect as dc
from datacollect import Held, Host, Problem, SharedBottleneck
from datacollect.schedule.check.judge import check_schedule

# Storage ------------------------------------------------------------------------------------------


# S's own data take until 100 s: chunks of up to a second are a hundredth of that.
LONG = [*PIPELINE[:2], ("S", "S D", 0, 600, 350, 0.0, 100.0)]


@pytest.mark.parametrize(
    ("storage_bytes", "chunk_s", "valid"),
    [
        (100, None, True),
        (99, None, False),
        (0, 1.0, True),
        (0, 0.991, True),
        (0, 0.99, False),
        (10, 0.9, True),
        (9, 0.9, False),
        (99, math.nextafter(1.0, 2.0), True),
        (99, 1.0001, False),
        (99, 1e9, False),
        (100, 1e9, True),
    ],
)
def test_stored_bytes_and_chunks_in_flight(storage_bytes, chunk_s, valid):
    """K holds 100 bytes from 1 s to 6 s; a chunk of 1 s is 100 bytes, a longer one none at all.

    Part of a byte is no byte yet: 100 bytes and a chunk of 99.1 are no byte too many.
    """
    problem = pipeline_problem(K={"storage_bytes": storage_bytes})
    if valid:
        check_schedule(problem, plan(LONG, chunk_s=chunk_s))
    else:
        message = broken(problem, plan(LONG, chunk_s=chunk_s))
        assert re.search(
            f"host 'K': it stores 100 bytes .* at 1 s, .* allow {storage_bytes}", message
        )


def test_a_hundredth_of_a_short_makespan_is_shorter():
    """A tenth of a second in all: a chunk of 1 ms is a hundredth, 5 ms count as stored."""
    rows = [(*row[:5], row[5] / 1000, row[6] / 1000) for row in LONG]
    fast = pipeline_problem(K={"storage_bytes": 0})
    fast = fast.replace(
        bandwidth_bytes_per_s=fast.bandwidth_bytes_per_s * 1000,
        shared=[SharedBottleneck("wire", 150_000.0, fast.shared[0].links)],
    )
    check_schedule(fast, plan(rows, chunk_s=0.001))
    assert "host 'K': it stores" in broken(fast, plan(rows, chunk_s=0.005))


# 100 bytes that take 200 s, so that two seconds are a hundredth of the makespan.
SLOW_LINK = "U -> D 1"
SLOW = ("U", "U D", 0, 0, 100, 0.0, 200.0)


def test_chunks_may_be_shorter_than_the_step_between_floats():
    """Near 1e13 s floats lie 2 ms apart. K is half of that behind, and ends at the next float."""
    end = math.nextafter(1e13, math.inf)
    step = math.nextafter(end, math.inf) - end
    n_bytes = 10**18
    hosts = [Host("S", n_bytes), Host("K", storage_bytes=0), Host("D")]
    problem = Problem.from_hosts(hosts, links("S -> K 1e5, K -> D 1e5"), "D")
    rows = [
        ("S", "S K D", 0, 0, n_bytes, 0.0, end),
        ("S", "S K D", 1, 0, n_bytes, step / 2, end + step),
    ]
    check_schedule(problem, plan(rows, chunk_s=step / 2))
    assert "host 'K': it stores" in broken(problem, plan(rows, chunk_s=0.0))


def test_two_routes_have_a_chunk_each_and_others_data_lie_in_storage():
    """S and T send 10 bytes/s each through K, S a chunk of 2 s ahead, T keeps 30 bytes till 8 s.

    From 5 s to 8 s K stores 20 + 30 bytes; both routes are in flight: 40 bytes of chunks.
    """
    problem = Problem.from_hosts(
        [Host("S", 100), Host("T", 30), Host("K", storage_bytes=10), Host("D"), Host("U", 100)],
        links(f"S -> K 10, T -> K 10, K -> D 20, {SLOW_LINK}"),
        "D",
    )
    rows = [
        ("S", "S K D", 0, 0, 100, 0.0, 10.0),
        ("S", "S K D", 1, 0, 100, 2.0, 12.0),
        ("T", "T K D", 0, 0, 30, 2.0, 5.0),
        ("T", "T K D", 1, 0, 30, 8.0, 11.0),
        SLOW,
    ]
    check_schedule(problem, plan(rows, chunk_s=2.0))
    less = problem.replace(storage_bytes=[math.inf, math.inf, 7.0, math.inf, math.inf])
    message = broken(less, plan(rows, chunk_s=2.0))
    assert "stores 50 bytes of other hosts' data at 5 s" in message
    assert "allow 7 and 40 bytes of chunks in flight: 3 bytes too many" in message


def test_a_route_leaves_no_room_to_another():
    """K keeps 30 bytes of T; S, cut through, has a chunk of 20 bytes that it does not need."""
    problem = Problem.from_hosts(
        [Host("S", 100), Host("T", 30), Host("K", storage_bytes=10), Host("D"), Host("U", 100)],
        links(f"S -> K 10, T -> K 10, K -> D 20, {SLOW_LINK}"),
        "D",
    )
    rows = [
        ("S", "S K D", 0, 0, 100, 0.0, 10.0),
        ("S", "S K D", 1, 0, 100, 0.0, 10.0),
        ("T", "T K D", 0, 0, 30, 2.0, 5.0),
        ("T", "T K D", 1, 0, 30, 8.0, 11.0),
        SLOW,
    ]
    check_schedule(problem, plan(rows, chunk_s=2.0))
    less = problem.replace(storage_bytes=[math.inf, math.inf, 9.0, math.inf, math.inf])
    assert "stores 30 bytes" in broken(less, plan(rows, chunk_s=2.0))


def test_chunk_of_a_later_route_does_not_excuse_what_was_stored_before():
    """At 5 s K stores 50 bytes of S, 10 of them a chunk; T, of 100 bytes/s, comes only then."""
    problem = Problem.from_hosts(
        [Host("S", 50), Host("T", 500), Host("K", storage_bytes=40), Host("D"), Host("U", 100)],
        links(f"S -> K 10, T -> K 100, K -> D 110, {SLOW_LINK}"),
        "D",
    )
    rows = [
        ("S", "S K D", 0, 0, 50, 0.0, 5.0),
        ("S", "S K D", 1, 0, 50, 5.0, 10.0),
        ("T", "T K D", 0, 0, 500, 5.0, 10.0),
        ("T", "T K D", 1, 0, 500, 6.0, 11.0),
        SLOW,
    ]
    check_schedule(problem, plan(rows, chunk_s=1.0))
    less = problem.replace(storage_bytes=[math.inf, math.inf, 39.0, math.inf, math.inf])
    message = broken(less, plan(rows, chunk_s=1.0))
    assert "stores 50 bytes of other hosts' data at 5 s" in message
    assert "allow 39 and 10 bytes of chunks in flight: 1 byte too many" in message


def test_chunk_of_a_route_has_its_highest_rate():
    """10 bytes at 10 bytes/s, then 40 at 40 bytes/s, each 1 s after its arrival."""
    problem = Problem.from_hosts(
        [Host("S", 50), Host("K", storage_bytes=0), Host("D"), Host("U", 100)],
        links(f"S -> K 40, K -> D 40, {SLOW_LINK}"),
        "D",
    )
    rows = [
        ("S", "S K D", hop, first, size, at + hop, at + hop + 1)
        for hop in range(2)
        for first, size, at in ((0, 10, 0.0), (10, 40, 1.0))
    ]
    check_schedule(problem, plan([*rows, SLOW], chunk_s=1.0))
    assert "stores 40 bytes" in broken(problem, plan([*rows, SLOW], chunk_s=0.95))


def test_held_data_lie_at_their_holder_from_the_start():
    """K holds 60 bytes of S and receives 40 more at 10 bytes/s while it sends 10 bytes/s."""
    problem = Problem.from_hosts(
        [Host("S", 100, release_s=1.0), Host("K", storage_bytes=100), Host("D")],
        links("S -> K 10, K -> D 10"),
        "D",
        held=[Held("K", "S", 20, 60)],
    )
    rows = [
        ("S", "K D", 0, 20, 60, 4.0, 10.0),
        ("S", "S K D", 0, 0, 20, 1.0, 3.0),
        ("S", "S K D", 0, 80, 20, 3.0, 5.0),
        ("S", "S K D", 1, 0, 20, 10.0, 12.0),
        ("S", "S K D", 1, 80, 20, 12.0, 14.0),
    ]
    check_schedule(problem, plan(rows))
    less = problem.replace(storage_bytes=[math.inf, 85.0, math.inf])
    assert re.search(
        "'K': it stores 90 bytes .* at 4 s.* allow 85: 5 bytes too", broken(less, plan(rows))
    )
    early = [("S", "S K D", 0, 0, 20, 0.5, 3.0), *rows[:1], *rows[2:]]
    assert "0.5 s before the release of 'S' at 1 s" in broken(problem, plan(early))
    assert "starts at 'K' must lie there, but at 'S' lies: bytes 20 to 24" in broken(
        problem.replace(held=[Held("K", "S", 25, 55)]), plan(rows)
    )


def test_route_may_return_where_storage_is_limited():
    """K has room for nothing, S takes its own data back; they are no other host's there."""
    hosts = [Host("S", 10), Host("K"), Host("L", storage_bytes=1), Host("D")]
    problem = Problem.from_hosts(hosts, links("S -> K 10, K -> S 10, S -> D 10"), "D")
    rows = [("S", "S K S D", hop, 0, 10, hop * 1.0, hop + 1.0) for hop in range(3)]
    check_schedule(problem, plan(rows))


# Forecasts ----------------------------------------------------------------------------------------


def forecast_problem():
    """S -> D carries 10 bytes/s until 2.5 s, then 4 bytes/s, and nothing from 6 s on."""
    return Problem.from_hosts(
        [Host("S", 36), Host("D")], links("S -> D 10 4 0"), "D", periods_s=[0.0, 2.5, 6.0]
    )


def test_each_period_has_its_bandwidth():
    check_schedule(forecast_problem(), direct((25, 0.0, 2.5), (11, 2.5, 5.25)))
    message = broken(forecast_problem(), direct((36, 0.0, 4.5)))
    assert re.search(
        r"link 'S' -> 'D' \(forecast from 2.5 s\): .* 8 bytes/s .*2.5 s to 4.5 s.*: 8 bytes",
        message,
    )
    late = broken(forecast_problem(), direct((25, 0.0, 2.5), (11, 6.0, 9.0)))
    assert "(forecast from 6 s): it has no capacity, but carries bytes 25 to 35" in late


def test_slot_that_straddles_two_periods_has_the_lower_bandwidth():
    """Slots of 1 s: 10, 10, then 4 bytes each in [2, 3), [3, 4) ...: 36 bytes take 6 slots."""
    valid = direct((20, 0.0, 2.0), (16, 2.0, 6.0), slot_s=1.0)
    check_schedule(forecast_problem(), valid)
    # As a fluid, 7 bytes could move between 2 s and 3 s: 5 until 2.5 s, then 2.
    message = broken(
        forecast_problem(), direct((20, 0.0, 2.0), (7, 2.0, 3.0), (9, 3.0, 6.0), slot_s=1.0)
    )
    assert re.search(
        r"\(forecast from 2 s\): .* 7 bytes/s together from 2 s to 3 s.*4 .*: 3 bytes", message
    )


def test_a_pause_has_the_room_of_each_of_its_periods():
    """100 bytes/s, but 0.001 bytes/s from 10 s to 20 s; two transfers are 0.9 bytes too many each.

    Until 20 s their pause has room for 0.01 bytes, until 20.009 s for 0.91: then no stretch has
    more than 0.9 bytes too many.
    """
    problem = Problem.from_hosts(
        [Host("S", 2000), Host("D")], links("S -> D 100 1e-3 100"), "D", periods_s=[0.0, 10.0, 20.0]
    )
    first = (1000, 0.009, 10.0)
    check_schedule(problem, direct(first, (1000, 20.009, 30.0)))
    assert "2 transfers at up to 100.09" in broken(problem, direct(first, (1000, 20.0, 29.991)))


def test_period_that_begins_on_the_grid_but_for_rounding_leaves_the_slot_before_alone():
    """3 slots of 0.1 s end at 0.30000000000000004 s, after the period that begins at 0.3 s."""
    problem = Problem.from_hosts(
        [Host("S", 3_000_010), Host("D")],
        links("S -> D 1e7 1e2"),
        "D",
        periods_s=[0.0, 0.3],
    )
    check_schedule(problem, direct((3_000_000, 0.0, 3 * 0.1), (10, 3 * 0.1, 4 * 0.1), slot_s=0.1))


def test_two_transfers_of_one_route_have_the_chunk_of_both_rates():
    """A held range splits S's backlog: two transfers at half the rate, one chunk at all of it."""
    million = 10**6
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 60 * million), dc.Host("K", storage_bytes=0), dc.Host("D")],
        [dc.Link("S", "K", million), dc.Link("K", "D", million)],
        "D",
        held=[dc.Held("D", "S", 20 * million, 20 * million)],
    )
    plan = dc.coordinated(problem)
    assert len(plan.transfers.query("hop == 0")) == 2
    plan.check(problem)
