"""The controller of chains, by itself; `tests/transfer` has it carry out whole collections."""

from __future__ import annotations

import pytest
from instances.by_hand import ByHand, sends

import datacollect as dc
from datacollect.control.chained.controller import (
    FIRST_AHEAD_BYTES,
    LATE_S,
    LATE_TIMES,
    ChainedController,
)
from datacollect.control.connections import Recovery
from datacollect.control.decisions import Close, Open, Send, WakeMe
from datacollect.control.events import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionStalled,
    RangeArrived,
    Timer,
)


def test_what_another_chain_has_had_for_too_long_is_sent_once_more_at_that_very_instant():
    """Ten bytes are one chain's at 0 s; the other, which has none, asks to be woken LATE_S later.

    Told the time that it asked for, and no later, it must act: asking again it would ask for ever.
    """
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    controller = ChainedController(
        problem, dc.direct(problem), piece_bytes=5, recovery=Recovery(), connections=2
    )
    decisions = controller.start()
    decisions += controller.handle(ConnectionOpened(0.0, 0))
    decisions += controller.handle(ConnectionOpened(0.0, 1))
    (wake,) = [one for one in decisions if isinstance(one, WakeMe)]
    assert wake.time_s == LATE_S
    (again,) = controller.handle(Timer(wake.time_s, wake.tag))
    assert isinstance(again, Send)
    assert (again.connection, again.offset_bytes) == (1, 0)


def test_what_comes_as_fast_as_before_is_not_sent_twice():
    """One byte a second: of two pieces of five bytes the second is there at 10 s, and not late.

    The idle chain waits LATE_S and LATE_TIMES the time that the other needs for what it has: from
    5 s on five seconds.
    """
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 1.0], [0, 0]], [10, 0], "D")
    controller = ChainedController(
        problem, dc.direct(problem), piece_bytes=5, recovery=Recovery(), connections=2
    )
    decisions = controller.start()
    for number in (0, 1):
        decisions += controller.handle(ConnectionOpened(0.0, number))
    wakes = [one for one in decisions if isinstance(one, WakeMe)]
    decisions = controller.handle(RangeArrived(5.0, 0, "D", "S", 0, 5))
    for wake in wakes:
        decisions += controller.handle(Timer(max(5.0, wake.time_s), wake.tag))
    assert not [one for one in decisions if isinstance(one, Send)]
    assert [one.time_s for one in decisions if isinstance(one, WakeMe)] == [LATE_S + LATE_TIMES * 5]


TWO_WAYS = dc.Problem.from_matrix(
    ["S", "K", "D"], [[0, 1e5, 1e5], [0, 0, 1e5], [0, 0, 0]], [400_000, 0, 0], "D"
)


def of_two_ways(**recovery):
    return ByHand(
        ChainedController(
            TWO_WAYS,
            dc.coordinated(TWO_WAYS),
            piece_bytes=1000,
            recovery=Recovery(**recovery),
        )
    )


def test_at_the_start_each_route_takes_its_own_share_alone():
    """Half of 400 kB each, less than what a chain takes while nothing is known."""
    drive = of_two_ways()
    drive.start()
    assert [sum(s.n_bytes for s in queue) for queue in drive.queue.values()] == [200_000, 200_000]
    assert not sends(drive.tell(ConnectionOpened(0.1, 0)))


def test_a_chain_holds_a_second_and_a_half_of_its_rate():
    """It brought 1 kB each 10 ms, 100 kB/s: with 150 kB on its way it is given nothing more."""
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 1e5], [0, 0]], [2_000_000, 0], "D")
    drive = ByHand(
        ChainedController(problem, dc.direct(problem), piece_bytes=1000, recovery=Recovery())
    )
    assert len(sends(drive.start())) == -(-FIRST_AHEAD_BYTES // 1000)
    drive.tell(ConnectionOpened(0.0, 0))
    most = 0
    for number in range(1, 1200):
        most = len(sends(drive.arrive(number * 0.01, 0))) or most
    assert len(drive.queue[0]) == 150
    assert most == 1


@pytest.mark.parametrize(("patience_s", "closed"), [(None, False), (0.0, True), (2.0, False)])
def test_a_stuck_chain_is_cut_after_the_patience(patience_s, closed):
    drive = of_two_ways(stall_patience_s=patience_s)
    drive.start()
    drive.tell(ConnectionOpened(0.0, 0))
    decided = drive.tell(ConnectionStalled(5.0, 0))
    assert (Close(0, drop_queue=True) in decided) == closed
    wakes = [one for one in decided if isinstance(one, WakeMe) and one.time_s == 5.0 + 2.0]
    if patience_s == 2.0:
        (wake,) = wakes
        assert Close(0, drop_queue=True) in drive.tell(Timer(wake.time_s, wake.tag))


def test_a_chain_that_cannot_be_had_is_given_up_after_its_retries():
    """Two failures in a row after the first are allowed: it is opened three times."""
    drive = of_two_ways(retry_s=1.0, most_retries=2)
    decided, opened = drive.start(), 0
    for _ in range(5):
        (number,) = [
            one.connection for one in decided if isinstance(one, Open) and len(one.hosts) == 3
        ] or [None]
        if number is None:
            break
        opened += 1
        lost = drive.tell(ConnectionClosed(10.0 * opened, number))
        decided = []
        for wake in [one for one in lost if isinstance(one, WakeMe)]:
            decided += drive.tell(Timer(wake.time_s, wake.tag))
    assert opened == 3
