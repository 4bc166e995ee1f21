"""The judge of schedules: valid ones pass, and each rule, broken once, is named with its place."""

from __future__ import annotations

import math
import re

import pytest
from instances.hand_made import PIPELINE, broken, links, pipeline_problem, plan

from datacollect import Held, Host, Problem, SharedBottleneck
from datacollect.schedule.check.judge import check_schedule
from datacollect.schedule.data.transfers import Route, Transfers


def test_pipeline_at_full_capacity_is_valid():
    limits = {
        "S": {"uplink_bytes_per_s": 150.0},
        "K": {"downlink_bytes_per_s": 100.0, "uplink_bytes_per_s": 100.0, "storage_bytes": 100},
        "D": {"downlink_bytes_per_s": 150.0, "storage_bytes": 0},
    }
    check_schedule(pipeline_problem(**limits), plan(PIPELINE, chunk_s=1.0, lower_bound_s=19 / 3))


def with_row(i, row):
    return [*PIPELINE[:i], row, *PIPELINE[i + 1 :]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        pytest.param(
            [("S", "S D", 0, 0, 950, 0.0, 19.0), ("S", "S D", 0, 0, 950, 19.0, 38.0)],
            r"twice, but bytes 0 to 949 \(950 bytes\) travels it here and in bytes 0 to",
            id="the same bytes twice",
        ),
        pytest.param(
            PIPELINE[:2],
            r"the data at 'S' must leave it, missing: bytes 600 to 949 of 'S' \(350 bytes\)",
            id="a route is missing",
        ),
        pytest.param(
            [*PIPELINE[:2], *(("S", "S D", 0, at, 50, 0.0, 1.0) for at in (650, 750, 850))],
            r"missing: bytes 600 to 649 and 3 more ranges of 'S' \(200 bytes\)",
            id="four parts are missing",
        ),
        pytest.param(
            [PIPELINE[0], PIPELINE[2]],
            r"arrives at 'K' must leave for 'D', missing: bytes 0 to 599 of 'S' \(600 bytes\)",
            id="a hop is missing",
        ),
        pytest.param(
            PIPELINE[1:],
            r"leaves 'K' for 'D' must arrive there, missing: bytes 0 to 599 of 'S' \(600 bytes\)",
            id="a first hop is missing",
        ),
        pytest.param(
            with_row(2, ("S", "S D", 0, 599, 351, 0.0, 7.02)),
            r"of 'S', byte 599 \(1 byte\) travels 'S' -> 'K' -> 'D' and 'S' -> 'D'",
            id="a byte on two routes",
        ),
        pytest.param(
            with_row(1, ("S", "S K D", 1, 1, 599, 1.0, 7.0)),
            r"arrives at 'K' must leave for 'D', missing: byte 0 of 'S' \(1 byte\)",
            id="one byte stays behind",
        ),
        pytest.param(
            with_row(1, ("S", "S K D", 1, 0, 600, 0.5, 7.0)),
            None,
            id="leaving at the same instant is allowed",
        ),
        pytest.param(
            with_row(0, ("S", "S K D", 0, 0, 600, 0.6, 7.2))[:1] + PIPELINE[1:],
            r"byte 599 of 'S' at relay 'K', on its way to 'D': leaves at 7 s but arrives at 7.2 s: "
            r"0.2 s too early",
            id="the last byte leaves before it arrives",
        ),
        pytest.param(
            with_row(1, ("S", "S K D", 1, 0, 600, 0.0, 7.0)),
            None,
            id="a slower hop may start at once",
        ),
        pytest.param(
            with_row(0, ("S", "S K D", 0, 0, 600, 1.25, 7.25)),
            r"byte 0 of 'S' at relay 'K', .* leaves at 1 s but arrives at 1.25 s: 0.25 s too early",
            id="all leaves before it arrives",
        ),
        pytest.param(
            with_row(0, ("S", "S K D", 0, 0, 600, 0.0, 3.0)),
            r"link 'S' -> 'K': 1 transfer at up to 200 bytes/s together from 0 s to 3 s, its "
            r"capacity is 100 bytes/s: 300 bytes too many",
            id="twice the rate",
        ),
        pytest.param(
            with_row(2, ("S", "S D", 0, 600, 350, 0.0, 6.8)),
            r"link 'S' -> 'D': .* from 0 s to 6.8 s, .* 50 bytes/s: 10 bytes too many",
            id="a little too fast",
        ),
        pytest.param(
            with_row(2, ("S", "S D", 0, 600, 350, 0.0, 6.98)),
            None,
            id="too fast by one byte in all",
        ),
        pytest.param(
            with_row(2, ("S", "S D", 0, 600, 350, -1.0, 7.0)), "start_s must be >= 0", id="before 0"
        ),
        pytest.param(
            with_row(2, ("S", "S D", 0, 600, 350, 7.0, 7.0)),
            "finish_s must be after start_s, got 7",
            id="no duration",
        ),
        pytest.param(
            with_row(2, ("S", "S D", 0, 600, 350, 0.0, math.inf)),
            "bytes 600 to 949 of 'S', hop 0 of route 'S' -> 'D'.*finish_s must be finite, got inf",
            id="never ends",
        ),
        pytest.param(
            with_row(2, ("S", "S D", 0, 600, 350, math.nan, 7.0)),
            "start_s must be finite",
            id="NaN",
        ),
        pytest.param(
            [*PIPELINE, ("S", "S D", 0, 950, 0, 0.0, 1.0)],
            "bytes must be > 0, got 0",
            id="no bytes",
        ),
        pytest.param(
            with_row(2, ("S", "S D", 0, 600, 351, 0.0, 7.02)),
            "must lie within the backlog of 950 bytes",
            id="more than the backlog",
        ),
        pytest.param(
            [*PIPELINE[:2], ("S", "S D", 0, 2**63 - 1, 2**62, 0.0, 7.0)],
            "must lie within the backlog of 950 bytes",
            id="beyond 64 bits",
        ),
        pytest.param(
            with_row(2, ("S", "S D", 0, -1, 951, 0.0, 7.0)), "within the backlog", id="below byte 0"
        ),
        pytest.param(
            with_row(2, ("S", "S D", 1, 600, 350, 0.0, 7.0)),
            r"hop must be 0 ... 0, got 1",
            id="no such hop",
        ),
        pytest.param(
            with_row(2, ("S", "S KK D", 0, 600, 350, 0.0, 7.0)),
            "route 'S' -> 'KK' -> 'D' of 'S': unknown host 'KK'; did you mean 'K'",
            id="unknown host",
        ),
        pytest.param(
            with_row(2, ("K", "K D", 0, 600, 350, 0.0, 7.0)),
            "host 'K' has no backlog",
            id="source without backlog",
        ),
        pytest.param(
            with_row(2, ("S", "S K", 0, 600, 350, 0.0, 7.0)),
            "ends at 'K' instead of the destination 'D'",
            id="wrong end",
        ),
        pytest.param(
            with_row(2, ("S", "S D S D", 0, 600, 350, 0.0, 7.0)),
            "passes the destination before its end",
            id="destination in the middle",
        ),
        pytest.param(
            with_row(2, ("S", "S K S D", 0, 600, 350, 0.0, 7.0)),
            "visits 'S' 2 times; only storage limits",
            id="a host twice",
        ),
        pytest.param(
            with_row(2, ("S", "D", 0, 600, 350, 0.0, 7.0)),
            "a route needs at least two hosts",
            id="no hop at all",
        ),
        pytest.param(
            with_row(2, ("S", "K D", 0, 600, 350, 0.0, 7.0)),
            r"starts at 'K' must lie there, but at 'S' lies: bytes 600 to 949 of 'S' \(350 bytes\)",
            id="data that lie elsewhere",
        ),
    ],
)
def test_pipeline_with_one_change(rows, message):
    schedule = plan(rows, chunk_s=1.0)
    if message is None:
        check_schedule(pipeline_problem(), schedule)
    else:
        assert re.search(message, broken(pipeline_problem(), schedule))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"destination": "K"}, "leads to 'K', the problem's destination is 'D'"),
        ({"makespan_s": 7.5}, "makespan_s .* reaches 'D', 7 s, got 7.5 s: 0.5 s off"),
        ({"makespan_s": math.nan}, "makespan_s .* got nan"),
        ({"makespan_s": math.nextafter(7.0, 8.0)}, "makespan_s .* 8.88.*e-16 s off"),
        ({"makespan_s": math.nextafter(7.0, 0.0)}, "makespan_s"),
        ({"lower_bound_s": 7.5}, "lower_bound_s .* got 7.5 s and 7 s: 0.5 s more"),
        ({"slot_s": 1.0}, "either slot_s or chunk_s, got slot_s = 1.0 and chunk_s = 1.0"),
        ({"chunk_s": None}, "either slot_s or chunk_s, got slot_s = None and chunk_s = None"),
        ({"chunk_s": -1.0}, "chunk_s must be >= 0 and finite, got -1.0"),
        ({"chunk_s": None, "slot_s": 0.0}, "slot_s must be positive and finite, got 0.0"),
        ({"routes": (Route("S", ("S", "K", "D")),)}, "transfer 1: route must be 0 ... 0, got 1"),
        ({"routes": (Route("S", ("S", "D", "K")), Route("S", ("S", "D")))}, "ends at 'K'"),
    ],
)
def test_schedule_with_one_attribute_changed(changes, message):
    schedule = plan(PIPELINE, chunk_s=1.0).replace(**changes)
    assert re.search(message, broken(pipeline_problem(), schedule))


def test_streams_below_one_are_refused():
    schedule = plan(PIPELINE, chunk_s=1.0)
    columns = {name: getattr(schedule.columns, name) for name in Transfers._kinds()}
    columns["streams"] = [1, 0, 1]
    wrong = schedule.replace(columns=Transfers(**columns))
    assert "streams must be >= 1, got 0" in broken(pipeline_problem(), wrong)


def test_rounding_of_the_bound_is_tolerated():
    schedule = plan(PIPELINE, chunk_s=1.0, lower_bound_s=7.0 + 6e-6)
    check_schedule(pipeline_problem(), schedule)
    check_schedule(pipeline_problem(), schedule.replace(lower_bound_s=math.nan))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"S": {"uplink_bytes_per_s": 149.0}}, "uplink of host 'S': 2 .*150 .*149 .*: 6 bytes too"),
        ({"K": {"uplink_bytes_per_s": 90.0}}, "uplink of host 'K': .*from 1 s to 7 s.*: 60 bytes"),
        ({"K": {"downlink_bytes_per_s": 90.0}}, "downlink of host 'K': .*from 0 s to 6 s"),
        ({"D": {"downlink_bytes_per_s": 140.0}}, "downlink of host 'D': 2 .*140.*: 60 bytes too"),
        ({"K": {"downlink_bytes_per_s": 0.0}}, "downlink of host 'K': it has no capacity"),
        ({"S": {"release_s": 0.5}}, "it leaves 0.5 s before the release of 'S' at 0.5 s"),
        ({"S": {"backlog_bytes": 949}}, "within the backlog of 949 bytes"),
        ({"S": {"backlog_bytes": 951}}, r"leave it, missing: byte 950 of 'S' \(1 byte\)"),
    ],
)
def test_pipeline_under_narrower_limits(options, message):
    """Rates at D: 50 in [0, 1), 150 in [1, 6), 150 in [6, 7): 140 are exceeded by 60 bytes."""
    assert re.search(message, broken(pipeline_problem(**options), plan(PIPELINE, chunk_s=1.0)))


def test_shared_bottleneck_is_respected():
    """K -> D and S -> D take 150 bytes/s together in [1, 7)."""
    problem = pipeline_problem()
    narrow = problem.replace(
        shared=[
            SharedBottleneck("other", 1e9, [("S", "K")]),
            SharedBottleneck("wire", 145.0, problem.shared[0].links),
        ]
    )
    message = broken(narrow, plan(PIPELINE, chunk_s=1.0))
    assert re.search(
        "shared bottleneck 'wire': 2 .*150 .*from 1 s to 7 s.*145 .*: 30 bytes", message
    )


def test_missing_link_is_named():
    problem = Problem.from_hosts([Host("S", 10), Host("K"), Host("D")], links("S -> D 5"), "D")
    message = broken(
        problem, plan([("S", "S K D", 0, 0, 10, 0, 2), ("S", "S K D", 1, 0, 10, 2, 4)])
    )
    assert message == "route 'S' -> 'K' -> 'D' of 'S': the problem has no link 'S' -> 'K'"


def test_of_a_very_long_route_the_ends_are_told():
    """1001 hosts are no message; neither are those that are told too few to find the route."""
    problem = Problem.from_hosts([Host("S", 10), Host("K"), Host("D")], links("S -> D 5"), "D")
    message = broken(problem, plan([("S", "S K " * 500 + "D", 0, 0, 10, 0, 2)]))
    start, end = " -> ".join(["'S'", "'K'"] * 5), " -> ".join(["'K'", *["'S'", "'K'"] * 4, "'D'"])
    assert message.startswith(
        f"route {start} -> (981 more) -> {end} of 'S': it visits 'S' 500 times"
    )


def test_a_transfer_of_nothing_is_described():
    problem = Problem.from_hosts([Host("S", 10), Host("D")], links("S -> D 5"), "D")
    message = broken(problem, plan([("S", "S D", 0, 3, 0, 0, 2)]))
    assert message.startswith(
        "no bytes from 3 on of 'S', hop 0 of route 'S' -> 'D', from 0 s to 2 s"
    )


def test_of_a_very_long_name_the_beginning_is_told():
    problem = Problem.from_hosts([Host("S", 10), Host("K"), Host("D")], links("S -> D 5"), "D")
    for row in (("S", f"S {'x' * 10**5} D"), ("x" * 10**5, "S D")):
        message = broken(problem, plan([(*row, 0, 0, 10, 0, 2)]))
        assert "unknown host 'xxxxx" in message
        assert len(message) < 500


def test_link_without_capacity_carries_not_even_one_byte():
    problem = Problem.from_hosts([Host("S", 1), Host("D")], links("S -> D 0"), "D")
    message = broken(problem, plan([("S", "S D", 0, 0, 1, 0.0, 1.0)]))
    assert "link 'S' -> 'D': it has no capacity, but carries byte 0 of 'S'" in message


def test_empty_schedule_is_valid_only_where_nothing_is_to_be_moved():
    hosts = [Host("S", 5), Host("K"), Host("D", 7)]
    at_d = [Held("D", "S", 0, 5)]
    done = Problem.from_hosts(hosts, links("S -> D 5"), "D", held=at_d)
    check_schedule(done, plan([]))
    assert "bytes 0 to 4 of 'S'" in broken(done.replace(held=()), plan([]))
    again = plan([("S", "S D", 0, 0, 5, 0, 1)])
    assert "but at 'D', the destination, lies: bytes 0 to 4 of 'S'" in broken(done, again)
    assert "makespan_s" in broken(done, plan([], makespan_s=1.0))


def test_routes_listed_twice_are_one():
    """The hops of one route refer to two equal entries of the list of routes.

    S's own data take until 100 s, of which a chunk of 1 s is a hundredth: K needs no room.
    """
    schedule = plan(with_row(2, ("S", "S D", 0, 600, 350, 0.0, 100.0)), chunk_s=1.0)
    columns = {name: getattr(schedule.columns, name).copy() for name in Transfers._kinds()}
    columns["route"][columns["hop"] == 1] = 2
    twice = schedule.replace(
        columns=Transfers(**columns), routes=(*schedule.routes, schedule.routes[0])
    )
    check_schedule(pipeline_problem(K={"storage_bytes": 0}), twice)
