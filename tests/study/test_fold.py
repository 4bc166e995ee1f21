"""Folding a sweep's parts: killed at any step nothing is lost, and nothing there twice."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from instances.made_sweeps import document_of, row_of
from instances.small_experiments import experiment_of, files_of, without_times

import datacollect as dc
from datacollect.commands.main import run
from datacollect.errors import NotWrittenError
from datacollect.study import folded
from datacollect.study import store as store_module
from datacollect.study.opening import opened
from datacollect.study.report.folders import read_sweeps
from datacollect.study.store import RunStore

VERSIONS = {"datacollect": "0", "numpy": "2"}
AXES = ("method", "rate")


class Killed(BaseException):
    """The process is no more."""


def run_of(seed, method="direct"):
    labels = {"method": method, "rate": "500000"}
    return document_of(row_of(labels, seed, lambda _: {}, 0.0))


def failure_of(seed):
    labels = {"method": "direct", "rate": "500000"}
    return {"key": f"f{seed}", "labels": labels, "seed": seed, "reason": "out of luck"}


@pytest.fixture
def store(tmp_path):
    """A sweep of six runs, four of them folded, two in parts; one failed, one measured again."""
    with opened(experiment_of(), tmp_path / "sweep", VERSIONS) as made:
        for seed in (1, 2, 3, 4):
            made.write_run(run_of(seed))
        (made.probes / "probes-a.json").write_text("[1]")
        made.fold()
        for seed in (5, 6):
            made.write_run(run_of(seed))
        made.write_failure(failure_of(7))
        (made.probes / "probes-b.json").write_text("[2]")
        yield made


def content_of(store):
    """All that a reader sees of a folder."""
    kept = store.read()
    assert kept.unreadable == ()
    documents = [store.document(key) for key in kept.table["key"]]
    return kept.table, kept.failures, documents, store.measurements()


def assert_same(found, wanted):
    pd.testing.assert_frame_equal(found[0], wanted[0], check_exact=True)
    assert found[1:] == wanted[1:]


def dying_at(step, monkeypatch):
    """Let the process die at its n-th call that changes the disk; count them."""
    calls = []

    def dying(change):
        def call(*args, **options):
            calls.append(change.__name__)
            if len(calls) >= step:
                raise Killed
            return change(*args, **options)

        return call

    for owner, name in (
        *((os, name) for name in ("fsync", "open")),
        *((Path, name) for name in ("replace", "unlink", "write_text")),
        (pq.ParquetWriter, "write_table"),
    ):
        monkeypatch.setattr(owner, name, dying(getattr(owner, name)))
    return calls


@pytest.mark.slow
def test_wherever_a_fold_is_killed_nothing_is_lost_or_twice(store, monkeypatch):
    wanted, step = content_of(store), 0
    assert (len(wanted[0]), len(wanted[1]), len(wanted[2]), len(wanted[3])) == (6, 1, 6, 2)
    while True:
        step += 1
        with monkeypatch.context() as machine:
            calls = dying_at(step, machine)
            try:
                store.fold()
            except Killed:
                pass
            else:
                break
        assert_same(content_of(store), wanted)
    assert step > 15
    assert {"replace", "unlink", "fsync", "write_table"} <= set(calls)
    assert_same(content_of(store), wanted)
    assert [file for file in files_of(store.folder) if not file.startswith(".")] == [
        "documents.parquet",
        "experiment.json",
        "failed.jsonl",
        "results.parquet",
    ]


def test_what_is_added_while_a_fold_goes_on_stays(store, monkeypatch):
    """A worker of a sweep before, on another machine, ends its run at the wrong moment."""
    write_table = store_module.write_table

    def late(*args):
        write_table(*args)
        store.write_run(run_of(8))

    monkeypatch.setattr(store_module, "write_table", late)
    store.fold()
    monkeypatch.undo()
    assert sorted(store.read().table["seed"]) == [1, 2, 3, 4, 5, 6, 8]
    assert len(store.fold()) == 7
    assert not list((store.folder / "parts").iterdir())


@pytest.mark.slow
def test_a_damaged_line_is_named_and_a_torn_one_left_out(tmp_path, monkeypatch, capsys):
    """A sweep of six runs that was killed: one line has another letter, the last lacks its end."""
    folder = tmp_path / "sweep"
    with monkeypatch.context() as killed:
        killed.setattr(RunStore, "fold", lambda store: store.read().table)
        whole = dc.sweep(experiment_of(seeds={"least": 3}), folder, workers=0)
    part = max((folder / "parts").iterdir())
    lines = part.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"direct", b"detect").replace(b"coordinated", b"coordinates")
    part.write_bytes(b"".join(lines)[:-1])
    assert run(["report", str(folder)]) == 0
    place = f"parts/{part.name}, line 2"
    assert (
        f"1 files of runs are cut short, and left out: {folder}/{place}" in capsys.readouterr().err
    )
    reports = []
    again = dc.sweep(experiment_of(), folder, workers=0, progress=reports.append)
    assert reports[0].trouble == f"{folder}: {place}: damaged; these runs are made again"
    assert (reports[0].kept, reports[-1].trouble) == (len(whole) - 2, "")
    pd.testing.assert_frame_equal(without_times(again), without_times(whole))
    assert len(dc.sweep(experiment_of(), folder, workers=0)) == 12  # and nobody is told again


def test_a_reader_between_whose_looks_it_was_folded_misses_nothing(store, monkeypatch):
    """Parts are read before the file of all rows: the other way round six rows would be four."""
    records = RunStore._records

    def folded_after(self):
        found = records(self)
        monkeypatch.undo()
        store.fold()
        return found

    monkeypatch.setattr(RunStore, "_records", folded_after)
    assert len(store.read().table) == 6


def test_a_disk_that_is_full_when_it_folds_changes_nothing(store, monkeypatch):
    wanted, before = content_of(store), files_of(store.folder)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("datacollect.files.durability.synchronise", full)
        with pytest.raises(NotWrittenError, match=r"documents\.parquet: cannot be written: No"):
            store.fold()
    assert files_of(store.folder) == before
    assert_same(content_of(store), wanted)


def test_a_run_that_failed_and_is_made_well_failed_no_more(store):
    store.write_run(run_of(7))
    assert store.read().failures == ()
    store.fold()
    assert (store.folder / "failed.jsonl").read_text() == ""


def test_numbers_keep_their_last_digit_and_infinity(store):
    row = run_of(9)["row"] | {"makespan_s": 0.1 + 0.2, "predicted_s": float("inf"), "stalls": None}
    row["stalls"] = float("nan")
    store.write_rows([row])
    (found,) = store.fold().query("seed == 9").to_dict("records")
    assert (found["makespan_s"], found["predicted_s"]) == (0.1 + 0.2, float("inf"))
    assert found["stalls"] != found["stalls"]


def test_a_file_of_all_rows_says_by_what_it_was_made(tmp_path):
    """Each start counts once; more of them were asked for more."""
    for seeds in (1, 1, 2):
        dc.sweep(experiment_of(), tmp_path / "a b", workers=0, seeds_most=seeds)
    metadata = pq.read_schema(tmp_path / "a b" / "results.parquet").metadata
    tree = json.loads(metadata[b"datacollect"])
    assert tree["format"] == "datacollect-results/1"
    own = json.loads((tmp_path / "a b" / "experiment.json").read_text())
    assert len(own.pop("token")) == 16  # a copy elsewhere is another folder
    assert tree["experiment"] == own
    starts = tree["experiment"]["starts"]
    command = f"datacollect sweep small.toml -o '{tmp_path}/a b' --seeds"
    assert [start["command"] for start in starts] == [f"{command} 1", f"{command} 2"]
    assert {"python", "datacollect", "numpy", "pandas", "pyarrow"} <= set(starts[0]["versions"])


def test_the_file_of_all_rows_alone_is_a_sweep_that_is_reported_and_goes_on(tmp_path, monkeypatch):
    table = dc.sweep(experiment_of(), tmp_path / "whole", workers=0, seeds_most=2)
    (tmp_path / "alone" / "small").mkdir(parents=True)
    file = tmp_path / "whole" / "results.parquet"
    file.rename(tmp_path / "alone" / "small" / "results.parquet")
    (sweep,) = read_sweeps(tmp_path / "alone")
    pd.testing.assert_frame_equal(sweep.table, table)
    monkeypatch.setattr("datacollect.study.jobs.carry_out", None)
    again = dc.sweep(experiment_of(), tmp_path / "alone" / "small", workers=0, seeds_most=2)
    pd.testing.assert_frame_equal(again, table)


def test_damaged_documents_are_refused_and_nothing_is_written_over(store):
    file = store.folder / "documents.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    before = {name: (store.folder / name).read_bytes() for name in files_of(store.folder)}
    for read in (store.fold, store.measurements, lambda: store.borrow_probes(())):
        with pytest.raises(dc.ProblemError, match=r"documents\.parquet: cannot be read as a"):
            read()
    assert {name: (store.folder / name).read_bytes() for name in files_of(store.folder)} == before


def test_documents_are_found_by_name_however_many_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(folded, "GROUP_BYTES", 100)
    file = tmp_path / "documents.parquet"
    wanted = [(f"runs/{n}.json", "x" * n) for n in range(60)]
    folded.write_documents(file, iter(wanted))
    assert pq.ParquetFile(file).num_row_groups > 10
    assert list(folded.read_documents(file)) == wanted
    assert folded.names_of(file) == {name for name, _ in wanted}
    assert [folded.read_document(file, name) for name, _ in wanted] == [text for _, text in wanted]
    assert folded.read_document(file, "runs/60.json") is None
