"""The grid of store-and-forward schedules, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from instances.hand_made import links

from datacollect.errors import ProblemError
from datacollect.flow.network.pools import pools_by_host, pools_by_owner
from datacollect.methods.timing.slots import (
    MOST_SLOTS,
    SlotPiece,
    cut_at,
    fewest_slots,
    require_slots,
    slot_bandwidth_bytes_per_s,
    slot_bandwidth_row,
    slots_until,
    slots_within,
    slotted_transfers,
    whole_slot_bytes,
)
from datacollect.problem.hosts import Held, Host
from datacollect.problem.problem import Problem


def chain(backlog_bytes=6, **options):
    """S -> K -> D, hosts 0, 1, 2."""
    return Problem.from_hosts(
        [Host("S", backlog_bytes), Host("K"), Host("D")],
        links("S -> K 4, K -> D 4"),
        "D",
        **options,
    )


def rows(columns):
    """Transfers as tuples (route, hop, offset, bytes, start, finish)."""
    names = ("route", "hop", "offset_bytes", "n_bytes", "start_s", "finish_s")
    return list(zip(*(getattr(columns, name).tolist() for name in names), strict=True))


@pytest.mark.parametrize(
    ("time_s", "slot_s", "expected"),
    [(0.0, 1.0, 0), (0.25, 1.0, 1), (1.0, 1.0, 1), (1.01, 1.0, 2), (2.1, 0.7, 3)],
)
def test_slots_until_counts_the_slots_that_have_begun(time_s, slot_s, expected):
    assert slots_until(time_s, slot_s) == expected


def test_rounding_does_not_add_a_slot():
    """0.1 + 0.2 is a hair more than three tenths: still three slots."""
    assert 0.1 + 0.2 > 0.3
    assert slots_until(0.1 + 0.2, 0.1) == 3


def test_a_slot_touches_every_period_it_overlaps():
    """Periods from 0, 1.5 and 2.0 s; slots of 1 s: [0, 1) one, [1, 2) two, [2, 3) the last."""
    problem = Problem.from_hosts(
        [Host("S", 6), Host("D")], links("S -> D 4 1 2"), "D", periods_s=[0.0, 1.5, 2.0]
    )
    touched = [slot_bandwidth_row(problem, slot, 1.0).tolist() for slot in range(4)]
    assert touched == [[0], [0, 1], [2], [2]]
    assert slot_bandwidth_row(problem, 0, 5.0).tolist() == [0, 1, 2]
    lowest = [slot_bandwidth_bytes_per_s(problem, slot, 1.0).item() for slot in range(4)]
    assert lowest == [4.0, 1.0, 2.0, 2.0]


def test_a_period_that_begins_on_the_grid_does_not_touch_the_slot_before():
    """0.3 s is three slots of 0.1 s, although 3 * 0.1 is a hair more than 0.3."""
    problem = Problem.from_hosts(
        [Host("S", 6), Host("D")], links("S -> D 4 1"), "D", periods_s=[0.0, 0.3]
    )
    assert [slot_bandwidth_row(problem, slot, 0.1).tolist() for slot in range(4)] == [
        [0],
        [0],
        [0],
        [1],
    ]


def test_a_slot_carries_whole_bytes():
    """2.5 bytes/s for 1 s: 2; a product a hair below a whole number counts as whole."""
    rates = np.array([2.5, 0.3, 3.0 * (1 - 1e-12), 100.0])
    assert whole_slot_bytes(rates, 1.0, 50).tolist() == [2, 0, 3, 50]


def test_too_many_slots_are_refused_with_the_remedy():
    require_slots(MOST_SLOTS - 1)
    with pytest.raises(ProblemError, match=r"slot_s is too short.*use a longer slot"):
        require_slots(MOST_SLOTS)


def test_equal_neighbouring_slots_become_one_transfer():
    """2, 2, 2 bytes in slots 0, 1, 2: one transfer of 6 bytes from 0 to 1.5 s."""
    problem = chain()
    (pool,) = pools_by_host(problem)
    pieces = [SlotPiece(0, hop, slot + hop, 2) for hop in range(2) for slot in range(3)]
    routes, columns = slotted_transfers(problem, [(pool, (0, 1, 2))], pieces, 0.5)
    assert [(route.source, route.hosts) for route in routes] == [("S", ("S", "K", "D"))]
    assert rows(columns) == [(0, 0, 0, 6, 0.0, 1.5), (0, 1, 0, 6, 0.5, 2.0)]


def test_a_change_of_amount_or_a_gap_begins_a_new_transfer():
    """3 bytes in slot 0, 1 in slot 1, none in slot 2, 2 in slot 3."""
    problem = chain()
    (pool,) = pools_by_host(problem)
    pieces = [
        *(SlotPiece(0, 0, slot, n) for slot, n in ((3, 2), (0, 3), (1, 1))),
        *(SlotPiece(0, 1, slot, n) for slot, n in ((4, 4), (5, 2))),
    ]
    _, columns = slotted_transfers(problem, [(pool, (0, 1, 2))], pieces, 1.0)
    assert rows(columns) == [
        (0, 0, 0, 3, 0.0, 1.0),
        (0, 0, 3, 1, 1.0, 2.0),
        (0, 0, 4, 2, 3.0, 4.0),
        (0, 1, 0, 4, 4.0, 5.0),
        (0, 1, 4, 2, 5.0, 6.0),
    ]


def test_a_gap_between_equal_amounts_begins_a_new_transfer():
    """2 bytes in slot 0, none in slot 1, 2 in slot 2."""
    problem = Problem.from_hosts([Host("S", 4), Host("D")], links("S -> D 4"), "D")
    (pool,) = pools_by_host(problem)
    pieces = [SlotPiece(0, 0, 0, 2), SlotPiece(0, 0, 2, 2)]
    _, columns = slotted_transfers(problem, [(pool, (0, 1))], pieces, 1.0)
    assert rows(columns) == [(0, 0, 0, 2, 0.0, 1.0), (0, 0, 2, 2, 2.0, 3.0)]


def test_jobs_of_one_pool_follow_one_another_in_its_data():
    """The route by K takes bytes 0 to 3, the direct one 4 and 5; pieces of one slot add up."""
    problem = Problem.from_hosts(
        [Host("S", 6), Host("K"), Host("D")], links("S -> K 4, K -> D 4, S -> D 4"), "D"
    )
    (pool,) = pools_by_host(problem)
    pieces = [
        SlotPiece(0, 0, 0, 1),
        SlotPiece(0, 0, 0, 3),
        SlotPiece(0, 1, 1, 4),
        SlotPiece(1, 0, 0, 2),
    ]
    routes, columns = slotted_transfers(problem, [(pool, (0, 1, 2)), (pool, (0, 2))], pieces, 1.0)
    assert [route.hosts for route in routes] == [("S", "K", "D"), ("S", "D")]
    assert rows(columns) == [
        (0, 0, 0, 4, 0.0, 1.0),
        (1, 0, 4, 2, 0.0, 1.0),
        (0, 1, 0, 4, 1.0, 2.0),
    ]


def test_a_slot_may_hold_data_of_several_sources():
    """K holds bytes 1 and 2 of S, and bytes 0 to 2 of its own: 4 bytes a slot, first 2 + 2."""
    problem = Problem.from_hosts(
        [Host("S", 3), Host("K", 3), Host("D")],
        links("S -> D 1, K -> D 4"),
        "D",
        held=[Held("K", "S", 1, 2)],
    )
    pool = next(pool for pool in pools_by_host(problem) if pool.host == 1)
    routes, columns = slotted_transfers(
        problem, [(pool, (1, 2))], [SlotPiece(0, 0, 0, 4), SlotPiece(0, 0, 1, 1)], 1.0
    )
    moved = [
        (routes[route].source, offset, n_bytes, start)
        for route, _, offset, n_bytes, start, _ in rows(columns)
    ]
    assert sorted(moved) == [("K", 0, 2, 0.0), ("K", 2, 1, 1.0), ("S", 1, 2, 0.0)]


def test_pieces_may_come_as_a_table():
    """The same four columns as an array: job, hop, slot, bytes."""
    problem = chain()
    (pool,) = pools_by_host(problem)
    pieces = [SlotPiece(0, hop, slot + hop, 2) for hop in range(2) for slot in range(3)]
    jobs = [(pool, (0, 1, 2))]
    by_list, by_table = (
        slotted_transfers(problem, jobs, table, 0.5)[1] for table in (pieces, np.array(pieces))
    )
    assert rows(by_table) == rows(by_list)


def test_no_pieces_are_no_transfers():
    routes, columns = slotted_transfers(chain(), [], [], 1.0)
    assert (routes, len(columns)) == ((), 0)


def test_ranges_are_cut_at_bounds_and_at_no_others():
    """Bounds 0, 4, 9: 0-4 and 4-9 stay whole, 3-5 is cut, and 0-9 becomes both intervals."""
    begin, end = np.array([0, 4, 3, 0]), np.array([4, 9, 5, 9])
    parts = cut_at(np.array([0, 4, 9]), begin, end)
    assert list(zip(*(part.tolist() for part in parts), strict=True)) == [
        (0, 0, 0, 4),
        (1, 1, 4, 9),
        (2, 0, 3, 4),
        (2, 1, 4, 5),
        (3, 0, 0, 4),
        (3, 1, 4, 9),
    ]


def test_own_and_held_data_are_pools_apart_for_methods_by_owner():
    problem = Problem.from_hosts(
        [Host("S", 3), Host("K", 3), Host("D")],
        links("S -> D 1, K -> D 4"),
        "D",
        held=[Held("K", "S", 1, 2)],
    )
    by_owner = [(pool.host, pool.is_own, pool.n_bytes) for pool in pools_by_owner(problem)]
    assert sorted(by_owner) == [(0, True, 1), (1, False, 2), (1, True, 3)]
    assert [(pool.host, pool.n_bytes) for pool in pools_by_host(problem)] == [(0, 1), (1, 5)]


def test_a_deadline_between_two_slots_counts_whole_slots():
    assert [slots_within(time_s, 0.1) for time_s in (0.3, 0.1 + 0.2, 0.39, 0.05)] == [3, 3, 3, 0]


def test_an_end_just_behind_a_boundary_by_rounding_takes_no_slot_more():
    ends_s = (0.0, 0.05, 0.1 + 0.2, 0.3 * (1 + 1e-10), 0.3 * (1 + 1e-8))
    assert [fewest_slots(end_s, 0.1) for end_s in ends_s] == [1, 1, 3, 3, 4]
