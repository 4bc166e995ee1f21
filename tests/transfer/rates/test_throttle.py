"""Limits by simulated clocks: what passes in ten seconds, who gets how much, which hour counts."""

import random
import socket
import threading
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datacollect.errors import TransferError
from datacollect.problem.hourly_rates import HourlyRate
from datacollect.transfer.rates.pacer import Pacer
from datacollect.transfer.rates.spells import spell_of
from datacollect.transfer.rates.throttle import Throttle

ZURICH = ZoneInfo("Europe/Zurich")


def unix_s(clock_time):
    return datetime.fromisoformat(clock_time).replace(tzinfo=ZURICH).timestamp()


class Clock:
    """A clock that the test sets; where all begins is a Monday noon in Zurich."""

    def __init__(self):
        self.now_s, self.begun_s = 0.0, unix_s("2026-11-23T12:00")

    def throttle(self, rate, zone=ZURICH):
        return Throttle(
            rate, zone, clock=lambda: self.now_s, wall_clock=lambda: self.begun_s + self.now_s
        )


def carried(clock, throttle, wants, until_s):
    """Let sessions take turn after turn; return rows of (when, who, bytes), in order.

    `wants` has for each session how much it asks for at most, and how long it pauses after each
    turn.
    """
    rows = []
    ready = [(0.0, i, 0) for i in range(len(wants))]
    while True:
        at_s, i, n_bytes = min(ready)
        if at_s >= until_s:
            return rows
        ready.remove((at_s, i, n_bytes))
        clock.now_s = at_s
        if n_bytes:
            rows.append((at_s, i, n_bytes))
        most_bytes, pause_s = wants[i]
        if n_bytes and pause_s:
            ready.append((at_s + pause_s, i, 0))
            continue
        turn_bytes = throttle.turn_bytes(most_bytes)
        ready.append((at_s + throttle.owe(turn_bytes, i), i, turn_bytes))


def most_in_ten_seconds(rows):
    return max(
        sum(n for at_s, _, n in rows if begin <= at_s < begin + 10.0) for begin, _, _ in rows[::7]
    )


@settings(max_examples=10, deadline=None)
@given(
    rate=st.sampled_from([2e5, 1e6, 1e8]),
    wants=st.lists(
        st.tuples(st.sampled_from([33, 16384, 10**9]), st.sampled_from([0.0, 0.0, 0.5])),
        min_size=1,
        max_size=6,
    ),
    seed=st.integers(0, 2**32),
)
def test_ten_seconds_carry_no_more_than_the_rate_and_no_less_where_enough_is_wanted(
    rate, wants, seed
):
    clock = Clock()
    random.Random(seed).shuffle(wants)
    wants = [*wants, (10**9, 0.0)]  # one always wants all there is
    if rate == 1e8:
        wants = [want for want in wants if want[0] > 33]
    rows = carried(clock, clock.throttle(rate), wants, 25.0)
    most = most_in_ten_seconds(rows)
    assert 0.95 * 10 * rate <= most <= 1.05 * 10 * rate
    middle = sum(n for at_s, _, n in rows if 10 <= at_s < 20)
    assert 0.95 * 10 * rate <= middle <= 1.05 * 10 * rate


def test_those_who_want_as_much_get_as_much():
    """But for what may come at once, 100 kB, which the first takes, and one turn."""
    clock = Clock()
    rows = carried(clock, clock.throttle(1e6), [(10**9, 0.0)] * 3, 10.0)
    shares = [sum(n for _, i, n in rows if i == who) for who in range(3)]
    assert max(shares) - min(shares) <= 120_000 < min(shares)


def test_what_is_counted_without_waiting_makes_others_wait():
    clock = Clock()
    throttle = clock.throttle(1000.0)
    assert throttle.owe(100) == 0.0  # what may come at once
    assert throttle.owe(5000) == 5.0
    assert throttle.owe(1) == pytest.approx(5.001)
    clock.now_s = 5.001
    throttle.give_back(0)
    assert throttle.owe(0) == pytest.approx(0.0)


def test_a_pause_saves_up_a_tenth_of_a_second_and_no_more():
    clock = Clock()
    throttle = clock.throttle(1000.0)
    throttle.owe(100)
    clock.now_s = 3600.0
    assert throttle.owe(100) == 0.0
    assert throttle.owe(100) == pytest.approx(0.1)


# Hours ------------------------------------------------------------------------------------------

BY_DAY = HourlyRate(("08:00", "20:00"), (1e6, 1e8))


@pytest.mark.parametrize(
    ("clock_time", "rate", "hours_left"),
    [
        ("2026-11-23T12:00", 1e6, 8),
        ("2026-11-23T20:00", 1e8, 12),
        ("2026-11-24T07:59:59", 1e8, 1 / 3600),
        # Clocks go forward at 02:00 on 2027-03-28, and back at 03:00 on 2027-10-31.
        ("2027-03-27T20:00", 1e8, 11),
        ("2027-10-30T20:00", 1e8, 13),
    ],
)
def test_the_hour_says_the_rate_and_until_when(clock_time, rate, hours_left):
    at_s = unix_s(clock_time)
    spell = spell_of(BY_DAY, ZURICH, at_s)
    assert spell == (rate, pytest.approx(at_s + hours_left * 3600))


def test_days_of_the_week_come_every_week():
    """On a Sunday noon: until Monday 08:00, then until the next Saturday, five days minus 8 h."""
    rate = HourlyRate(("Mo 08:00", "Sa 00:00"), (1.0, 2.0))
    first = spell_of(rate, ZURICH, unix_s("2026-11-22T12:00"))
    assert first == (2.0, unix_s("2026-11-23T08:00"))
    assert spell_of(rate, ZURICH, first.until_s) == (1.0, unix_s("2026-11-28T00:00"))


def test_a_rate_changes_at_its_hour_while_bytes_pass():
    clock = Clock()
    clock.begun_s = unix_s("2026-11-23T19:59:50")
    rows = carried(clock, clock.throttle(BY_DAY), [(10**9, 0.0)], 20.0)
    before = sum(n for at_s, _, n in rows if at_s < 10)
    after = sum(n for at_s, _, n in rows if at_s >= 10)
    assert before == pytest.approx(1e7, rel=0.05)
    assert after == pytest.approx(1e9, rel=0.05)


def test_a_clock_that_is_set_back_brings_the_hour_before_back():
    clock = Clock()
    throttle = clock.throttle(BY_DAY)
    assert throttle.bytes_per_s == 1e6
    clock.begun_s = unix_s("2026-11-23T21:00")
    assert throttle.bytes_per_s == 1e8
    clock.begun_s = unix_s("2026-11-23T19:00")
    assert throttle.bytes_per_s == 1e6
    assert throttle.most_bytes_per_s == 1e8


# Sessions ---------------------------------------------------------------------------------------


def test_a_session_keeps_to_the_narrowest_of_its_limits_and_counts_in_all():
    clock = Clock()
    wide, narrow = clock.throttle(1e6, UTC), clock.throttle(1e4, UTC)
    pacer = Pacer([wide, narrow])
    assert pacer.allowed(10**9) == 1024  # the least that is worth a turn
    pacer.passed(1000)
    assert pacer.allowed(10**9) == 24
    pacer.passed(24)
    # Of the tenth of a second that may come at once, a wide limit has as much less.
    assert wide.owe(100_000 - 1024) == 0.0
    assert wide.owe(1000) == pytest.approx(0.001)


def test_who_waits_for_its_turn_is_woken_by_the_end_of_its_session():
    clock = Clock()
    throttle = clock.throttle(1.0)
    throttle.owe(3600)
    pacer, ended = Pacer([throttle]), []

    def read():
        with pytest.raises(TransferError, match="ended"):
            pacer.allowed(100)
        ended.append(True)

    thread = threading.Thread(target=read)
    thread.start()
    while not pacer.is_waiting:
        pass
    pacer.end()
    thread.join(10)
    assert ended
    assert not pacer.is_waiting


def test_a_window_is_a_share_of_the_rate_and_is_paid_for_once():
    """Two sessions share 10 MB/s: each may have received 0.1 s of its half, 500 kB, unread."""
    clock = Clock()
    throttle = clock.throttle(1e7)
    pacers = [Pacer([throttle]), Pacer([throttle])]
    pairs = [_connected(), _connected()]
    try:
        throttle.join(1)  # the second is about to open
        pacers[0].reading(pairs[0][0])
        size = pairs[0][0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        assert size == 500_000
        # 0.1 s of the whole may come at once: of these 1 MB half is left.
        assert throttle.owe(500_000) == 0.0
        pacers[0].reading(pairs[1][0])  # another connection of the same session
        assert throttle.owe(0) == 0.0
    finally:
        for ends in pairs:
            for end in ends:
                end.close()


def _connected():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        return near, listener.accept()[0]
