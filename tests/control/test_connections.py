"""Connections that are stuck or gone, by hand: no engine."""

import pytest
from instances.by_hand import ByHand, opens
from instances.hand_made_plans import line_in_pieces

from datacollect.control.connections import Recovery
from datacollect.control.decisions import Close, Open, Send
from datacollect.control.events import ConnectionClosed, ConnectionStalled, Timer
from datacollect.control.planned.scheduled import AsapController
from datacollect.errors import ProblemError

HALF = 2_500_000


def test_stalled_connection_is_replaced_with_what_has_not_arrived():
    drive = ByHand(AsapController(line_in_pieces(2)))
    drive.start()
    drive.arrive(8.0, 0)
    decisions = drive.tell(ConnectionStalled(20.0, 0))
    assert decisions == [
        Close(0, drop_queue=True),
        Open(2, ("S", "K")),
        Send(2, "S", HALF, HALF),
    ]
    assert drive.tell(ConnectionClosed(20.0, 0)) == []  # asked for


def test_patience_with_a_stall_ends_unless_something_arrives():
    def stalled_then(arrives):
        controller = AsapController(line_in_pieces(2), recovery=Recovery(stall_patience_s=5.0))
        drive = ByHand(controller)
        drive.start()
        (wake,) = drive.tell(ConnectionStalled(20.0, 0))
        assert wake.time_s == 25.0
        if arrives:
            drive.arrive(21.0, 0)
        return opens(drive.tell(Timer(25.0, wake.tag)))

    assert stalled_then(arrives=False) == [(2, "S", "K")]
    assert stalled_then(arrives=True) == []


def test_lost_connection_is_opened_again_at_doubling_intervals_then_given_up():
    drive = ByHand(
        AsapController(line_in_pieces(1), recovery=Recovery(retry_s=1.0, most_retries=3))
    )
    drive.start()
    time_s, number, waits = 10.0, 0, []
    while True:
        decisions = drive.tell(ConnectionClosed(time_s, number))
        if not decisions:
            break
        (wake,) = decisions
        waits.append(wake.time_s - time_s)
        time_s = wake.time_s
        (opened, sent) = drive.tell(Timer(time_s, wake.tag))
        assert (sent.offset_bytes, sent.n_bytes) == (0, 2 * HALF)
        number = opened.connection
    assert waits == [1.0, 2.0, 4.0]


def test_an_interval_of_retries_must_last():
    with pytest.raises(ProblemError, match="retry_s must be > 0, got 0"):
        Recovery(retry_s=0)
