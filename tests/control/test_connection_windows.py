"""Windows of connections, and the order of their pieces: of 10 bytes, by hand."""

from __future__ import annotations

from instances.by_hand import opens, sends, wakes
from instances.hand_made_plans import plan_of
from instances.planned_anew import STRAIGHT, drive_of, straight

from datacollect.control.decisions import Send
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem


def test_a_connection_gets_four_pieces_then_one_for_each_that_arrives():
    drive, first = drive_of(straight())
    assert opens(first) == [(0, *STRAIGHT)]
    assert sends(first) == [(0, 0, 10), (0, 10, 10), (0, 20, 10), (0, 30, 10)]
    assert wakes(first) == [10.0]
    assert sends(drive.arrive(1.0, 0)) == [(0, 40, 10)]
    assert sends(drive.arrive(2.0, 0)) == [(0, 50, 10)]


def test_a_fast_connection_has_on_its_way_what_arrived_in_two_seconds():
    """Four pieces arrive in no time, then the four that replaced them: each of the latter is
    replaced by two, so that eight are on their way. Two seconds later all that is forgotten: four
    of them are not replaced."""
    drive, _ = drive_of(straight())
    assert [len(sends(drive.arrive(0.1, 0))) for _ in range(4)] == [1, 1, 1, 1]
    assert [len(sends(drive.arrive(0.2, 0))) for _ in range(4)] == [2, 2, 2, 2]
    assert [len(sends(drive.arrive(2.2, 0))) for _ in range(6)] == [0, 0, 0, 0, 2, 2]


def test_parallel_lanes_take_pieces_as_they_have_room():
    drive, first = drive_of(straight(), lanes=2)
    assert opens(first) == [(0, *STRAIGHT), (1, *STRAIGHT)]
    assert sorted(offset for _, offset, _ in sends(first)) == list(range(0, 80, 10))
    assert sends(drive.arrive(1.0, 1)) == [(1, 80, 10)]


def test_shared_connections_carry_what_the_plan_sends_first():
    """The plan sends A's 80 bytes from 0 to 8 s, B's 80 from 1 to 2 s. Four pieces of A were handed
    to K's connection when all others have come to K: B's are before those of A that are left."""
    problem = Problem.from_hosts(
        [Host("A", 80), Host("B", 80), Host("K"), Host("D")],
        [Link("A", "K", 10.0), Link("B", "K", 80.0), Link("K", "D", 90.0)],
        "D",
    )
    rows = [(0, hop, 0, 80, 0.0, 8.0) for hop in (0, 1)]
    rows += [(1, hop, 0, 80, 1.0, 2.0) for hop in (0, 1)]
    plan = plan_of([("A", "K", "D"), ("B", "K", "D")], rows)
    _, first = drive_of(plan, problem=problem)
    assert len(opens(first)) == 4
    drive, first = drive_of(plan, problem=problem, shared_connections=True)
    assert opens(first) == [(0, "A", "K"), (1, "K", "D"), (2, "B", "K")]
    for time_s, connection in enumerate([0] * 4 + [2] * 4 + [0] * 4 + [2] * 4):
        drive.arrive(3.0 * time_s, connection)
    left = [send.source for send in drive.queue[1]]
    for time_s in range(20, 32):
        left += [d.source for d in drive.arrive(3.0 * time_s, 1) if isinstance(d, Send)]
    assert left == ["A"] * 4 + ["B"] * 8 + ["A"] * 4
