"""A deadline is of a step; only who brings enough gets more time. All instants by hand."""

import pytest

from datacollect.net.deadline import Deadline


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def survives(deadline, clock, every_s, n_bytes, until_s):
    """Until when a peer is heard that sends some bytes at an interval."""
    while clock.now_s < until_s:
        clock.now_s += every_s
        try:
            deadline.left_s()
        except TimeoutError:
            return clock.now_s
        deadline.came(n_bytes)
    return None


def test_who_sends_nothing_has_its_time_and_no_more(clock):
    deadline = Deadline(20.0, clock)
    clock.now_s = 19.0
    assert deadline.left_s() == pytest.approx(1.0)
    clock.now_s = 20.0
    with pytest.raises(TimeoutError, match="the step took longer than 20 s"):
        deadline.left_s()


@pytest.mark.parametrize(
    ("every_s", "n_bytes"), [(5.0, 1), (1.0, 100), (0.1, 51), (10.5, 5119), (4.0, 2047)]
)
def test_who_drips_is_late(clock, every_s, n_bytes):
    assert survives(Deadline(20.0, clock), clock, every_s, n_bytes, 1000.0) <= 20.0 + every_s


@pytest.mark.parametrize(("every_s", "n_bytes"), [(1.0, 512), (0.1, 52), (5.0, 5120), (9.0, 10**6)])
def test_who_brings_512_bytes_a_second_goes_on(clock, every_s, n_bytes):
    assert survives(Deadline(20.0, clock), clock, every_s, n_bytes, 1000.0) is None


def test_after_enough_the_whole_time_is_there_again(clock):
    deadline = Deadline(5.0, clock)
    clock.now_s = 4.0
    deadline.came(6000)
    assert deadline.left_s() == pytest.approx(5.0)


def test_a_burst_does_not_count_for_ever(clock):
    """6000 bytes at the start renew once; what drips afterwards does not."""
    deadline = Deadline(20.0, clock)
    deadline.came(6000)
    assert survives(deadline, clock, 5.0, 1, 1000.0) <= 25.0
