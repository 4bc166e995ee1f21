"""The judge of schedules: storage, slots and forecasts."""

from __future__ import annotations

import math
import re

import numpy as np
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


# Slots --------------------------------------------------------------------------------------------


def slotted_problem(**options):
    """S1 and S2 hold 2 MB each; S2 reaches D through K only."""
    return Problem.from_hosts(
        [
            Host("S1", 1_500_000),
            Host("S2", 1_000_000, **options),
            Host("K", storage_bytes=500_000),
            Host("D"),
        ],
        links("S1 -> D 1e6, S2 -> K 1e6, K -> D 1e6"),
        "D",
    )


SLOTTED = [
    ("S1", "S1 D", 0, 0, 1_500_000, 0.0, 1.5),
    ("S2", "S2 K D", 0, 0, 1_000_000, 0.0, 1.0),
    ("S2", "S2 K D", 1, 0, 500_000, 0.5, 1.0),
    ("S2", "S2 K D", 1, 500_000, 500_000, 1.0, 1.5),
]


def test_slotted_schedule_that_stores_one_slot_is_valid():
    check_schedule(slotted_problem(), plan(SLOTTED, slot_s=0.5))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [*SLOTTED[:2], ("S2", "S2 K D", 1, 0, 1_000_000, 0.3, 1.5)],
            r"starts at 0.3 s, 0.2 s off the grid of slots of 0.5 s",
        ),
        (
            [SLOTTED[0], SLOTTED[1], ("S2", "S2 K D", 1, 0, 1_000_000, 0.5, 1.6)],
            r"finishes at 1.6 s, 0.1 s off the grid",
        ),
        (
            [SLOTTED[0], SLOTTED[1], ("S2", "S2 K D", 1, 0, 1_000_000, 0.0, 1.5)],
            r"byte 0 of 'S2' at relay 'K', .*: arrives in slot 0 and leaves in slot 0, 1 slot too",
        ),
        (
            [
                *SLOTTED[:2],
                ("S2", "S2 K D", 1, 0, 500_002, 0.5, 1.0),
                ("S2", "S2 K D", 1, 500_002, 499_998, 1.0, 1.5),
            ],
            r"byte 50000[01] of 'S2' at relay 'K', .*: arrives in slot 1 and leaves in slot 1",
        ),
        (
            [
                SLOTTED[0],
                ("S2", "S2 K D", 0, 500_000, 500_000, 0.0, 0.5),
                ("S2", "S2 K D", 0, 0, 500_000, 0.5, 1.0),
                *SLOTTED[2:],
            ],
            r"byte 0 of 'S2' at relay 'K', .*: arrives in slot 1 and leaves in slot 1, 1 slot too",
        ),
        (
            [*SLOTTED[:2], ("S2", "S2 K D", 1, 0, 1_000_000, 1.0, 2.0)],
            r"host 'K': it stores 1000000 bytes .* at 1 s.* allow 500000: 500000 bytes too many",
        ),
    ],
)
def test_slotted_schedule_with_one_change(rows, message):
    assert re.search(message, broken(slotted_problem(), plan(rows, slot_s=0.5)))


def test_no_room_means_no_relay_in_slots():
    problem = slotted_problem().replace(storage_bytes=[math.inf, math.inf, 0.0, math.inf])
    message = broken(problem, plan(SLOTTED, slot_s=0.5))
    assert "host 'K': it stores 500000 bytes of other hosts' data at 0.5 s" in message
    one = Problem.from_hosts(
        [Host("S", 1), Host("K", storage_bytes=0), Host("D")], links("S -> K 9, K -> D 9"), "D"
    )
    rows = [("S", "S K D", 0, 0, 1, 0.0, 1.0), ("S", "S K D", 1, 0, 1, 1.0, 2.0)]
    assert "stores 1 byte of" in broken(one, plan(rows, slot_s=1.0))


def test_data_released_inside_a_slot_leave_in_the_next():
    """Released at 0.2 s, S2's data may leave from 0.5 s on; they leave at 0 s."""
    message = broken(slotted_problem(release_s=0.2), plan(SLOTTED, slot_s=0.5))
    assert "0.2 s before the release of 'S2' at 0.2 s" in message
    later = [SLOTTED[0], *((*row[:5], row[5] + 0.5, row[6] + 0.5) for row in SLOTTED[1:])]
    check_schedule(slotted_problem(release_s=0.2), plan(later, slot_s=0.5))


def test_each_part_of_a_byte_leaves_in_a_later_slot():
    """10 bytes arrive in 3 slots: 3.33 in each. They leave as 3, 3 and 4; as 4, 3 and 3 too soon.

    Of the fourth byte a third arrives in the first slot and two thirds in the second, in which it
    must not leave yet.
    """
    problem = Problem.from_hosts(
        [Host("S", 10), Host("K"), Host("D")], links("S -> K 9, K -> D 9"), "D"
    )

    def apart(hop, *sizes):
        offsets = np.cumsum([0, *sizes]).tolist()
        return [
            ("S", "S K D", hop, offset, size, 0.0 + hop + i, 1.0 + hop + i)
            for i, (offset, size) in enumerate(zip(offsets, sizes, strict=False))
        ]

    together = [("S", "S K D", hop, 0, 10, 0.0 + hop, 3.0 + hop) for hop in range(2)]
    check_schedule(problem, plan(together, slot_s=1.0))
    check_schedule(problem, plan([together[0], *apart(1, 3, 3, 4)], slot_s=1.0))
    check_schedule(problem, plan([*apart(0, 4, 3, 3), together[1]], slot_s=1.0))
    message = broken(problem, plan([together[0], *apart(1, 4, 3, 3)], slot_s=1.0))
    assert "byte 3 of 'S' at relay 'K'" in message
    message = broken(problem, plan([*apart(0, 3, 4, 3), together[1]], slot_s=1.0))
    assert "byte 3 of 'S' at relay 'K'" in message


@pytest.mark.parametrize(
    ("rows", "early"),
    [
        # 50 bytes arrive in each of slots 0 and 1, and 20 more in slot 0; 60 leave in slot 1.
        ([(0, 0, 100, 0, 2), (0, 100, 20, 0, 1), (1, 0, 120, 1, 3)], (50, 1)),
        # 25 arrive in each of slots 3 to 6, and leave at half that rate: only the first too early.
        ([(0, 0, 100, 3, 7), (1, 0, 100, 3, 11)], (0, 3)),
        # 30 arrive per slot; from byte 29 on, 15 leave per slot: only bytes 30 ... 43 are early.
        ([(0, 0, 90, 0, 3), (1, 0, 29, 1, 2), (1, 29, 60, 1, 5), (1, 89, 1, 3, 4)], (30, 1)),
        # Bytes 10 + 30 i ... arrive in slot 1 + i, 40 leave per slot from slot 2 on: 70 ... 79.
        ([(0, 0, 10, 0, 1), (0, 10, 90, 1, 4), (0, 100, 20, 0, 1), (1, 0, 120, 2, 5)], (70, 3)),
    ],
)
def test_byte_amid_a_transfer_that_leaves_too_early_is_found(rows, early):
    problem = Problem.from_hosts(
        [Host("S", sum(row[2] for row in rows) // 2), Host("K"), Host("D")],
        links("S -> K 900, K -> D 900"),
        "D",
    )
    schedule = plan([("S", "S K D", *row) for row in rows], slot_s=1.0)
    message = broken(problem, schedule)
    # The very first may pass for one that a slot's end cuts.
    byte, slot = early
    assert re.search(
        f"byte ({byte}|{byte + 1}) of 'S' at relay 'K', .* slot {slot} and .* slot {slot}", message
    )


def test_how_many_slots_too_early_is_told():
    problem = Problem.from_hosts(
        [Host("S", 90), Host("K"), Host("D")], links("S -> K 90, K -> D 90"), "D"
    )
    rows = [("S", "S K D", 0, 0, 90, 3.0, 4.0), ("S", "S K D", 1, 0, 90, 1.0, 2.0)]
    assert "arrives in slot 3 and leaves in slot 1, 3 slots too early" in broken(
        problem, plan(rows, slot_s=1.0)
    )


def test_rates_in_slots_of_two_seconds_are_told_per_second():
    """The judge counts in slots; who reads it does not."""
    problem = Problem.from_hosts([Host("S", 60), Host("D")], links("S -> D 10"), "D")
    schedule = direct((60, 2.0, 6.0), slot_s=2.0)
    assert (
        "1 transfer at up to 15 bytes/s together from 2 s to 6 s, "
        "its capacity is 10 bytes/s: 20 bytes too many"
    ) in broken(problem, schedule)
    message = broken(problem.replace(bandwidth_bytes_per_s=[[0.0]]), schedule)
    assert message.endswith("from 2 s to 6 s, at 15 bytes/s")


def test_a_transfer_by_itself_is_told_per_second():
    """42 bytes in 4 s over 10.05 bytes/s: 1.8 too many, beside another route's byte in 400 s."""
    problem = Problem.from_hosts(
        [Host("S", 43, uplink_bytes_per_s=10.05), Host("K"), Host("D")],
        links("S -> D 50, S -> K 50, K -> D 50"),
        "D",
    )
    rows = [
        ("S", "S D", 0, 0, 42, 0.0, 4.0),
        ("S", "S K D", 0, 42, 1, 0.0, 400.0),
        ("S", "S K D", 1, 42, 1, 400.0, 402.0),
    ]
    message = broken(problem, plan(rows, slot_s=2.0))
    assert re.search(
        "uplink of host 'S': bytes 0 to 41 .* by itself has 10.5 bytes/s, "
        "the capacity is 10.05 bytes/s: 1.8 bytes too many",
        message,
    )


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
