"""The controller of direct collections, by itself: events in, decisions out, no engine."""

import pytest
from instances.by_hand import ByHand, opens, sends, wakes
from instances.small_problems import shared_relay

from datacollect.control.events import HostLost, Timer
from datacollect.control.planned.direct import DirectController, streams_in_proportion
from datacollect.errors import ProblemError
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem


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


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (10, (5, 3, 2)),  # 5.0, 3.3 and 1.7: the last has the largest remainder
        (7, (4, 2, 1)),  # 3.5, 2.31 and 1.19
        (23, (11, 8, 4)),  # 11.5, 7.59 and 3.91: two are left, for the last and the second
        (100, (50, 33, 17)),
    ],
)
def test_streams_that_remain_go_to_the_largest_remainders(total, expected):
    problem = shared_relay().replace(backlog_bytes=[50, 33, 17, 0])
    assert tuple(streams_in_proportion(problem, total).values()) == expected


def test_small_sources_keep_a_stream():
    """1000 : 1 : 1 over 5 streams would be 5 : 0 : 0."""
    problem = shared_relay().replace(backlog_bytes=[1000, 1, 1, 0])
    assert streams_in_proportion(problem, 5) == {"A": 3, "B": 1, "K": 1}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DirectController(three_sources(), 0), "streams must be >= 1, got 0"),
        (lambda: DirectController(three_sources(), at_a_time=0), "at_a_time must be >= 1, got 0"),
        (lambda: DirectController(three_sources(), order=["X"]), "'X' is not a host with data"),
        (lambda: DirectController(three_sources(), order=["A", "A"]), "named twice"),
        (lambda: streams_in_proportion(three_sources(), 2), "for each of 3 hosts"),
    ],
)
def test_bad_options_are_refused(make, message):
    with pytest.raises(ProblemError, match=message):
        make()
