"""Flow of a list: times, names and bytes by hand."""

import pytest

from datacollect.net.deadline import Deadline, Flow


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def wait(flow, clock, seconds, *, names=0, n_bytes=0):
    """Wait so long for something; the deadline of a step may be asked any time meanwhile."""
    with flow.waiting():
        deadline = Deadline(1000.0, clock, flow=flow)
        deadline.left_s()
        clock.now_s += seconds
        deadline.came(n_bytes)
        deadline.left_s()
    flow.named(names)


@pytest.mark.parametrize(
    ("names", "n_bytes", "lasts"),
    [(4, 0, True), (3, 0, False), (0, 2048, True), (0, 2047, False), (3, 2047, False)],
)
def test_a_name_a_second_is_enough_and_so_are_512_bytes(clock, names, n_bytes, lasts):
    """A page each 4 s, over 9 s: the third is judged, with what came of the two before."""
    flow = Flow(9.0, clock)
    wait(flow, clock, 4.0, names=names, n_bytes=n_bytes)
    wait(flow, clock, 4.0, names=names, n_bytes=n_bytes)
    # By 12 s, 8 or 6 names, and 6144 or 6141 bytes: the names of the third are not there yet.
    if lasts and n_bytes:
        wait(flow, clock, 4.0, names=names, n_bytes=n_bytes)
        assert not flow.is_over
    else:
        with pytest.raises(TimeoutError, match=f"{2 * names} names and {3 * n_bytes} bytes"):
            wait(flow, clock, 4.0, names=names, n_bytes=n_bytes)
        assert flow.is_over


def test_each_span_is_judged_by_itself(clock):
    """A million names at first say nothing of the time after."""
    flow = Flow(9.0, clock)
    wait(flow, clock, 1.0, names=10**6)
    wait(flow, clock, 8.0, names=1)
    wait(flow, clock, 8.0, names=1)
    with pytest.raises(TimeoutError, match="2 names and 0 bytes came in 9 s"):
        wait(flow, clock, 1.0)


def test_time_in_which_nobody_waits_does_not_count(clock):
    """The disk here takes an hour for a page that came in a second."""
    flow = Flow(9.0, clock)
    for _ in range(20):
        wait(flow, clock, 1.0, names=2)
        clock.now_s += 3600.0
    assert not flow.is_over


def test_a_step_asks_again_when_the_span_is_over_and_ends_with_its_own_time(clock):
    flow = Flow(9.0, clock)
    with flow.waiting():
        deadline = Deadline(20.0, clock, flow=flow)
        assert deadline.left_s() == 9.0
        clock.now_s = 8.0
        deadline.came(5119)
        assert deadline.left_s() == 1.0
        clock.now_s = 9.0
        assert deadline.left_s() == 9.0  # 4608 bytes would have been enough
        clock.now_s = 17.0
        assert deadline.left_s() == 1.0
        deadline.came(9 * 512)
        clock.now_s = 18.0
        assert deadline.left_s() == 2.0  # of the step
        clock.now_s = 20.0
        with pytest.raises(TimeoutError, match="the step took longer than 20 s"):
            deadline.left_s()
    assert not flow.is_over
