"""Relays with little room, and the size of pieces, by hand."""

from __future__ import annotations

import pytest
from instances.by_hand import sends
from instances.planned_anew import Planner, drive_of, observed, over_k, straight, triangle

from datacollect.control.events import Timer
from datacollect.errors import ProblemError


def test_a_relay_is_sent_no_more_than_it_has_room_for():
    """Room for 40 bytes: four pieces on their way to K fill it. One that went on and is at D makes
    room for the next; being held up the link to K is not observed."""
    planner = Planner(over_k(50, 150))
    drive, first = drive_of(over_k(), planner, room_bytes={"K": 40})
    assert len(sends(first)) == 4
    assert sends(drive.arrive(1.0, 0)) == [(1, 0, 10)]
    assert sends(drive.arrive(2.0, 1)) == [(0, 40, 10)]
    drive.arrive(3.0, 0)
    drive.tell(Timer(10.0, 0))
    assert observed(planner.asked[0]) == {}


def test_pieces_are_a_quarter_of_the_least_room_at_most():
    _, first = drive_of(over_k(), room_bytes={"K": 12, "S": 1e9})
    assert {n for _, _, n in sends(first)} <= {2, 3}
    assert sum(n for _, _, n in sends(first)) <= 12
    with pytest.raises(ProblemError, match=r"host 'K': its room .* must be >= 4 bytes .* got 0"):
        drive_of(over_k(), room_bytes={"K": 0.0})


def test_pieces_of_a_large_collection_are_a_4000th_of_it_and_64_kib_at_most():
    """And 8 KiB at least; a range is cut evenly."""
    for n_bytes, piece in ((100_000, 8192), (40_000_000, 10_000), (10**9, 1 << 16)):
        plan = straight(n_bytes=n_bytes)
        _, first = drive_of(plan, problem=triangle(n_bytes), piece_bytes=None)
        assert sends(first)[0][2] == n_bytes // -(-n_bytes // piece)
