"""What pulls in slots have moved: noted in lines, whatever tears one, and made a schedule of."""

import json

import pytest

import datacollect as dc
from datacollect.transfer.pull.core.todo import SourceWork
from datacollect.transfer.pull.slots.happened import MOVES, PROBLEM, SCHEDULE, Happened
from datacollect.transfer.pull.slots.slot_planning import HopTask

WORK = {"S": SourceWork((0, 10), (10, 10), frozenset({0, 1}))}
PROBLEM_TREE = {
    "destination": "D",
    "hosts": {"S": {"backlog_bytes": 20}, "K": {}, "D": {}},
    "links": [
        {"from": "S", "to": "K", "bandwidth_bytes_per_s": 100},
        {"from": "K", "to": "D", "bandwidth_bytes_per_s": 100},
    ],
}
TO_K, TO_D = (HopTask("S", tail, head, (0, 1)) for tail, head in (("S", "K"), ("K", "D")))


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose last entry is what time it is."""
    now_s = [1000.0]
    happened = "datacollect.transfer.pull.slots.happened.time.time"
    monkeypatch.setattr(happened, lambda: now_s[-1])
    return now_s


def begun(tmp_path):
    found = Happened(tmp_path, 10.0)
    found.planned(dc.Problem.from_dict(PROBLEM_TREE), 1000.0, WORK)
    return found


def written(tmp_path, happened):
    happened.write()
    schedule = dc.Schedule.from_file(tmp_path / SCHEDULE)
    schedule.check(dc.Problem.from_file(tmp_path / PROBLEM))
    columns = schedule.columns
    rows = (columns.hop, columns.offset_bytes, columns.n_bytes, columns.start_s)
    return sorted(zip(*(each.tolist() for each in rows), strict=True))


def test_a_line_that_was_torn_costs_no_other(tmp_path, clock):
    """A disk was full in the middle of a line; the next start goes on behind it."""
    begun(tmp_path).moved(TO_K, [0, 1], 1000.0)
    with (tmp_path / MOVES).open("a") as file:
        file.write('\n{"move": [1010.0, 10')
    clock.append(1015.0)
    again = begun(tmp_path)
    again.moved(TO_D, [0, 1], 1010.0)
    assert written(tmp_path, again) == [(0, 0, 20, 0.0), (1, 0, 20, 10.0)]


def test_what_was_noted_twice_has_happened_the_last_time(tmp_path, clock):
    """A start was killed after it had noted a piece, before it had it: the next fetches it."""
    begun(tmp_path).moved(TO_K, [0, 1], 1000.0)
    clock.append(1011.0)
    begun(tmp_path).moved(TO_D, [0, 1], 1010.0)
    clock.append(1031.0)
    again = begun(tmp_path)
    again.moved(TO_D, [1], 1030.0)
    assert written(tmp_path, again) == [(0, 0, 20, 0.0), (1, 0, 10, 10.0), (1, 10, 10, 30.0)]


def test_each_line_is_whole_by_itself(tmp_path, clock):
    begun(tmp_path).moved(TO_K, [0, 1], 1000.0)
    head, *moves = (tmp_path / MOVES).read_text().splitlines()
    assert json.loads(head)["slot_s"] == 10.0
    assert [json.loads(line)["move"][-2:] for line in moves] == [[0, 10], [10, 10]]
