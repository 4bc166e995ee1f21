"""Samples on the disk: whole parts or none, whatever fails and wherever a file is cut."""

from __future__ import annotations

import errno
import glob
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from instances.how_many import some

import datacollect as dc
from datacollect.errors import NotWrittenError, ProblemError
from datacollect.measurement.sample_store import COLUMNS, read_parts, samples_of, write_part

ROW = {"from": "S", "to": "D", "time_s": 60.0, "tool": "tcp", "ended": "done"}


def row(**more):
    return {**ROW, **more}


def test_rows_come_back_with_all_columns(tmp_path):
    write_part(tmp_path, "b", [row(bandwidth_bytes_per_s=5.0, streams=4, settings='{"n": 4}')])
    write_part(tmp_path, "a", [row(tool="ping", rtt_s=0.1, beside_pull=True), row(rtt_s=0.2)])
    found = read_parts(tmp_path)
    assert found.damaged == ()
    assert list(found.frame.columns) == list(COLUMNS)
    assert found.frame["rtt_s"].tolist()[:2] == [0.1, 0.2]
    assert found.frame["streams"].tolist()[2] == 4
    assert found.frame["settings"].tolist()[2] == '{"n": 4}'
    assert found.frame["loss"].isna().all()


def test_pandas_reads_the_parts_of_a_folder(tmp_path):
    """As the documentation says, whatever lies beside them, and whichever columns are null."""
    write_part(tmp_path, "a", [row(bandwidth_bytes_per_s=5.0)])
    write_part(tmp_path, "b", [row(tool="trace", routers="[null]")])
    (tmp_path / "cycle.json").write_text("{}")
    table = pd.read_parquet(glob.glob(f"{tmp_path}/*.parquet"))  # noqa: PTH207 - as it is written
    assert list(table.columns) == list(COLUMNS)
    assert sorted(table["tool"]) == ["tcp", "trace"]


def test_an_empty_folder_has_no_rows(tmp_path):
    assert read_parts(tmp_path).frame.empty
    assert list(read_parts(tmp_path).frame.columns) == list(COLUMNS)


def test_a_test_that_is_written_again_replaces_itself(tmp_path):
    for rtt_s in (0.1, 0.2):
        write_part(tmp_path, "a", [row(rtt_s=rtt_s)])
    assert read_parts(tmp_path).frame["rtt_s"].tolist() == [0.2]


def test_a_part_cut_at_any_byte_is_named_and_the_others_are_read(tmp_path):
    whole = write_part(tmp_path, "a", [row(rtt_s=0.1)]).read_bytes()
    write_part(tmp_path, "b", [row(rtt_s=0.2)])
    for length in some(range(0, len(whole), 7)):
        (tmp_path / "a.parquet").write_bytes(whole[:length])
        found = read_parts(tmp_path)
        assert found.damaged == ("a.parquet",)
        assert found.frame["rtt_s"].tolist() == [0.2]


@pytest.mark.parametrize(
    "odd",
    [
        *({"time_s": time_s} for time_s in (1e15, -1.0, float("nan"))),
        *({"routers": text} for text in ("8.8.8.8", "[", '{"a": 1}', "[1]")),
    ],
)
def test_a_part_that_says_what_cannot_be_is_named_and_the_others_are_read(odd, tmp_path):
    """Of a clock that has jumped out of all calendars, or of another program."""
    write_part(tmp_path, "a", [row(**odd)])
    write_part(tmp_path, "b", [row(routers='["8.8.8.8", null]')])
    found = read_parts(tmp_path)
    assert (found.damaged, len(found.frame)) == (("a.parquet",), 1)


def test_readers_see_whole_parts_while_others_are_written(tmp_path):
    write_part(tmp_path, "a", [row(rtt_s=0.1)])
    (tmp_path / ".b.parquet.77.tmp").write_bytes(b"PAR1 and not more yet")
    found = read_parts(tmp_path)
    assert (found.damaged, len(found.frame)) == ((), 1)


CALLS = [(os, "open"), (os, "fsync"), (os, "close"), (Path, "replace"), (pq, "write_table")]


@pytest.mark.parametrize(("owner", "name"), CALLS)
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_when_a_call_fails_what_was_kept_stays_and_nothing_is_half(
    owner, name, nth, tmp_path, monkeypatch
):
    write_part(tmp_path, "a", [row(rtt_s=0.1)])
    real, calls = getattr(owner, name), []

    def failing(*arguments, **options):
        calls.append(name)
        if len(calls) == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **options)

    failed = ""
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing)
        try:
            write_part(tmp_path, "b", [row(rtt_s=0.2)])
        except NotWrittenError as error:
            failed = str(error)
    assert bool(failed) == (len(calls) >= nth)
    assert not failed or "b.parquet: cannot be written: No space left on device" in failed
    found = read_parts(tmp_path)
    assert found.damaged == ()
    # Where only the folder's own entry could not be synchronised the part is there all the same.
    assert found.frame["rtt_s"].tolist() in ([0.1], [0.1, 0.2])
    assert failed or len(found.frame) == 2
    assert [file.suffix for file in tmp_path.iterdir()] == [".parquet"] * len(found.frame)
    # Tried again, it is there once.
    write_part(tmp_path, "b", [row(rtt_s=0.2)])
    assert read_parts(tmp_path).frame["rtt_s"].tolist() == [0.1, 0.2]


def test_parts_of_other_versions_are_read(tmp_path):
    one = pa.table({**{key: [value] for key, value in ROW.items()}, "colour": ["red"]})
    pq.write_table(one, tmp_path / "old.parquet")
    found = read_parts(tmp_path)
    assert found.frame["from"].tolist() == ["S"]
    assert list(found.frame.columns) == list(COLUMNS)


def test_estimates_take_what_measured_a_bandwidth(tmp_path):
    rows = [
        row(bandwidth_bytes_per_s=5.0, streams=1),
        row(bandwidth_bytes_per_s=9.0, ended="the connection was lost"),
        row(rtt_s=0.1, tool="ping"),
    ]
    write_part(tmp_path, "a", rows)
    found = dc.estimate(samples_of(read_parts(tmp_path).frame))
    assert found["bandwidth_bytes_per_s"].tolist() == [5.0]
    assert found["kind"].tolist() == ["tcp, 1 stream"]


def test_where_nothing_measured_a_bandwidth_there_is_no_row(tmp_path):
    write_part(tmp_path, "a", [row(rtt_s=0.1, tool="ping")])
    assert samples_of(read_parts(tmp_path).frame).empty


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(rtt=0.1)], "samples have no column 'rtt'; did you mean 'rtt_s'?"),
        ([{"from": "S"}], "a sample must say to, got"),
        ([row(streams="many")], "a sample has a value of another type than its column"),
    ],
)
def test_wrong_rows_are_refused_and_nothing_is_written(rows, message, tmp_path):
    with pytest.raises(ProblemError) as raised:
        write_part(tmp_path, "a", rows)
    assert message in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("test_id", ["", "../a", ".a", "a.b", "a" * 101])
def test_names_that_are_no_files_of_the_folder_are_refused(test_id, tmp_path):
    with pytest.raises(ProblemError, match="a test's name must be letters, digits"):
        write_part(tmp_path, test_id, [ROW])
