"""The judge of schedules: slots."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from instances.hand_made import broken, direct, links, plan

from datacollect import Host, Problem
from datacollect.schedule.check.judge import check_schedule


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
    slots = f"arrives in slot {slot} and leaves in slot {slot}, 1 slot too early"
    assert re.search(
        f"byte ({byte}|{byte + 1}) of 'S' at relay 'K', on its way to 'D': {slots}", message
    ), message


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
