"""Trains of pairs: gaps of those that arrived, and how many more are to be sent."""

from __future__ import annotations

import numpy as np
import pytest
from measuring.probes.fifo import PACKET_BYTES, arrival_gaps

from datacollect.errors import ProblemError
from datacollect.measuring.probes.packet_pairs import AvailableBandwidth
from datacollect.measuring.probes.pair_trains import (
    apart_s,
    arrival_gaps_s,
    capacity_by_train,
    found_by_train,
    more_pairs,
)

MBIT = 1e6 / 8


def test_packets_that_come_in_another_order_keep_their_pairs():
    """Pair 0 comes after pair 1; of pair 2 the second overtakes the first."""
    arrivals = [(2, 100), (3, 400), (0, 1000), (1, 1700), (5, 2000), (4, 2100)]
    assert arrival_gaps_s(arrivals, range(3))[:2] == [7e-7, 3e-7]
    assert np.isnan(arrival_gaps_s(arrivals, range(3))[2])
    assert arrival_gaps_s(arrivals, range(1, 2)) == [3e-7]
    assert np.isnan(arrival_gaps_s([], range(2))).all()


def test_pairs_that_did_not_leave_are_left_out_and_not_late():
    """A wire of 1 MB/s: 1000 bytes take 1 ms, and 30 of 50 pairs have 1.4 ms between them."""
    sent = [0.001, None, 0.001, None, 0.001] * 10
    arrivals = []
    for k, gap in enumerate(sent, 7):
        arrivals.append((2 * k, k * 10**8))
        if gap is not None:
            arrivals.append((2 * k + 1, k * 10**8 + 1_400_000))
    found = found_by_train(1e6, 1000, 7, sent, arrivals, 0.15)
    assert (found.n_pairs, round(found.bytes_per_s)) == (30, 600_000)
    for none in ([], [None, None]):
        with pytest.raises(ProblemError, match="no packet pairs left with the wanted gap"):
            found_by_train(1e6, 1000, 7, none, arrivals, 0.15)


def test_a_sender_that_spreads_pairs_itself_tells_no_capacity():
    """1500 bytes arrive 0.1 ms apart, 120 Mbit/s; that counts if they left closer together."""
    arrivals = [(2 * k + i, k * 10**9 + i * 100_000) for k in range(20) for i in (0, 1)]
    assert capacity_by_train(1500, [7e-5] * 20, arrivals) == 15e6
    with pytest.raises(ProblemError, match=r"arrived 100 µs apart, .* the 90 µs .* cannot space"):
        capacity_by_train(1500, [9e-5] * 20, arrivals)
    with pytest.raises(ProblemError, match="at least 20 pairs that arrived, got 10"):
        capacity_by_train(1500, [7e-5, None] * 10, arrivals)


def test_slow_wires_have_room_between_pairs():
    """Two packets of 1500 bytes fill a fifth of what passes between two pairs, at most."""
    assert apart_s(1500, 20 * MBIT) == 0.02
    for mbit in (0.1, 1.0, 5.0):
        both_take_s = 2 * 1500 / (mbit * MBIT)
        assert both_take_s / apart_s(1500, mbit * MBIT) == pytest.approx(0.2)


def test_no_more_pairs_are_sent_than_can_help():
    sure = AvailableBandwidth(1.0, 0.9, 1.1, 100, 20)
    unsure = AvailableBandwidth(1.0, 0.1, 1.9, 90, 2000)
    assert more_pairs(0, None) == 100
    assert more_pairs(60, None) == 40
    assert more_pairs(100, sure) == 0
    assert more_pairs(100, unsure) == 100
    assert more_pairs(1950, unsure) == 50
    assert more_pairs(2000, unsure) == 0


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.0, 0.3, 0.6])
def test_who_stops_when_it_is_sure_is_right_all_the_same(load):
    """Stopping at an interval that is narrow by luck favours high numbers: by little here."""
    capacity, errors = 20 * MBIT, []
    for seed in range(3000, 3040):
        gap = np.full(2000, PACKET_BYTES / capacity)
        arrived = arrival_gaps(capacity, load, gap, seed)
        arrivals = []
        for k, gap_s in enumerate(arrived):
            arrivals += [(2 * k, k * 10**9), (2 * k + 1, k * 10**9 + round(gap_s * 1e9))]
        sent, found = [], None
        while n := more_pairs(len(sent), found):
            sent += [gap[0]] * n
            found = found_by_train(capacity, PACKET_BYTES, 0, sent, arrivals, 0.15)
        true = capacity * (1 - load)
        width = (found.bytes_per_s - found.low_bytes_per_s) / true
        errors.append(found.bytes_per_s / true - 1)
        assert abs(errors[-1]) <= 0.15 + width
    assert abs(np.mean(errors)) <= 0.03
