"""Cycles of tests: by their names, or where a link is tested again."""

from __future__ import annotations

import pandas as pd
import pytest

from datacollect.errors import ProblemError
from datacollect.measurement.cycles import NOT_OF_ONE_LINK, cycles_of, read_cycles
from datacollect.measurement.sample_store import write_part

SINCE_S = 1.7e9


def row(tail: str, time_s: float, rate: float, **changed: object) -> dict[str, object]:
    said = {"from": tail, "to": "D", "time_s": SINCE_S + time_s, "tool": "tcp", "ended": "done"}
    return {**said, "bandwidth_bytes_per_s": rate, **changed}


def test_a_cycle_ends_where_a_link_is_tested_again():
    samples = pd.DataFrame(
        {"from": ["S", "T", "S", "S", "T"], "to": "D", "time_s": [0, 1, 2, 3, 4]}
    ).assign(bandwidth_bytes_per_s=5.0)
    found = cycles_of(samples)
    assert found.samples["cycle"].tolist() == [0, 0, 1, 2, 2]
    assert found.n == 3


def test_samples_count_in_order_of_time():
    samples = pd.DataFrame({"from": ["S", "T", "S"], "to": "D", "time_s": [9, 1, 0]})
    found = cycles_of(samples.assign(bandwidth_bytes_per_s=[3.0, 2.0, 1.0]))
    assert found.samples["bandwidth_bytes_per_s"].tolist() == [1.0, 2.0, 3.0]
    assert found.samples["cycle"].tolist() == [0, 0, 1]
    assert found.newest_s == 9


def test_tests_of_a_named_cycle_are_one_whatever_links_come_twice(tmp_path):
    """Two cycles, told by their names; a test of no cycle is one by itself."""
    write_part(tmp_path, "cycle-0-1700000000-tcp-0-0", [row("S", 0, 1.0)])
    write_part(tmp_path, "cycle-0-1700000000-tcp-0-1", [row("S", 5, 3.0)])
    write_part(tmp_path, "cycle-1-1700003600-tcp-0-0", [row("S", 3600, 4.0)])
    write_part(tmp_path, "tcp-7", [row("S", 9000, 5.0)])
    found = read_cycles(tmp_path)
    assert found.samples["cycle"].tolist() == [0, 0, 1, 2]


def test_what_measures_no_link_by_itself_is_no_sample_of_one(tmp_path):
    tools = [*NOT_OF_ONE_LINK, "tcp"]
    rows = [row("S", i, 1.0 + i, tool=tool) for i, tool in enumerate(tools)]
    rows += [
        row("S", 50, 9.0, beside_pull=True),
        row("S", 60, 9.0, ended="no answer"),
        row("S", 70, 9.0, tool="ping", bandwidth_bytes_per_s=None),
    ]
    write_part(tmp_path, "one", rows)
    assert read_cycles(tmp_path).samples["bandwidth_bytes_per_s"].tolist() == [len(tools)]


def test_a_folder_in_which_every_test_failed_is_refused(tmp_path):
    write_part(tmp_path, "one", [row("S", 0, 1.0, ended="no answer")])
    with pytest.raises(ProblemError, match="no test of one link with connections has measured"):
        read_cycles(tmp_path)


def test_a_damaged_part_is_left_out_and_named(tmp_path):
    write_part(tmp_path, "one", [row("S", 0, 1.0)])
    (tmp_path / "two.parquet").write_bytes(b"PAR1 cut")
    found = read_cycles(tmp_path)
    assert found.n == 1
    assert any("two.parquet is damaged" in text for text in found.notes)


def test_files_that_estimates_are_made_of_are_read_as_well(tmp_path):
    table = "from,to,time_s,bandwidth_bytes_per_s\nS,D,1700000000,5\nS,D,1700003600,6\n"
    (tmp_path / "samples.csv").write_text(table)
    assert read_cycles(tmp_path).n == read_cycles(tmp_path / "samples.csv").n == 2


def test_no_folder_is_refused(tmp_path):
    with pytest.raises(ProblemError, match="no such file"):
        read_cycles(tmp_path / "nowhere")


def test_samples_without_times_are_passes_in_their_order():
    samples = pd.DataFrame({"from": ["S", "S"], "to": "D", "time_s": 0.0})
    assert cycles_of(samples.assign(bandwidth_bytes_per_s=[1.0, 2.0])).n == 2
