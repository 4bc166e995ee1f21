"""What is kept of a cycle: it comes back as it was, and no two cycles work in one folder."""

from __future__ import annotations

import json

import pytest

from datacollect.errors import NotWrittenError, ProblemError
from datacollect.measuring.cycle.record import (
    FILE,
    CycleRecord,
    only_one,
    read_record,
    write_record,
)

ROUNDS = ((("a", "b"), ("c", "d")), (("b", "a"),))
RECORD = CycleRecord(7, 1e9, {"tools": ["ping"], "only": None}, ROUNDS, None, {("a", "b"): 5.5})


@pytest.mark.parametrize("loading", [None, (), ROUNDS])
def test_a_record_comes_back_as_it_was(tmp_path, loading):
    record = CycleRecord(7, 1e9, {"tools": ["ping"]}, ROUNDS, loading, {("a", "b"): 5.5}, True)
    write_record(tmp_path, record)
    assert read_record(tmp_path) == record


def test_where_there_was_no_cycle_there_is_no_record(tmp_path):
    assert read_record(tmp_path) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: [],
        lambda tree: tree | {"format": "datacollect-cycle/2"},
        lambda tree: tree | {"light": [[["a"]]]},
        lambda tree: tree | {"more": 1},
        lambda tree: {key: value for key, value in tree.items() if key != "number"},
        lambda tree: tree | {"rates_bytes_per_s": 5},
    ],
)
def test_a_record_that_is_none_is_named(tmp_path, spoil):
    write_record(tmp_path, RECORD)
    tree = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps(spoil(tree)))
    with pytest.raises(
        ProblemError, match=r"cycle\.json: is not a record of a cycle of this version"
    ):
        read_record(tmp_path)


def test_a_record_cut_anywhere_is_named(tmp_path):
    write_record(tmp_path, RECORD)
    data = (tmp_path / FILE).read_bytes()
    for n in range(len(data)):
        (tmp_path / FILE).write_bytes(data[:n])
        with pytest.raises(ProblemError, match="is not a record of a cycle"):
            read_record(tmp_path)


def test_one_cycle_at_a_time_in_a_folder(tmp_path):
    def hold():
        with only_one(tmp_path / "new"):
            pass

    with (
        only_one(tmp_path / "new"),
        pytest.raises(ProblemError, match="another cycle is running in this folder"),
    ):
        hold()
    hold()


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(NotWrittenError, match="file: cannot be written: File exists"),
        only_one(tmp_path / "file"),
    ):
        pass
