"""Schedule files: what is written reads back equal, and is written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import threading

import numpy as np
import pandas as pd
import pytest

import datacollect as dc
from datacollect.schedule.data.transfers import Turns


@pytest.fixture(scope="module")
def relayed():
    """S holds 4 MB and reaches D at 1 MB/s, directly and through K: together in 2 s and a chunk."""
    return dc.Problem.from_matrix(
        ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    )


@pytest.fixture(params=["pipelined", "slotted", "direct", "empty"])
def schedule(request, relayed):
    if request.param == "pipelined":
        return dc.coordinated(relayed, chunk_s=0.1)
    if request.param == "slotted":
        return dc.coordinated(relayed, slot_s=0.5)
    if request.param == "direct":
        return dc.direct(relayed)
    return dc.coordinated(relayed.replace(backlog_bytes=np.zeros(3, dtype=np.int64)))


def test_schedule_file_has_the_published_keys(relayed):
    tree = dc.coordinated(relayed, slot_s=0.5).to_dict()
    published = {
        "format",
        "method",
        "destination",
        "makespan_s",
        "lower_bound_s",
        "slot_s",
        "chunk_s",
        "solver",
        "problem_sha256",
        "transfers",
    }
    known = {"status", "bottleneck", "plan_time_s", "hosts"}
    assert set(tree) == published | known | {
        "prefer",
        "deadline_s",
        "turns",
        "hysteresis",
        "first",
        "derate",
        "most_transfers",
    }
    assert set(tree["transfers"][0]) == {
        "source",
        "route",
        "hop",
        "offset_bytes",
        "bytes",
        "start_s",
        "finish_s",
        "streams",
    }
    assert tree["format"] == "datacollect-schedule/1"
    assert tree["slot_s"] == 0.5
    assert tree["chunk_s"] is None


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_schedule_survives_its_file(schedule, suffix, tmp_path):
    path = tmp_path / f"plan{suffix}"
    schedule.to_file(path)
    again = dc.Schedule.from_file(path)
    assert again.to_dict() == schedule.to_dict()
    pd.testing.assert_frame_equal(again.transfers, schedule.transfers)
    assert again.bottleneck == schedule.bottleneck
    assert again.status == schedule.status


def test_schedule_read_back_is_valid(relayed, tmp_path):
    schedule = dc.coordinated(relayed)
    schedule.to_file(tmp_path / "plan.json")
    dc.Schedule.from_file(tmp_path / "plan.json").check(relayed)


def test_parquet_is_a_table_that_others_read(relayed, tmp_path):
    schedule = dc.coordinated(relayed, slot_s=0.5)
    schedule.to_file(tmp_path / "plan.parquet")
    table = pd.read_parquet(tmp_path / "plan.parquet")
    assert table["bytes"].tolist() == schedule.columns.n_bytes.tolist()
    assert [tuple(route) for route in table["route"]] == schedule.transfers["route"].tolist()


def minimal_schedule(**changes):
    tree = {
        "format": "datacollect-schedule/1",
        "method": "by hand",
        "destination": "D",
        "makespan_s": 2,
        "lower_bound_s": 1.0,
        "slot_s": None,
        "chunk_s": None,
        "solver": "none",
        "problem_sha256": "…",
        "transfers": [
            transfer(start_s=1.0, finish_s=2.0, offset_bytes=5),
            transfer(start_s=0.0, finish_s=1.0),
        ],
    }
    return tree | changes


def transfer(**changes):
    row = {
        "source": "S",
        "route": ["S", "D"],
        "hop": 0,
        "offset_bytes": 0,
        "bytes": 5,
        "start_s": 0.0,
        "finish_s": 1.0,
    }
    return row | changes


def test_schedule_written_by_hand_needs_neither_order_nor_extras():
    schedule = dc.Schedule.from_dict(minimal_schedule())
    assert schedule.transfers["offset_bytes"].tolist() == [0, 5]
    assert schedule.transfers["streams"].tolist() == [1, 1]
    assert schedule.n_routes == 1
    assert schedule.status == "heuristic"
    assert schedule.bottleneck.kind == "unknown"


def test_numbers_that_json_lacks_are_not_written(relayed):
    schedule = dc.direct(relayed).replace(lower_bound_s=math.nan)
    with pytest.raises(dc.ProblemError, match="lower_bound_s must be finite"):
        schedule.to_dict()


# What a plan was asked for ------------------------------------------------------------------


def asked_for(schedule):
    return schedule.prefer, schedule.deadline_s, schedule.turns, schedule.hysteresis


ASKED = [
    (dc.coordinated, {}, ("relay-bytes", None, None, None)),
    (dc.coordinated, {"deadline_s": 3.0, "prefer": "storage"}, ("storage", 3.0, None, None)),
    (dc.coordinated, {"slot_s": 0.5, "deadline_s": 3}, ("relay-bytes", 3.0, None, None)),
    (dc.direct, {}, (None, None, None, None)),
    (dc.direct, {"order": ["S"]}, (None, None, Turns(("S",), 1), None)),
    (dc.direct, {"at_a_time": 2, "time_slot_s": 1}, (None, None, Turns((), 2, 1.0), None)),
    (dc.best_path, {}, (None, None, None, 1.05)),
    (dc.best_path, {"slot_s": 0.5, "hysteresis": 2}, (None, None, None, 2.0)),
]


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
@pytest.mark.parametrize(("method", "options", "expected"), ASKED)
def test_what_a_plan_was_asked_for_survives_its_file(
    method, options, expected, suffix, relayed, tmp_path
):
    schedule = method(relayed, **options)
    assert asked_for(schedule) == expected
    schedule.to_file(tmp_path / f"plan{suffix}")
    assert asked_for(dc.Schedule.from_file(tmp_path / f"plan{suffix}")) == expected


def test_with_prices_a_deadline_asks_for_the_least_money(relayed):
    priced = relayed.replace(price_per_gb=np.array([1.0, 0.0, 0.0]))
    assert dc.coordinated(priced).prefer == "relay-bytes"
    assert dc.coordinated(priced, deadline_s=3.0).prefer == "money"


def test_files_of_old_do_not_say_what_was_asked_for():
    assert asked_for(dc.Schedule.from_dict(minimal_schedule())) == (None, None, None, None)
    nothing = dict.fromkeys(("prefer", "deadline_s", "turns", "hysteresis"))
    assert asked_for(dc.Schedule.from_dict(minimal_schedule(**nothing))) == (None, None, None, None)


# Writing ------------------------------------------------------------------------------------


def test_failed_write_keeps_the_old_file_and_leaves_nothing_beside(relayed, tmp_path, monkeypatch):
    path = tmp_path / "plan.json"
    path.write_text("old")

    def full(self, data):
        with self.open("wb") as stream:
            stream.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(dc.ProblemError, match=r"plan\.json: cannot be written: No space left"):
        dc.direct(relayed).to_file(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_through_a_link_keeps_the_link(relayed, tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "plan.json")
    dc.direct(relayed).to_file(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "plan.json").read_text())["method"] == "direct"


def test_a_pipe_is_written_to_and_not_replaced(relayed, tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    dc.direct(relayed).to_file(pipe)
    reader.join(60)
    assert json.loads(received[0])["method"] == "direct"
    assert pipe.is_fifo()


@pytest.mark.parametrize("place", ["missing/plan.json", "."])
def test_where_nothing_can_be_written_the_message_says_so(relayed, tmp_path, place):
    with pytest.raises(dc.ProblemError, match="cannot be written"):
        dc.direct(relayed).to_file(tmp_path / place)
