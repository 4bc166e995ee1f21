"""Rates by two clocks, and what limited a test."""

from __future__ import annotations

import pytest

from datacollect.measuring.probes.tcp_rates import (
    APPLICATION,
    NETWORK,
    RATE,
    RECEIVER,
    SEND_BUFFER,
    limited_by,
    tcp_rates,
)


def test_slow_start_is_left_out_of_the_second_clock():
    """A second to connect, a second each at 1, 2, 4, and then 8 bytes per second for 6 s: 48."""
    totals = [0, 0, 1, 3, 7, 15, 23, 31, 39, 47, 55]
    rates = tcp_rates([(float(at), n) for at, n in enumerate(totals)])
    assert rates.from_connect_bytes_per_s == 5.5
    assert rates.flowing_bytes_per_s == 8.0
    assert (rates.flowing_from_s, rates.n_bytes, rates.duration_s) == (4.0, 55, 10.0)


def test_a_steady_rate_is_the_same_by_both_clocks():
    rates = tcp_rates([(0.0, 0), (1.0, 5), (2.0, 10)])
    assert rates.from_connect_bytes_per_s == rates.flowing_bytes_per_s == 5.0


@pytest.mark.parametrize("curve", [[(0.0, 0)], [(0.0, 0), (1.0, 0)]])
def test_where_nothing_arrived_there_is_no_rate(curve):
    assert tcp_rates(curve) is None


def test_a_test_that_stops_halfway_has_the_rate_of_all_its_time():
    """What lay still for more than half of the time has no usual rate."""
    rates = tcp_rates([(0.0, 0), (1.0, 10), (2.0, 10), (3.0, 10), (4.0, 10)])
    assert rates.flowing_bytes_per_s == rates.from_connect_bytes_per_s == 2.5


def test_instants_that_are_the_same_divide_by_nothing():
    rates = tcp_rates([(0.0, 0), (0.0, 0), (1.0, 4), (1.0, 4), (2.0, 8)])
    assert rates.flowing_bytes_per_s == 4.0


@pytest.mark.parametrize(
    ("facts", "most", "expected"),
    [
        (
            [{"busy_s": 2.0, "receiver_limited_s": 1.1, "send_buffer_limited_s": 0.1}],
            None,
            RECEIVER,
        ),
        ([{"busy_s": 2.0, "send_buffer_limited_s": 1.1}], None, SEND_BUFFER),
        ([{"busy_s": 2.0, "application_limited": 1}], None, APPLICATION),
        ([{"busy_s": 2.0, "application_limited": 0}], None, NETWORK),
        ([{"busy_s": 2.0, "receiver_limited_s": 2.0}], 105.0, RATE),
        ([{"busy_s": 2.0}], 200.0, NETWORK),
        ([{"busy_s": 1.0, "receiver_limited_s": 1.0}, {"busy_s": 3.0}], None, NETWORK),
        ([{}], None, NETWORK),
    ],
)
def test_what_limited_it(facts, most, expected):
    assert limited_by(facts, 100.0, most) == expected


def test_connections_that_come_to_their_share_count_from_then_on():
    """5 a second in the first three, then 10: what comes later is 10."""
    curve = [(float(t), 5 * min(t, 3) + 10 * max(t - 3, 0)) for t in range(9)]
    assert tcp_rates(curve, 3.0).flowing_bytes_per_s == 10.0
    # At 9.5 a second in the first three nobody sees that they are not there yet.
    near = [(float(t), 9.5 * min(t, 3) + 10 * max(t - 3, 0)) for t in range(9)]
    assert tcp_rates(near).flowing_bytes_per_s < 10.0
    assert tcp_rates(near, 3.0).flowing_bytes_per_s == 10.0


def test_a_test_that_ends_before_they_have_counts_from_its_beginning():
    rates = tcp_rates([(0.0, 0), (1.0, 5), (2.0, 10)], 3.0)
    assert (rates.flowing_bytes_per_s, rates.flowing_from_s) == (5.0, 0.0)
