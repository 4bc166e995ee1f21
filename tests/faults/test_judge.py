"""The judge of experiments: it notices what is wrong, and lets pass what is right."""

from __future__ import annotations

import json

import pytest
from faults.judge import judge_again, judge_end, judge_kept, judge_pull, judge_status
from faults.processes import STUCK, Ended

FILES = {"S1": {"a": b"12", "run/b": b""}, "W": {"c": b"3"}}
KEPT = (".datacollect/lock",)
UNSAVED = "note: the promise of this pull could not be saved: Input/output error\n"
COMPLETE = json.dumps({"complete": True, "missing": []})
SOME = json.dumps({"complete": False, "missing": [{"source": "W"}]})


@pytest.fixture
def into(tmp_path):
    """A pull that has ended well."""
    for source, files in FILES.items():
        for path, data in files.items():
            (tmp_path / source / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / source / path).write_bytes(data)
    (tmp_path / ".datacollect").mkdir()
    (tmp_path / ".datacollect/lock").touch()
    return tmp_path


def ended(code, stdout="", stderr=""):
    return Ended(code, stdout, stderr, 1.0)


def rules(findings):
    return {finding.rule for finding in findings}


def test_what_ended_well_breaks_no_rule(into):
    good = ended(0, COMPLETE)
    assert judge_pull(good, FILES, into) == []
    assert judge_again(good, FILES, into, KEPT) == []
    assert judge_status(good, good, FILES, into) == []


def test_what_is_missing_and_named_breaks_no_rule(into):
    (into / "W/c").unlink()
    some = ended(1, SOME)
    assert judge_pull(some, FILES, into) == []
    assert judge_status(some, some, FILES, into) == []


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "rule"),
    [
        (STUCK, "", "", "a"),
        (7, "", "", "b"),
        (-9, "", "", "b"),
        (3, "", "error: internal error: KeyError", "b"),
        (1, SOME, "Traceback (most recent call last):\n", "b"),
        (2, "", "error: the state is damaged; move the folder x away", "b"),
        (0, "", "", "c"),
        (0, SOME, "", "c"),
        (1, json.dumps({"complete": False, "missing": []}), "", "f"),
        (0, json.dumps({"complete": True, "missing": [1]}), "", "f"),
    ],
)
def test_each_wrong_end_breaks_its_rule(into, code, stdout, stderr, rule):
    assert rule in rules(judge_pull(ended(code, stdout, stderr), FILES, into))


def test_a_kill_may_end_what_was_killed():
    assert judge_end(ended(-9), [-9]) == []


def test_a_full_disk_is_exit_3():
    assert judge_end(ended(3), full_disk=True) == []
    assert rules(judge_end(ended(2), full_disk=True)) == {"b"}


def test_a_file_that_is_absent_is_noticed(into):
    (into / "S1/a").unlink()
    good = ended(0, COMPLETE)
    assert rules(judge_pull(good, FILES, into)) == {"c"}
    assert rules(judge_status(good, ended(3), FILES, into)) == {"e"}
    assert rules(judge_again(good, FILES, into, KEPT)) == {"g"}


@pytest.mark.parametrize(
    ("code", "call", "kind", "error", "is_found"),
    [
        (0, "fsync", ".datacollect/incoming/N", "EIO", True),
        (0, "os.fsync", "syncing.py:sync_files", "ENOSPC", True),
        (0, "fdatasync", ".datacollect/state.sqlite-wal", "EDQUOT", True),
        (0, "fsync", ".datacollect", "EIO", True),
        (3, "fsync", ".datacollect/incoming/N", "EIO", False),
        (0, "fsync", ".datacollect/incoming/N", "SLOW", False),
        (0, "fdatasync", ".datacollect", "EIO", False),
        (0, "fdatasync", ".datacollect/state.sqlite", "EIO", False),
        (0, "close", ".datacollect/incoming/N", "EIO", False),
    ],
)
def test_what_was_not_synced_is_not_there(code, call, kind, error, is_found):
    """All files can be read still: nothing else tells that a failure was swallowed."""
    found = judge_kept(ended(code), call, kind, error)
    assert rules(found) == ({"c"} if is_found else set())


@pytest.mark.parametrize(("stderr", "is_found"), [("", True), (UNSAVED, False)])
@pytest.mark.parametrize(
    ("call", "kind"),
    [("fsync", ".datacollect/history.jsonl"), ("os.fsync", "promises.py:keep")],
)
def test_what_happened_is_kept_or_its_loss_is_told(call, kind, stderr, is_found):
    """It serves later estimates alone: the files are there whatever becomes of it."""
    found = judge_kept(ended(0, stderr=stderr), call, kind, "EIO")
    assert rules(found) == ({"c"} if is_found else set())


def test_a_file_with_other_bytes_is_noticed(into):
    (into / "S1/a").write_bytes(b"1")
    assert rules(judge_pull(ended(3), FILES, into)) == {"d"}


def test_a_folder_that_lies_about_is_noticed(into):
    (into / "S1/x").mkdir()
    assert rules(judge_again(ended(0, COMPLETE), FILES, into, KEPT)) == {"g"}


@pytest.mark.parametrize("path", ["x", "S1/x", ".datacollect/incoming/7"])
def test_what_lies_about_is_noticed(into, path):
    (into / path).parent.mkdir(exist_ok=True)
    (into / path).touch()
    assert rules(judge_again(ended(0, COMPLETE), FILES, into, KEPT)) == {"g"}


@pytest.mark.parametrize(
    ("status", "pulled"),
    [
        (ended(3), ended(3)),  # it may not fail
        (ended(0, SOME), ended(1)),  # exit code and answer differ
        (ended(1, SOME), ended(0)),  # a pull has said that all is there
        (ended(2), ended(1)),  # something was started
        (ended(2), ended(3)),  # something is there
    ],
)
def test_a_status_that_is_not_true_is_noticed(into, status, pulled):
    assert rules(judge_status(status, pulled, FILES, into)) == {"e"}


def test_status_may_say_that_nothing_was_started(tmp_path):
    assert judge_status(ended(2), ended(3), FILES, tmp_path) == []
