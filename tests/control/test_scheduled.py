"""Controllers by themselves: events in, decisions out, no engine."""

import pickle

import pytest
from by_hand import ByHand, opens, sends, wakes
from hand_made_plans import line_in_pieces, line_problem, plan_of
from small_problems import shared_relay

from datacollect.control import (
    Close,
    ConnectionClosed,
    ConnectionStalled,
    HostLost,
    Open,
    Send,
    Timer,
)
from datacollect.controllers import (
    AsapController,
    DirectController,
    PlannedController,
    Recovery,
    streams_in_proportion,
)
from datacollect.errors import ProblemError
from datacollect.problem import Host, Link, Problem

HALF = 2_500_000


# Schedules -----------------------------------------------------------------------------------


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


def test_controllers_can_be_sent_to_another_process():
    for controller in (
        PlannedController(line_in_pieces(2)),
        AsapController(line_in_pieces(2)),
        DirectController(line_problem()),
    ):
        assert pickle.loads(pickle.dumps(controller)).start() == controller.start()


# Trouble --------------------------------------------------------------------------------------


def test_stalled_connection_is_replaced_with_what_has_not_arrived():
    drive = ByHand(AsapController(line_in_pieces(2)))
    drive.start()
    drive.arrive(8.0, 0)
    decisions = drive.tell(ConnectionStalled(20.0, 0))
    assert decisions == [
        Close(0, drop_queue=True),
        Open(2, "S", "K"),
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


# Direct ---------------------------------------------------------------------------------------


def three_sources(**hosts):
    held = {"A": 6, "B": 3, "C": 3}
    return Problem.from_hosts(
        [*(Host(name, n, **hosts.get(name, {})) for name, n in held.items()), Host("D")],
        [Link(name, "D", 1.0) for name in held],
        "D",
    )


def test_direct_divides_evenly_over_each_hosts_streams():
    decisions = DirectController(three_sources(), {"A": 2}).start()
    assert opens(decisions) == [(0, "A", "D"), (1, "A", "D"), (2, "B", "D"), (3, "C", "D")]
    assert sends(decisions) == [(0, 0, 3), (1, 3, 3), (2, 0, 3), (3, 0, 3)]


def test_direct_one_after_another_in_the_order_given():
    drive = ByHand(DirectController(three_sources(), order=["C", "A"]))
    assert opens(drive.start()) == [(0, "C", "D")]
    assert opens(drive.arrive(1.0, 0)) == [(1, "A", "D")]
    assert opens(drive.arrive(2.0, 1)) == [(2, "B", "D")]


def test_direct_k_at_a_time_waits_for_all_of_a_hosts_streams():
    drive = ByHand(DirectController(three_sources(), 2, at_a_time=2))
    assert [ends[1] for ends in opens(drive.start())] == ["A", "A", "B", "B"]
    assert opens(drive.arrive(1.0, 2)) == []
    assert [ends[1] for ends in opens(drive.arrive(2.0, 3))] == ["C", "C"]


def test_direct_turns_to_hosts_whose_data_are_there():
    """A's data come at 5 s: B and C go first."""
    drive = ByHand(DirectController(three_sources(A={"release_s": 5.0}), at_a_time=1))
    assert opens(drive.start()) == [(0, "B", "D")]
    assert opens(drive.arrive(1.0, 0)) == [(1, "C", "D")]
    assert wakes(drive.arrive(2.0, 1)) == [5.0]
    assert opens(drive.tell(Timer(5.0, 0))) == [(2, "A", "D")]


def test_direct_goes_on_when_a_source_is_lost():
    drive = ByHand(DirectController(three_sources(), at_a_time=1))
    drive.start()
    assert opens(drive.tell(HostLost(1.0, "A"))) == [(1, "B", "D")]


@pytest.mark.parametrize(
    ("total", "expected"),
    [(4, {"A": 2, "B": 1, "C": 1}), (3, {"A": 1, "B": 1, "C": 1}), (8, {"A": 4, "B": 2, "C": 2})],
)
def test_streams_in_proportion_to_data(total, expected):
    assert streams_in_proportion(three_sources(), total) == expected


def test_small_sources_keep_a_stream():
    """1000 : 1 : 1 over 5 streams would be 5 : 0 : 0."""
    problem = shared_relay().replace(backlog_bytes=[1000, 1, 1, 0])
    assert streams_in_proportion(problem, 5) == {"A": 3, "B": 1, "K": 1}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DirectController(three_sources(), 0), "streams must be >= 1, got 0"),
        (lambda: DirectController(three_sources(), at_a_time=0), "at_a_time must be >= 1, got 0"),
        (lambda: DirectController(three_sources(), order=["X"]), "'X' is no host with data"),
        (lambda: DirectController(three_sources(), order=["A", "A"]), "named twice"),
        (lambda: streams_in_proportion(three_sources(), 2), "for each of 3 hosts"),
        (lambda: AsapController(line_in_pieces(1), lanes=0), "lanes must be >= 1, got 0"),
        (lambda: PlannedController(line_in_pieces(1), open_ahead_s=-1), "open_ahead_s must be"),
        (lambda: Recovery(retry_s=0), "retry_s must be > 0, got 0"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(ProblemError, match=message):
        make()
