"""Pull lists: every transfer is requested once, by its receiver, in order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from instances.hand_made import PIPELINE, plan
from instances.random_schedules import cases

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.problem.manifest import Files
from datacollect.schedule.pulls import pull_list

COLUMNS = [
    "host",
    "request_from",
    "source",
    "offset_bytes",
    "bytes",
    "start_s",
    "finish_s",
    "rate_bytes_per_s",
    "streams",
    "slot",
    "n_slots",
    "forward_to",
    "route",
]


def test_relay_requests_from_the_source_and_forwards_to_the_destination():
    pulls = pull_list(plan(PIPELINE, chunk_s=1.0), "K")
    assert list(pulls) == COLUMNS
    assert pulls.drop(columns=["slot", "n_slots"]).to_dict("records") == [
        {
            "host": "K",
            "request_from": "S",
            "source": "S",
            "offset_bytes": 0,
            "bytes": 600,
            "start_s": 0.0,
            "finish_s": 6.0,
            "rate_bytes_per_s": 100.0,
            "streams": 1,
            "forward_to": "D",
            "route": ("S", "K", "D"),
        }
    ]
    assert pulls["slot"].isna().all()
    assert pulls["n_slots"].isna().all()


def test_destination_forwards_to_nobody():
    pulls = pull_list(plan(PIPELINE, chunk_s=1.0), "D")
    assert pulls["request_from"].tolist() == ["S", "K"]
    assert all(host is None for host in pulls["forward_to"])


def test_all_hosts_are_sorted_by_name_and_start():
    rows = [
        ("S", "S L D", 0, 0, 10, 5.0, 6.0),
        ("S", "S L D", 1, 0, 10, 8.0, 9.0),
        ("S", "S K D", 0, 10, 10, 1.0, 2.0),
        ("S", "S K D", 1, 10, 10, 8.0, 9.0),
        ("S", "S D", 0, 30, 10, 0.0, 1.0),
        ("S", "S D", 0, 20, 10, 0.0, 1.0),
    ]
    pulls = pull_list(plan(rows))
    assert [
        (row.host, row.request_from, row.start_s, row.offset_bytes) for row in pulls.itertuples()
    ] == [
        ("D", "S", 0.0, 20),
        ("D", "S", 0.0, 30),
        ("D", "K", 8.0, 10),
        ("D", "L", 8.0, 0),
        ("K", "S", 1.0, 10),
        ("L", "S", 5.0, 0),
    ]
    assert pulls.index.tolist() == list(range(6))


def test_slots_are_numbered_from_0():
    """Slots of 0.1 s; 3 * 0.1 is 0.30000000000000004."""
    rows = [("S", "S D", 0, 0, 10, 3 * 0.1, 0.5), ("S", "S D", 0, 10, 10, 0.0, 0.1)]
    pulls = pull_list(plan(rows, slot_s=0.1), "D")
    assert pulls["slot"].tolist() == [0, 3]
    assert pulls["n_slots"].tolist() == [1, 2]
    assert pulls["slot"].dtype == pull_list(plan(rows), "D")["slot"].dtype == pd.Int64Dtype()


def test_host_that_receives_nothing_has_an_empty_list():
    schedule = plan(PIPELINE, chunk_s=1.0)
    for pulls in (
        pull_list(schedule, "S"),
        pull_list(schedule, "idle", hosts=["S", "idle"]),
        pull_list(plan([]), "D"),
        pull_list(plan([])),
    ):
        assert len(pulls) == 0
        assert list(pulls) == COLUMNS


def test_a_host_of_the_problem_without_work_has_an_empty_list(tmp_path):
    rates = [[0, 0, 5.0], [0, 0, 5.0], [0, 0, 0]]
    problem = dc.Problem.from_matrix(["S", "idle", "D"], rates, [10, 0, 0], "D")
    for made in (dc.direct(problem), dc.best_path(problem), dc.coordinated(problem)):
        made.to_file(tmp_path / "plan.json")
        again = dc.replan(problem, made, dc.Progress(1.0))
        for schedule in (made, dc.Schedule.from_file(tmp_path / "plan.json"), again):
            assert schedule.hosts == ("S", "idle", "D")
            assert list(schedule.pulls("idle")) == COLUMNS
            assert len(schedule.pulls("idle")) == 0
            with pytest.raises(ProblemError, match="3 hosts, got 'idel'; did you mean 'idle'"):
                schedule.pulls("idel")


def test_with_a_manifest_each_row_lists_its_parts_of_files():
    files = Files(("a", "b"), np.array([300, 700]), ("", ""))
    pulls = plan(PIPELINE, chunk_s=1.0).pulls("K", manifest={"S": files})
    assert pulls["files"].tolist() == [
        [
            {"path": "a", "offset_bytes": 0, "bytes": 300},
            {"path": "b", "offset_bytes": 0, "bytes": 300},
        ]
    ]


def test_unknown_host_is_refused_with_the_nearest_name():
    schedule = plan([("lyon", "lyon nice D", hop, 0, 5, hop, hop + 1.0) for hop in range(2)])
    message = "host must be one of the schedule's 3 hosts, got 'Lyon'; did you mean 'lyon'?"
    with pytest.raises(ProblemError) as caught:
        pull_list(schedule, "Lyon")
    assert str(caught.value) == message


@pytest.mark.slow
@given(cases())
def test_every_transfer_is_requested_exactly_once(case):
    _, schedule = case
    hosts = sorted({host for route in schedule.routes for host in route.hosts})
    lists = [pull_list(schedule, host) for host in hosts]
    assert all((pulls["host"] == host).all() for host, pulls in zip(hosts, lists, strict=True))
    keys = ["source", "offset_bytes", "bytes", "start_s", "finish_s"]
    requested = sorted(
        row
        for pulls in lists
        for row in pulls[["request_from", "host", *keys]].itertuples(index=False, name=None)
    )
    planned = schedule.transfers[["from", "to", *keys]].itertuples(index=False, name=None)
    assert requested == sorted(planned)
