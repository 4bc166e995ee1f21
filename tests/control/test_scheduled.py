"""Controllers that carry out a schedule, by themselves: events in, decisions out, no engine."""

import pytest
from instances.by_hand import ByHand, opens, sends, wakes
from instances.hand_made_plans import line_in_pieces, plan_of

from datacollect.control.decisions import Close, Open, Send
from datacollect.control.events import ConnectionClosed, HostLost, Timer
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.errors import ProblemError

HALF = 2_500_000


def test_planned_slotted_waits_for_the_start_and_for_the_whole_range():
    """Two pieces, slots of 8 s: hop 1's first piece is due at 8 s. Arriving late, at 9 s, it
    leaves at 9 s; the second, there at 15 s, leaves at its start, 16 s."""
    drive = ByHand(PlannedController(line_in_pieces(2), open_ahead_s=0))
    first = drive.start()
    assert opens(first) == [(0, "S", "K")]
    assert sends(first) == [(0, 0, HALF)]
    assert wakes(first) == [8.0]
    at_8 = drive.tell(Timer(8.0, 0))
    assert sends(at_8) == [(0, HALF, HALF)]
    assert wakes(at_8) == [16.0]
    at_9 = drive.arrive(9.0, 0)
    assert opens(at_9) == [(1, "K", "D")]
    assert sends(at_9) == [(1, 0, HALF)]
    assert drive.arrive(15.0, 0) == []
    at_16 = drive.tell(Timer(16.0, 0))
    assert sends(at_16) == [(1, HALF, HALF)]
    assert wakes(at_16) == []


def test_planned_pipelined_queues_the_relay_before_its_data_are_there():
    plan = plan_of([("S", "K", "D")], [(0, 0, 0, 10, 0.0, 2.0), (0, 1, 0, 10, 0.5, 2.5)])
    drive = ByHand(PlannedController(plan, open_ahead_s=0.2))
    assert wakes(drive.start()) == [0.3]
    ahead = drive.tell(Timer(0.3, 0))
    assert opens(ahead) == [(1, "K", "D")]
    assert sends(ahead) == []
    assert sends(drive.tell(Timer(0.5, 0))) == [(1, 0, 10)]


def test_asap_queues_first_hops_at_once_and_relays_what_is_there():
    drive = ByHand(AsapController(line_in_pieces(2)))
    first = drive.start()
    assert opens(first) == [(0, "S", "K"), (1, "K", "D")]
    assert sends(first) == [(0, 0, HALF), (0, HALF, HALF)]
    assert wakes(first) == []
    assert sends(drive.arrive(3.0, 0)) == [(1, 0, HALF)]


def test_relay_counts_ranges_that_come_in_other_cuts_than_they_leave():
    """Hop 0 in two ranges of 5, hop 1 in 3 and 7: the 7 wait for both, the 3 for the first."""
    rows = [
        (0, 0, 0, 5, 0.0, 1.0),
        (0, 0, 5, 5, 1.0, 2.0),
        (0, 1, 0, 3, 1.0, 2.0),
        (0, 1, 3, 7, 2.0, 3.0),
    ]
    drive = ByHand(AsapController(plan_of([("S", "K", "D")], rows, slot_s=1.0)))
    drive.start()
    assert sends(drive.arrive(1.0, 0)) == [(1, 0, 3)]
    assert sends(drive.arrive(2.0, 0)) == [(1, 3, 7)]


@pytest.mark.parametrize(("shared", "connections"), [(False, 4), (True, 3)])
def test_connections_are_per_route_or_shared_per_hop(shared, connections):
    plan = plan_of(
        [("A", "K", "D"), ("B", "K", "D")],
        [(r, hop, 0, 10, 0.0, 1.0) for r in (0, 1) for hop in (0, 1)],
    )
    controller = AsapController(plan, shared_connections=shared)
    assert len(opens(controller.start())) == connections


def test_shared_connections_carry_all_in_one_order():
    """By the starts, B's range would leave K before A's two; A's are the first to leave their
    source. K has them cut as the first hop cuts them."""
    plan = plan_of(
        [("A", "K", "D"), ("B", "K", "D")],
        [
            (0, 0, 0, 4, 0.0, 1.0),
            (0, 0, 4, 6, 1.0, 2.0),
            (1, 0, 0, 7, 1.5, 2.5),
            (1, 1, 0, 7, 2.0, 3.0),
            (0, 1, 0, 10, 3.0, 4.0),
        ],
    )

    def from_relay(shared):
        decisions = AsapController(plan, shared_connections=shared).start()
        relays = {number for number, *ends in opens(decisions) if ends == ["K", "D"]}
        ranges = [d for d in decisions if isinstance(d, Send) and d.connection in relays]
        return [(d.source, d.offset_bytes, d.n_bytes) for d in ranges]

    assert from_relay(shared=True) == [("A", 0, 4), ("A", 4, 6), ("B", 0, 7)]
    assert from_relay(shared=False) == [("B", 0, 7), ("A", 0, 10)]


def test_slotted_transfer_is_sent_slot_by_slot():
    """10 bytes in three slots: 3, 3 and 4; the relay sends each when it is there."""
    rows = [(0, 0, 0, 10, 0.0, 3.0), (0, 1, 0, 10, 1.0, 4.0)]
    drive = ByHand(PlannedController(plan_of([("S", "K", "D")], rows, slot_s=1.0), open_ahead_s=0))
    assert sends(drive.start()) == [(0, 0, 3)]
    assert sends(drive.tell(Timer(1.0, 0))) == [(0, 3, 3)]
    assert sends(drive.arrive(1.2, 0)) == [(1, 0, 3)]


def test_lanes_divide_each_range_into_consecutive_stripes():
    plan = plan_of([("S", "D")], [(0, 0, 5, 10, 0.0, 1.0)])
    decisions = AsapController(plan, lanes=3).start()
    assert sends(decisions) == [(0, 5, 3), (1, 8, 3), (2, 11, 4)]


def test_pace_is_the_greatest_planned_rate_of_a_lane():
    """10 bytes in 1 s, then 40 in 2 s: 20 bytes per second, 10 on each of two lanes."""
    plan = plan_of([("S", "D")], [(0, 0, 0, 10, 0.0, 1.0), (0, 0, 10, 40, 1.0, 3.0)])
    decisions = PlannedController(plan, lanes=2, pace=True).start()
    assert [d.pace_bytes_per_s for d in decisions if isinstance(d, Open)] == [10.0, 10.0]


def test_what_a_lost_relay_held_is_sent_straight_from_its_source():
    """10 bytes in two ranges over K; the first is at D, the second at K when K is lost."""
    rows = [(0, hop, i * 5, 5, i + hop, i + hop + 1.0) for i in (0, 1) for hop in (0, 1)]
    drive = ByHand(AsapController(plan_of([("S", "K", "D")], rows, slot_s=1.0)))
    drive.start()
    drive.arrive(1.0, 0)
    drive.arrive(2.0, 0)
    drive.arrive(2.0, 1)
    decisions = drive.tell(HostLost(2.5, "K"))
    assert opens(decisions) == [(2, "S", "D")]
    assert sends(decisions) == [(2, 5, 5)]
    assert drive.tell(ConnectionClosed(2.5, 0)) == []


def test_lost_relay_clears_the_way_for_others_on_shared_connections():
    """A over K and L, B over L alone, both on one connection L -> D: with K, A's range on it is
    lost, and B's must not wait behind it."""
    plan = plan_of(
        [("A", "K", "L", "D"), ("B", "L", "D")],
        [(r, hop, 0, 5, 0.0, 1.0) for r, hops in ((0, 3), (1, 2)) for hop in range(hops)],
    )
    drive = ByHand(AsapController(plan, shared_connections=True))
    started = drive.start()
    (old,) = [number for number, *ends in opens(started) if ends == ["L", "D"]]
    decisions = drive.tell(HostLost(0.5, "K"))
    assert Close(old, drop_queue=True) in decisions
    (new,) = [number for number, *ends in opens(decisions) if ends == ["L", "D"]]
    assert [d.source for d in decisions if isinstance(d, Send) and d.connection == new] == ["B"]
    (straight,) = [number for number, *ends in opens(decisions) if ends == ["A", "D"]]
    assert (straight, 0, 5) in sends(decisions)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AsapController(line_in_pieces(1), lanes=0), "lanes must be >= 1, got 0"),
        (lambda: PlannedController(line_in_pieces(1), open_ahead_s=-1), "open_ahead_s must be"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(ProblemError, match=message):
        make()
