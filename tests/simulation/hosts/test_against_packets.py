"""The simulator of hosts against an oracle, packet by packet."""

from __future__ import annotations

import pytest
from explore.simulated_hosts import case
from hypothesis import given, settings
from hypothesis import strategies as st
from instances.host_cases import differences, host_case
from instances.how_many import many

from datacollect.simulation.hosts.data_path import Train, Window, through_card
from datacollect.simulation.hosts.job import Job, Reader


@st.composite
def hosts(draw):
    return host_case(lambda low, high: draw(st.integers(low, high)))


@settings(max_examples=many(100))
@given(hosts())
def test_all_that_is_lost_read_and_held_is_what_the_oracle_says(host):
    assert differences(host) == {}


@pytest.mark.slow
def test_random_hosts_are_what_the_oracle_says():
    assert [fault for seed in range(many(2000)) if (fault := case(seed))] == []


def test_one_more_packet_a_second_than_the_buffer_holds_is_lost_by_the_buffer():
    """By hand: packets at 10, 20, ... 100, 1 ns each; a reading at 100 finds the five it has kept.

    The tenth is in at 101, after the reading had to wait for the kernel; 6 to 9 found no room.
    """
    runs, lost = through_card([Train(10, 10, 10)], kernel_ns=1, slots=1)
    reader = Reader(runs, Job(period_ns=100, packet_ns=3, most=99), room=5, busy_ns=1, readings=[])
    reader.go_to(150)
    assert not lost
    assert [(n, loss.is_late) for loss in reader.losses for n in loss.numbers()] == [
        (n, False) for n in (5, 6, 7, 8, 9)
    ]
    assert reader.readings == [(101, 5, 116)]


def test_what_is_lost_while_the_job_is_overdue_is_lost_to_the_processor():
    """By hand: a packet each 10 ns; the job works from 101 past 200, when it was to read again.

    The packet at 110 takes the only place; those from 120 to 200 find the buffer full in time, and
    those from 210 on because the job is late.
    """
    runs, _ = through_card([Train(10, 10, 24)], kernel_ns=1, slots=1)
    reader = Reader(runs, Job(period_ns=100, packet_ns=150, most=9), room=1, busy_ns=1)
    reader.go_to(250)
    lost = {(n, loss.is_late) for loss in reader.losses for n in loss.numbers() if n >= 10}
    assert lost == {(n, n >= 20) for n in range(11, 24)}


def test_arrivals_faster_than_the_kernel_never_let_the_job_run_on_one_processor():
    """Receive livelock: a packet each 2 ns takes 3; on a processor of its own the job reads."""
    runs, _ = through_card([Train(2, 2, 10**12)], kernel_ns=3, slots=40)
    livelock = Reader(runs, Job(1000, 1, 10**6), room=50, busy_ns=3, readings=[])
    assert livelock.go_to(10**12).read == 0
    assert not livelock.readings
    beside = Reader(runs, Job(1000, 1, 10**6), room=50, busy_ns=0)
    assert beside.go_to(10**6).read > 0


def test_a_window_loses_nothing_and_sends_what_it_is_behind_with_as_fast_as_it_can():
    """By hand: due at 10, 20, ..., room for two, read at 100: then two more, 5 ns apart."""
    window = Window([Train(10, 10, 6)], kernel_ns=4, wire_ns=5, room=2)
    reader = Reader(window.runs, Job(100, 1, 9), 2, busy_ns=4, opens=window.opens, readings=[])
    reader.go_to(300)
    assert reader.lost == 0
    # It reads at 100; packets come at 100 and 105, so that it works from 104 to 105, and from 109.
    assert reader.readings == [(100, 2, 110), (200, 2, 210), (300, 2, 302)]


def test_times_as_long_as_a_month_are_as_exact_as_short_ones():
    day_ns = 86_400 * 10**9
    runs, _ = through_card([Train(12_530, 12_530, 30 * day_ns // 12_530)], 3000, 43)
    reader = Reader(runs, Job(day_ns, 0, 10**18), room=10**18, busy_ns=3000)
    assert reader.go_to(30 * day_ns).stored == (30 * day_ns - 3000) // 12_530
