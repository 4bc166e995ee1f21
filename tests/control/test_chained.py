"""The controller of chains, by itself; `tests/transfer` has it carry out whole collections."""

from __future__ import annotations

import datacollect as dc
from datacollect.control.chained.controller import LATE_S, LATE_TIMES, ChainedController
from datacollect.control.connections import Recovery
from datacollect.control.decisions import Send, WakeMe
from datacollect.control.events import ConnectionOpened, RangeArrived, Timer


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
