"""Rates that grow with connections: what streams get, by both judges."""

import pytest
from judges.contract_check import judge

import datacollect as dc
from datacollect.errors import ScheduleError


def plan(problem, *rows):
    """Transfers of S from offset 0 on: bytes, start, finish, streams."""
    offset, transfers = 0, []
    for n_bytes, start, finish, streams in rows:
        transfers.append(
            {
                "source": "S",
                "route": ["S", "D"],
                "hop": 0,
                "offset_bytes": offset,
                "bytes": n_bytes,
                "start_s": start,
                "finish_s": finish,
                "streams": streams,
            }
        )
        offset += n_bytes
    last = max(row[2] for row in rows)
    return dc.Schedule.from_dict(
        {
            "format": "datacollect-schedule/1",
            "method": "coordinated",
            "destination": "D",
            "makespan_s": last,
            "lower_bound_s": 0.0,
            "slot_s": None,
            "chunk_s": 0.0,
            "solver": "hand",
            "problem_sha256": problem.sha256,
            "transfers": transfers,
        }
    )


def link(**rates):
    hosts = [dc.Host("S", 12_000), dc.Host("D")]
    return dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 400.0, **rates)], "D")


WIRE = dc.SharedBottleneck("w", 400.0, [("S", "D")], competitors=2)
CAPACITY = link(capacity_bytes_per_s=1200.0)


@pytest.mark.parametrize(
    ("problem", "rows"),
    [
        # Beside two of others, 1 gets 400 of 1200 bytes/s, 4 get 800.
        (CAPACITY, [(12_000, 0.0, 30.0, 1)]),
        (CAPACITY, [(12_000, 0.0, 15.0, 4)]),
        # Two at a time, of one and of three streams: 800 together, then 400 for one.
        (CAPACITY, [(9_000, 0.0, 15.0, 3), (3_000, 0.0, 15.0, 1)]),
        (CAPACITY, [(8_000, 0.0, 10.0, 4), (4_000, 10.0, 20.0, 1)]),
        (link(per_connection_bytes_per_s=400.0), [(12_000, 0.0, 3.0, 10)]),
        (link(competitors=2), [(12_000, 0.0, 15.0, 4)]),
        (
            link(per_connection_bytes_per_s=400.0, capacity_bytes_per_s=1000.0, competitors=0),
            [(12_000, 0.0, 15.0, 2)],
        ),
        (
            link(per_connection_bytes_per_s=400.0).replace(shared=[WIRE]),
            [(12_000, 0.0, 15.0, 4)],
        ),
    ],
)
def test_streams_get_what_they_get_together(problem, rows):
    schedule = plan(problem, *rows)
    schedule.check(problem)
    assert judge(problem.to_dict(), schedule.to_dict()) is None


@pytest.mark.parametrize(
    ("problem", "rows", "message"),
    [
        (link(), [(12_000, 0.0, 15.0, 4)], "link 'S' -> 'D': 1 transfer"),
        (CAPACITY, [(12_000, 0.0, 15.0, 3)], r"link 'S' -> 'D' with 3 streams: .* is 720 bytes"),
        (CAPACITY, [(8_000, 0.0, 10.0, 4), (4_000, 10.0, 19.0, 1)], "with 1 stream: "),
        (
            link(per_connection_bytes_per_s=400.0).replace(shared=[WIRE]),
            [(12_000, 0.0, 15.0, 3)],
            "shared bottleneck 'w' with 3 streams",
        ),
    ],
)
def test_streams_get_no_more(problem, rows, message):
    schedule = plan(problem, *rows)
    with pytest.raises(ScheduleError, match=message):
        schedule.check(problem)
    assert judge(problem.to_dict(), schedule.to_dict()) is not None


def test_what_was_planned_without_numbers_stays_valid():
    for method in (dc.direct, dc.coordinated, dc.best_path):
        method(CAPACITY).check(CAPACITY)
