"""Packet pairs through a wire whose capacity and load are known."""

from __future__ import annotations

import numpy as np
import pytest
from measuring.probes.fifo import PACKET_BYTES, arrival_gaps

from datacollect.errors import ProblemError
from datacollect.measuring.probes.packet_pairs import available_bandwidth, capacity_bytes_per_s

MBIT = 1e6 / 8


def back_to_back(capacity, load, seed, n=20):
    """The two follow each other over an access ten times as fast."""
    return arrival_gaps(capacity, load, np.full(n, PACKET_BYTES / (10 * capacity)), seed)


def spaced(capacity, load, seed, n, spread=0.0):
    """Return gaps as sent, off by at most a part, and as they arrive."""
    off = np.random.default_rng(seed + 10**6).uniform(-spread, spread, n)
    sent = PACKET_BYTES / capacity * (1 + off)
    return sent, arrival_gaps(capacity, load, sent, seed)


@pytest.mark.parametrize("capacity", [5 * MBIT, 20 * MBIT])
@pytest.mark.parametrize("load", [0.0, 0.3, 0.6])
def test_the_median_of_twenty_pairs_gives_the_capacity_at_any_load(capacity, load):
    for seed in range(1000, 1020):
        found = capacity_bytes_per_s(PACKET_BYTES, back_to_back(capacity, load, seed))
        assert found == pytest.approx(capacity, rel=0.05)


@pytest.mark.parametrize("capacity", [5 * MBIT, 20 * MBIT])
@pytest.mark.parametrize("load", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("spread", [0.0, 0.09])
def test_the_available_bandwidth_is_within_its_interval_and_a_little(capacity, load, spread):
    """What is left is C (1 - load). Gaps that are a little off cost nothing on an idle wire."""
    for seed in range(1000, 1010):
        sent, arrived = spaced(capacity, load, seed, 400, spread)
        found = available_bandwidth(capacity, PACKET_BYTES, sent, arrived)
        true = capacity * (1 - load)
        width = found.bytes_per_s - found.low_bytes_per_s
        assert abs(found.bytes_per_s - true) <= 0.15 * true + width
        assert 0 < found.low_bytes_per_s <= found.bytes_per_s <= found.high_bytes_per_s <= capacity
        if load == 0:
            assert found.bytes_per_s == pytest.approx(true, rel=1e-6)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    """95 % of 300; three standard deviations of that count are 11."""
    inside = 0
    for seed in range(2000, 2300):
        sent, arrived = spaced(20 * MBIT, 0.5, seed, 200)
        found = available_bandwidth(20 * MBIT, PACKET_BYTES, sent, arrived)
        inside += found.low_bytes_per_s <= 10 * MBIT <= found.high_bytes_per_s
    assert inside >= 285 - 11


def test_as_many_pairs_as_the_half_width_needs():
    """20 pairs say how many are needed; with these the interval is about as narrow as wanted."""
    sent, arrived = spaced(5 * MBIT, 0.6, 1000, 100)
    needed = available_bandwidth(5 * MBIT, PACKET_BYTES, sent, arrived).pairs_needed
    assert 150 < needed < 1500
    sent, arrived = spaced(5 * MBIT, 0.6, 1001, needed)
    found = available_bandwidth(5 * MBIT, PACKET_BYTES, sent, arrived)
    assert found.high_bytes_per_s - found.bytes_per_s < 1.3 * 0.15 * found.bytes_per_s
    narrower = available_bandwidth(5 * MBIT, PACKET_BYTES, sent, arrived, half_width=0.1)
    assert narrower.pairs_needed == pytest.approx(2.25 * found.pairs_needed, rel=0.01)


def test_without_others_twenty_pairs_are_enough_and_on_a_full_wire_none_are():
    gaps = np.full(20, 0.001)
    assert available_bandwidth(1e6, 1000, gaps, gaps).pairs_needed == 20
    full = np.where(np.arange(20) % 2, 0.0019, 0.0023)
    found = available_bandwidth(1e6, 1000, gaps, full)
    assert (found.bytes_per_s, found.low_bytes_per_s) == (0.0, 0.0)
    assert found.pairs_needed == 2000


def test_each_pair_is_judged_by_the_gap_with_which_it_left():
    """1000 bytes take 1 ms. Alone on the wire, what left 0.95 ms apart arrives 1 ms apart, and what
    left 1.05 ms apart arrives so: there are no others in either case.
    """
    sent = np.tile([0.00095, 0.00105], 10)
    arrived = np.tile([0.001, 0.00105], 10)
    assert available_bandwidth(1e6, 1000, sent, arrived).bytes_per_s == pytest.approx(1e6)
    # 95 bytes of others in the 0.95 ms before: a tenth of the wire.
    found = available_bandwidth(1e6, 1000, np.full(20, 0.00095), np.full(20, 0.001095))
    assert found.bytes_per_s == pytest.approx(0.9e6)


def test_no_more_than_the_capacity_is_available():
    found = available_bandwidth(1e6, 1000, [0.001] * 20, [0.0009] * 20)
    assert (found.bytes_per_s, found.high_bytes_per_s) == (1e6, 1e6)


def test_a_sender_that_does_not_keep_to_the_gaps_is_refused():
    sent = np.full(100, 0.001)
    sent[:10] = 0.00111
    assert available_bandwidth(1e6, 1000, sent, sent).n_pairs == 90
    sent[10] = 0.00089
    with pytest.raises(ProblemError) as raised:
        available_bandwidth(1e6, 1000, sent, sent)
    assert str(raised.value) == (
        "only 89 of 100 packet pairs left within 10% of the wanted gap of 1 ms, but 90% must; the "
        "sending host is too busy: try again when it is idle"
    )


def test_lost_pairs_do_not_count():
    arrived = np.full(30, 0.001)
    arrived[:10] = np.nan
    assert available_bandwidth(1e6, 1000, [0.001] * 30, arrived).n_pairs == 20
    arrived[10] = np.nan
    with pytest.raises(ProblemError, match="at least 20 pairs that arrived, got 19; send more"):
        available_bandwidth(1e6, 1000, [0.001] * 30, arrived)


def test_lost_pairs_do_not_count_for_the_capacity_either():
    arrived = np.append(np.full(20, 0.001), np.nan)
    assert capacity_bytes_per_s(1000, arrived) == 1e6
    with pytest.raises(ProblemError, match="at least 20 pairs that arrived, got 19; send more"):
        capacity_bytes_per_s(1000, arrived[1:])


@pytest.mark.parametrize(("mbit", "is_told"), [(99, True), (101, False)])
def test_fast_paths_are_refused_with_the_reason(mbit, is_told):
    gap = np.full(20, PACKET_BYTES / (mbit * MBIT))
    assert capacity_bytes_per_s(PACKET_BYTES, gap) == pytest.approx(mbit * MBIT)
    if is_told:
        available_bandwidth(mbit * MBIT, PACKET_BYTES, gap, gap)
        return
    message = "paths above 100 Mbit/s: no sender keeps such small gaps; this path has 101 Mbit/s"
    with pytest.raises(ProblemError, match=message):
        available_bandwidth(mbit * MBIT, PACKET_BYTES, gap, gap)


def test_capacities_beyond_clocks_are_refused():
    with pytest.raises(
        ProblemError, match="cannot measure capacities above 300 Mbit/s: 1500 bytes"
    ):
        capacity_bytes_per_s(PACKET_BYTES, np.full(20, 3.9e-5))
    with pytest.raises(ProblemError, match="1500 bytes came 0 s apart; test with connections"):
        capacity_bytes_per_s(PACKET_BYTES, np.zeros(20))


@pytest.mark.parametrize("gaps", [[], [[0.1]], [-0.1], [np.inf]])
def test_wrong_gaps_are_refused(gaps):
    with pytest.raises(ProblemError, match="must be a list of seconds >= 0, at least one"):
        capacity_bytes_per_s(1000, gaps)


def test_gaps_of_other_pairs_are_refused():
    with pytest.raises(ProblemError, match="must be of the same pairs, got 20 and 21"):
        available_bandwidth(1e6, 1000, [0.001] * 20, [0.001] * 21)
